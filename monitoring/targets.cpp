#include "monitoring/targets.h"

#include <system_error>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/system.h"
#include "monitoring/json.h"

namespace fathom::monitoring {

TargetsFile::TargetsFile(std::filesystem::path path, const std::string& address,
                         const std::map<std::string, std::string>& labels)
    : path_(std::move(path)) {
  Object kept;
  for (const auto& [name, value] : labels)
    if (!value.empty()) kept.push_back({name, value});
  const Object target{{"targets", Array{reachable_address(address)}}, {"labels", kept}};

  try {
    // The temporary name does not match *.json, so a glob over targets never reads half a file.
    write_file_durably("targets", path_, to_json(Array{target}) + '\n');
  } catch (const IoError& e) {
    fail<IoError>(e.what(), "; Prometheus would not find this run");
  }
}

TargetsFile::~TargetsFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::string reachable_address(const std::string& address) {
  constexpr std::string_view kEveryInterface = "0.0.0.0:";
  if (!address.starts_with(kEveryInterface)) return address;
  return join(host_name(), ':', address.substr(kEveryInterface.size()));
}

}  // namespace fathom::monitoring
