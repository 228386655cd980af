#include "launcher/run_tokenizer.h"

#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "launcher/provenance.h"

namespace fathom::launcher {

std::string tokenizer_of(const checkpoint::Checkpoint& source) {
  // RUN/checkpoints/step-N, or a run's files laid beside a copied checkpoint.
  const std::filesystem::path run = source.path().parent_path().parent_path();
  const std::filesystem::path path = run / "tokenizer.model";
  std::optional<std::string> model = read_if_there("data", path);
  require<DataError>(model.has_value(), path.string(),
                     ": missing; a checkpoint is used where it lies in its run directory");
  const std::string trained_with = provenance_text(source.manifest().provenance, "tokenizer");
  require<DataError>(trained_with.empty() || trained_with == xxh3_128(*model), path.string(),
                     ": is not the tokenizer that ", source.path().string(),
                     " was trained with; put that one back");
  return *std::move(model);
}

}  // namespace fathom::launcher
