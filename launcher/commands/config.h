// `fathom config show|check|keys`. Each prints to `out` and returns the exit code; a config that is
// refused throws InvalidArgument, whose text is the whole answer.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "launcher/command_options.h"

namespace fathom::launcher {

// The resolved config, as YAML that loads again.
[[nodiscard]] int config_show(const std::string& path, const std::vector<std::string>& overrides,
                              std::ostream& out);

// When the config could start a run: a line that says so, and what memory the ranks would need.
// Opens no data file.
[[nodiscard]] int config_check(const std::string& path, const std::vector<std::string>& overrides,
                               std::ostream& out);

enum class KeysForm { kText, kMarkdown };  // --markdown
[[nodiscard]] int config_keys(KeysForm form, std::ostream& out);

struct ConfigCommand {
  enum class Action { kNone, kShow, kCheck, kKeys };
  Action action = Action::kNone;
  std::string config;
  std::vector<std::string> overrides;
  bool markdown = false;
};

// Declares `config` with its three actions; a parse fills `command`.
[[nodiscard]] CommandOptions add_config(CommandOptions root, ConfigCommand& command);

// InvalidArgument without an action.
[[nodiscard]] int run_config(const ConfigCommand& command, std::ostream& out);

}  // namespace fathom::launcher
