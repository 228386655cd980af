"""What the system tests share: a tiny corpus, the program under test, and a run's own record.

FATHOM names the program. A test gets a temporary directory with a corpus of a made-up language in
which a run of 30 steps takes about a second.
"""
import atexit
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(os.environ.get("FATHOM", "build/release/bin/fathom"))
SLOWNESS = int(os.environ.get("SLOWNESS", "1"))  # of the program under test, for limits of time
CRASHES = ("Segmentation fault", "core dumped", "terminate called", "AddressSanitizer",
           "Assertion", "Signal: Aborted", "stack trace")

MODEL = {
    "model": {"depth": "E2D2", "topology": "residual", "width": 16, "ffn_width": 32, "heads": 2,
              "dropout": 0.1},
    "data": {"source": "xx", "target": "yy", "vocabulary_size": 80, "max_length": 60},
    "batch": {"tokens": 200, "micro_tokens": 100, "shards": 4},
    "optimizer": {"learning_rate": 5e-3, "warmup_steps": 10},
    "train": {"max_steps": 30, "validate_every": 10, "threads": 1},
    "monitoring": {"listen": "off", "layer_statistics_every": 5},
    "verdict": {"after": 1000000},  # 30 steps are too few to be judged by
}


# Open MPI's own files, apart for each test: processes that start and end at the same time remove
# one another's directory.
MPI_DIRECTORY = tempfile.mkdtemp(prefix="fathom-mpi-")
atexit.register(shutil.rmtree, MPI_DIRECTORY, ignore_errors=True)


def environment(**more):
    env = dict(os.environ, OMPI_MCA_mpi_yield_when_idle="1",
               OMPI_MCA_orte_tmpdir_base=MPI_DIRECTORY)
    if os.geteuid() == 0:
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    env.update(more)
    return env


def mpirun(ranks):
    return ["mpirun", "-np", str(ranks), "--oversubscribe", "--bind-to", "none"]


def command(*words, ranks=0):
    """The command line of the program; ranks 0 is without mpirun."""
    return (mpirun(ranks) if ranks else []) + [PROGRAM, *map(str, words)]


class Result:
    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr

    def last_line(self):
        lines = [line for line in self.stderr.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def __str__(self):
        return (f"exit {self.code}\n--- stdout\n{self.stdout[-3000:]}\n"
                f"--- stderr\n{self.stderr[-5000:]}")


def finish(process, timeout=60):
    """Waits for a process of start(); one that hangs is killed with all it started."""
    limit = timeout * SLOWNESS
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"hung for {limit} s: {process.args}\n{Result('none', out, err)}")
    return Result(process.returncode, out, err)


def start(words, directory, env=None, **options):
    return subprocess.Popen(words, cwd=directory, env=env or environment(), text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True, **options)


def children(pid):
    """The processes that `pid` started, in the order of their starts: mpirun's ranks."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def wait_until(condition, what, timeout=30):
    deadline = time.monotonic() + timeout * SLOWNESS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"after {timeout * SLOWNESS} s: not yet {what}")
        time.sleep(0.01)


# A word of the source has one translation, and the order of words is turned round.
SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "pa", "ri", "so", "tu", "ve", "zi")


def sentence_pair(chance):
    source, target = [], []
    for _ in range(chance.randint(2, 7)):
        a, b = chance.choice(SYLLABLES), chance.choice(SYLLABLES)
        source.append(a + b)
        target.append(b[::-1] + a[::-1])
    return " ".join(source), " ".join(reversed(target))


def write_corpus(directory, train=150, valid=24, test=20, seed=1):
    chance = random.Random(seed)
    directory.mkdir(parents=True, exist_ok=True)
    for split, lines in (("train", train), ("valid", valid), ("test", test)):
        pairs = [sentence_pair(chance) for _ in range(lines)]
        for side, ending in enumerate(("xx", "yy")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (directory / f"{split}.{ending}").write_text(text, encoding="utf-8")


def effective(path):
    """The lines of a .jsonl file without those that a later attempt did again: see
    monitoring/history.h.

    The line {"marker": "resumed", "step": S} makes all earlier lines with a step above S void; a
    last line without its newline was torn by a crash.
    """
    lines = []
    for text in path.read_text(encoding="utf-8").split("\n")[:-1]:
        line = json.loads(text)
        if line.get("marker") == "resumed":
            lines = [kept for kept in lines if kept.get("step", -1) <= line["step"]]
        else:
            lines.append(line)
    return lines


class Run:
    """A run directory, read."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def metrics(self):
        """The effective steps, without what depends on the machine's speed."""
        lines = effective(self.path / "metrics.jsonl")
        return [{k: v for k, v in line.items() if k != "timing"} for line in lines]

    def losses(self):
        return [line["loss"] for line in self.metrics()]

    def layers(self):
        return effective(self.path / "layers.jsonl")

    def events(self, kind=None):
        events = effective(self.path / "events.jsonl")
        return [e for e in events if kind in (None, e["event"])]

    def validations(self):
        """By step; of a step that was done twice, the last."""
        figures = {}
        for e in self.events("validated"):
            figures[e["step"]] = {k: v for k, v in e.items() if k not in ("event", "time")}
        return figures

    def result(self):
        return json.loads((self.path / "result.json").read_text(encoding="utf-8"))

    def checkpoints(self):
        return sorted((self.path / "checkpoints").glob("step-*"))


