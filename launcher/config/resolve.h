// The second half of loading: rules that join several keys. First what one key implies for another
// (`model.kind: decoder` means no encoder layers), then contradictions. Internal to load.cpp.
//
// A stronger place wins over a weaker one, so `optimizer.schedule=inverse-sqrt-w1` on the command
// line drops the file's warm-up; within one place the same is a contradiction and an error.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "launcher/config/config.h"

namespace fathom::launcher {

enum class Strength { kDefault, kFile, kCommandLine };

struct Origin {
  Strength strength = Strength::kDefault;
  std::string place;  // "FILE:LINE" or "command line"
};

// Where each given key was given; keys left at their default are absent.
using Origins = std::map<std::string, Origin, std::less<>>;

// Throws InvalidArgument at the place of the key that has to change.
void resolve(Config& config, const Origins& origins, const std::string& source);

}  // namespace fathom::launcher
