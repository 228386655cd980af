// Saving and loading are one function: what has state has one `visit(Archive&)` that names each
// array and value once; a SavingArchive collects them, a LoadingArchive fills them. So the two
// cannot drift apart.
//
// Names are paths of words from [A-Za-z0-9._-] joined by '/', such as
// "model/encoder.1.self_attention.qkv.weight". Visit them in the same order every time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/manifest.h"

namespace fathom::checkpoint {

class Checkpoint;

class Archive {
 public:
  virtual ~Archive() = default;

  // `data` has as many elements as `shape` says, row-major.
  virtual void array(std::string_view name, std::span<const int64_t> shape,
                     std::span<float> data) = 0;
  virtual void array(std::string_view name, std::span<const int64_t> shape,
                     std::span<double> data) = 0;
  virtual void value(std::string_view name, int64_t& v) = 0;
  virtual void value(std::string_view name, double& v) = 0;       // exact, inf included
  virtual void value(std::string_view name, std::string& v) = 0;  // UTF-8
  // Keeps `v` where a checkpoint does not have it, being of an earlier version.
  virtual void optional_value(std::string_view name, int64_t& v) { value(name, v); }
  [[nodiscard]] virtual bool is_loading() const = 0;
};

// A view of an array in memory that another object owns and keeps alive.
struct ArrayView {
  std::string name;
  std::vector<int64_t> shape;
  ElementType type = ElementType::kF32;
  std::span<const std::byte> bytes;
};

// Collects views of arrays and copies of values. InvalidArgument: a bad or repeated name, or a
// shape that does not fit its data.
class SavingArchive final : public Archive {
 public:
  void array(std::string_view name, std::span<const int64_t> shape, std::span<float> data) override;
  void array(std::string_view name, std::span<const int64_t> shape,
             std::span<double> data) override;
  void value(std::string_view name, int64_t& v) override;
  void value(std::string_view name, double& v) override;
  void value(std::string_view name, std::string& v) override;
  [[nodiscard]] bool is_loading() const override { return false; }

  [[nodiscard]] const std::vector<ArrayView>& arrays() const { return arrays_; }
  [[nodiscard]] const std::map<std::string, StateValue>& values() const { return values_; }

 private:
  void add(std::string_view name, std::span<const int64_t> shape, ElementType type,
           std::span<const std::byte> bytes, int64_t elements);
  void add(std::string_view name, StateValue v);

  std::vector<ArrayView> arrays_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, StateValue> values_;
};

// Fills its targets from a checkpoint. CheckpointError at the first name that is missing or has
// another type or shape; the targets are then partly filled and must not be used. Call finish()
// after the visit: it refuses a checkpoint that has arrays or values that were not visited.
class LoadingArchive final : public Archive {
 public:
  // Only names that begin with `prefix` are loaded, all others keep their values: "model/" loads
  // the weights alone. The checkpoint must outlive this object.
  explicit LoadingArchive(const Checkpoint& checkpoint, std::string prefix = "");

  void array(std::string_view name, std::span<const int64_t> shape, std::span<float> data) override;
  void array(std::string_view name, std::span<const int64_t> shape,
             std::span<double> data) override;
  void value(std::string_view name, int64_t& v) override;
  void value(std::string_view name, double& v) override;
  void value(std::string_view name, std::string& v) override;
  void optional_value(std::string_view name, int64_t& v) override;
  [[nodiscard]] bool is_loading() const override { return true; }

  void finish() const;

 private:
  void fill(std::string_view name, std::span<const int64_t> shape, ElementType type,
            std::span<std::byte> target);
  template <class T>
  void fill_value(std::string_view name, T& v, std::string_view wanted);
  [[nodiscard]] bool is_selected(std::string_view name) const { return name.starts_with(prefix_); }

  const Checkpoint& checkpoint_;
  std::string prefix_;
  std::string where_;  // the directory's name, for messages
  std::set<std::string, std::less<>> visited_;
};

}  // namespace fathom::checkpoint
