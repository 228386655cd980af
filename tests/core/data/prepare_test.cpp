#include "core/data/prepare.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/core/data/data_support.h"

namespace {

int flock_error = 0;  // what flock says in place of working; 0: it works

}  // namespace

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" int flock(int fd, int operation) {
  if (flock_error == 0) return int(::syscall(SYS_flock, fd, operation));
  errno = flock_error;
  return -1;
}

namespace fathom::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::read_text;
using testing::sentences;
using testing::TemporaryDirectory;

namespace fs = std::filesystem;

// A small corpus, and the set in `dir / "set"`.
class Prepare : public ::testing::Test {
 protected:
  Prepare() {
    write("train", sentences(600, true), sentences(600, false));
    write("valid", "der Hund schläft\n\ndie Katze\n", "the dog sleeps\nnothing\n\n");
    write("test", "das Haus\n", "the house\n");
    config.train = dir / "train";
    config.valid = dir / "valid";
    config.test = dir / "test";
    config.vocabulary_size = 90;
    config.directory = dir / "set";
  }
  void write(const std::string& split, const std::string& de, const std::string& en) const {
    dir.write(split + ".de", de);
    dir.write(split + ".en", en);
  }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir / ""))
      names.insert(entry.path().filename());
    return names;
  }
  // Runs prepare in a child, which is killed when `phase` starts. True if it was.
  [[nodiscard]] bool killed_at(std::string_view phase) const {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)prepare(config, false, [&](std::string_view now, double) {
        if (now == phase) (void)::raise(SIGKILL);
      });
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

  TemporaryDirectory dir;
  DataConfig config;
};

TEST_F(Prepare, FindsWhatIsPreparedAndBuildsNothing) {
  const auto find = [&] {
    return find_prepared(
        {read_corpus(config.train, "de", "en", false), read_corpus(config.valid, "de", "en", false),
         read_corpus(config.test, "de", "en", false)},
        config, false);
  };
  EXPECT_FALSE(find());
  EXPECT_FALSE(fs::exists(dir / "set"));

  const PreparedData built = prepare(config, false);

  ASSERT_TRUE(find());
  EXPECT_EQ(find()->content_hash, built.content_hash);
  config.max_length = 3;
  EXPECT_FALSE(find());
}

TEST_F(Prepare, BuildsTokenizerAndSplits) {
  const PreparedData data = prepare(config, false);

  EXPECT_TRUE(data.built);
  EXPECT_EQ(data.directory, dir / "set");
  EXPECT_EQ(data.tokenizer->size(), 90);
  ASSERT_EQ(data.train.size(), 600);
  EXPECT_EQ(data.tokenizer->decode(data.train.source(5)), testing::sentence(5, true));
  EXPECT_EQ(data.tokenizer->decode(data.train.target(599)), testing::sentence(599, false));
  ASSERT_TRUE(data.valid && data.test);
  EXPECT_EQ(data.test->size(), 1);
  EXPECT_EQ(data.unigram_entropy, unigram_entropy(data.train));
  EXPECT_GT(data.unigram_entropy, 1);
  EXPECT_EQ(data.fingerprint.size(), 32u);
  EXPECT_THAT(data.notes, IsEmpty());
}

