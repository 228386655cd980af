// Errors, by who can fix them. A library throws one of these and never prints or exits;
// `launcher/main` turns the type into the exit code and the text into the last line on stderr.
//
// Message form: "place: what was got, what was expected; remedy".
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace fathom {

// Exit codes of every command; documented in docs/running.md.
enum class ExitCode : int {
  kDone = 0,
  kUsage = 2,       // command line or config
  kData = 3,        // corpus, tokenizer, vocabulary
  kCheckpoint = 4,  // no usable checkpoint
  kTraining = 5,    // diverged, plateau, non-finite
  kIo = 6,          // a file could not be written or read
  kPeer = 7,        // peer lost, hang, MPI or GPU error
  kRequeue = 75,    // stopped by a signal after saving: run me again
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// The caller or the config is wrong.
struct InvalidArgument : Error {
  explicit InvalidArgument(const std::string& m) : Error(ExitCode::kUsage, m) {}
};
// A corpus, tokenizer or vocabulary is wrong.
struct DataError : Error {
  explicit DataError(const std::string& m) : Error(ExitCode::kData, m) {}
};
// A checkpoint is missing, damaged, or of another model.
struct CheckpointError : Error {
  explicit CheckpointError(const std::string& m) : Error(ExitCode::kCheckpoint, m) {}
};
// Training itself failed: non-finite, diverged, plateau.
struct TrainingError : Error {
  explicit TrainingError(const std::string& m) : Error(ExitCode::kTraining, m) {}
};
// The operating system refused: path and errno text in the message.
struct IoError : Error {
  explicit IoError(const std::string& m) : Error(ExitCode::kIo, m) {}
};
// MPI, CUDA or NCCL failed, memory ran out, or a peer is gone.
struct DeviceError : Error {
  explicit DeviceError(const std::string& m) : Error(ExitCode::kPeer, m) {}
};

// Joins its parts into one string, the same in every locale. NaN has no sign.
template <class... Parts>
[[nodiscard]] std::string join(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  const auto put = [&out](const auto& part) {
    if constexpr (std::is_floating_point_v<std::decay_t<decltype(part)>>)
      if (part != part) return void(out << "nan");
    out << part;
  };
  (put(parts), ...);
  return out.str();
}

template <class Kind = InvalidArgument, class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Kind(join(parts...));
}

// require(n > 0, "batch plan: needs at least one example, got ", n);
template <class Kind = InvalidArgument, class... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail<Kind>(parts...);
}

// A string literal converts to true: without this, a forgotten condition would always pass.
template <class Kind = InvalidArgument, class... Parts>
void require(const char*, const Parts&...) = delete;

}  // namespace fathom
