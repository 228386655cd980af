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

CommandOptions add_config(CommandOptions root, ConfigCommand& command) {
  using Action = ConfigCommand::Action;
  CommandOptions own = root.subcommand("config", "Show or check a config, or list all keys");
  const auto add = [&](const char* name, const char* text, Action action) {
    CommandOptions one = own.subcommand(name, text);
    one.on_parsed([&command, action] { command.action = action; });
    return one;
  };
  for (CommandOptions one :
       {add("show", "The resolved config", Action::kShow),
        add("check", "Check, and say what memory a rank needs", Action::kCheck)}) {
    one.required("config", command.config, "A YAML file");
    one.optional("overrides", command.overrides, "key=value, wins over the file");
  }
  add("keys", "Every key: type, default, range, meaning", Action::kKeys)
      .flag("--markdown", command.markdown, "");
  return own;
}

int run_config(const ConfigCommand& command, std::ostream& out) {
  switch (command.action) {
    case ConfigCommand::Action::kShow:
      return config_show(command.config, command.overrides, out);
    case ConfigCommand::Action::kCheck:
      return config_check(command.config, command.overrides, out);
    case ConfigCommand::Action::kKeys:
      return config_keys(command.markdown ? KeysForm::kMarkdown : KeysForm::kText, out);
    case ConfigCommand::Action::kNone:
      break;
  }
  fail("a subcommand is required; see --help");
}

}  // namespace fathom::launcher
