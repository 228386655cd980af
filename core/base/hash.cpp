#include "core/base/hash.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include <fmt/format.h>
#include <xxhash.h>

#include "core/base/file.h"
#include "core/base/text.h"

namespace fathom {
namespace {

std::string digits_of(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::string xxh3_128(std::string_view bytes) {
  return digits_of(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string xxh3_128(std::span<const std::byte> bytes) { return xxh3_128(as_text(bytes)); }

struct Xxh3Stream::State {
  XXH3_state_t* hash = XXH3_createState();
  ~State() { XXH3_freeState(hash); }
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {
  if (state_->hash == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_->hash);
}

Xxh3Stream::~Xxh3Stream() = default;

void Xxh3Stream::add(std::string_view bytes) {
  XXH3_128bits_update(state_->hash, bytes.data(), bytes.size());
}

std::string Xxh3Stream::digits() const { return digits_of(XXH3_128bits_digest(state_->hash)); }

std::string xxh3_128_of_file(std::string_view place, const std::string& path) {
  const FileDescriptor file = open_to_read(path);
  if (!file.is_open()) fail_io(place, "opening", path, errno, Access::kReading);
  Xxh3Stream stream;
  std::string piece;
  do {
    if (const int error = read_to_end(file, piece, size_t{1} << 20))
      fail_io(place, "reading", path, error, Access::kReading);
    stream.add(piece);
  } while (!piece.empty());
  return stream.digits();
}

}  // namespace fathom
