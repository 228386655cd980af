#include "launcher/flat_history.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "launcher/effective_validations.h"
#include "monitoring/history.h"

namespace fathom::launcher {
namespace {

using Json = nlohmann::ordered_json;

// Members of members become members, under their own names.
void append_flat(const Json& object, FlatHistory::Row& row) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_object())
      append_flat(value, row);
    else
      row.emplace_back(name, value.dump());
  }
}

// A JSON value as a cell.
std::string cell(const std::string& json) {
  if (json == R"("NaN")") return "NaN";
  if (json == R"("Infinity")") return "inf";
  if (json == R"("-Infinity")") return "-inf";
  if (json == "null") return "";
  std::string text = json.starts_with('"') ? Json::parse(json).get<std::string>() : json;
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  for (size_t at = 0; (at = text.find('"', at)) != text.npos; at += 2) text.insert(at, 1, '"');
  return '"' + text + '"';
}

}  // namespace

HistoryTable history_table(const std::string& name) {
  if (name == "metrics") return HistoryTable::kMetrics;
  if (name == "layers") return HistoryTable::kLayers;
  if (name == "validations") return HistoryTable::kValidations;
  fail("--what: got ", name, ", expected metrics, layers or validations");
}

FlatHistory::FlatHistory(const std::filesystem::path& run, HistoryTable table) : table_(table) {
  require(std::filesystem::is_directory(run), "history: ", run.string(),
          ": no such directory; expected a run's");
  const char* file = table == HistoryTable::kMetrics  ? "metrics.jsonl"
                     : table == HistoryTable::kLayers ? "layers.jsonl"
                                                      : "events.jsonl";
  lines_ = monitoring::read_effective(run / file);
  if (table != HistoryTable::kValidations) return;
  const std::map<int64_t, std::string> by_step = effective_validations(lines_);
  lines_.clear();
  for (const auto& [step, line] : by_step) lines_.push_back(line);
}

void FlatHistory::for_each_row(const std::function<void(const Row&)>& f) const {
  for (const std::string& line : lines_) {
    Json object = Json::parse(line);
    if (table_ == HistoryTable::kValidations) object.erase("event");
    Json blocks = Json::array({Json::object()});
    if (table_ == HistoryTable::kLayers) {
      blocks = object.value("blocks", Json::array());
      object.erase("blocks");
    }
    for (const Json& block : blocks) {
      Row row;
      append_flat(object, row);
      append_flat(block, row);
      f(row);
    }
  }
}

std::vector<std::string> FlatHistory::columns() const {
  std::vector<std::string> names;
  for_each_row([&names](const Row& row) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string& name = row[i].first;
      const bool is_in_place = i < names.size() && names[i] == name;  // as in most rows
      if (!is_in_place && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  });
  return names;
}

std::string FlatHistory::csv() const {
  const std::vector<std::string> names = columns();
  std::string out;
  for (const std::string& name : names)
    out += (out.empty() ? "" : ",") + cell(nlohmann::json(name).dump());
  if (names.empty()) return "";
  out += "\r\n";
  for_each_row([&](const Row& row) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (i > 0) out += ',';
      const bool is_in_place = i < row.size() && row[i].first == names[i];
      const auto found = is_in_place ? row.begin() + ptrdiff_t(i)
                                     : std::ranges::find(row, names[i], &Row::value_type::first);
      if (found != row.end()) out += cell(found->second);
    }
    out += "\r\n";
  });
  return out;
}

std::string FlatHistory::jsonl() const {
  std::string out;
  for_each_row([&out](const Row& row) {
    out += '{';
    for (size_t i = 0; i < row.size(); ++i)
      out += (i > 0 ? "," : "") + nlohmann::json(row[i].first).dump() + ":" + row[i].second;
    out += "}\n";
  });
  return out;
}

}  // namespace fathom::launcher
