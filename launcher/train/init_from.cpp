#include "launcher/train/init_from.h"

#include "checkpoint/resolve.h"
#include "core/base/error.h"
#include "launcher/config/load.h"
#include "launcher/config/show.h"
#include "launcher/provenance.h"

namespace fathom::launcher {
namespace {

// Other shapes do not fit in any case.
bool gives_weights_their_meaning(const std::string& key) {
  return key == "model.heads" || key == "model.activation" || key == "model.topology" ||
         key.starts_with("model.topology_options.");
}

}  // namespace

std::optional<checkpoint::Checkpoint> open_donor(const std::string& path, const Config& config) {
  if (path.empty()) return std::nullopt;
  checkpoint::Checkpoint donor = checkpoint::open_checkpoint(path);
  const std::string text = provenance_text(donor.manifest().provenance, "config");
  require<CheckpointError>(!text.empty(), donor.path().string(),
                           ": carries no config; was it written by another program?");
  const Config theirs = parse_config(text, donor.path().string() + " (config)", "run");
  for (const Difference& d : differences(theirs, config))
    require(!gives_weights_their_meaning(d.key), "--init-from: ", d.key, ": got ", d.new_value,
            ", but the weights of ", donor.path().string(), " were trained with ", d.old_value,
            "; they would mean something else: set ", d.key, " to ", d.old_value);
  const bool is_exchanged = theirs.data.source == config.data.target &&
                            theirs.data.target == config.data.source &&
                            config.data.source != config.data.target;
  require(!is_exchanged, "--init-from: got data.source ", config.data.source, " and data.target ",
          config.data.target, ", but the weights of ", donor.path().string(), " translate ",
          theirs.data.source, " to ", theirs.data.target, "; exchange the two");
  return donor;
}

}  // namespace fathom::launcher
