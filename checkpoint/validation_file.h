// validation.json: what a validation found of a checkpoint's weights. It is made after the
// checkpoint, so it is a file of its own beside the manifest, with its own hash; without it the
// checkpoint is whole. FORMAT.md is the specification.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "checkpoint/manifest.h"

namespace fathom::checkpoint {

inline constexpr const char* kValidationName = "validation.json";

struct ValidationResult {
  std::string data;                       // on what, as the caller likes
  std::optional<Metric> metric;           // that keep_best compares; none where it is not finite
  std::map<std::string, double> figures;  // inf and nan allowed
};

// The file's text. `manifest` is the checkpoint's. InvalidArgument: a text is not UTF-8, the metric
// is not finite.
[[nodiscard]] std::string to_json(const ValidationResult& result, const Manifest& manifest);

// None if `checkpoint` has no such file. `manifest` is its manifest. CheckpointError: the file
// cannot be read, is damaged, or is of other weights.
[[nodiscard]] std::optional<ValidationResult> read_validation(
    const std::filesystem::path& checkpoint, const Manifest& manifest);

}  // namespace fathom::checkpoint
