// manifest.json: which step of which run a checkpoint is, how it came about, the small values of
// the state, and the size and hash of everything else. FORMAT.md is the specification.
//
// The manifest contains its own hash, so a flipped bit anywhere in it is detected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fathom::checkpoint {

inline constexpr int64_t kFormatVersion = 2;  // that is written; 1 is read as well
inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kStateName = "state.h5";
inline constexpr int64_t kMaxManifestBytes = int64_t{16} << 20;

enum class ElementType { kF32, kF64 };
[[nodiscard]] std::string_view to_string(ElementType type);  // "f32", "f64"
[[nodiscard]] int64_t element_bytes(ElementType type);

using StateValue = std::variant<int64_t, double, std::string>;

struct ArrayInfo {
  std::string name;
  std::vector<int64_t> shape;
  ElementType type = ElementType::kF32;
  std::string hash;  // XXH3-128 of the elements as they lie in memory, row-major, little-endian
  [[nodiscard]] int64_t bytes() const;
};

enum class Better { kLower, kHigher };

// Of a validation, what keep_best compares.
struct Metric {
  std::string name;
  double value = 0;  // finite
  Better better = Better::kLower;
};

struct Manifest {
  int64_t step = 0;
  std::string run_id;
  int64_t fencing_token = 0;  // of the lock under which it was written; 0: written without a lock
  int64_t attempt = 0;        // how many times the run had been started
  std::optional<Metric> metric;   // of format version 1; later ones have it in validation.json
  std::string provenance = "{}";  // a JSON object, as the caller likes
  std::map<std::string, StateValue> state;
  int64_t state_bytes = 0;  // of state.h5
  std::string state_hash;
  std::vector<ArrayInfo> arrays;
};

// The file's text, including its own hash. InvalidArgument: provenance is not a JSON object, a text
// is not UTF-8, the result exceeds 16 MiB.
[[nodiscard]] std::string to_json(const Manifest& manifest);

// `where` names the checkpoint in messages. CheckpointError: not JSON, nested deeper than 32, a key
// repeated, unknown or missing, a wrong type, a value out of range, another format version, a wrong
// hash.
[[nodiscard]] Manifest parse_manifest(std::string_view text, const std::string& where);

// Words from [A-Za-z0-9._-] joined by '/', none of them "." or "..", at most 512 bytes.
[[nodiscard]] bool is_valid_name(std::string_view name);

// "(3072, 1024)".
[[nodiscard]] std::string shape_text(std::span<const int64_t> shape);

// Product of the extents, -1 if one is negative or the product exceeds 2^56.
[[nodiscard]] int64_t element_count(std::span<const int64_t> shape);

// "step-00012000".
[[nodiscard]] std::string step_name(int64_t step);

// The inverse of step_name; nothing for any other name.
[[nodiscard]] std::optional<int64_t> parse_step_name(std::string_view name);

}  // namespace fathom::checkpoint
