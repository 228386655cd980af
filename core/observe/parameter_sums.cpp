#include "core/observe/parameter_sums.h"

#include <map>
#include <string>
#include <string_view>

namespace fathom::observe {
namespace {

// "decoder.3.feed_forward" of "decoder.3.feed_forward.fc1.weight"; shorter names have no block.
std::string_view block_name(std::string_view parameter) {
  size_t end = parameter.find('.');
  for (int dots = 1; dots < 3 && end != parameter.npos; ++dots) end = parameter.find('.', end + 1);
  return end == parameter.npos ? std::string_view() : parameter.substr(0, end);
}

}  // namespace

ParameterSums& ParameterSums::operator+=(const ParameterSums& other) {
  gradient_square += other.gradient_square;
  weight_square += other.weight_square;
  update_square += other.update_square;
  zeros += other.zeros;
  nonfinite += other.nonfinite;
  entries += other.entries;
  return *this;
}

std::vector<ParameterSums> sums_by_block(const ParameterStore& store,
                                         const std::vector<topology::BlockContext>& blocks,
                                         std::span<const ParameterSums> sums) {
  std::map<std::string, size_t, std::less<>> places;
  for (size_t b = 0; b < blocks.size(); ++b) places.emplace(name_of(blocks[b]), b);
  std::vector<ParameterSums> out(blocks.size());
  for (size_t p = 0; p < sums.size(); ++p) {
    const auto place = places.find(block_name(store.all()[p]->name));
    if (place != places.end()) out[place->second] += sums[p];
  }
  return out;
}

std::vector<NonfiniteBlock> nonfinite_blocks(const ParameterStore& store,
                                             const std::vector<topology::BlockContext>& blocks,
                                             std::span<const ParameterSums> sums) {
  std::vector<NonfiniteBlock> out;
  const std::vector<ParameterSums> by_block = sums_by_block(store, blocks, sums);
  for (size_t b = 0; b < blocks.size(); ++b)
    if (by_block[b].nonfinite > 0)
      out.push_back({.block = blocks[b], .entries = int64_t(by_block[b].nonfinite)});
  return out;
}

}  // namespace fathom::observe
