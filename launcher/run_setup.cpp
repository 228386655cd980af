#include "launcher/run_setup.h"

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/system.h"
#include "core/tensor/device.h"
#include "dist/agreement.h"
#include "launcher/config/load.h"
#include "launcher/config/show.h"
#include "launcher/provenance.h"
#include "launcher/version.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;

std::string new_run_id() { return fmt::format("{:016x}", random_bits()); }

// Only config.yaml of an earlier start may be there.
bool is_used(const checkpoint::CheckpointDirectory& checkpoints, const fs::path& run) {
  return !checkpoints.list().empty() || fs::exists(run / "metrics.jsonl");
}

// Hands every array and value of rank 0 to the others.
class BroadcastArchive final : public checkpoint::Archive {
 public:
  explicit BroadcastArchive(dist::Communicator& group) : group_(group) {}
  void array(std::string_view, std::span<const int64_t>, std::span<float> data) override {
    group_.broadcast(std::as_writable_bytes(data), 0);
  }
  void array(std::string_view, std::span<const int64_t>, std::span<double> data) override {
    group_.broadcast(std::as_writable_bytes(data), 0);
  }
  void value(std::string_view, int64_t& v) override {
    group_.broadcast(std::as_writable_bytes(std::span(&v, 1)), 0);
  }
  void value(std::string_view, double& v) override {
    group_.broadcast(std::as_writable_bytes(std::span(&v, 1)), 0);
  }
  void value(std::string_view, std::string& v) override { group_.broadcast(v, 0); }
  bool is_loading() const override { return true; }

 private:
  dist::Communicator& group_;
};

std::optional<checkpoint::Checkpoint> find_checkpoint(const Config& config, const std::string& mode,
                                                      RunDirectory& run, int64_t& rejected,
                                                      const monitoring::Log& log) {
  const fs::path directory = config.run.directory;
  if (mode == "never") {
    require(!is_used(*run.checkpoints, directory), "--resume never: ", directory.string(),
            " already holds a run; choose another run.directory or leave --resume out");
    return std::nullopt;
  }
  if (mode != "auto" && mode != "require") {
    require<CheckpointError>(fs::exists(mode), "--resume: ", mode,
                             " does not exist; expected auto, never, require, or the path of a "
                             "checkpoint or run");
    return checkpoint::open_checkpoint(mode);
  }
  checkpoint::Found found = run.checkpoints->newest_valid();
  rejected = int64_t(found.skipped.size());
  for (const checkpoint::Skipped& skipped : found.skipped) {
    log.warn(checkpoint::describe(skipped));
    run.checkpoints->leave_out(skipped);
  }
  if (!found.checkpoint) {
    require<CheckpointError>(
        found.skipped.empty(), directory.string(), ": none of ", found.skipped.size(),
        " checkpoints is valid (reasons above); mend or remove them, or choose "
        "another run.directory");
    require<CheckpointError>(mode != "require", directory.string(),
                             ": --resume require, but there is no checkpoint");
    if (is_used(*run.checkpoints, directory))
      log.warn(join(directory.string(),
                    ": a run was started here but left no checkpoint; starting anew"));
    return std::nullopt;
  }
  return std::move(found.checkpoint);
}

}  // namespace

RunDirectory open_run_directory(const Config& config, int rank, const monitoring::Log& log) {
  RunDirectory run;
  if (rank != 0) return run;
  const fs::path directory = config.run.directory;
  make_directories("run.directory", directory);
  run.lock.emplace(checkpoint::RunLock::acquire(directory));
  if (!run.lock->note().empty()) log.warn(run.lock->note());
  run.checkpoints.emplace(checkpoint::CheckpointDirectory::open_for_writing(directory, *run.lock));
  return run;
}

Resume decide_resume(const Config& config, const std::string& mode, RunDirectory& run,
                     dist::Communicator& group, const monitoring::Log& log) {
  Resume resume;
  if (group.rank() == 0) {
    resume.checkpoint = find_checkpoint(config, mode, run, resume.rejected, log);
    if (resume.checkpoint) {
      const checkpoint::Manifest& manifest = resume.checkpoint->manifest();
      const std::string old = provenance_text(manifest.provenance, "config");
      require<CheckpointError>(!old.empty(), resume.checkpoint->path().string(),
                               ": carries no config; was it written by another program?");
      check_resume(parse_config(old, "the checkpoint's config", config.run.name), config);
      resume.run_id = manifest.run_id;
      resume.attempt = manifest.attempt + 1;
    } else {
      resume.run_id = new_run_id();
    }
  }
  resume.resumes = group.all_reduce_max(resume.checkpoint.has_value()) == 1;
  group.broadcast(resume.run_id, 0);
  resume.attempt = group.all_reduce_max(resume.attempt);
  return resume;
}

