// What the checkpoint tests share: a small state with its visit, and errors as text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/archive.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "core/base/philox.h"
#include "tests/support/temporary_directory.h"

namespace fathom::checkpoint {

namespace fs = std::filesystem;

using support::names_in;
using support::read_text;
using support::TemporaryDirectory;
using support::write_text;

// A model of two weights with one pair of moments; every number depends on `seed`.
struct SmallState {
  std::vector<float> weight = std::vector<float>(2400);    // (40, 60)
  std::vector<float> bias = std::vector<float>(60);        // (60)
  std::vector<double> moment = std::vector<double>(2400);  // (40, 60)
  std::vector<float> scale = std::vector<float>(1);        // ()
  int64_t step = 0;
  double best = 0;
  std::string tokenizer;

  explicit SmallState(uint64_t seed = 0) {
    const PhiloxStream stream(seed, "small state");
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = float(stream.normal(i));
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = float(stream.normal(10000 + i));
    for (size_t i = 0; i < moment.size(); ++i) moment[i] = stream.normal(20000 + i) * 1e-300;
    scale[0] = -0.0f;
    weight[0] = std::numeric_limits<float>::denorm_min();
    step = int64_t(seed);
    best = std::numeric_limits<double>::infinity();
    tokenizer = "tokens \u00e9 \"quoted\" " + std::to_string(seed);
  }

  void visit(Archive& archive) {
    archive.value("step", step);
    archive.value("early_stopping/best", best);
    archive.value("tokenizer", tokenizer);
    const int64_t matrix[] = {40, 60}, row[] = {60};
    archive.array("model/encoder.1.fc1.weight", matrix, std::span(weight));
    archive.array("model/encoder.1.fc1.bias", row, std::span(bias));
    archive.array("model/scale", {}, std::span(scale));
    archive.array("optimizer/m/encoder.1.fc1.weight", matrix, std::span(moment));
  }
  bool operator==(const SmallState&) const = default;
};

inline SaveInfo info_of(int64_t step) {
  SaveInfo info;
  info.step = step;
  info.run_id = "run-1";
  info.attempt = 2;
  info.provenance = R"({"config_hash": "abc", "versions": {"hdf5": "1.10.8"}})";
  return info;
}

// Saves SmallState(step) as parent/step-<step>.
inline fs::path save_small(const fs::path& parent, int64_t step) {
  SmallState state{uint64_t(step)};
  SavingArchive archive;
  state.visit(archive);
  return write_checkpoint(parent / step_name(step), archive, info_of(step)).path;
}

// The message of the Kind that `f` throws; any other outcome is a failure.
template <class Kind, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Kind& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace fathom::checkpoint
