#include "launcher/train/start_record.h"

#include "core/base/file.h"
#include "launcher/json_members.h"
#include "monitoring/json.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "start.json";

std::string absolute(const std::string& path) {
  return path.empty() ? "" : fs::weakly_canonical(fs::absolute(path)).string();
}

}  // namespace

StartRecord record_of(const RunOptions& options) {
  return {.resume = names_a_path(options.resume) ? absolute(options.resume) : "",
          .init_from = absolute(options.init_from),
          .overwrites = options.overwrite};
}

StartRecord read_start(const fs::path& run) {
  const std::string text = read_if_there("run", run / kName).value_or("");
  return {.resume = text_member(text, "resume"),
          .init_from = text_member(text, "init_from"),
          .overwrites = flag_member(text, "overwrites"),
          .is_done = flag_member(text, "is_done")};
}

void write_start(const fs::path& run, const StartRecord& r) {
  const monitoring::Object json = {{"resume", r.resume},
                                   {"init_from", r.init_from},
                                   {"overwrites", r.overwrites},
                                   {"is_done", r.is_done}};
  write_file_durably("run", run / kName, monitoring::to_json(json) + "\n");
}

}  // namespace fathom::launcher