void keep_config(const Config& config) {
  write_file_durably("run", fs::path(config.run.directory) / "config.yaml", to_yaml(config));
}

data::PreparedData prepare_data(const Config& config, dist::Communicator& group,
                                const monitoring::Log& log) {
  const bool decoder_only = config.model.kind == model::ModelKind::kDecoder;
  std::optional<data::PreparedData> data;
  if (group.rank() == 0) data.emplace(data::prepare(config.data, decoder_only));
  group.barrier();
  if (!data) data.emplace(data::prepare(config.data, decoder_only));
  for (const std::string& note : data->notes) log.info(note);
  return std::move(*data);
}

void abandon_later(const Resume& resume, RunDirectory& run) {
  if (resume.checkpoint && run.checkpoints)
    run.checkpoints->discard_after(resume.checkpoint->manifest().step);
}

void check_same_numerics(const Resume& resume, const std::string& now, const monitoring::Log& log) {
  if (!resume.checkpoint) return;
  const std::string old = provenance_text(resume.checkpoint->manifest().provenance, "numerics");
  if (!old.empty() && old != now)
    log.warn(join("the checkpoint was computed with ", old, ", this process computes with ", now,
                  ": the run goes on, but not to the last bit as it would have there"));
}

void check_same_data(const Resume& resume, const data::PreparedData& data) {
  if (!resume.checkpoint) return;
  const std::string old = provenance_text(resume.checkpoint->manifest().provenance, "data");
  require<DataError>(old.empty() || old == data.content_hash,
                     "data: the tokens of train, valid and test are ", data.content_hash,
                     ", but the run was started with ", old,
                     ": the texts have changed; put them back, or start a new run in another "
                     "run.directory");
}

void check_ranks_agree(const Config& config, const data::PreparedData& data,
                       const std::string& numerics, dist::Communicator& group) {
  Config shared = config;
  shared.train.threads = 0;  // machines may differ in cores
  const std::string program = xxh3_128_of_file("run", "/proc/self/exe");
  dist::check_agreement(group, {{"config", config_hash(shared)},
                                {"program", version() + " " + program},
                                {"numerics", numerics},
                                {"data", data.content_hash}});
}

void load_state(const Resume& resume, TrainState& state, const Sharding& sharding,
                dist::Communicator& group) {
  const size_t bytes = size_t(state.model.parameters().weights().bytes());
  HostMoments moments = {.first = std::vector<std::byte>(bytes),
                         .second = std::vector<std::byte>(bytes)};
  if (resume.checkpoint) {
    checkpoint::LoadingArchive archive(*resume.checkpoint);
    HostCopies copies;
    state.visit(archive, copies, moments);
    archive.finish();
  }
  if (group.size() > 1) {
    BroadcastArchive archive(group);
    HostCopies copies;
    state.visit(archive, copies, moments);
  }
  sharding.upload(state.adam.first(), moments.first);
  sharding.upload(state.adam.second(), moments.second);
}

void load_weights(const std::string& path, const Config& config, model::Transformer& model,
                  dist::Communicator& group, const monitoring::Log& log) {
  HostCopies copies;
  if (group.rank() == 0) {
    const checkpoint::Checkpoint source = checkpoint::open_checkpoint(path);
    const std::string old = provenance_text(source.manifest().provenance, "config");
    const std::string topology =
        old.empty() ? "" : parse_config(old, path + " (config)", "run").model.topology;
    log.info(join("weights from ", source.path().string(), ", step ", source.manifest().step));
    if (!topology.empty() && topology != config.model.topology)
      log.warn(join("--init-from: the weights are those of a ", topology, " model, this one is ",
                    config.model.topology));
    checkpoint::LoadingArchive archive(source, "model/");
    visit_weights(archive, model, copies);
    archive.finish();
  }
  BroadcastArchive archive(group);
  visit_weights(archive, model, copies);
}

}  // namespace fathom::launcher
