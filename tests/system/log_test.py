"""What a run says, on stderr and in RUN/log.txt."""
import re
import unittest

import fathom


class Log(fathom.TestCase):
    def log(self, run):
        text = (run.path / "log.txt").read_text(encoding="utf-8")
        for line in text.splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (debug|info|warning|error): ")
        return text

    def test_it_names_directory_changed_keys_saves_and_learning_rate(self):
        run = self.run_directory("run")
        result = self.train(run, "train.max_steps=12", "checkpoint.every_steps=5", ranks=2)
        log = self.log(run)
        for where in (log, result.stderr):
            self.assertIn(f"run directory: {run.path}\n", where)
            self.assertIn(f"saved step 5, {run.path}/checkpoints/step-00000005\n", where)
            self.assertRegex(where, r"loss \d+\.\d+, lr \d\.\d\de-\d\d, ")
            self.assertIn("fathom train: completed at step 12: reached train.max_steps 12", where)
        self.assertRegex(log, r"other than the defaults: .*model\.width 16, .*train\.max_steps 12")

    def test_a_second_start_goes_on_with_it(self):
        run = self.run_directory("run")
        for steps in (3, 6):
            self.train(run, f"train.max_steps={steps}")
        self.assertEqual(re.findall(r"completed at step (\d)", self.log(run)), ["3", "6"])
        self.assertIn("resumed from step 3", self.log(run))

    def test_quiet_says_nothing_of_a_run_that_goes_well(self):
        run = self.run_directory("run")
        result = self.train(run, "train.max_steps=12", "-q")
        self.assertEqual(result.stderr, "")
        self.assertIn("info: fathom train: completed at step 12", self.log(run))
        bad = self.run_directory("bad")
        result = self.train(bad, "optimizer.learning_rate=1e-9", "optimizer.warmup_start=0",
                            "verdict.after=5", "--quiet", code=5)
        self.assertIn("fathom train: failed at step 10: plateau", result.last_line())
        self.assertIn("fathom train: failed at step 10: plateau", self.log(bad))

    def test_verbose_has_a_line_for_every_step(self):
        run = self.run_directory("run")
        result = self.train(run, "train.max_steps=12", "--verbose")
        for where in (result.stderr, self.log(run)):
            self.assertEqual(re.findall(r"debug: step (\d+): loss", where),
                             [str(step) for step in range(1, 13)])
        self.train(run, "-q", "-v", code=2)

    def test_the_cause_that_ended_it_is_in_it(self):
        run = self.run_directory("run")
        words = ("train.max_steps=30", "checkpoint.every_steps=10")
        process = self.start_training(run, *words)
        fathom.wait_until(lambda: run.path.joinpath("log.txt").exists(), "a log")
        process.kill()
        process.wait()
        (run.path / "checkpoints").rename(run.path / "aside")
        (run.path / "checkpoints").write_text("in the way", encoding="utf-8")
        self.train(run, *words, code=6)
        (run.path / "checkpoints").unlink()
        (run.path / "aside").rename(run.path / "checkpoints")
        self.train(run, *words)
        self.assertIn("completed at step 30", self.log(run))


if __name__ == "__main__":
    unittest.main()
