#include "launcher/command_options.h"

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

void CommandOptions::option(const std::string& name, std::string& value, const std::string& text) {
  const CLI::Validator not_empty(
      [](const std::string& given) {
        return given.empty() ? std::string("is empty; is a variable not set?") : std::string();
      },
      "");
  app_->add_option(name, value, text)->check(not_empty)->capture_default_str();
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
  app_->set_version_flag("--version", std::move(text));
}

bool CommandLine::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) fail(error.what(), "; see --help");
    app_->exit(error);
    return false;
  }
  return true;
}

}  // namespace fathom::launcher
