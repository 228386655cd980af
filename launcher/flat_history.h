// A run's histories as flat tables for other programs: a line a row, as an uninterrupted run would
// have written them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fathom::launcher {

enum class HistoryTable {
  kMetrics,      // a row a step
  kLayers,       // a row a block of a layer, of the steps with layer statistics
  kValidations,  // a row a validation; of one that was made twice, the last
};

// "metrics", "layers" or "validations". InvalidArgument for another word.
[[nodiscard]] HistoryTable history_table(const std::string& name);

class FlatHistory {
 public:
  // Reads the file of RUN in which the table is. InvalidArgument when there is no such directory;
  // errors of monitoring::read_effective.
  FlatHistory(const std::filesystem::path& run, HistoryTable table);

  // The names of all members of all rows, in the order in which they first come.
  [[nodiscard]] std::vector<std::string> columns() const;

  // Name and value of each member, as JSON.
  using Row = std::vector<std::pair<std::string, std::string>>;
  void for_each_row(const std::function<void(const Row&)>& f) const;

  // Comma-separated values of RFC 4180, with a header. What a row lacks is empty; NaN, inf and -inf
  // are written so.
  [[nodiscard]] std::string csv() const;
  // An object a line.
  [[nodiscard]] std::string jsonl() const;

 private:
  HistoryTable table_;
  std::vector<std::string> lines_;
};

}  // namespace fathom::launcher
