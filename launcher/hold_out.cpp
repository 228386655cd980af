#include "launcher/hold_out.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/hash.h"

namespace fathom::launcher {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

void append(data::Corpus& corpus, const Pair& pair) {
  corpus.source.emplace_back(pair.first);
  corpus.target.emplace_back(pair.second);
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

HeldOut hold_out(const data::Corpus& corpus, int64_t count) {
  const int64_t size = corpus.size();
  require(count >= 1 && 4 * count <= size, "init: --hold-out ", count, ": of ", size,
          " pairs twice as many would be held out, one half each for validation and test, allowed "
          "is 1 to ",
          size / 4);
  const auto pair_at = [&](int64_t i) {
    return Pair(corpus.source[size_t(i)], corpus.target[size_t(i)]);
  };
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [](int64_t i) { return std::pair(mix64(uint64_t(i)), i); });

  std::vector<int64_t> chosen;
  std::set<Pair> held;
  for (size_t at = 0; at < order.size() && int64_t(chosen.size()) < 2 * count; ++at)
    if (held.insert(pair_at(order[at])).second) chosen.push_back(order[at]);
  require(int64_t(chosen.size()) == 2 * count, "init: --hold-out ", count, ": only ", chosen.size(),
          " pairs differ from one another; hold out fewer");
  std::ranges::sort(chosen.begin(), chosen.begin() + count);
  std::ranges::sort(chosen.begin() + count, chosen.end());

  HeldOut out;
  for (int64_t i = 0; i < 2 * count; ++i)
    append(i < count ? out.valid : out.test, pair_at(chosen[size_t(i)]));
  for (int64_t i = 0; i < size; ++i)
    if (!held.contains(pair_at(i))) append(out.train, pair_at(i));
  out.repeated = size - 2 * count - out.train.size();
  return out;
}

void write_held_out(const HeldOut& texts, const std::filesystem::path& directory,
                    const std::string& source, const std::string& target) {
  std::vector<std::pair<std::filesystem::path, const std::vector<std::string>*>> files;
  for (const auto& [name, corpus] :
       {std::pair("train", &texts.train), std::pair("valid", &texts.valid),
        std::pair("test", &texts.test)}) {
    files.emplace_back(directory / join(name, ".", source), &corpus->source);
    files.emplace_back(directory / join(name, ".", target), &corpus->target);
  }
  for (const auto& [path, lines] : files)
    require(!std::filesystem::exists(path), "init: --hold-out: ", path.string(),
            " is already there; name another directory, or remove it");
  make_directories("init", directory);
  for (const auto& [path, lines] : files) write_file_durably("init", path, lines_of(*lines));
}

}  // namespace fathom::launcher