TEST_F(Prepare, NamesTheTextsThatCanBeReadOnlyOnce) {
  EXPECT_THAT(passing_texts(config, config.train, false), IsEmpty());
  EXPECT_THAT(passing_texts(config, "", false), IsEmpty());
  EXPECT_THAT(passing_texts(config, dir / "none", false), IsEmpty());
  fs::remove(dir / "train.de");
  fs::remove(dir / "train.en");
  ASSERT_EQ(::mkfifo((dir / "train.de.gz").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((dir / "train.en").c_str(), 0600), 0);
  EXPECT_THAT(passing_texts(config, config.train, false),
              ElementsAre(dir / "train.de.gz", dir / "train.en"));
  EXPECT_THAT(passing_texts(config, config.train, true), ElementsAre(dir / "train.en"));
}

TEST_F(Prepare, DoesNoWorkTheSecondTime) {
  const PreparedData first = prepare(config, false);
  std::vector<std::string> phases;
  const auto written = fs::last_write_time(dir / "set/data.json");

  const PreparedData second = prepare(config, false, [&](std::string_view phase, double) {
    if (phases.empty() || phases.back() != phase) phases.emplace_back(phase);
  });

  EXPECT_FALSE(second.built);
  EXPECT_THAT(phases, ElementsAre("reading the text"));
  EXPECT_EQ(fs::last_write_time(dir / "set/data.json"), written);
  EXPECT_EQ(second.content_hash, first.content_hash);
  EXPECT_EQ(second.unigram_entropy, first.unigram_entropy);
  EXPECT_EQ(second.train.hash(), first.train.hash());
  EXPECT_EQ(second.tokenizer->bytes(), first.tokenizer->bytes());
}

TEST_F(Prepare, NamesTheDirectoryByItsFingerprintUnlessConfigured) {
  const fs::path before = fs::current_path();
  fs::current_path(dir / "");
  config.directory = "";
  const PreparedData data = prepare(config, false);
  const bool there = fs::exists(dir / (".fathom/data/" + data.fingerprint + "/data.json"));
  fs::current_path(before);

  EXPECT_EQ(data.directory, fs::path(".fathom/data") / data.fingerprint);
  EXPECT_TRUE(there);
}

TEST_F(Prepare, GivesTheSameContentElsewhereAndFromMovedText) {
  const PreparedData first = prepare(config, false);
  for (const char* split : {"train", "valid", "test"})
    for (const char* side : {".de", ".en"})
      fs::rename(dir / (std::string(split) + side), dir / (std::string(split) + "-moved" + side));
  config.train += "-moved";
  config.valid += "-moved";
  config.test += "-moved";
  config.directory = dir / "elsewhere/deep/set/";

  const PreparedData second = prepare(config, false);

  EXPECT_TRUE(second.built);
  EXPECT_EQ(second.fingerprint, first.fingerprint);
  EXPECT_EQ(second.content_hash, first.content_hash);
  for (const char* name : {"data.json", "train.bin", "valid.bin", "test.bin", "tokenizer.model"})
    EXPECT_EQ(read_text(dir / "set/" + name), read_text(dir / "elsewhere/deep/set/" + name))
        << name;
}

TEST_F(Prepare, FingerprintChangesWithTextsAndKeys) {
  std::set<std::string> seen{prepare(config, false).fingerprint};
  const auto is_new = [&](const DataConfig& changed, bool decoder_only) {
    return seen.insert(prepare(changed, decoder_only).fingerprint).second;
  };
  DataConfig changed = config;
  changed.vocabulary_size = 80;
  EXPECT_TRUE(is_new(changed, false));
  changed = config;
  changed.max_length = 20;
  EXPECT_TRUE(is_new(changed, false));
  changed = config;
  changed.tokenizer = TokenizerKind::kUnigram;
  changed.vocabulary_size = 70;
  EXPECT_TRUE(is_new(changed, false));
  changed = config;
  changed.on_bad_line = OnBadLine::kSkip;
  EXPECT_TRUE(is_new(changed, false));
  changed = config;
  std::swap(changed.source, changed.target);
  EXPECT_TRUE(is_new(changed, false));
  changed = config;
  changed.test = "";
  EXPECT_TRUE(is_new(changed, false));
  changed = config;
  changed.vocabulary_size = 60;
  EXPECT_TRUE(is_new(changed, true));
  write("test", "das Haus\n", "the House\n");
  EXPECT_TRUE(is_new(config, false));
}

TEST_F(Prepare, RebuildsAStaleSetWithANote) {
  const PreparedData first = prepare(config, false);
  write("test", "der Baum\n", "the tree\n");

  const PreparedData second = prepare(config, false);

  EXPECT_TRUE(second.built);
  EXPECT_NE(second.fingerprint, first.fingerprint);
  EXPECT_THAT(second.notes,
              Contains(AllOf(HasSubstr("rebuilt " + (dir / "set")), HasSubstr("have changed"))));
  EXPECT_EQ(first.tokenizer->decode(first.test->target(0)), "the house");  // still mapped
  EXPECT_THAT(prepare(config, false).notes, IsEmpty());
}

TEST_F(Prepare, RebuildsADamagedSetWithANote) {
  const PreparedData first = prepare(config, false);
  for (const std::string name :
       {"data.json", "train.bin", "valid.bin", "test.bin", "tokenizer.model"}) {
    const std::string whole = read_text(dir / "set/" + name);
    const auto expect_rebuilt = [&](const std::string& how) {
      const PreparedData again = prepare(config, false);
      EXPECT_TRUE(again.built) << name << " " << how;
      EXPECT_THAT(again.notes, Contains(HasSubstr("rebuilt"))) << name << " " << how;
      EXPECT_EQ(again.content_hash, first.content_hash);
      EXPECT_EQ(read_text(dir / "set/" + name), whole);
    };
    dir.write("set/" + name, whole.substr(0, whole.size() / 2));
    expect_rebuilt("cut off");
    fs::remove(dir / "set/" + name);
    expect_rebuilt("removed");
    if (name == "data.json") continue;
    std::string flipped = whole;
    flipped[whole.size() * 2 / 3] = char(flipped[whole.size() * 2 / 3] ^ 4);
    dir.write("set/" + name, flipped);
    expect_rebuilt("flipped");
  }
}

TEST_F(Prepare, RefusesADirectoryWithForeignFilesAndTouchesNothing) {
  fs::create_directory(dir / "set");
  dir.write("set/thesis.txt", "years of work");

  EXPECT_THAT(error_of<InvalidArgument>([&] { (void)prepare(config, false); }),
              AllOf(HasSubstr("data.directory"), HasSubstr("holds thesis.txt")));
  EXPECT_EQ(read_text(dir / "set/thesis.txt"), "years of work");

  config.directory = dir.write("file", "x");
  EXPECT_THAT(error_of<InvalidArgument>([&] { (void)prepare(config, false); }),
              HasSubstr("is a file"));
  for (const char* bad : {"/", ".", "a/.."}) {
    config.directory = bad;
    EXPECT_THAT(error_of<InvalidArgument>([&] { (void)prepare(config, false); }),
                HasSubstr("cannot be a data set"));
  }
}

TEST_F(Prepare, LeavesATokenizerOfItsUserAlone) {
  fs::create_directory(dir / "set");
  dir.write("set/tokenizer.model", "mine");

  EXPECT_THAT(error_of<InvalidArgument>([&] { (void)prepare(config, false); }),
              HasSubstr("to use that tokenizer set data.tokenizer_model to it"));
  EXPECT_EQ(read_text(dir / "set/tokenizer.model"), "mine");
}

TEST_F(Prepare, UsesATokenizerThatIsGiven) {
  const std::string own = prepare(config, false).tokenizer->bytes();
  write("train", sentences(500, false), sentences(500, true));  // so another one would be learned
  config.directory = dir / "given";
  dir.write("own.model", own);
  config.tokenizer_model = dir / "own.model";
  config.vocabulary_size = 70;  // says nothing

  const PreparedData by_path = prepare(config, false);
  EXPECT_TRUE(by_path.built);
  EXPECT_EQ(by_path.tokenizer->bytes(), own);
  config.tokenizer_model = "";
  const PreparedData by_bytes = prepare(config, false, {}, own);
  EXPECT_FALSE(by_bytes.built);
  EXPECT_EQ(by_bytes.content_hash, by_path.content_hash);
  EXPECT_EQ(by_bytes.fingerprint, by_path.fingerprint);

  config.tokenizer_model = dir / "none.model";
  EXPECT_THAT(error_of<IoError>([&] { (void)prepare(config, false); }), HasSubstr("none.model"));
  config.tokenizer_model = dir.write("no.model", "text");
  EXPECT_THAT(error_of<DataError>([&] { (void)prepare(config, false); }),
              AllOf(HasSubstr("no.model"), HasSubstr("not a SentencePiece model")));
}

TEST_F(Prepare, TakesTheSetWithTheLearnedTokenizerWhereThatIsTheGivenOne) {
  const PreparedData learned = prepare(config, false);

  const PreparedData again = prepare(config, false, {}, learned.tokenizer->bytes());

  EXPECT_FALSE(again.built);
  EXPECT_EQ(again.fingerprint, learned.fingerprint);
}

TEST_F(Prepare, NotesTextThatIsUnknownToTheTokenizer) {
  const std::string own = prepare(config, false).tokenizer->bytes();
  write("train", "\u0434\u043e\u043c\nder Hund\n", "\u0434\u043e\u043c\nthe dog\n");
  config.directory = dir / "given";

  EXPECT_THAT(prepare(config, false, {}, own).notes,
              Contains(HasSubstr("of its tokens are unknown to the tokenizer")));
}

TEST_F(Prepare, CountsWhatTrainingDropsByReason) {
  std::string long_line;
  for (int i = 0; i < 300; ++i) long_line += "der Hund ";
  write("train", sentences(600, true) + "\n\u00A0\nHund\n" + long_line + "\nb\xFF\n",
        sentences(600, false) + "a\nb\n\nlong\nc\n");
  config.on_bad_line = OnBadLine::kSkip;

  const PreparedData data = prepare(config, false);

  EXPECT_EQ(data.reports.at("train").lines, 605);
  EXPECT_EQ(data.reports.at("train").pairs, 600);
  EXPECT_EQ(data.train.size(), 600);
  EXPECT_EQ(
      data.reports.at("train").counts,
      (DropCounts{{"empty_source", 2}, {"empty_target", 1}, {"invalid_utf8", 1}, {"too_long", 1}}));
  EXPECT_EQ(prepare(config, false).reports.at("train").counts, data.reports.at("train").counts);
}

TEST_F(Prepare, KeepsEveryLineOfValidAndTest) {
  config.max_length = 12;
  const PreparedData data = prepare(config, false);
  const Corpus text = evaluation_text(config, config.valid, false);

  ASSERT_EQ(data.valid->size(), 3);
  EXPECT_EQ(data.valid->source_length(1), 0);
  EXPECT_EQ(data.valid->target_length(2), 0);
  EXPECT_THAT(text.source, ElementsAre("der Hund schläft", "", "die Katze"));
  EXPECT_THAT(text.target, ElementsAre("the dog sleeps", "nothing", ""));

  std::string long_line;
  for (int i = 0; i < 50; ++i) long_line += "der Hund ";
  write("test", long_line + "\n\n", "the dog\n\n");
  const PreparedData cut = prepare(config, false);
  EXPECT_EQ(cut.test->size(), 2);
  EXPECT_EQ(cut.test->source_length(0), 12);
  EXPECT_EQ(cut.reports.at("test").counts, (DropCounts{{"truncated", 1}}));
  EXPECT_THAT(cut.notes, Contains("data.test: cut 1 of 2 pairs to data.max_length 12"));
}

TEST_F(Prepare, ReadsOnlyTheTargetSideForADecoder) {
  for (const char* split : {"train.de", "valid.de", "test.de"})
    fs::remove(dir / std::string(split));
  config.vocabulary_size = 60;

  const PreparedData data = prepare(config, true);

  EXPECT_TRUE(data.train.decoder_only());
  EXPECT_EQ(data.train.size(), 600);
  EXPECT_EQ(data.train.source_tokens(), 0);
  EXPECT_EQ(data.valid->size(), 3);
}

TEST_F(Prepare, ReportsErrorsBeforeAnyWork) {
  const auto error = [&] { return [this] { (void)prepare(config, false); }; };
  DataConfig good = config;

  write("test", "a\nb\n", "a\n");
  EXPECT_THAT(error_of<DataError>(error()), AllOf(HasSubstr("2 lines"), HasSubstr("has 1")));
  write("test", "a\n", "\xFF\n");
  EXPECT_THAT(error_of<DataError>(error()), HasSubstr("test.en:1:1:"));
  write("test", "a\n", "a\n");
  config.max_length = 1;
  EXPECT_THAT(error_of<DataError>(error()),
              AllOf(HasSubstr("all 600 training pairs were dropped (too_long 600)"),
                    HasSubstr("data.max_length 1")));
  config = good;
  config.max_length = 0;
  EXPECT_THAT(error_of<InvalidArgument>(error()), HasSubstr("data.max_length: 0"));
  config = good;
  config.train = "";
  EXPECT_THAT(error_of<InvalidArgument>(error()), HasSubstr("data.train"));
  config = good;
  config.target = "de";
  EXPECT_THAT(error_of<InvalidArgument>(error()), HasSubstr("same as data.target"));
  config = good;
  config.valid = dir / "none";
  EXPECT_THAT(error_of<DataError>(error()), HasSubstr("none.de"));
  config = good;
  config.vocabulary_size = 40'000;
  EXPECT_THAT(error_of<DataError>(error()), HasSubstr("data.vocabulary_size is 40000"));
  EXPECT_FALSE(fs::exists(dir / "set"));
}

TEST_F(Prepare, ThreeProcessesAtOnceBuildOneSet) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const PreparedData data = prepare(config, false);
      const std::string line = data.content_hash + (data.built ? "B" : "-");
      ::_exit(::write(pipe_ends[1], line.data(), line.size()) == 33 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::string all(99, '\0');
  ASSERT_EQ(::read(pipe_ends[0], all.data(), 99), 99);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);

  EXPECT_EQ(std::count(all.begin(), all.end(), 'B'), 1);
  const PreparedData data = prepare(config, false);
  EXPECT_FALSE(data.built);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(all.substr(33 * i, 32), data.content_hash);
}

