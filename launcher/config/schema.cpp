#include "launcher/config/schema.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "launcher/config/schema_builders.h"

namespace fathom::launcher {

namespace {

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// Changed, missing, extra and swapped neighbouring letters each count one.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

const std::vector<Key>& schema() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    add_model_keys(all);
    add_learning_keys(all);
    add_running_keys(all);
    return all;
  }();
  return keys;
}

const Key* find_key(std::string_view name) {
  const auto found = std::find_if(schema().begin(), schema().end(),
                                  [&](const Key& key) { return key.name == name; });
  return found == schema().end() ? nullptr : &*found;
}

std::vector<std::string> keys_below(std::string_view section) {
  const std::string prefix = std::string(section) + ".";
  std::vector<std::string> below;
  for (const Key& key : schema())
    if (key.name.starts_with(prefix)) below.push_back(key.name.substr(prefix.size()));
  return below;
}

std::string value_of(const Config& config, std::string_view name) {
  const Key* key = find_key(name);
  return key ? key->get(config).value_or("unset") : "unset";
}

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  constexpr size_t kLongest =
      100;  // no key is half as long; keeps the cost of a hostile name small
  if (word.size() > kLongest) return std::nullopt;
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  const std::string* closest = nullptr;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      closest = &candidate;
    }
  }
  return closest ? std::optional(*closest) : std::nullopt;
}

std::optional<std::string> nearest_key(std::string_view name) {
  std::vector<std::string> same_section, all;
  const std::string_view section = name.substr(0, name.find('.'));
  for (const Key& key : schema()) {
    all.push_back(key.name);
    if (std::string_view(key.name).substr(0, key.name.find('.')) == section)
      same_section.push_back(key.name);
  }
  for (const Key& key : schema())
    if (last_part(key.name) == last_part(name)) return key.name;
  // The last part decides: `model.x` is not a misspelt `model.y` for the prefix they share.
  std::vector<std::string> parts;
  for (const std::string& key : same_section) parts.emplace_back(last_part(key));
  if (const auto part = nearest(last_part(name), parts))
    return same_section[size_t(std::find(parts.begin(), parts.end(), *part) - parts.begin())];
  if (!same_section.empty()) return std::nullopt;
  return nearest(name, all);
}

std::string Interval::text() const {
  const bool has_low = low > -std::numeric_limits<double>::infinity();
  const bool has_high = high < std::numeric_limits<double>::infinity();
  if (has_low && has_high)
    return std::string(open_low ? " in (" : " in [") + format_number(low) + ", " +
           format_number(high) + (open_high ? ")" : "]");
  if (has_low) return std::string(open_low ? " > " : " >= ") + format_number(low);
  if (has_high) return std::string(open_high ? " < " : " <= ") + format_number(high);
  return "";
}

bool accepts_name(const std::string& text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 64 && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), is_allowed);
}

bool accepts_path(const std::string& text) { return !text.empty(); }

bool accepts_any(const std::string&) { return true; }

}  // namespace fathom::launcher
