// What the JSON files of a checkpoint have in common: a hash of their own as the last member, exact
// doubles, hashes of other things, metrics.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/manifest.h"
#include "checkpoint/strict_json.h"

namespace fathom::checkpoint {

// The text of `root` with one more member `key`: the XXH3-128 of that text with the 32 digits of
// the hash itself read as zeros. InvalidArgument if another member has that name, at any depth.
[[nodiscard]] std::string seal(Json root, const std::string& key);

// InvalidArgument unless `text` has such a hash, and it is right.
void check_seal(std::string text, const std::string& key);

// {"f64": "0x1.8p+1"}: every bit, inf and nan included.
[[nodiscard]] Json exact_json(double v);
[[nodiscard]] double parse_exact(const Json& j, const std::string& place);

// A member of 32 lower-case hexadecimal digits.
[[nodiscard]] std::string hash_of(ObjectReader& members, const std::string& key);

// null, or {"name", "value", "better"}.
[[nodiscard]] Json metric_json(const std::optional<Metric>& metric);
[[nodiscard]] std::optional<Metric> parse_metric(const Json& j);

}  // namespace fathom::checkpoint
