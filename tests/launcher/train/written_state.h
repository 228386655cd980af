// Checkpoints of a state without a model, for tests of what is done with them.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "launcher/train/train_state.h"

namespace fathom::launcher {

inline checkpoint::SaveInfo save_info(int64_t step, const std::string& provenance = "{}") {
  checkpoint::SaveInfo info;
  info.step = step;
  info.run_id = "earlier";
  info.attempt = 4;
  info.provenance = provenance;
  return info;
}

inline checkpoint::Checkpoint written_state(const std::filesystem::path& path, TrainState state,
                                            const std::string& provenance = "{}") {
  checkpoint::SavingArchive archive;
  state.visit(archive);
  (void)checkpoint::write_checkpoint(path, archive, save_info(state.step, provenance));
  return checkpoint::Checkpoint::open(path);
}

}  // namespace fathom::launcher
