"""What somebody does who comes with texts of their own: init, check, keys, runs, history."""
import csv
import gzip
import io
import json
import os
import pathlib
import pty
import random
import re
import select
import subprocess
import time
import unittest

import fathom

SOURCE = pathlib.Path(__file__).resolve().parents[2]


class ConfigCheck(fathom.TestCase):
    def lines(self, result):
        self.assertEqual(result.stdout if result.code else "", "", str(result))
        return result.stderr.splitlines()

    def check(self, *overrides, code, **options):
        return self.fathom("config", "check", self.config, *overrides, code=code, **options)

    def test_it_names_everything_at_once_and_training_says_the_first_in_the_same_words(self):
        corpus = self.directory / "corpus"
        packed = corpus / "packed.xx"
        packed.write_bytes(gzip.compress((corpus / "train.xx").read_bytes()))
        (corpus / "packed.yy").write_bytes((corpus / "train.yy").read_bytes())
        problems = (
            ("model.widht=5", 2, "unknown key; did you mean model.width"),
            ("train.device=gpu", 2, "did you mean cuda"),
            ("monitoring.listen=none.invalid:9464", 2, "has no IPv4 address"),
            (f"data.train={corpus / 'packed'}", 3, f"{packed} is a gzip file; add .gz"),
            ("data.test=a,b", 3, "one prefix each, not a list"))
        result = self.check(*(key for key, _, _ in problems), code=2)
        lines = self.lines(result)
        for key, code, words in problems:
            with self.subTest(key=key):
                self.assertEqual(sum(words in line for line in lines) >= 1, True, str(result))
                alone = self.check(key, code=code)
                run = self.run_directory("run")
                trained = self.train(run, key, "train.max_steps=1", code=code)
                self.assertEqual(self.lines(alone)[0], trained.last_line())
        for line in lines:
            self.assertTrue(line.startswith("fathom: "), line)

    def test_a_config_on_standard_input(self):
        text = self.config.read_text(encoding="utf-8")
        result = self.fathom("config", "check", "-", stdin=text)
        self.assertIn("standard input: ok: run stdin", result.stdout)
        result = self.fathom("config", "check", "-", stdin="model: 5\n", code=2)
        self.assertIn("fathom: standard input:1: model: got 5", result.stderr)

    def test_a_path_in_the_home_directory(self):
        env = fathom.environment(HOME=str(self.directory))
        result = self.check("data.train=~/corpus/train", code=0, env=env)
        self.assertIn("train: 150 of 150", result.stdout)
        run = self.run_directory("home")
        self.train(run, "data.train=~/corpus/train", "train.max_steps=1", env=env)

    def test_a_run_directory_can_be_shown_and_checked(self):
        run = self.run_directory("shown")
        self.train(run, "train.max_steps=2", "model.dropout=0.3")
        shown = self.fathom("config", "show", run.path).stdout
        self.assertIn("\n  dropout: 0.3  # default 0.1\n", shown)
        again = self.fathom("config", "show", "-", stdin=shown).stdout
        self.assertEqual(again, shown)
        self.assertIn(": ok: run tiny", self.fathom("config", "check", run.path).stdout)


class Outline(fathom.TestCase):
    def test_it_writes_nothing_and_says_what_the_run_would_be(self):
        before = sorted(self.directory.rglob("*"))
        result = self.fathom("config", "check", self.config)
        self.assertEqual(sorted(self.directory.rglob("*")), before)
        self.assertEqual(result.stderr, "")
        for words in ("tiny.yaml: ok: run tiny", "train: 150 of 150 pairs", "valid: 24 of 24",
                      "estimate from the text", "series  ", "parameters  ", "activations"):
            self.assertIn(words, result.stdout)
        self.fathom("prepare", self.config)
        counted = self.fathom("config", "check", self.config).stdout
        self.assertIn("by the data set in", counted)
        steps = int(re.search(r"epoch +(\d+) steps", counted)[1])
        run = self.run_directory("epoch")
        self.train(run, "train.max_steps=100", "train.max_epochs=1", "train.validate_every=0")
        self.assertEqual(run.result()["step"], steps)


class Keys(fathom.TestCase):
    def test_they_fit_a_terminal_and_can_be_searched(self):
        text = self.fathom("config", "keys").stdout
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertIn("\ndata.train ", text)
        few = self.fathom("config", "keys", "optimizer").stdout
        self.assertLess(len(few), len(text) / 3)
        keys = json.loads(self.fathom("config", "keys", "batch.*", "--json").stdout)
        self.assertEqual([key["name"] for key in keys],
                         ["batch.tokens", "batch.micro_tokens", "batch.shards"])
        result = self.fathom("config", "keys", "optimiser", code=2)
        self.assertIn("did you mean optimizer", result.last_line())


class Runs(fathom.TestCase):
    def runs(self):
        lines = self.fathom("runs", "runs", "--json").stdout.splitlines()
        return {run["name"]: run for run in map(json.loads, lines)}

    def test_they_stand_as_they_are(self):
        self.fathom("runs", code=2)  # no runs/ yet
        done, killed = (fathom.Run(self.directory / "runs" / name) for name in ("done", "killed"))
        self.train(done, "train.max_steps=20")
        process = self.start_training(killed, "train.max_steps=1000000", "train.validate_every=0")
        self.wait_for_step(killed, 5, process)
        living = self.runs()
        self.assertEqual(living["done"]["status"], "completed")
        self.assertEqual(living["done"]["step"], 20)
        self.assertEqual(living["done"]["validation_loss"],
                         min(v["validation_loss"] for v in done.validations().values()))
        self.assertEqual(living["killed"]["status"], "running")
        self.assertIn(f"pid {process.pid}", living["killed"]["note"])
        self.assertGreaterEqual(living["killed"]["step"], 5)
        process.kill()
        process.communicate()
        self.assertEqual(self.runs()["killed"]["status"], "crashed")
        (killed.path / ".owner").write_bytes(b"\xff")
        self.assertEqual(self.runs()["killed"]["status"], "damaged")
        self.assertEqual(self.runs()["done"]["status"], "completed")
        self.assertIn("completed  20/20", self.fathom("runs").stdout)


