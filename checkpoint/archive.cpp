#include "checkpoint/archive.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/reader.h"
#include "core/base/error.h"

namespace fathom::checkpoint {

void SavingArchive::add(std::string_view name, std::span<const int64_t> shape, ElementType type,
                        std::span<const std::byte> bytes, int64_t elements) {
  require(is_valid_name(name), "checkpoint: array name '", name,
          "' is not made of words from [A-Za-z0-9._-] joined by '/'");
  require(element_count(shape) == elements, "checkpoint: ", name, " has shape ", shape_text(shape),
          " but ", elements, " elements");
  require(names_.insert(std::string(name)).second, "checkpoint: array ", name, " was given twice");
  arrays_.push_back({.name = std::string(name),
                     .shape = {shape.begin(), shape.end()},
                     .type = type,
                     .bytes = bytes});
}

void SavingArchive::add(std::string_view name, StateValue v) {
  require(is_valid_name(name), "checkpoint: value name '", name,
          "' is not made of words from [A-Za-z0-9._-] joined by '/'");
  require(values_.emplace(std::string(name), std::move(v)).second, "checkpoint: value ", name,
          " was given twice");
}

void SavingArchive::array(std::string_view name, std::span<const int64_t> shape,
                          std::span<float> data) {
  add(name, shape, ElementType::kF32, std::as_bytes(data), int64_t(data.size()));
}
void SavingArchive::array(std::string_view name, std::span<const int64_t> shape,
                          std::span<double> data) {
  add(name, shape, ElementType::kF64, std::as_bytes(data), int64_t(data.size()));
}
void SavingArchive::value(std::string_view name, int64_t& v) { add(name, v); }
void SavingArchive::value(std::string_view name, double& v) { add(name, v); }
void SavingArchive::value(std::string_view name, std::string& v) { add(name, v); }

LoadingArchive::LoadingArchive(const Checkpoint& checkpoint, std::string prefix)
    : checkpoint_(checkpoint),
      prefix_(std::move(prefix)),
      where_(checkpoint.path().filename().string()) {}

void LoadingArchive::fill(std::string_view name, std::span<const int64_t> shape, ElementType type,
                          std::span<std::byte> target) {
  if (!is_selected(name)) return;
  const ArrayInfo* info = checkpoint_.find(name);
  require<CheckpointError>(info != nullptr, "checkpoint: ", name, " is not in ", where_,
                           ", but the model has it with shape ", shape_text(shape),
                           "; was it written with another model.depth or topology?");
  require<CheckpointError>(
      std::equal(shape.begin(), shape.end(), info->shape.begin(), info->shape.end()),
      "checkpoint: ", name, " is ", shape_text(info->shape), " in ", where_, ", but the model has ",
      shape_text(shape), "; was it written with another model.width or vocabulary?");
  require<CheckpointError>(info->type == type, "checkpoint: ", name, " is ", to_string(info->type),
                           " in ", where_, ", but the model has ", to_string(type),
                           "; was it written with another train.precision?");
  const std::span<const std::byte> source = checkpoint_.bytes(*info);
  require(source.size() == target.size(), "checkpoint: ", name, " has shape ", shape_text(shape),
          " but a target of ", target.size(), " bytes");
  if (!source.empty()) std::memcpy(target.data(), source.data(), source.size());
  visited_.emplace(name);
}

template <class T>
void LoadingArchive::fill_value(std::string_view name, T& v, std::string_view wanted) {
  if (!is_selected(name)) return;
  const auto& state = checkpoint_.manifest().state;
  const auto found = state.find(std::string(name));
  require<CheckpointError>(found != state.end(), "checkpoint: value ", name, " is not in ", where_,
                           ", but it is needed to resume; was it written by another version?");
  const T* stored = std::get_if<T>(&found->second);
  require<CheckpointError>(stored != nullptr, "checkpoint: value ", name, " in ", where_,
                           " is not ", wanted, "; was it written by another version?");
  v = *stored;
  visited_.emplace(name);
}

void LoadingArchive::array(std::string_view name, std::span<const int64_t> shape,
                           std::span<float> data) {
  fill(name, shape, ElementType::kF32, std::as_writable_bytes(data));
}
void LoadingArchive::array(std::string_view name, std::span<const int64_t> shape,
                           std::span<double> data) {
  fill(name, shape, ElementType::kF64, std::as_writable_bytes(data));
}
void LoadingArchive::value(std::string_view name, int64_t& v) { fill_value(name, v, "an integer"); }
void LoadingArchive::value(std::string_view name, double& v) { fill_value(name, v, "a double"); }
void LoadingArchive::value(std::string_view name, std::string& v) {
  fill_value(name, v, "a string");
}
void LoadingArchive::optional_value(std::string_view name, int64_t& v) {
  if (checkpoint_.manifest().state.contains(std::string(name))) value(name, v);
}

void LoadingArchive::finish() const {
  constexpr size_t kNamed = 5;
  size_t count = 0;
  std::string names;
  const auto note = [&](const std::string& name) {
    if (!is_selected(name) || visited_.contains(name)) return;
    if (count++ < kNamed) names += (names.empty() ? "" : ", ") + name;
  };
  for (const ArrayInfo& info : checkpoint_.manifest().arrays) note(info.name);
  for (const auto& [name, value] : checkpoint_.manifest().state) note(name);
  require<CheckpointError>(count == 0, "checkpoint: ", where_, " holds ", count,
                           count == 1 ? " name" : " names", " the model does not have: ", names,
                           count > kNamed ? ", ..." : "",
                           "; was it written with another model or optimizer?");
}

}  // namespace fathom::checkpoint
