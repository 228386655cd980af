#include "launcher/config/corpus_paths.h"

#include <string>

namespace fathom::launcher {

namespace fs = std::filesystem;

void find_corpora(data::DataConfig& data, const fs::path& folder) {
  const auto is_there = [&](const std::string& prefix) {
    std::error_code ignored;
    const std::string text = prefix + "." + data.target;  // which every model reads
    return fs::exists(text, ignored) || fs::exists(text + ".gz", ignored);
  };
  for (std::string* prefix : {&data.train, &data.valid, &data.test}) {
    const std::string beside = (folder / *prefix).string();
    if (!prefix->empty() && !is_there(*prefix) && is_there(beside)) *prefix = beside;
  }
}

}  // namespace fathom::launcher
