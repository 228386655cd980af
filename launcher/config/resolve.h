// The second half of loading: rules that join several keys. First what one key implies for another
// (`model.kind: decoder` means no encoder layers), then contradictions. Internal to load.cpp.
//
// A stronger place wins over a weaker one, so `optimizer.schedule=inverse-sqrt-w1` on the command
// line drops the file's warm-up; within one place the same is a contradiction and an error.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "launcher/config/config.h"
#include "launcher/config/yaml.h"
#include "launcher/problems.h"

namespace fathom::launcher {

enum class Strength { kDefault, kFile, kCommandLine };

// The value of a key that won, and where it was given.
struct Setting {
  YamlNode value = {};
  Strength strength = Strength::kDefault;
  std::string place;  // "FILE:LINE" or "command line"
};

// By key; those left at their default are absent.
using Settings = std::map<std::string, Setting, std::less<>>;

// Notes an InvalidArgument at the place of each key that has to change. `broken`: sections of which
// a value could not be read; no rule that looks at one of them is applied.
void resolve(Config& config, const Settings& settings, const std::string& source,
             const std::set<std::string>& broken, Problems& problems);

}  // namespace fathom::launcher
