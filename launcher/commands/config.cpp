#include "launcher/commands/config.h"

#include <istream>
#include <ostream>

#include "core/base/error.h"
#include "launcher/check_config.h"
#include "launcher/config/document.h"
#include "launcher/config/show.h"

namespace fathom::launcher {

namespace {

// "-": standard input.
ConfigSource source_of(const std::string& path, std::istream& in) {
  return path == "-" ? config_source(in) : config_source(path);
}

}  // namespace

int config_show(const ConfigSource& source, const std::vector<std::string>& overrides,
                std::ostream& out) {
  Problems problems;
  const Config config = gather_config(source, overrides, problems).config;
  if (!problems.empty()) fail(problems.errors().front().what());
  out << to_marked_yaml(config);
  return int(ExitCode::kDone);
}

int config_check(const ConfigSource& source, const std::vector<std::string>& overrides,
                 std::ostream& out, std::ostream& errors) {
  Problems problems;
  const std::string text = check_config(source, overrides, problems);
  if (problems.empty()) out << text;
  for (const Error& error : problems.errors()) errors << "fathom: " << error.what() << "\n";
  return int(problems.code());
}

int config_keys(KeysForm form, const std::string& pattern, std::ostream& out) {
  require(form != KeysForm::kMarkdown || pattern.empty(),
          "config keys --markdown: prints the whole page; leave the pattern out");
  if (form == KeysForm::kMarkdown)
    out << keys_as_markdown();
  else
    out << (form == KeysForm::kJson ? keys_as_json : keys_as_text)(keys_like(pattern));
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
        add("check", "All that is wrong with config and texts, or what the run would be",
            Action::kCheck)}) {
    one.required("config", command.config,
                 "A YAML file, a run's directory, or - for standard input");
    one.optional("overrides", command.overrides, "key=value, wins over the file");
  }
  CommandOptions keys = add("keys", "Every key: type, default, range, meaning", Action::kKeys);
  keys.word("pattern", command.pattern, "Only keys with this in their name, or a glob: 'batch.*'");
  keys.flag("--json", command.json, "As a JSON array, for scripts");
  keys.flag("--markdown", command.markdown, "As the page docs/configuration.md");
  return own;
}

int run_config(const ConfigCommand& command, std::istream& in, std::ostream& out,
               std::ostream& errors) {
  switch (command.action) {
    case ConfigCommand::Action::kShow:
      return config_show(source_of(command.config, in), command.overrides, out);
    case ConfigCommand::Action::kCheck:
      return config_check(source_of(command.config, in), command.overrides, out, errors);
    case ConfigCommand::Action::kKeys:
      require(!command.json || !command.markdown, "config keys: --json or --markdown, not both");
      return config_keys(command.json       ? KeysForm::kJson
                         : command.markdown ? KeysForm::kMarkdown
                                            : KeysForm::kText,
                         command.pattern, out);
    case ConfigCommand::Action::kNone:
      break;
  }
  fail("a subcommand is required; see --help");
}

}  // namespace fathom::launcher
