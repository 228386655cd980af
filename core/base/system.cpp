#include "core/base/system.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "core/base/error.h"
#include "core/base/file.h"

namespace fathom {
namespace {

// The variable as a number of processes; nullopt when unset or not a positive number.
std::optional<int64_t> count(const Environment& environment, const std::string& name) {
  const std::optional<std::string> text = environment(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end || value < 1) return std::nullopt;
  return value;
}

// A step of srun with tasks of its own. Slurm numbers its batch, extern and interactive steps from
// the top of 32 bits; those run one shell, whatever SLURM_NTASKS says about the job.
bool inside_srun_step(const Environment& environment) {
  const std::optional<std::string> step = environment("SLURM_STEP_ID");
  return step && !step->empty() && std::strtoull(step->c_str(), nullptr, 10) < 0xFFFFFFF0u;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

int64_t physical_memory() { return int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE); }

uint64_t random_bits() {
  uint64_t bits = 0;
  if (::getentropy(&bits, sizeof bits) != 0)
    fail<IoError>("system: reading random bits: ", errno_text(errno));
  return bits;
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

Launch read_launch(const Environment& environment) {
  const bool has_pmix = environment("PMIX_RANK").has_value();
  const auto claim = [&](const char* name, bool speaks_pmix) -> std::optional<Launch> {
    const std::optional<int64_t> processes = count(environment, name);
    if (!processes) return std::nullopt;
    return Launch{.processes = *processes,
                  .evidence = join(name, "=", *processes),
                  .speaks_pmix = speaks_pmix};
  };
  if (const auto launch = claim("OMPI_COMM_WORLD_SIZE", true)) return *launch;
  // Before Slurm: another MPI's launcher may also run inside a Slurm step.
  if (const auto launch = claim("PMI_SIZE", has_pmix)) return *launch;
  if (const auto launch = claim("MPI_LOCALNRANKS", has_pmix)) return *launch;
  if (inside_srun_step(environment)) {
    if (const auto launch = claim("SLURM_STEP_NUM_TASKS", has_pmix)) return *launch;
    if (const auto launch = claim("SLURM_NTASKS", has_pmix)) return *launch;
  }
  if (has_pmix) return {.processes = 1, .evidence = "PMIX_RANK", .speaks_pmix = true};
  return {};
}

std::string batch_job(const Environment& environment) {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"})
    if (std::optional<std::string> job = environment(name)) return *std::move(job);
  return "";
}

}  // namespace fathom