class TestCase(unittest.TestCase):
    """Each test class has one directory with a corpus, tests have run directories in it."""

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="fathom-system-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        write_corpus(cls.directory / "corpus")
        cls.config = cls.write_config()

    @classmethod
    def write_config(cls, name="tiny", text=None, **sections):
        """MODEL with some sections' keys replaced, e.g. train={"max_steps": 5}; or just `text`."""
        config = {section: dict(keys) for section, keys in MODEL.items()}
        for split in ("train", "valid", "test"):
            config["data"][split] = str(cls.directory / "corpus" / split)
        for section, keys in sections.items():
            config.setdefault(section, {}).update(keys)
        path = cls.directory / f"{name}.yaml"
        # JSON is YAML, one section a line.
        path.write_text(text or "".join(f"{section}: {json.dumps(keys)}\n"
                                        for section, keys in config.items()), encoding="utf-8")
        return path

    def run_directory(self, name):
        path = self.directory / "runs" / f"{self.id().rsplit('.', 1)[-1]}-{name}"
        return Run(path)

    def fathom(self, *words, ranks=0, code=0, timeout=60, env=None, stdin=None):
        """Runs the program to its end and checks its exit code; None allows any."""
        if stdin is None:
            result = finish(start(command(*words, ranks=ranks), self.directory, env), timeout)
        else:
            done = subprocess.run(command(*words, ranks=ranks), cwd=self.directory, text=True,
                                  env=env or environment(), input=stdin, timeout=timeout * SLOWNESS,
                                  capture_output=True, check=False)
            result = Result(done.returncode, done.stdout, done.stderr)
        if code is not None:
            self.assertEqual(result.code, code, f"{words}: {result}")
        for crash in CRASHES:
            self.assertNotIn(crash, result.stderr)
        return result

    def train(self, run, *overrides, ranks=0, code=0, config=None, **options):
        return self.fathom("train", config or self.config, f"run.directory={run.path}", *overrides,
                           ranks=ranks, code=code, **options)

    def start_training(self, run, *overrides, ranks=0, **options):
        """In the background; killed at the end of the test should it still live."""
        words = command("train", self.config, f"run.directory={run.path}", *overrides, ranks=ranks)
        process = start(words, self.directory, **options)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        for stream in (process.stdout, process.stderr):
            stream.close()

    def wait_for_step(self, run, step, process):
        def reached():
            self.assertIsNone(process.poll(), "the run ended before the test could act")
            path = run.path / "metrics.jsonl"
            return path.exists() and path.read_bytes().count(b"\n") >= step

        wait_until(reached, f"at step {step}")

    def assert_same_state(self, a, b):
        paths = [getattr(x, "path", x) for x in (a, b)]
        result = self.fathom("checkpoint", "diff", *paths, code=None)
        self.assertEqual((result.code, result.stdout.strip()), (0, "identical"),
                         f"{paths}: {result}")

    def assert_same_run(self, golden, run):
        """State, every step's line, layer statistics and validations, all to the last bit. Where an
        attempt of `run` ended it may have validated once more."""
        self.assertEqual(golden.metrics(), run.metrics())
        self.assertEqual(golden.layers(), run.layers())
        expected, got = golden.validations(), run.validations()
        self.assertEqual(expected, {step: got.get(step) for step in expected})
        self.assert_same_state(golden, run)
