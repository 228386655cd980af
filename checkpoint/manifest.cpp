#include "checkpoint/manifest.h"

#include <charconv>
#include <cmath>
#include <set>

#include "checkpoint/strict_json.h"
#include "core/base/error.h"
#include "core/base/hash.h"

namespace fathom::checkpoint {
namespace {

constexpr std::string_view kHashKey = "\"manifest_xxh3_128\": \"";
constexpr size_t kHashDigits = 32;

// to_chars and from_chars, since printf and strtod follow the locale.
std::string hex_double(double v) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, std::abs(v), std::chars_format::hex).ptr;
  return join(std::signbit(v) ? "-" : "", std::isfinite(v) ? "0x" : "", std::string(text, end));
}

double parse_hex_double(const std::string& text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  double v = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, v, std::chars_format::hex);
  require(error == std::errc{} && stop == end && !digits.starts_with('-'), "'", text,
          "' is not a hexadecimal floating-point number");
  return negative ? -v : v;
}

Json state_json(const StateValue& value) {
  if (const double* v = std::get_if<double>(&value)) return Json{{"f64", hex_double(*v)}};
  if (const int64_t* v = std::get_if<int64_t>(&value)) return *v;
  return std::get<std::string>(value);
}

std::string hash_of(ObjectReader& members, const std::string& key) {
  std::string hash = members.text(key);
  require(
      hash.size() == kHashDigits && hash.find_first_not_of("0123456789abcdef") == std::string::npos,
      members.place(), ": '", key, "' is not 32 lower-case hexadecimal digits");
  return hash;
}

StateValue parse_state_value(const std::string& name, const Json& j) {
  if (j.is_string()) return j.get<std::string>();
  if (j.is_object()) {
    ObjectReader members(j, "state." + name);
    const double v = parse_hex_double(members.text("f64"));
    members.finish();
    return v;
  }
  const Json wrapped{{name, j}};
  return ObjectReader(wrapped, "state").integer(name);
}

ArrayInfo parse_array(const Json& j, size_t index) {
  ObjectReader members(j, join("arrays[", index, "]"));
  ArrayInfo info;
  info.name = members.text("name");
  require(is_valid_name(info.name), "array name '", info.name, "' is not allowed");
  const Json& shape = members.take("shape");
  require(shape.is_array() && shape.size() <= 8, info.name, ": shape is not a list of up to 8");
  for (const Json& extent : shape) {
    require(extent.is_number_unsigned() && extent.get<uint64_t>() <= uint64_t{1} << 56, info.name,
            ": an extent is not an integer from 0 to 2^56");
    info.shape.push_back(extent.get<int64_t>());
  }
  require(element_count(info.shape) >= 0, info.name, ": shape ", shape_text(info.shape),
          " has more than 2^56 elements");
  const std::string dtype = members.text("dtype");
  require(dtype == "f32" || dtype == "f64", info.name, ": dtype '", dtype, "' is not f32 or f64");
  info.type = dtype == "f32" ? ElementType::kF32 : ElementType::kF64;
  info.hash = hash_of(members, "xxh3_128");
  members.finish();
  return info;
}

std::optional<Metric> parse_metric(const Json& j) {
  if (j.is_null()) return std::nullopt;
  ObjectReader members(j, "metric");
  Metric metric;
  metric.name = members.text("name");
  const Json& value = members.take("value");
  require(value.is_number(), "metric: 'value' is not a number");
  metric.value = value.get<double>();
  const std::string better = members.text("better");
  require(better == "lower" || better == "higher", "metric: 'better' is '", better,
          "', not lower or higher");
  metric.better = better == "lower" ? Better::kLower : Better::kHigher;
  members.finish();
  return metric;
}