class History(fathom.TestCase):
    def test_the_table_of_a_resumed_run_is_that_of_its_effective_steps(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=10", "checkpoint.every_steps=5")
        checkpoint = run.path / "checkpoints" / "step-00000005"
        self.train(run, "train.max_steps=12", "--resume", str(checkpoint))
        text = self.fathom("history", run.path, "--csv").stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        effective = fathom.effective(run.path / "metrics.jsonl")
        self.assertEqual([int(row["step"]) for row in rows], list(range(1, 13)))
        for row, line in zip(rows, effective, strict=True):
            flat = {**line, **line.pop("timing")}
            flat.pop("timing", None)
            self.assertEqual(set(row), set(flat))
            for name, value in flat.items():
                self.assertEqual(float(row[name]), float(value), name)
        flat = [json.loads(line)
                for line in self.fathom("history", run.path, "--json").stdout.splitlines()]
        self.assertEqual([line["loss"] for line in flat], [line["loss"] for line in effective])

        rows = list(csv.DictReader(io.StringIO(
            self.fathom("history", run.path, "--what", "layers").stdout)))
        self.assertEqual(len(rows), sum(len(line["blocks"]) for line in run.layers()))
        rows = list(csv.DictReader(io.StringIO(
            self.fathom("history", run.path, "--what", "validations").stdout)))
        self.assertEqual({int(row["step"]): float(row["validation_loss"]) for row in rows},
                         {s: v["validation_loss"] for s, v in run.validations().items()})

    def test_pandas_reads_it(self):
        try:
            import pandas  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("needs python3-pandas")
        run = self.run_directory("run")
        self.train(run, "train.max_steps=3")
        path = self.directory / "history.csv"
        path.write_text(self.fathom("history", run.path).stdout, encoding="utf-8")
        frame = pandas.read_csv(path)
        self.assertEqual(str(frame["step"].dtype), "int64")
        self.assertEqual(str(frame["loss"].dtype), "float64")


class Init(fathom.TestCase):
    def test_a_config_for_3000_lines_passes_the_check_and_trains(self):
        chance = random.Random(7)
        pairs = [fathom.sentence_pair(chance) for _ in range(3000)]
        for side, ending in enumerate(("xx", "yy")):
            (self.directory / f"own.{ending}").write_text(
                "".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
        result = self.fathom("init", "own.xx", "own.yy", "--hold-out", "100", "split")
        self.assertIn("100 for validation, 100 for the test", result.stderr)
        config = self.directory / "config.yaml"
        config.write_text(result.stdout, encoding="utf-8")
        self.assertIn("config.yaml: ok: run own", self.fathom("config", "check", config).stdout)
        run = self.run_directory("own")
        self.train(run, "train.max_steps=6", "train.validate_every=3", "monitoring.listen=off",
                   config=config)
        self.assertEqual(run.result()["status"], "completed")
        losses = run.losses()
        self.assertLess(losses[-1], losses[0])
        self.fathom("init", "own.xx", "own.yy", "--hold-out", "100", "split", code=2)


class Terminal(fathom.TestCase):
    def train_on_a_terminal(self, **env):
        """All that `train` writes to a terminal of its own."""
        own, its = pty.openpty()
        run = self.run_directory("-".join(["run", *env]))
        words = fathom.command("train", self.config, f"run.directory={run.path}",
                               "train.max_steps=300", "train.validate_every=0")
        process = subprocess.Popen(words, cwd=self.directory, stdin=subprocess.DEVNULL,
                                   stdout=its, stderr=its, start_new_session=True,
                                   env=fathom.environment(TERM="xterm", **env))
        os.close(its)
        written, deadline = b"", time.monotonic() + 60 * fathom.SLOWNESS
        while time.monotonic() < deadline:
            if select.select([own], [], [], 0.1)[0]:
                try:
                    written += os.read(own, 1 << 16)
                except OSError:  # the other end is closed
                    break
        self.assertEqual(process.wait(60), 0, written)
        os.close(own)
        return written

    def test_no_color_means_no_escape_sequence(self):
        self.assertIn(b"\033[", self.train_on_a_terminal())
        written = self.train_on_a_terminal(NO_COLOR="1")
        self.assertNotIn(b"\033", written)
        self.assertIn(b"\rtiny ", written)


class Documents(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        def anchors(path):
            heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}

        pages = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *(SOURCE / "docs").glob("*.md")]
        for page in pages:
            text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            for link in re.findall(r"\]\(([^)\s]+)\)", text):
                if "://" in link:
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path) if path else page
                with self.subTest(page=page.name, link=link):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))

    def test_own_data_is_linked_and_names_only_commands_that_there_are(self):
        for page in ("README.md", "docs/running.md"):
            self.assertIn("own-data.md", (SOURCE / page).read_text(encoding="utf-8"))
        page = (SOURCE / "docs" / "own-data.md").read_text(encoding="utf-8")
        commands = set(re.findall(r"^(?:.*\| )?fathom (\w+)", page, re.MULTILINE))
        self.assertLessEqual({"init", "config", "prepare", "train", "runs", "history", "translate",
                              "evaluate"}, commands)
        for command in commands:
            done = subprocess.run([fathom.PROGRAM, command, "--help"], capture_output=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, command)


if __name__ == "__main__":
    unittest.main()
