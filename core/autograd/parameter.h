// Parameters and the flat buffers they live in. Weights, gradients and both Adam moments are
// buffers of one layout: the reverse of the order of declaration, which is that of first use. This
// is (to within a block) the order in which backward finishes the gradients, so the reducer's
// buckets fill from front to back while backward is still running.
//
// Two types: matrices are used in the compute type; vectors (norms, biases), gradients, moments and
// the master weights, which the optimizer updates and checkpoints store, in its wide type (f32 for
// bf16). Where the two are the same there is one copy of the weights. Where they are not, a process
// that updates slices alone keeps the masters of those alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/slice.h"
#include "core/kernels/chunks.h"
#include "core/tensor/device.h"

namespace fathom::autograd {

// What a parameter is for; init rules and topologies refer to roles, never to names.
enum class Role {
  kEmbedding,
  kQuery,
  kKeyValue,
  kAttentionIn,
  kAttentionOut,  // kAttentionIn: q, k and v in one matrix
  kFeedForwardIn,
  kFeedForwardOut,
  kOutput,  // projection to the vocabulary
  kBias,
  kAttentionOutBias,
  kNormGain,
  kNormBias,
  kMixing,  // weights of streams, scales: see `initial`
};

struct Parameter {
  std::string name;  // "encoder.3.feed_forward.fc1.weight"
  Role role = Role::kBias;
  std::vector<int64_t> shape;  // as users see it; `value` is (rows, cols) with vectors as one row
  int64_t offset = 0;          // first element in the flat buffers
  Tensor value, grad;
  int64_t fan_in = 0, fan_out = 0;  // of the matrix it belongs to (a bias: of its weight)
  // What the role's rule does not cover: factors on the initial values of rows, or the values.
  struct RowGain {
    int64_t first = 0, count = 0;
    double gain = 1;
  };
  std::vector<RowGain> row_gains = {};
  std::vector<double> initial = {};  // all entries, row by row; empty: the rule

  [[nodiscard]] int64_t numel() const { return value.numel(); }
  [[nodiscard]] bool is_matrix() const { return shape.size() == 2; }
};

class ParameterStore {
 public:
  // `device` outlives the store. InvalidArgument if it does not compute in `dtype`.
  ParameterStore(Device& device, DType dtype);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  // Declares a parameter; its tensors are empty until freeze(). References stay valid.
  Parameter& add(std::string name, Role role, std::vector<int64_t> shape, int64_t fan_in = 0,
                 int64_t fan_out = 0);
  // Lays out and allocates the weights; parameters are declared in the order forward uses them and
  // laid out in reverse. Gradients are bound later, since their buffer belongs to the reducer.
  void freeze();
  // Points every parameter's `grad` into `flat` (one row of size() elements of the wide type),
  // which the caller keeps.
  void bind_gradients(const Tensor& flat);

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] int64_t size() const { return size_; }
  // Elements from the parameter's offset to the next one's: its own, and the padding after them.
  [[nodiscard]] static int64_t padded_count(const Parameter& p);
  [[nodiscard]] DType dtype() const { return dtype_; }          // matrices
  [[nodiscard]] DType wide() const { return wide_of(dtype_); }  // everything else
  // Bytes of a flat buffer of the wide type.
  [[nodiscard]] int64_t flat_bytes() const { return size_ * size_of(wide()); }
  // The masters, (1, P); after keep_masters() those of its ranges, compact.
  [[nodiscard]] const Tensor& weights() const { return weights_; }
  // The matrices in the compute type, (1, P); empty where the masters are that.
  [[nodiscard]] const Tensor& working() const { return working_; }
  // (1, numel), of whole masters.
  [[nodiscard]] Tensor master_of(const Parameter& p) const {
    return weights_.columns(p.offset, p.numel());
  }
  // Rounds whole masters to the working weights, after anything but Adam has written them.
  void refresh_working();

  // Frees the masters of all but `ranges`, ascending and cut on chunks. Nothing where the masters
  // are the working weights. The vectors, until here values of the masters, get a buffer of their
  // own, which the caller keeps up to date: vectors() (1, V), in the order of the flat buffers and
  // with their padding. Once.
  void keep_masters(const std::vector<Slice>& ranges);
  [[nodiscard]] bool has_whole_masters() const { return has_whole_masters_; }
  [[nodiscard]] const Tensor& vectors() const { return vectors_; }
  // Elements of vectors, with padding, before this element of the flat buffers: its place in
  // vectors().
  [[nodiscard]] int64_t vectors_before(int64_t element) const;
  // In the order of declaration.
  [[nodiscard]] const std::vector<std::unique_ptr<Parameter>>& all() const { return parameters_; }
  [[nodiscard]] Parameter& find(const std::string& name) const;

  // How the flat buffers are summed: rows {first element / 16, elements, parameter}, i32 (N, 3); a
  // parameter is its index in all(). See core/kernels/statistics.h.
  [[nodiscard]] const Tensor& chunks() const { return chunks_; }
  // The same on the host.
  [[nodiscard]] const std::vector<kernels::Chunk>& chunk_table() const { return chunk_table_; }

 private:
  void make_chunks();

  Device& device_;
  DType dtype_;
  int64_t size_ = 0;
  bool has_whole_masters_ = true;
  Tensor weights_, working_, vectors_, chunks_;
  std::vector<kernels::Chunk> chunk_table_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
};

}  // namespace fathom::autograd

namespace fathom {
using autograd::Parameter;
using autograd::ParameterStore;
using autograd::Role;
}  // namespace fathom
