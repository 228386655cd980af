// `fathom config show|check|keys`. Each prints to `out` and returns the exit code.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "launcher/command_options.h"
#include "launcher/config/load.h"

namespace fathom::launcher {

// The resolved config, as YAML that loads again, with the defaults of what differs from them.
// InvalidArgument: the first problem.
[[nodiscard]] int config_show(const ConfigSource& source, const std::vector<std::string>& overrides,
                              std::ostream& out);

// When the config could start a run: a line that says so, and what the run would be. Else a line
// "fathom: ..." for each problem on `errors`, and 2 if the config is to blame, 3 if only the texts
// are.
[[nodiscard]] int config_check(const ConfigSource& source,
                               const std::vector<std::string>& overrides, std::ostream& out,
                               std::ostream& errors);

// Of the keys like `pattern` (document.h); the page is always whole.
enum class KeysForm { kText, kJson, kMarkdown };
[[nodiscard]] int config_keys(KeysForm form, const std::string& pattern, std::ostream& out);

struct ConfigCommand {
  enum class Action { kNone, kShow, kCheck, kKeys };
  Action action = Action::kNone;
  std::string config;
  std::vector<std::string> overrides;
  std::string pattern;
  bool json = false;
  bool markdown = false;
};

// Declares `config` with its three actions; a parse fills `command`.
[[nodiscard]] CommandOptions add_config(CommandOptions root, ConfigCommand& command);

// `in`: the config where its path is "-". InvalidArgument without an action.
[[nodiscard]] int run_config(const ConfigCommand& command, std::istream& in, std::ostream& out,
                             std::ostream& errors);

}  // namespace fathom::launcher
