// FORMAT.md is enough to read and to write a checkpoint: its two Python programs are taken from the
// document and run against ours.
#include <cstdlib>

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

bool has_python() {
  return std::system(
             "/usr/bin/python3 -c 'import h5py, ctypes; ctypes.CDLL(\"libxxhash.so.0\")' "
             "2>/dev/null") == 0;
}

// Runs a program in which `blocks` are the document's Python blocks.
int run_python(const fs::path& directory, const std::string& program) {
  write_text(directory / "test.py",
             "import re, sys, struct, numpy\n"
             "blocks = re.findall(r'```python\\n(.*?)```', open('" FORMAT_DOCUMENT
             "').read(), re.S)\n"
             "path = '" +
                 (directory / "step-00000007").string() + "'\n" + program);
  return std::system(("/usr/bin/python3 " + (directory / "test.py").string()).c_str());
}

TEST(Format, IsReadByThePythonOfItsDocument) {
  if (!has_python()) GTEST_SKIP() << "needs python3 with h5py and libxxhash";
  TemporaryDirectory directory;
  save_small(directory.path(), 7);
  const SmallState state(7);
  // The numbers go to Python as plain bytes, past our own format.
  std::ofstream raw(directory.path() / "raw", std::ios::binary);
  const auto put = [&](const auto& v) {
    raw.write(reinterpret_cast<const char*>(v.data()), std::streamsize(v.size() * sizeof v[0]));
  };
  put(state.weight);
  put(state.bias);
  put(state.scale);
  put(state.moment);
  raw.close();

  EXPECT_EQ(run_python(directory.path(), R"(
exec(blocks[0])
raw = b''.join(v.tobytes() for v in weights.values())
assert raw == open(path + '/../raw', 'rb').read()
assert {k: (v.shape, v.dtype.str) for k, v in weights.items()} == {
    'model/encoder.1.fc1.weight': ((40, 60), '<f4'), 'model/encoder.1.fc1.bias': ((60,), '<f4'),
    'model/scale': ((), '<f4'), 'optimizer/m/encoder.1.fc1.weight': ((40, 60), '<f8')}
assert values == {'step': 7, 'early_stopping/best': float('inf'),
                  'tokenizer': 'tokens \u00e9 "quoted" 7'}, values
assert manifest['step'] == 7 and manifest['run'] == 'run-1' and manifest['attempt'] == 2
assert manifest['provenance'] == {'config_hash': 'abc', 'versions': {'hdf5': '1.10.8'}}
exec(blocks[1])
assert manifest['file'] == {'name': 'state.h5', 'bytes': os.path.getsize(path + '/state.h5'),
    'xxh3_128': xxh3_128(open(path + '/state.h5', 'rb').read())}
for a in manifest['arrays']: assert a['xxh3_128'] == xxh3_128(weights[a['name']].tobytes())
text = open(path + '/manifest.json', 'rb').read()
digits = manifest['manifest_xxh3_128']
assert xxh3_128(text.replace(digits.encode(), b'0' * 32)) == digits
)"),
            0);
}

TEST(Format, IsWrittenByThePythonOfItsDocument) {
  if (!has_python()) GTEST_SKIP() << "needs python3 with h5py and libxxhash";
  TemporaryDirectory directory;
  ASSERT_EQ(run_python(directory.path(), R"(
exec(blocks[1])
write_checkpoint(path, 7, 'run-p', {
    'model/encoder.1.fc1.weight': (numpy.arange(2400, dtype='<f4') / 7).reshape(40, 60),
    'model/encoder.1.fc1.bias': numpy.full(60, 0.1, '<f4'),
    'model/scale': numpy.array(-0.0, '<f4'),
    'optimizer/m/encoder.1.fc1.weight': (numpy.arange(2400, dtype='<f8') / 3).reshape(40, 60)},
    {'step': 7, 'early_stopping/best': 0.1, 'tokenizer': 't\u00e9'})
)"),
            0);

  const Checkpoint checkpoint = Checkpoint::open(directory.path() / "step-00000007");
  SmallState loaded(0);
  LoadingArchive archive(checkpoint);
  loaded.visit(archive);
  archive.finish();
  for (size_t i = 0; i < 2400; ++i) {
    ASSERT_EQ(loaded.weight[i], float(i) / 7.0f);
    ASSERT_EQ(loaded.moment[i], double(i) / 3.0);
  }
  EXPECT_EQ(loaded.bias[59], 0.1f);
  EXPECT_EQ(loaded.step, 7);
  EXPECT_EQ(loaded.best, 0.1);
  EXPECT_EQ(loaded.tokenizer, "t\u00e9");
  EXPECT_EQ(checkpoint.manifest().run_id, "run-p");
}

}  // namespace
}  // namespace fathom::checkpoint
