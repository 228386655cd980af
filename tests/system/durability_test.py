"""What a run and a data set leave survives a power loss: everything is written aside, synced,
renamed, and then its folder is synced.

FILE_RECORDER names tests/support/file_recorder.c as a library; preloaded, it writes down each call
that changes a file. The checker goes through that record and is itself checked by planted ones.
"""
import os
import pathlib
import unittest

import fathom

RECORDER = os.environ.get("FILE_RECORDER")
GROWING = ".jsonl"  # appended to for the whole of a run, and synced before each checkpoint
LOCKS = (".lock",)  # files without content
FOR_PEOPLE = "/log.txt"  # nothing counts on it


class Checker:
    """Goes through a record line by line; `findings` are the broken rules, `renamed` the names that
    became visible by a rename."""

    def __init__(self):
        self.findings, self.renamed = [], []
        self.unsynced = {}  # path of a file or folder -> line of its last change
        self.arrived = {}   # path of a file -> whether it came to its name by a rename
        self.awaits = {}    # folder -> the rename in it that is not durable yet

    def check(self, record):
        for number, line in enumerate(record.splitlines(), 1):
            _, what, *paths = line.split("\t")
            if paths[-1].endswith(FOR_PEOPLE):
                continue
            getattr(self, "on_" + what)(f"line {number}", *paths)
        for folder, rename in self.awaits.items():
            self.findings.append(f"{rename}: {folder} is never synced after it")
        for path, line in self.unsynced.items():
            if path not in self.awaits and not path.endswith(LOCKS):
                self.findings.append(f"{line}: {path} is never synced after it")
        for path, by_rename in self.arrived.items():
            if not by_rename and not path.endswith((GROWING, *LOCKS)):
                self.findings.append(f"{path} was written in its place; a reader may see half")
        return self.findings

    def on_open(self, line, path):
        pass

    def on_close(self, line, path):
        pass

    def on_create(self, line, path):
        if path not in self.arrived:
            self.arrived[path] = False
            self.unsynced[path] = line
            self.unsynced[os.path.dirname(path)] = line

    def on_mkdir(self, line, path):
        self.unsynced[path] = line
        self.unsynced[os.path.dirname(path)] = line

    def on_write(self, line, path):
        self.unsynced[path] = line

    on_truncate = on_write

    def on_sync(self, line, path):
        self.unsynced.pop(path, None)
        self.awaits.pop(path, None)

    def on_remove(self, line, path):
        for known in (self.unsynced, self.arrived, self.awaits):
            for below in self.below(path, known):
                del known[below]

    def on_rename(self, line, source, target):
        self.before_rename(line, source, target)
        self.on_remove(line, target)
        self.move(source, target)

    def on_exchange(self, line, source, target):
        self.before_rename(line, source, target)
        between = source + "\t"
        self.move(target, between)
        self.move(source, target)
        self.move(between, source)

    def before_rename(self, line, source, target):
        for path in self.below(source, self.unsynced):
            self.findings.append(f"{line}: {source} becomes {target}, but {path} is not synced "
                                 f"since {self.unsynced[path]}")
        for folder in {os.path.dirname(source), os.path.dirname(target)}:
            if folder in self.awaits:
                self.findings.append(f"{self.awaits[folder]}: {folder} is not synced before {line}")
            self.awaits[folder] = line
        self.renamed.append(target)
        for path in self.below(source, self.arrived):
            self.arrived[path] = True

    def move(self, source, target):
        for known in (self.unsynced, self.arrived, self.awaits):
            for path in self.below(source, known):
                known[target + path[len(source):]] = known.pop(path)

    @staticmethod
    def below(path, known):
        return [p for p in known if p == path or p.startswith(path + "/")]


def record(*lines):
    return "".join("7\t" + line.replace(" ", "\t") + "\n" for line in lines)


