"""From two text files to a translation, and all that may happen to a run on the way: it is stopped,
moved, extended, adapted to another text, and killed while a Prometheus watches it beside another.

On a third of the bundled corpus and on a generated one; CORPUS=PREFIX adds PREFIX.de and PREFIX.en.
"""
import gzip
import json
import math
import os
import pathlib
import re
import signal
import unittest

import fathom
import prometheus

CORPORA = pathlib.Path(__file__).resolve().parents[2] / "configs" / "corpora" / "tatoeba-deen"
# What `init` chooses takes hours on two cores; this takes minutes.
SMALL = ("model.depth=E2D2", "model.width=64", "model.ffn_width=128", "model.heads=2",
         "batch.tokens=2000", "batch.micro_tokens=1000", "data.max_length=120",
         "monitoring.listen=127.0.0.1:0", "checkpoint.every_steps=20", "train.validate_every=50",
         "optimizer.warmup_steps=40")


class Walkthrough(prometheus.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        fathom.write_corpus(cls.directory / "made", train=9000, valid=1, test=1, seed=3)

    def files(self, name, lines):
        """Two plain files of one's own, with any names."""
        paths = [self.directory / f"{name}-{side}" for side in ("german.txt", "english.txt")]
        for path, text in zip(paths, lines):
            path.write_text("".join(text), encoding="utf-8")
        return paths

    def go_the_whole_way(self, name, lines):
        half = len(lines[0]) // 2
        first = self.files(name, [side[:half] for side in lines])
        config = self.directory / f"{name}.yaml"
        data = self.directory / f"{name}-data"
        config.write_text(self.fathom("init", *first, "--hold-out", 100, data).stdout,
                          encoding="utf-8")
        check = self.fathom("config", "check", config, *SMALL).stdout
        self.assertIn(": ok: run ", check)

        run = fathom.Run(self.directory / "runs" / name)
        words = ("train", config, f"run.name={name}", *SMALL)
        process = fathom.start(fathom.command(*words, "train.max_steps=300", ranks=2),
                               self.directory)
        self.addCleanup(self.end, process)
        self.wait_for_step(run, 60, process)
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(fathom.finish(process, timeout=120).code, 75)
        stopped = run.result()["step"]
        self.fathom(*words, "train.max_steps=300", timeout=600)
        self.assertEqual(run.result()["status"], "completed")
        self.assertEqual([e["step"] for e in run.events("resumed")], [stopped])
        self.assertEqual([line["step"] for line in run.metrics()], list(range(1, 301)))

        # Moved and extended, it is the run that was never stopped.
        moved = fathom.Run(run.path.with_name(f"{name}-moved"))
        run.path.rename(moved.path)
        self.fathom("train", moved.path, "train.max_steps=350", timeout=600)
        self.assertEqual(moved.result()["step"], 350)
        whole = fathom.Run(self.directory / "whole" / name)
        self.fathom(*words, "train.max_steps=350", f"run.directory={whole.path}", timeout=600)
        self.assert_same_run(whole, moved)
        losses = [moved.validations()[step]["validation_loss"] for step in (50, 350)]
        self.assertLess(losses[1], losses[0])

        sources = "".join(lines[0][half:half + 5])
        translations = self.fathom("translate", moved.path, stdin=sources).stdout
        self.assertEqual(translations.count("\n"), 5)
        self.assertGreater(len(set(translations.splitlines())), 1)

        self.adapt(name, moved, [side[half:] for side in lines])
        self.watch(name, config, moved)

    def adapt(self, name, donor, lines):
        """Another text, the donor's tokenizer: it begins where an untrained model is not."""
        second = self.files(f"{name}-second", lines)
        data = self.directory / f"{name}-second-data"
        config = self.directory / f"{name}-second.yaml"
        config.write_text(self.fathom("init", *second, "--hold-out", 100, data).stdout,
                          encoding="utf-8")
        run = fathom.Run(self.directory / "runs" / f"{name}-adapted")
        words = ("train", config, f"run.directory={run.path}", f"run.name={name}-adapted", *SMALL,
                 "data.vocabulary_size=500", "train.max_steps=1", "train.validate_every=1",
                 "--init-from", donor.path)
        self.fathom(*words, timeout=300)
        begins = run.validations()[1]["validation_loss"]
        ends = donor.validations()[350]["validation_loss"]
        size = int(re.search(r"it has (\d+) entries", (run.path / "log.txt").read_text())[1])
        self.assertLess(begins, ends + 1)
        self.assertLess(begins, math.log(size) - 1, "of an untrained model")

    def watch(self, name, config, other):
        """Two runs in one Prometheus; one crashes and goes on."""
        run = fathom.Run(self.directory / "runs" / f"{name}-crashes")
        words = fathom.command("train", config, f"run.name={name}-crashes", *SMALL,
                               "train.max_steps=1000000")
        crashes = fathom.start(words, self.directory)
        self.addCleanup(self.end, crashes)
        lives = fathom.start(fathom.command("train", other.path, "train.max_steps=1000000"),
                             self.directory)
        self.addCleanup(self.end, lives)
        fathom.wait_until(lambda: self.has_scraped(f"{name}-crashes", 50), "scraped", 300)
        fathom.wait_until(lambda: self.has_scraped(name, 360), "scraped", 300)
        crashes.kill()
        crashes.wait()
        died_at = self.value(f'max_over_time(fathom_step{{run="{name}-crashes"}}[1h])')
        crashes = fathom.start(words, self.directory)
        self.addCleanup(self.end, crashes)
        fathom.wait_until(lambda: self.has_scraped(f"{name}-crashes", died_at + 20), "scraped", 300)
        both = self.query(f'count_over_time(fathom_step{{run=~"{name}(-crashes)?"}}[1h])')
        self.assertEqual({labels["instance"] for labels, _ in both}, {name, f"{name}-crashes"})
        first, last = (self.value(f'{which}_over_time(fathom_step{{run="{name}-crashes"}}[1h])')
                       for which in ("min", "last"))
        [resumed] = run.events("resumed")
        done = died_at - first + last - resumed["step"]
        counted = self.value(f'increase(fathom_steps_total{{run="{name}-crashes"}}[1h])')
        self.assertTrue(0.7 * done < counted < 1.3 * done, (counted, done, died_at, resumed))
        for process in (crashes, lives):
            process.send_signal(signal.SIGTERM)
            self.assertEqual(fathom.finish(process, timeout=120).code, 75)
        overview = self.fathom("runs", "--json").stdout.splitlines()
        states = {one["name"]: one["status"] for one in map(json.loads, overview)}
        self.assertEqual(states[f"{name}-crashes"], "interrupted")

    def test_a_third_of_the_bundled_corpus(self):
        lines = []
        for side in ("de", "en"):
            with gzip.open(CORPORA / f"train.{side}.gz", "rt", encoding="utf-8") as file:
                text = file.readlines()
            lines.append(text[:len(text) // 3])
        self.go_the_whole_way("bundled", lines)

    def test_a_generated_corpus(self):
        lines = [(self.directory / "made" / f"train.{side}").read_text(encoding="utf-8")
                 .splitlines(keepends=True) for side in ("xx", "yy")]
        self.go_the_whole_way("made", lines)

    @unittest.skipUnless("CORPUS" in os.environ, "CORPUS names none")
    def test_a_corpus_that_is_named(self):
        lines = []
        for side in ("de", "en"):
            path = pathlib.Path(f"{os.environ['CORPUS']}.{side}")
            opened = path.open if path.exists() else lambda mode, p=path, **o: gzip.open(
                f"{p}.gz", mode, **o)
            with opened(mode="rt", encoding="utf-8") as file:
                lines.append(file.readlines())
        self.go_the_whole_way("named", lines)


if __name__ == "__main__":
    unittest.main()
