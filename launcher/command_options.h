// How a command declares its words and options. CLI11 reads them, behind this: compiling its header
// takes seconds, which each command would pay.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace fathom::launcher {

// A command of the program, or one of its subcommands. A parse writes to what was declared, which
// must outlive it; the help shows as the default what it held when it was declared.
class CommandOptions {
 public:
  [[nodiscard]] CommandOptions subcommand(const std::string& name, const std::string& text);
  void hide_from_help();
  // Called when this command's words have been read.
  void on_parsed(std::function<void()> call);
  [[nodiscard]] bool parsed() const;

  // Words by their place.
  void required(const std::string& name, std::string& value, const std::string& text);
  void required(const std::string& name, std::vector<std::string>& values, const std::string& text);
  void optional(const std::string& name, std::vector<std::string>& values, const std::string& text);
  void word(const std::string& name, std::string& value, const std::string& text);  // optional

  // An empty value is refused.
  void option(const std::string& name, std::string& value, const std::string& text);
  // As many words as it has names for them.
  void option(const std::string& name, std::vector<std::string>& values,
              const std::vector<std::string>& names, const std::string& text);
  // 0 or more.
  void option(const std::string& name, int64_t& value, const std::string& text);
  void flag(const std::string& name, bool& value, const std::string& text);
  // --threads, 0 to 1024.
  void threads(int& value);

 private:
  friend class CommandLine;
  explicit CommandOptions(CLI::App& app) : app_(&app) {}

  CLI::App* app_;
};

// The program's own words; commands hang below `root`.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& text);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  [[nodiscard]] CommandOptions root();
  void version(std::function<std::string()> text);

  // False: --help or --version was answered on standard output, and nothing is left to do.
  // Throws InvalidArgument, naming the word and --help.
  [[nodiscard]] bool parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace fathom::launcher
