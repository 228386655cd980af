#include "launcher/command_options.h"

#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include "core/base/error.h"

namespace fathom::launcher {

CommandOptions CommandOptions::subcommand(const std::string& name, const std::string& text) {
  // That one must be named is not left to the parser, which would say so of a mistyped subcommand
  // too, instead of naming it.
  app_->require_subcommand(0, 1);
  return CommandOptions(*app_->add_subcommand(name, text));
}

void CommandOptions::hide_from_help() { app_->group(""); }

void CommandOptions::on_parsed(std::function<void()> call) { app_->callback(std::move(call)); }

bool CommandOptions::parsed() const { return app_->parsed(); }

void CommandOptions::required(const std::string& name, std::string& value,
                              const std::string& text) {
  app_->add_option(name, value, text)->required();
}

void CommandOptions::required(const std::string& name, std::vector<std::string>& values,
                              const std::string& text) {
  app_->add_option(name, values, text)->required();
}

void CommandOptions::optional(const std::string& name, std::vector<std::string>& values,
                              const std::string& text) {
  app_->add_option(name, values, text);
}

void CommandOptions::word(const std::string& name, std::string& value, const std::string& text) {
  app_->add_option(name, value, text);
}

void CommandOptions::option(const std::string& name, std::string& value, const std::string& text) {
  const CLI::Validator not_empty(
      [](const std::string& given) {
        return given.empty() ? std::string("is empty; is a variable not set?") : std::string();
      },
      "");
  app_->add_option(name, value, text)->check(not_empty)->capture_default_str();
}

void CommandOptions::option(const std::string& name, std::vector<std::string>& values,
                            const std::vector<std::string>& names, const std::string& text) {
  app_->add_option(name, values, text)
      ->expected(int(names.size()))
      ->type_name(CLI::detail::join(names, " "));
}

void CommandOptions::option(const std::string& name, int64_t& value, const std::string& text) {
  app_->add_option(name, value, text)->check(CLI::NonNegativeNumber)->capture_default_str();
}

void CommandOptions::flag(const std::string& name, bool& value, const std::string& text) {
  app_->add_flag(name, value, text);
}

void CommandOptions::threads(int& value) {
  app_->add_option("--threads", value, "0: all cores allowed")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

CommandLine::CommandLine(const std::string& name, const std::string& text)
    : app_(std::make_unique<CLI::App>(text, name)) {}

CommandLine::~CommandLine() = default;

CommandOptions CommandLine::root() { return CommandOptions(*app_); }

void CommandLine::version(std::function<std::string()> text) {
  app_->set_version_flag("--version,-V", std::move(text));
}

namespace {

// `fathom help train` for `fathom train --help`, `fathom version` for `fathom --version`.
std::vector<const char*> with_options_for_words(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "help") {
    words.erase(words.begin() + 1);
    words.push_back("--help");
  } else if (first == "version" && argc == 2) {
    words[1] = "--version";
  }
  return words;
}

}  // namespace

bool CommandLine::parse(int argc, const char* const* argv) {
  const std::vector<const char*> words = with_options_for_words(argc, argv);
  try {
    app_->parse(int(words.size()), words.data());
  } catch (const CLI::ExtrasError&) {  // whose text has them in the opposite order
    const std::vector<std::string> extras = app_->remaining(/*recurse=*/true);
    fail(extras.size() > 1 ? "the following arguments were not expected: "
                           : "the following argument was not expected: ",
         CLI::detail::join(extras, " "), "; see --help");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) fail(error.what(), "; see --help");
    app_->exit(error);
    return false;
  }
  return true;
}

}  // namespace fathom::launcher
