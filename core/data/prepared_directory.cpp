#include "core/data/prepared_directory.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/hash.h"

namespace fathom::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kIndex = "data.json";
constexpr std::string_view kTokenizer = "tokenizer.model";
constexpr std::array<std::string_view, 3> kSplits{"train", "valid", "test"};

std::string file_of(std::string_view split) { return join(split, ".bin"); }

const Dataset* split_of(const PreparedData& data, std::string_view split) {
  if (split == "train") return &data.train;
  const std::optional<Dataset>& chosen = split == "valid" ? data.valid : data.test;
  return chosen ? &*chosen : nullptr;
}

json index_of(const PreparedData& data) {
  json splits = json::object();
  for (const std::string_view split : kSplits) {
    const Dataset* dataset = split_of(data, split);
    if (dataset == nullptr) continue;
    const SplitReport& report = data.reports.at(std::string(split));
    splits[std::string(split)] = {{"hash", dataset->hash()},
                                  {"lines", report.lines},
                                  {"pairs", report.pairs},
                                  {"source_tokens", dataset->source_tokens()},
                                  {"target_tokens", dataset->target_tokens()},
                                  {"counts", report.counts}};
  }
  return {{"format", kPreparedFormat},
          {"fingerprint", data.fingerprint},
          {"content_hash", data.content_hash},
          {"tokenizer_hash", xxh3_128(data.tokenizer->bytes())},
          {"vocabulary_size", data.tokenizer->size()},
          {"unigram_entropy", data.unigram_entropy},
          {"splits", std::move(splits)},
          {"notes", data.notes}};
}

Dataset open_split(const fs::path& directory, std::string_view split, const json& index) {
  Dataset dataset = Dataset::open(directory / file_of(split));
  require<DataError>(dataset.hash() == index.at("hash").get<std::string>(),
                     "data set: ", file_of(split), " is not the one that ", kIndex, " names");
  return dataset;
}

SplitReport report_of(const json& index) {
  return {index.at("lines").get<int64_t>(), index.at("pairs").get<int64_t>(),
          index.at("counts").get<DropCounts>()};
}

PreparedData read_set(const fs::path& directory, const json& index) {
  std::string model = read_file("data", directory / kTokenizer);
  require<DataError>(xxh3_128(model) == index.at("tokenizer_hash").get<std::string>(),
                     "data set: ", kTokenizer, " is not the one that ", kIndex, " names");
  const json& splits = index.at("splits");
  PreparedData data{
      .directory = directory,
      .fingerprint = index.at("fingerprint").get<std::string>(),
      .content_hash = index.at("content_hash").get<std::string>(),
      .tokenizer = std::make_shared<const Tokenizer>(Tokenizer::from_bytes(std::move(model))),
      .train = open_split(directory, "train", splits.at("train")),
      .valid = {},
      .test = {},
      .reports = {},
      .unigram_entropy = index.at("unigram_entropy").get<double>(),
      .notes = index.at("notes").get<std::vector<std::string>>()};
  if (splits.contains("valid")) data.valid = open_split(directory, "valid", splits["valid"]);
  if (splits.contains("test")) data.test = open_split(directory, "test", splits["test"]);
  for (const auto& [split, entry] : splits.items()) data.reports[split] = report_of(entry);
  require<DataError>(hash_contents(data) == data.content_hash, "data set: content_hash in ", kIndex,
                     " is not that of its files");
  return data;
}

void write_files(const Directory& directory, const PreparedData& data) {
  directory.write_new(std::string(kTokenizer), data.tokenizer->bytes());
  for (const std::string_view split : kSplits)
    if (const Dataset* dataset = split_of(data, split))
      directory.write_new(file_of(split), dataset->image());
  // A note may quote a file name that is not UTF-8.
  const std::string text = index_of(data).dump(2, ' ', false, json::error_handler_t::replace);
  directory.write_new(std::string(kIndex), text + "\n");
}

}  // namespace

std::string hash_contents(const PreparedData& data) {
  std::string hashes = xxh3_128(data.tokenizer->bytes());
  for (const std::string_view split : kSplits) {
    const Dataset* dataset = split_of(data, split);
    hashes += join(" ", split, " ", dataset != nullptr ? dataset->hash() : "none");
  }
  return xxh3_128(hashes);
}

std::optional<PreparedData> open_prepared(const fs::path& directory, const std::string& fingerprint,
                                          std::string& why_not) {
  why_not.clear();
  std::error_code ignored;
  if (!fs::exists(directory / kIndex, ignored)) {
    if (fs::is_directory(directory, ignored) && !fs::is_empty(directory, ignored))
      why_not = join("it has no ", kIndex);
    return std::nullopt;
  }
  try {
    const json index = json::parse(read_file("data", directory / kIndex));
    const int format = index.at("format").get<int>();
    if (format != kPreparedFormat)
      why_not = join("it has format ", format, ", this program writes ", kPreparedFormat);
    else if (index.at("fingerprint").get<std::string>() != fingerprint)
      why_not = "the texts or the data keys have changed";
    else
      return read_set(directory, index);
  } catch (const Error& e) {
    why_not = e.what();
  } catch (const json::exception& e) {
    why_not = join(kIndex, " is damaged: ", e.what());
  }
  return std::nullopt;
}

void refuse_foreign_files(const fs::path& directory) {
  require(!fs::exists(directory) || fs::is_directory(directory),
          "data.directory: ", directory.string(),
          " is a file; name a directory that is new, empty or a data set");
  if (!fs::exists(directory)) return;
  const bool is_set = fs::exists(directory / kIndex) || fs::exists(directory / file_of("train"));
  require(is_set || !fs::exists(directory / kTokenizer), "data.directory: ", directory.string(),
          " holds ", kTokenizer,
          " and no data set; to use that tokenizer set "
          "data.tokenizer_model to it, and name a directory that is new, empty or a data set");
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name == kIndex || name == kTokenizer ||
                      std::any_of(kSplits.begin(), kSplits.end(),
                                  [&](std::string_view split) { return name == file_of(split); });
    require(ours, "data.directory: ", directory.string(), " holds ", name,
            ", which is not of a data set; name a directory that is new, empty or a data set");
  }
}

void write_prepared(const fs::path& directory, const PreparedData& data, bool is_alone) try {
  refuse_foreign_files(directory);
  // A link may lead to a larger disk: the set is written where it leads.
  const fs::path place = fs::is_symlink(directory) ? fs::canonical(directory) : directory;
  const Directory parent("data", parent_of(place), Directory::Links::kFollow);
  const std::string name = place.filename().string();
  const std::string aside_name = name + ".fathom-aside" + (is_alone ? "" : temporary_name());
  // What a killed builder left.
  for (const std::string& left : {aside_name, aside_name + "-old"})
    if (is_alone) fs::remove_all(parent.path() / left);
  StagedDirectory aside(parent, aside_name, StagedDirectory::Rights::kByUmask);
  write_files(aside.directory(), data);
  aside.publish_as(name);
} catch (const fs::filesystem_error& e) {
  fail<IoError>("data: writing ", directory.string(), ": ", e.what());
}

}  // namespace fathom::data
