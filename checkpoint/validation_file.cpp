#include "checkpoint/validation_file.h"

#include <utility>

#include "checkpoint/files.h"
#include "checkpoint/sealed_json.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace fathom::checkpoint {
namespace {

constexpr const char* kSeal = "validation_xxh3_128";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxBytes = int64_t{1} << 20;

ValidationResult from_json(const Json& root, const Manifest& manifest) {
  ObjectReader members(root, "validation");
  const std::string format = members.text("format");
  require(format == "fathom-validation", "format is '", format, "', not fathom-validation");
  const int64_t version = members.count("version");
  require(version == kVersion, "format version is ", version, ", this program reads ", kVersion);
  const int64_t step = members.count("step");
  require(step == manifest.step && hash_of(members, "state_xxh3_128") == manifest.state_hash,
          "it is of other weights than those beside it");
  ValidationResult result;
  result.data = members.text("data");
  result.metric = parse_metric(members.take("metric"));
  const Json& figures = members.take("figures");
  require(figures.is_object(), "figures is not an object");
  for (const auto& [name, value] : figures.items())
    result.figures.emplace(name, parse_exact(value, "figures." + name));
  static_cast<void>(hash_of(members, kSeal));
  members.finish();
  return result;
}

bool is_there(const Directory& directory) {
  for (const std::string& name : directory.names())
    if (name == kValidationName) return true;
  return false;
}

}  // namespace

std::string to_json(const ValidationResult& result, const Manifest& manifest) {
  try {
    Json root = {{"format", "fathom-validation"}, {"version", kVersion},
                 {"step", manifest.step},         {"state_xxh3_128", manifest.state_hash},
                 {"data", result.data},           {"metric", metric_json(result.metric)},
                 {"figures", Json::object()}};
    for (const auto& [name, value] : result.figures) root["figures"][name] = exact_json(value);
    return seal(std::move(root), kSeal);
  } catch (const Json::exception& e) {
    fail("checkpoint: validation of step ", manifest.step, " cannot be written: ", e.what());
  }
}

std::optional<ValidationResult> read_validation(const std::filesystem::path& checkpoint,
                                                const Manifest& manifest) {
  try {
    const Directory directory(kPlace, checkpoint);
    if (!is_there(directory)) return std::nullopt;
    const int64_t size = regular_file_size(directory, kValidationName);
    require(size <= kMaxBytes, "it has ", size, " bytes, allowed are ", kMaxBytes);
    const Bytes bytes = read_regular_file(directory, kValidationName, size);
    const Json root = parse_strictly(as_text(bytes.span()));
    check_seal(std::string(as_text(bytes.span())), kSeal);
    return from_json(root, manifest);
  } catch (const IoError& e) {
    throw CheckpointError(e.what());
  } catch (const InvalidArgument& e) {
    fail<CheckpointError>("checkpoint ", checkpoint.string(), ": ", kValidationName, ": ", e.what(),
                          "; remove it, the validation is made again");
  }
}

}  // namespace fathom::checkpoint
