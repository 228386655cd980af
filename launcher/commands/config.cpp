#include "launcher/commands/config.h"

#include <ostream>

#include "core/base/error.h"
#include "launcher/config/document.h"
#include "launcher/config/load.h"
#include "launcher/config/show.h"
#include "launcher/memory_plan.h"

namespace fathom::launcher {

int config_show(const std::string& path, const std::vector<std::string>& overrides,
                std::ostream& out) {
  out << to_yaml(load_config(path, overrides));
  return int(ExitCode::kDone);
}

int config_check(const std::string& path, const std::vector<std::string>& overrides,
                 std::ostream& out) {
  const Config config = load_config(path, overrides);
  check_complete(config, path);
  out << path << ": ok: run " << config.run.name << ", config " << config_hash(config) << "\n"
      << describe_memory(config);
  return int(ExitCode::kDone);
}

int config_keys(KeysForm form, std::ostream& out) {
  out << (form == KeysForm::kMarkdown ? keys_as_markdown() : keys_as_text());
  return int(ExitCode::kDone);
}

}  // namespace fathom::launcher
