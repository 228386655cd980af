#include "checkpoint/manifest.h"

#include <set>
#include <utility>

#include "checkpoint/sealed_json.h"
#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

constexpr const char* kSeal = "manifest_xxh3_128";

Json state_json(const StateValue& value) {
  if (const double* v = std::get_if<double>(&value)) return exact_json(*v);
  if (const int64_t* v = std::get_if<int64_t>(&value)) return *v;
  return std::get<std::string>(value);
}

StateValue parse_state_value(const std::string& name, const Json& j) {
  if (j.is_string()) return j.get<std::string>();
  if (j.is_object()) return parse_exact(j, "state." + name);
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

Manifest from_json(const Json& root) {
  ObjectReader members(root, "manifest");
  const std::string format = members.text("format");
  require(format == "fathom-checkpoint", "format is '", format, "', not fathom-checkpoint");
  const int64_t version = members.count("version");
  require(version == 1 || version == kFormatVersion, "format version is ", version,
          ", this program reads 1 and ", kFormatVersion, "; use the program that wrote it");
  Manifest m;
  m.step = members.count("step");
  m.run_id = members.text("run");
  m.fencing_token = members.count("fencing_token");
  m.attempt = members.count("attempt");
  if (version == 1) m.metric = parse_metric(members.take("metric"));
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
  static_cast<void>(hash_of(members, kSeal));
  members.finish();
  return m;
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
    std::string text = seal(std::move(root), kSeal);
    require(int64_t(text.size()) <= kMaxManifestBytes, "its text has ", text.size(),
            " bytes, allowed are ", kMaxManifestBytes);
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
    check_seal(std::string(text), kSeal);
    return from_json(root);
  } catch (const InvalidArgument& e) {
    fail<CheckpointError>("checkpoint ", where, ": ", kManifestName, ": ", e.what());
  }
}

}  // namespace fathom::checkpoint
