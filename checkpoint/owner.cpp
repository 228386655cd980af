#include "checkpoint/owner.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "checkpoint/strict_json.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/system.h"

namespace fathom::checkpoint {
namespace {

constexpr const char* kUnknownHost = "unknown";

// Field 22 of /proc/<pid>/stat; 0 if it cannot be read.
int64_t process_start(int64_t pid) {
  std::ifstream file(join("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');  // the command's name may contain spaces
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return fields ? std::atoll(field.c_str()) : 0;
}

}  // namespace

Owner this_process(const std::string& job_id, int64_t token) {
  return {.host = host_name(),
          .pid = ::getpid(),
          .process_start = process_start(::getpid()),
          .job_id = job_id,
          .since = int64_t(wall_seconds()),
          .token = token,
          .nonce = std::to_string(random_bits()),
          .locked = true,
          .released = false};
}

std::optional<Owner> read_owner(const Directory& run_directory) {
  const std::optional<std::string> text = run_directory.read_if_there(kOwnerName, 4096);
  if (!text) return std::nullopt;
  try {
    // Without finish(): a later version may add members.
    const Json json = parse_strictly(*text);
    ObjectReader members(json, kOwnerName);
    return Owner{.host = members.text("host"),
                 .pid = members.integer("pid"),
                 .process_start = members.integer("process_start"),
                 .job_id = members.text("job"),
                 .since = members.integer("since"),
                 .token = members.integer("fencing_token"),
                 .nonce = members.text("nonce"),
                 .locked = members.boolean("locked"),
                 .released = members.boolean("released")};
  } catch (const InvalidArgument&) {
    Owner unknown;
    unknown.host = kUnknownHost;
    return unknown;
  }
}

void write_owner(const Directory& run_directory, const Owner& owner) {
  const Json json = {
      {"host", owner.host},   {"pid", owner.pid},       {"process_start", owner.process_start},
      {"job", owner.job_id},  {"since", owner.since},   {"fencing_token", owner.token},
      {"nonce", owner.nonce}, {"locked", owner.locked}, {"released", owner.released}};
  run_directory.replace(kOwnerName,
                        json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

bool may_be_alive(const Owner& owner) {
  if (owner.host != host_name() || owner.host == kUnknownHost) return true;
  if (owner.pid <= 0 || (::kill(pid_t(owner.pid), 0) != 0 && errno == ESRCH)) return false;
  const int64_t start = process_start(owner.pid);
  return start == 0 || owner.process_start == 0 || start == owner.process_start;
}

std::string describe(const Owner& owner) {
  return join("host ", owner.host, ", pid ", owner.pid,
              owner.job_id.empty() ? "" : ", job " + owner.job_id, ", since ",
              duration_text(wall_seconds() - double(owner.since)));
}

}  // namespace fathom::checkpoint
