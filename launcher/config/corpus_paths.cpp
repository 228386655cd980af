#include "launcher/config/corpus_paths.h"

#include <cstdlib>
#include <string>

namespace fathom::launcher {

namespace fs = std::filesystem;

void expand_home(Config& config) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return;
  data::DataConfig& data = config.data;
  for (std::string* path : {&config.run.directory, &data.train, &data.valid, &data.test,
                            &data.tokenizer_model, &data.directory})
    if (*path == "~" || path->starts_with("~/")) path->replace(0, 1, home);
}

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