WRITTEN = ("create /r/.tmp", "write /r/.tmp", "sync /r/.tmp")
STAGED = ("mkdir /r/.d", "create /r/.d/a", "write /r/.d/a", "sync /r/.d/a", "sync /r/.d")
SOUND = (
    (*WRITTEN, "close /r/.tmp", "rename /r/.tmp /r/f", "sync /r"),
    (*STAGED, "rename /r/.d /r/d", "sync /r"),
    (*STAGED, "exchange /r/.d /r/d", "sync /r", "remove /r/.d/a", "remove /r/.d"),
    ("create /r/x.jsonl", "sync /r/x.jsonl", "sync /r", "open /r/x.jsonl", "write /r/x.jsonl",
     "sync /r/x.jsonl"),
    ("create /r/.lock", "sync /r"),
    (*WRITTEN[:2], "remove /r/.tmp", "sync /r"),  # given up
)
PLANTED = (  # record, words of the finding
    ((*WRITTEN[:2], "rename /r/.tmp /r/f", "sync /r", "sync /r/f"),
     "line 3: /r/.tmp becomes /r/f, but /r/.tmp is not synced since line 2"),
    ((*WRITTEN, "write /r/.tmp", "rename /r/.tmp /r/f", "sync /r", "sync /r/f"), "since line 4"),
    ((*WRITTEN, "truncate /r/.tmp", "rename /r/.tmp /r/f", "sync /r", "sync /r/f"), "since line 4"),
    ((*WRITTEN, "sync /r", "rename /r/.tmp /r/f"), "line 5: /r is never synced after it"),
    ((*WRITTEN, "rename /r/.tmp /r/f", "rename /r/f /r/g", "sync /r"),
     "line 4: /r is not synced before line 5"),
    ((*STAGED[:4], "rename /r/.d /r/d", "sync /r", "sync /r/d"), "but /r/.d is not synced"),
    ((*STAGED[:3], "sync /r/.d", "rename /r/.d /r/d", "sync /r", "sync /r/d/a"),
     "but /r/.d/a is not synced"),
    ((*STAGED, "exchange /r/.d /r/d"), "line 6: /r is never synced after it"),
    (("create /r/f", "write /r/f", "sync /r/f", "sync /r"), "/r/f was written in its place"),
    (("create /r/x.jsonl", "sync /r", "write /r/x.jsonl"), "/r/x.jsonl is never synced"),
    (("create /r/x.jsonl", "sync /r/x.jsonl"), "line 1: /r is never synced after it"),
    (("mkdir /r/d", "sync /r/d"), "line 1: /r is never synced after it"),
)


class SelfTest(unittest.TestCase):
    def test_sound_records_pass(self):
        for lines in SOUND:
            self.assertEqual(Checker().check(record(*lines)), [], lines)

    def test_each_planted_fault_is_found(self):
        for lines, words in PLANTED:
            findings = Checker().check(record(*lines))
            self.assertEqual(len(findings), 1, (lines, findings))
            self.assertIn(words, findings[0])


@unittest.skipUnless(RECORDER, "FILE_RECORDER is not set, as under a sanitizer")
class Durability(fathom.TestCase):
    def recorded(self, *words, code=0):
        """Runs the program under the recorder; the names that its renames made, from here."""
        log, root = self.directory / "file.log", self.directory / "kept"
        root.mkdir(exist_ok=True)
        log.unlink(missing_ok=True)
        root = os.path.realpath(root)
        self.fathom(*words, code=code, env=fathom.environment(
            LD_PRELOAD=RECORDER, FATHOM_FILE_LOG=str(log), FATHOM_FILE_ROOT=root))
        text = log.read_text(encoding="utf-8")
        checker = Checker()
        findings = checker.check(text)
        self.assertEqual(findings, [], "\n".join(findings) + "\n" + text)
        return [os.path.relpath(path, root) for path in checker.renamed]

    def test_a_data_set_is_written_and_replaced(self):
        data = "data.directory=kept/data/set"
        self.assertEqual(self.recorded("prepare", self.config, data), ["data/set"])
        self.assertEqual(self.recorded("prepare", self.config, data), [])
        replaced = self.recorded("prepare", self.config, data, "data.vocabulary_size=70")
        self.assertEqual(replaced, ["data/set"])
        kept = self.directory / "kept" / "data"
        self.assertEqual(sorted(path.name for path in kept.iterdir()), ["set", "set.lock"])

    def test_a_run_its_resume_and_what_it_gives_up(self):
        run = fathom.Run(self.directory / "kept" / "runs" / "one")
        keys = (f"run.directory={run.path}", "data.directory=kept/set", "train.validate_every=2",
                "checkpoint.every_steps=2", "checkpoint.keep_last=1",
                "monitoring.listen=127.0.0.1:0")
        train = ("train", self.config, *keys)
        first = self.recorded(*train, "train.max_steps=4")
        second = self.recorded(*train, "train.max_steps=6")
        self.assertEqual([path.name for path in run.checkpoints()][-1], "step-00000006")
        self.assertLess(len(run.checkpoints()), 3)
        self.train(run, *keys[1:], "train.max_steps=8", "checkpoint.keep_last=5")
        branch = self.recorded(*train, "train.max_steps=8", "checkpoint.keep_last=5", "--resume",
                               run.path / "checkpoints" / "step-00000006")
        for renamed, new, steps in ((first, ["tokenizer.model"], (2, 4)), (second, [], (6,)),
                                    (branch, ["start.json"], (7, 8))):
            names = {path[len("runs/one/"):] for path in renamed if path.startswith("runs/one/")}
            for name in ("config.yaml", "result.json", "targets.json", ".owner", *new,
                         "checkpoints/latest", "checkpoints/best",
                         *(f"checkpoints/step-{step:08d}" for step in steps)):
                self.assertIn(name, names)
        self.assertEqual(len(list(run.path.glob("checkpoints/abandoned-*/step-00000008"))), 1)
        self.assertTrue(pathlib.Path(self.directory / "kept" / "set").is_dir())

    def test_gradients_of_a_probe(self):
        self.assertEqual(self.recorded("probe", self.config, "--out", "kept/gradients"),
                         ["gradients"])


if __name__ == "__main__":
    unittest.main()