Manifest from_json(const Json& root) {
  ObjectReader members(root, "manifest");
  const std::string format = members.text("format");
  require(format == "fathom-checkpoint", "format is '", format, "', not fathom-checkpoint");
  const int64_t version = members.count("version");
  require(version == kFormatVersion, "format version is ", version, ", this program reads ",
          kFormatVersion, "; use the program that wrote it");
  Manifest m;
  m.step = members.count("step");
  m.run_id = members.text("run");
  m.fencing_token = members.count("fencing_token");
  m.attempt = members.count("attempt");
  m.metric = parse_metric(members.take("metric"));
  const Json& provenance = members.take("provenance");
  require(provenance.is_object(), "provenance is not an object");
  m.provenance = provenance.dump();
  const Json& state = members.take("state");
  require(state.is_object(), "state is not an object");
  for (const auto& [name, value] : state.items()) {
    require(is_valid_name(name), "value name '", name, "' is not allowed");
    m.state.emplace(name, parse_state_value(name, value));
  }
  ObjectReader file(members.take("file"), "file");
  const std::string file_name = file.text("name");
  require(file_name == kStateName, "file: 'name' is '", file_name, "', not ", kStateName);
  m.state_bytes = file.count("bytes");
  m.state_hash = hash_of(file, "xxh3_128");
  file.finish();
  const Json& arrays = members.take("arrays");
  require(arrays.is_array(), "arrays is not a list");
  std::set<std::string> names;
  for (size_t i = 0; i < arrays.size(); ++i) {
    m.arrays.push_back(parse_array(arrays[i], i));
    require(names.insert(m.arrays.back().name).second, "array ", m.arrays.back().name,
            " appears twice");
  }
  static_cast<void>(hash_of(members, "manifest_xxh3_128"));
  members.finish();
  return m;
}

// The hash covers the whole text with the 32 digits of the hash itself read as zeros.
void check_own_hash(std::string text) {
  const size_t key = text.rfind(kHashKey);
  require(key != std::string::npos && text.find(kHashKey) == key &&
              key + kHashKey.size() + kHashDigits < text.size(),
          "manifest_xxh3_128 is missing or appears twice");
  const size_t at = key + kHashKey.size();
  const std::string stored = text.substr(at, kHashDigits);
  text.replace(at, kHashDigits, kHashDigits, '0');
  const std::string actual = xxh3_128(text);
  require(stored == actual, "its own hash is ", actual, ", it says ", stored);
}

}  // namespace

std::string to_json(const Manifest& m) {
  Json root;
  try {
    root["format"] = "fathom-checkpoint";
    root["version"] = kFormatVersion;
    root["step"] = m.step;
    root["run"] = m.run_id;
    root["fencing_token"] = m.fencing_token;
    root["attempt"] = m.attempt;
    root["metric"] = nullptr;
    if (m.metric) {
      require(std::isfinite(m.metric->value), "metric ", m.metric->name, " is ", m.metric->value);
      root["metric"] = {{"name", m.metric->name},
                        {"value", m.metric->value},
                        {"better", m.metric->better == Better::kLower ? "lower" : "higher"}};
    }
    root["provenance"] = parse_strictly(m.provenance);
    require(root["provenance"].is_object(), "provenance is not a JSON object");
    root["state"] = Json::object();
    for (const auto& [name, value] : m.state) root["state"][name] = state_json(value);
    root["file"] = {{"name", kStateName}, {"bytes", m.state_bytes}, {"xxh3_128", m.state_hash}};
    root["arrays"] = Json::array();
    for (const ArrayInfo& info : m.arrays)
      root["arrays"].push_back({{"name", info.name},
                                {"shape", info.shape},
                                {"dtype", to_string(info.type)},
                                {"xxh3_128", info.hash}});
    root["manifest_xxh3_128"] = std::string(kHashDigits, '0');
    std::string text = root.dump(1) + "\n";
    require(int64_t(text.size()) <= kMaxManifestBytes, "its text has ", text.size(),
            " bytes, allowed are ", kMaxManifestBytes);
    const size_t key = text.rfind(kHashKey);
    require(text.find(kHashKey) == key, "provenance must not have a key manifest_xxh3_128");
    text.replace(key + kHashKey.size(), kHashDigits, xxh3_128(text));
    return text;
  } catch (const Json::exception& e) {
    fail("checkpoint: manifest of step ", m.step, " cannot be written: ", e.what());
  } catch (const InvalidArgument& e) {
    fail("checkpoint: manifest of step ", m.step, " cannot be written: ", e.what());
  }
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  try {
    require(int64_t(text.size()) <= kMaxManifestBytes, "it has ", text.size(),
            " bytes, allowed are ", kMaxManifestBytes);
    const Json root = parse_strictly(text);
    check_own_hash(std::string(text));
    return from_json(root);
  } catch (const InvalidArgument& e) {
    fail<CheckpointError>("checkpoint ", where, ": ", kManifestName, ": ", e.what());
  }
}

}  // namespace fathom::checkpoint
