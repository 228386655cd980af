#include "launcher/train/agreement.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "dist/agreement.h"
#include "launcher/config/show.h"
#include "launcher/provenance.h"
#include "launcher/version.h"

namespace fathom::launcher {

void check_ranks_agree(const Config& config, const data::PreparedData& data,
                       const std::string& numerics, dist::Communicator& group) {
  Config shared = config;
  shared.train.threads = 0;  // machines may differ in cores
  const std::string program = xxh3_128_of_file("run", "/proc/self/exe");
  dist::check_agreement(group, {{"config", config_hash(shared)},
                                {"program", version() + " " + program},
                                {"numerics", numerics},
                                {"data", data.content_hash}});
}

namespace {

constexpr const char* kPutBack =
    " has changed; put it back, or start a new run in another run.directory";

void check_same_training_text(const checkpoint::Manifest& manifest,
                              const data::PreparedData& data) {
  const std::string old = provenance_text(manifest.provenance, "training_tokens");
  const bool has_tokenizer =
      provenance_text(manifest.provenance, "tokenizer") == xxh3_128(data.tokenizer->bytes());
  require<DataError>(old == data.train.hash() && has_tokenizer, "data.train: its tokens are ",
                     data.train.hash(), ", but the run was started with ", old,
                     has_tokenizer ? ": the text" : ": the text or the tokenizer", kPutBack);
}

}  // namespace

bool check_same_data(const checkpoint::Checkpoint& checkpoint, const data::PreparedData& data,
                     const std::vector<std::string>& allowed) {
  const std::string& provenance = checkpoint.manifest().provenance;
  const std::string all = provenance_text(provenance, "data");
  if (all.empty() || all == data.content_hash) return false;
  require<DataError>(!provenance_text(provenance, "training_tokens").empty(),
                     "data: the checkpoint is of a version that did not record which of its texts "
                     "was which; resume it unchanged to its next save, then with other texts");
  check_same_training_text(checkpoint.manifest(), data);
  const std::string old = provenance_text(provenance, "validation_tokens");
  const std::string now = data.valid ? data.valid->hash() : "";
  if (old == now) return false;
  const bool is_allowed = std::find(allowed.begin(), allowed.end(), "data.valid") != allowed.end();
  require<DataError>(is_allowed, "data.valid: its tokens are ", now,
                     ", but the run was started with ", old, ": the text", kPutBack,
                     ", or go on with it: --allow-change data.valid");
  return true;
}

void check_same_numerics(const checkpoint::Checkpoint& checkpoint, const std::string& now,
                         const monitoring::Log& log) {
  const std::string old = provenance_text(checkpoint.manifest().provenance, "numerics");
  if (!old.empty() && old != now)
    log.warn(join("the checkpoint was computed with ", old, ", this process computes with ", now,
                  ": the run goes on, but not to the last bit as it would have there"));
}

}  // namespace fathom::launcher
