// Tells Prometheus (file_sd_configs) where to scrape an active run, since the node of a batch job
// is not known in advance. The file exists as long as the object, so that a run that ended cleanly
// is not reported as down.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace fathom::monitoring {

class TargetsFile {
 public:
  // Writes the file, durably. labels are added to every series of the target; those with an empty
  // value are omitted. IoError names the path.
  TargetsFile(std::filesystem::path path, const std::string& address,
              const std::map<std::string, std::string>& labels);
  ~TargetsFile();  // removes it
  TargetsFile(const TargetsFile&) = delete;
  TargetsFile& operator=(const TargetsFile&) = delete;

 private:
  std::filesystem::path path_;
};

// "host:port" as another machine must write it: this machine's name when the exporter listens on
// every interface (0.0.0.0); a single address is kept, since it is what was bound.
[[nodiscard]] std::string reachable_address(const std::string& address);

}  // namespace fathom::monitoring
