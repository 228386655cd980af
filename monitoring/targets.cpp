#include "monitoring/targets.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <unistd.h>

#include "core/base/error.h"
#include "monitoring/json.h"

namespace fathom::monitoring {

TargetsFile::TargetsFile(std::filesystem::path path, const std::string& address,
                         const std::map<std::string, std::string>& labels)
    : path_(std::move(path)) {
  Object kept;
  for (const auto& [name, value] : labels)
    if (!value.empty()) kept.push_back({name, value});
  const Object target{{"targets", Array{reachable_address(address)}}, {"labels", kept}};

  // Not *.json, so that a glob over targets never reads it half written.
  const std::filesystem::path aside = join(path_.string(), ".tmp.", getpid());
  std::ofstream out(aside);
  out << to_json(Array{target}) << '\n';
  out.close();
  std::error_code error;
  if (!out)
    error.assign(errno, std::generic_category());
  else
    std::filesystem::rename(aside, path_, error);
  if (!error) return;
  std::error_code ignored;
  std::filesystem::remove(aside, ignored);
  fail<IoError>("targets: ", path_.string(), " could not be written: ", error.message(),
                "; Prometheus would not find this run");
}

TargetsFile::~TargetsFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::string reachable_address(const std::string& address) {
  constexpr std::string_view kEveryInterface = "0.0.0.0:";
  if (!address.starts_with(kEveryInterface)) return address;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0)
    fail<IoError>("targets: this machine's name could not be read: ", std::strerror(errno));
  return join(name.data(), ':', address.substr(kEveryInterface.size()));
}

}  // namespace fathom::monitoring
