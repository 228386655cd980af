// Hashes. XXH3-128 identifies contents and finds damage, not malice; its digits are those that
// `xxhsum -H2` prints. The 64-bit hashes turn names into keys. Both are stored in files and must
// not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fathom {

// 32 lower-case hexadecimal digits, most significant first.
[[nodiscard]] std::string xxh3_128(std::string_view bytes);
[[nodiscard]] std::string xxh3_128(std::span<const std::byte> bytes);

// The same, over bytes added piece by piece.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(const Xxh3Stream&) = delete;
  Xxh3Stream& operator=(const Xxh3Stream&) = delete;
  void add(std::string_view bytes);
  [[nodiscard]] std::string digits() const;  // of all bytes added so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of a whole file, read in blocks. IoError as in file.h.
[[nodiscard]] std::string xxh3_128_of_file(std::string_view place, const std::string& path);

// Mixes 64 bits into 64 (the finaliser of splitmix64); used to derive keys from names and seeds.
[[nodiscard]] constexpr uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// FNV-1a over the name, mixed.
[[nodiscard]] constexpr uint64_t hash_name(std::string_view name) {
  uint64_t h = 0xCBF29CE484222325u;
  for (const char c : name) h = (h ^ uint8_t(c)) * 0x100000001B3u;
  return mix64(h);
}

}  // namespace fathom
