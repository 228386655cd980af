#include "launcher/failure.h"

#include <new>

#include "core/base/limits.h"

namespace fathom::launcher {

Failure failure_of(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return {ours->code(), ours->what()};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    const std::string remedy = reservable_memory().remedy;
    return {ExitCode::kPeer, "out of memory; lower batch.micro_tokens or the model's size" +
                                 (remedy.empty() ? "" : ", or " + remedy)};
  }
  return {ExitCode::kIo, error.what()};
}

}  // namespace fathom::launcher
