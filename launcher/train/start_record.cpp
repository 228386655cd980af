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
  StartRecord record = {.init_from = absolute(options.init_from), .overwrites = options.overwrite};
  if (options.overwrite) record.overwrite_command = options.command;
  if (!names_a_path(options.resume)) return record;
  record.resume = absolute(options.resume);
  record.resume_command = options.command;
  return record;
}

StartRecord read_start(const fs::path& run) {
  const std::string text = read_if_there("run", run / kName).value_or("");
  return {.resume = text_member(text, "resume"),
          .resume_command = text_member(text, "resume_command"),
          .is_done = flag_member(text, "is_done"),
          .init_from = text_member(text, "init_from"),
          .overwrites = flag_member(text, "overwrites"),
          .overwrite_command = text_member(text, "overwrite_command")};
}

void write_start(const fs::path& run, const StartRecord& r) {
  const monitoring::Object json = {
      {"resume", r.resume},         {"resume_command", r.resume_command},
      {"is_done", r.is_done},       {"init_from", r.init_from},
      {"overwrites", r.overwrites}, {"overwrite_command", r.overwrite_command}};
  write_file_durably("run", run / kName, monitoring::to_json(json) + "\n");
}

}  // namespace fathom::launcher
