#include "launcher/train/run_observer.h"

namespace fathom::launcher {

void RunObservers::started(const RunStart& start) {
  for (RunObserver* o : all_) o->started(start);
}

void RunObservers::state_changed(monitoring::RunState state) {
  for (RunObserver* o : all_) o->state_changed(state);
}

void RunObservers::step_done(const StepRecord& record) {
  for (RunObserver* o : all_) o->step_done(record);
}

void RunObservers::layers_measured(int64_t step, std::span<const observe::LayerRecord> layers) {
  for (RunObserver* o : all_) o->layers_measured(step, layers);
}

void RunObservers::step_skipped(const StepRecord& record,
                                std::span<const observe::NonfiniteBlock> blocks) {
  for (RunObserver* o : all_) o->step_skipped(record, blocks);
}

void RunObservers::validated(const ValidationRecord& record) {
  for (RunObserver* o : all_) o->validated(record);
}

void RunObservers::judged(int64_t step, const std::string& verdict) {
  for (RunObserver* o : all_) o->judged(step, verdict);
}

void RunObservers::saved(const SaveRecord& record) {
  for (RunObserver* o : all_) o->saved(record);
}

void RunObservers::save_failed(int64_t step, const std::string& reason) {
  for (RunObserver* o : all_) o->save_failed(step, reason);
}

void RunObservers::sync() {
  for (RunObserver* o : all_) o->sync();
}

void RunObservers::finished(const RunEnd& end) {
  for (RunObserver* o : all_) o->finished(end);
}

}  // namespace fathom::launcher