TEST_F(Prepare, BuildsWhereTheFileSystemHasNoLocks) {
  for (const int error : {ENOSYS, ENOLCK, EOPNOTSUPP}) {
    flock_error = error;
    config.directory = dir / ("set" + std::to_string(error));
    // Another process builds the same set at the same time.
    (void)fs::create_directory(config.directory + ".fathom-aside");
    const PreparedData built = prepare(config, false);
    flock_error = 0;

    EXPECT_TRUE(built.built);
    EXPECT_FALSE(prepare(config, false).built);
    EXPECT_TRUE(fs::exists(config.directory + ".fathom-aside")) << "it is the other's";
    fs::remove(config.directory + ".fathom-aside");
  }
  for (const std::string& name : names()) EXPECT_EQ(name.find(".fathom-aside"), name.npos) << name;
}

TEST_F(Prepare, AKilledBuilderLeavesNoHalfSetAndNoLock) {
  for (const char* phase : {"learning the tokenizer", "encoding", "writing"}) {
    ASSERT_TRUE(killed_at(phase)) << phase;
    EXPECT_FALSE(fs::exists(dir / "set")) << phase;
  }
  // Killed in the middle of writing: the temporary directory has half a set.
  fs::create_directory(dir / "set.fathom-aside");
  dir.write("set.fathom-aside/train.bin", "half");

  EXPECT_TRUE(prepare(config, false).built);
  EXPECT_FALSE(prepare(config, false).built);
  EXPECT_THAT(names(), ::testing::Not(Contains(HasSubstr("fathom-"))));
}

TEST_F(Prepare, WritesWhereALinkLeads) {
  fs::create_directories(dir / "disk/large");
  fs::create_directory_symlink("disk/large", dir / "set");

  EXPECT_TRUE(prepare(config, false).built);
  config.vocabulary_size = 80;
  EXPECT_TRUE(prepare(config, false).built);

  EXPECT_TRUE(fs::is_symlink(dir / "set"));
  EXPECT_TRUE(fs::exists(dir / "disk/large/data.json"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir / "disk"), {}), 1);
}

TEST_F(Prepare, ReportsAFailureOfTheDisk) {
  config.directory = dir / "train.de/set";  // below a file

  EXPECT_THAT(error_of<IoError>([&] { (void)prepare(config, false); }), HasSubstr("train.de"));
}

}  // namespace
}  // namespace fathom::data
