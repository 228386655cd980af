"""A run that version 0.1.0 (commit 05c50b8) left is still read: verified, evaluated, gone on with.

fixtures/run-0.1.0 is that run, of 6 steps on the reference device over fathom.py's corpus, and what
that version said of it and of its next 6 steps.
"""
import json
import pathlib
import shutil
import unittest

import fathom

FIXTURE = pathlib.Path(__file__).parent / "fixtures" / "run-0.1.0"


class OldRun(fathom.TestCase):
    def setUp(self):
        # Paths in its config are relative: corpus, data, run.
        shutil.copytree(FIXTURE, self.directory, dirs_exist_ok=True)
        self.addCleanup(shutil.rmtree, self.directory / "run", ignore_errors=True)
        self.expected = json.loads((FIXTURE / "expected.json").read_text(encoding="utf-8"))

    def test_it_verifies_and_evaluates(self):
        self.fathom("checkpoint", "verify", "run")
        result = json.loads(self.fathom("evaluate", "run").stdout)
        for key, value in self.expected["evaluate"].items():
            with self.subTest(key=key):
                self.assertAlmostEqual(result[key], value, delta=1e-6)

    def test_it_goes_on_as_it_would_have(self):
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                shutil.rmtree(self.directory / "run")
                shutil.copytree(FIXTURE / "run", self.directory / "run")
                self.fathom("train", "fixture.yaml", "train.max_steps=12", ranks=ranks)
                losses = {line["step"]: line["loss"]
                          for line in fathom.Run(self.directory / "run").metrics()}
                self.assertEqual(sorted(losses), list(range(1, 13)))
                for step, loss in self.expected["losses"].items():
                    self.assertAlmostEqual(losses[int(step)], loss, delta=1e-5 * loss)


if __name__ == "__main__":
    unittest.main()
