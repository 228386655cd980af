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

void check_same_training_text(const checkpoint::Manifest& manifest,
                              const data::PreparedData& data) {
  const std::string old = provenance_text(manifest.provenance, "training_tokens");
  require<DataError>(!old.empty(),
                     "data: the checkpoint is of a version that did not record which text it was "
                     "trained on; resume it unchanged to its next save, then with the change");
  const bool is_same =
      old == data.train.hash() &&
      provenance_text(manifest.provenance, "tokenizer") == xxh3_128(data.tokenizer->bytes());
  require<DataError>(is_same, "data: the tokens of train are ", data.train.hash(),
                     ", but the run was started with ", old,
                     ": the texts have changed; put them back, or start a new run in another "
                     "run.directory");
}

}  // namespace

void check_same_data(const checkpoint::Checkpoint& checkpoint, const data::PreparedData& data,
                     const std::vector<ConfigChange>& changes) {
  const checkpoint::Manifest& manifest = checkpoint.manifest();
  const std::vector<ConfigChange> now = changes_at(changes, manifest.step);
  const bool has_other_texts = std::any_of(now.begin(), now.end(), [](const ConfigChange& c) {
    return c.key == "data.valid" || c.key == "data.test";
  });
  if (has_other_texts) return check_same_training_text(manifest, data);
  const std::string old = provenance_text(manifest.provenance, "data");
  require<DataError>(old.empty() || old == data.content_hash,
                     "data: the tokens of train, valid and test are ", data.content_hash,
                     ", but the run was started with ", old,
                     ": the texts have changed; put them back, or start a new run in another "
                     "run.directory");
}

void check_same_numerics(const checkpoint::Checkpoint& checkpoint, const std::string& now,
                         const monitoring::Log& log) {
  const std::string old = provenance_text(checkpoint.manifest().provenance, "numerics");
  if (!old.empty() && old != now)
    log.warn(join("the checkpoint was computed with ", old, ", this process computes with ", now,
                  ": the run goes on, but not to the last bit as it would have there"));
}

}  // namespace fathom::launcher
