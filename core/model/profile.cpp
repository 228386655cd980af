// Transformer::profile: the blocks one by one over several shards, for topologies that set initial
// values by what they measure.
#include <algorithm>

#include "core/kernels/statistics.h"
#include "core/model/transformer.h"

namespace fathom::model {
namespace {

using kernels::Kernels;

// The state of a shard between two blocks.
struct Lane {
  const data::PackedBatch* batch = nullptr;
  std::vector<Tensor> streams;  // empty: not set yet
  Tensor output;                // of the block that has run
  Tensor memory;                // of the encoder
};

class Profile {
 public:
  Profile(Transformer& model, std::vector<Lane>& lanes, const Transformer::GatherShards& gather)
      : model_(model),
        context_(model.parameters().device().compute()),
        lanes_(lanes),
        gather_(gather) {}

  // `embed` and `input` say what the stack reads of a shard.
  template <class Embed, class Input>
  void run(const Stack& stack, const Embed& embed, const Input& input) {
    const auto on_each_lane = [&](const auto& f) {
      for (Lane& lane : lanes_) {
        if (lane.batch->target.empty()) continue;
        Tape tape(model_.parameters().device(), model_.parameters().dtype(),
                  {.recording = false, .training = false, .update = 1});
        f(tape, lane, upload(tape, *lane.batch, model_.config().vocabulary_size));
      }
    };
    on_each_lane([&](Tape& tape, Lane& lane, const DeviceBatch& batch) {
      keep(lane, stack.rule().start(embed(tape, batch)));
    });
    for (size_t i = 0; i < stack.blocks().size(); ++i) {
      const topology::BlockContext& block = stack.blocks()[i];
      const Tensor sums =
          context_.allocate(int64_t(lanes_.size()), kernels::kRowMoments, DType::kF64);
      on_each_lane([&](Tape& tape, Lane& lane, const DeviceBatch& batch) {
        const topology::Streams streams = constants(tape, lane);
        const Var u = stack.rule().in(streams, block);
        const Var o = stack.sublayer(i).forward(u, input(tape, lane, batch));
        const Tensor& x = stack.rule().watched(streams).value();
        context_.run(&Kernels::row_moments, {.x = x,
                                             .o = o.value(),
                                             .next = x,
                                             .sums = sums.row_range(&lane - lanes_.data(), 1),
                                             .begin = 0,
                                             .count = x.rows()});
        lane.output = own(o.value());
      });
      write(stack.rule().profiled(block, mean_of(gather_(sums))));
      on_each_lane([&](Tape& tape, Lane& lane, const DeviceBatch&) {
        keep(lane, stack.rule().out(constants(tape, lane), tape.constant(lane.output), block));
      });
    }
  }

  // The encoder's output becomes the memory of the decoder.
  void finish(const Stack& stack) {
    for (Lane& lane : lanes_) {
      if (lane.batch->target.empty()) continue;
      Tape tape(model_.parameters().device(), model_.parameters().dtype(),
                {.recording = false, .training = false, .update = 1});
      lane.memory = own(stack.rule().final(constants(tape, lane)).value());
    }
  }

 private:
  // A copy that outlives the tape.
  Tensor own(const Tensor& value) {
    Tensor copy = context_.allocate(value.rows(), value.cols(), value.dtype());
    context_.copy(copy, value);
    return copy;
  }
  void keep(Lane& lane, const topology::Streams& streams) {
    std::vector<Tensor> kept;
    for (const Var& stream : streams)
      kept.push_back(stream.is_set() ? own(stream.value()) : Tensor{});
    lane.streams = std::move(kept);
  }
  static topology::Streams constants(Tape& tape, const Lane& lane) {
    topology::Streams streams;
    for (const Tensor& stream : lane.streams)
      streams.push_back(stream.is_empty() ? Var{} : tape.constant(stream));
    return streams;
  }
  // From the sums of all shards, added in their order.
  static topology::Topology::Measured mean_of(const std::vector<double>& sums) {
    double tokens = 0, stream = 0, output = 0;
    for (size_t at = 0; at + size_t(kernels::kRowMoments) <= sums.size();
         at += size_t(kernels::kRowMoments)) {
      tokens += sums[at];
      stream += sums[at + 2];
      output += sums[at + 3];
    }
    return {.stream_variance = stream / tokens, .output_variance = output / tokens};
  }
  void write(const topology::Topology::Values& values) {
    for (const auto& [parameter, value] : values)
      context_.run(&Kernels::fill,
                   {.y = model_.parameters().master_of(*parameter), .value = value});
    if (!values.empty()) model_.parameters().refresh_working();
  }

  Transformer& model_;
  Context& context_;
  std::vector<Lane>& lanes_;
  const Transformer::GatherShards& gather_;
};

}  // namespace

bool Transformer::wants_profile() const { return decoder_->rule().wants_profile(); }

void Transformer::profile(std::span<const data::PackedBatch> shards, const GatherShards& gather) {
  std::vector<Lane> lanes(shards.size());
  for (size_t i = 0; i < shards.size(); ++i) lanes[i].batch = &shards[i];
  Profile profile(*this, lanes, gather);
  if (encoder_) {
    profile.run(
        *encoder_,
        [this](Tape& tape, const DeviceBatch& batch) {
          return embed(tape, *source_table_, 0, batch.source.tokens, batch.source.position,
                       batch.source.longest, {});
        },
        [](Tape&, const Lane&, const DeviceBatch& batch) {
          return BlockInput{.segments = batch.source.segments()};
        });
    profile.finish(*encoder_);
  }
  profile.run(
      *decoder_,
      [this](Tape& tape, const DeviceBatch& batch) {
        return embed(tape, *target_table_, 0, batch.target.tokens, batch.target.position,
                     batch.target.longest, {});
      },
      [this](Tape& tape, const Lane& lane, const DeviceBatch& batch) {
        BlockInput input{.segments = batch.target.segments(), .causal = true};
        if (encoder_) {
          input.memory = tape.constant(lane.memory);
          input.memory_segments = batch.source.segments();
        }
        return input;
      });
}

}  // namespace fathom::model
