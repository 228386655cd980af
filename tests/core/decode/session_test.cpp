// Steps over caches, in whatever order rows continue, equal the model run on whole prefixes.
#include "core/decode/session.h"

#include <gtest/gtest.h>

#include "tests/core/decode/decode_support.h"
#include "tests/support/expect_error.h"

namespace fathom::decode {
namespace {

constexpr int32_t kVocabulary = 23;

// What a row has read, kept by the test.
struct Prefix {
  size_t sentence;
  Tokens tokens;
};

// Every step feeds random tokens, then rows end, repeat and change places at random. Returns how
// often a row continued more than once.
size_t expect_logits_of_prefixes(DType dtype, Device& device, double tolerance) {
  const auto model = random_model(dtype);
  const std::vector<Tokens> sources = random_sources(4, kVocabulary, 7, 5);
  constexpr int64_t kRows = 12, kSteps = 9;
  DecodingSession session(model->transformer, device, sources, {.rows = kRows, .tokens = kSteps});
  const PhiloxStream chance(11, "session");
  uint64_t at = 0;
  const auto below = [&](int64_t n) { return int32_t(chance.bits(at++) % uint64_t(n)); };
  std::vector<Prefix> prefixes;
  for (size_t i = 0; i < sources.size(); ++i) prefixes.push_back({i, {}});
  Tokens last(sources.size(), data::kEndOfSentence);
  size_t repeats = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    const Tensor logits = session.step(last);
    for (size_t r = 0; r < prefixes.size(); ++r) {
      EXPECT_EQ(session.sentence(r), prefixes[r].sentence);
      const std::vector<double> expected = uncached_logits(
          model->transformer, device, sources[prefixes[r].sentence], prefixes[r].tokens);
      for (int64_t v = 0; v < kVocabulary; ++v)
        EXPECT_NEAR(kernels::load(logits, int64_t(r), v), expected[size_t(v)], tolerance)
            << device.name() << ", step " << step << ", row " << r;
    }
    std::vector<int32_t> rows;
    std::vector<Prefix> next;
    const int64_t count = 1 + below(kRows);
    for (int64_t i = 0; i < count; ++i) {
      rows.push_back(below(int64_t(prefixes.size())));
      next.push_back(prefixes[size_t(rows.back())]);
      next.back().tokens.push_back(below(kVocabulary));
    }
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t j = 0; j < i; ++j) repeats += rows[i] == rows[j];
    session.reorder(rows);
    prefixes = next;
    last.clear();
    for (const Prefix& p : prefixes) last.push_back(p.tokens.back());
  }
  return repeats;
}

TEST(DecodingSession, GivesTheLogitsOfWholePrefixesHoweverRowsContinue) {
  const auto reference = tensor::make_reference_device();
  size_t repeats = expect_logits_of_prefixes(DType::kF64, *reference, 1e-12);
  repeats += expect_logits_of_prefixes(DType::kBF16, *reference, 1e-12);
  for (const auto& device : support::host_devices())
    repeats += expect_logits_of_prefixes(DType::kF32, *device, 1e-5);
  EXPECT_GT(repeats, 10u) << "a test without repeated rows proves little";
}

TEST(DecodingSession, GivesARowTheSameBitsInAnyBatch) {
  const auto device = tensor::make_cpu_device(2);
  const auto model = random_model(DType::kF32);
  const std::vector<Tokens> sources = random_sources(20, kVocabulary, 9, 6);
  DecodingSession together(model->transformer, *device, sources, {.rows = 20, .tokens = 3});
  std::vector<std::vector<double>> steps;
  for (const int32_t token : {data::kEndOfSentence, 5, 9}) {
    const Tensor logits = together.step(Tokens(20, token));
    for (int64_t v = 0; v < kVocabulary; ++v) steps.push_back({kernels::load(logits, 13, v)});
  }

  DecodingSession alone(model->transformer, *device, std::span(sources).subspan(13, 1),
                        {.rows = 1, .tokens = 3});

  size_t i = 0;
  for (const int32_t token : {data::kEndOfSentence, 5, 9}) {
    const Tensor logits = alone.step(Tokens{token});
    for (int64_t v = 0; v < kVocabulary; ++v)
      EXPECT_EQ(kernels::load(logits, 0, v), steps[i++][0]) << token;
  }
}

TEST(DecodingSession, KeepsItsCachesAndOneStepAndFreesAllAtTheEnd) {
  const auto device = tensor::make_cpu_device(1);
  const auto model = random_model(DType::kF32);
  const std::vector<Tokens> sources = {{2, 3, 4}, {5}};
  const int64_t before = device->arena().used_bytes();
  {
    constexpr int64_t kRows = 6, kTokens = 8, kSourceTokens = 4 + 2;
    DecodingSession session(model->transformer, *device, sources,
                            {.rows = kRows, .tokens = kTokens});
    const int64_t C = model->transformer.config().width, L = 2;
    const int64_t caches = 2 * C * L * (kRows * kTokens + kSourceTokens) * 4;
    EXPECT_GE(device->arena().used_bytes() - before, caches);
    EXPECT_LE(device->arena().used_bytes() - before, caches + 2 * L * 64);  // alignment

    (void)session.step(Tokens(2, data::kEndOfSentence));
    session.reorder(std::vector<int32_t>{0, 0, 0, 1, 1, 1});
    (void)session.step(Tokens(6, 2));
    const int64_t first = device->arena().used_bytes();
    for (int i = 0; i < 5; ++i) {
      session.reorder(std::vector<int32_t>{2, 0, 0, 4, 4, 4});
      (void)session.step(Tokens(6, 2));
    }
    EXPECT_EQ(device->arena().used_bytes(), first);
  }
  EXPECT_EQ(device->arena().used_bytes(), before);
}

TEST(DecodingSession, RefusesMoreRowsOrTokensThanItsSize) {
  const auto device = tensor::make_cpu_device(1);
  const auto model = random_model(DType::kF32);
  const std::vector<Tokens> sources = {{2, 3, 4}, {5}};
  const auto make = [&](SessionSize size, std::span<const Tokens> from) {
    return std::make_unique<DecodingSession>(model->transformer, *device, from, size);
  };
  const auto refuses = [](const char* text, const auto& f) {
    EXPECT_TRUE(support::throws_with<InvalidArgument>(text, f));
  };

  refuses("1 rows of 3 tokens for 2 sentences", [&] { make({1, 3}, sources); });
  refuses("2 rows of 0 tokens for 2 sentences", [&] { make({2, 0}, sources); });
  refuses("for 0 sentences", [&] { make({2, 3}, {}); });
  refuses("too many; decode fewer sentences", [&] { make({1 << 20, 1 << 12}, sources); });
  const auto session = make({2, 1}, sources);
  refuses("1 tokens for 2 rows", [&] { (void)session->step(Tokens{1}); });
  (void)session->step(Tokens{1, 1});
  refuses("no room for a token after 1", [&] { (void)session->step(Tokens{1, 1}); });
  refuses("3 rows, there is room for 2", [&] { session->reorder(std::vector<int32_t>{0, 0, 0}); });
  refuses("row 2 of 2", [&] { session->reorder(std::vector<int32_t>{2}); });
  refuses("row -1 of 2", [&] { session->reorder(std::vector<int32_t>{-1}); });
}

}  // namespace
}  // namespace fathom::decode
