// A trained model to work with: RUN_OR_CHECKPOINT as commands other than train take it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/data/tokenizer.h"
#include "core/model/transformer.h"
#include "core/tensor/device.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

struct LoadedModel {
  Config config;  // of the run, model.vocabulary_size filled in
  std::filesystem::path checkpoint;
  int64_t step = 0;
  std::unique_ptr<Device> device;
  std::unique_ptr<model::Transformer> model;
  std::unique_ptr<data::Tokenizer> tokenizer;
};

// `path` is a checkpoint or a run directory (its newest valid one). The config comes from the
// checkpoint, the tokenizer from the run directory it lies in. `threads` 0: one for each core this
// process may use. CheckpointError when there is none, DataError when the tokenizer is missing or
// another one.
[[nodiscard]] LoadedModel load_model(const std::string& path, int threads = 0);

}  // namespace fathom::launcher
