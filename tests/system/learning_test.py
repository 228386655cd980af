"""What the keys of the optimizer, of early stopping and of evaluation promise, seen from outside."""
import json
import unittest

import fathom

try:
    import h5py
    import numpy
except ImportError:
    h5py = None


def state_values(run):
    """The values of the newest checkpoint's state, by name."""
    manifest = json.loads((run.checkpoints()[-1] / "manifest.json").read_text(encoding="utf-8"))
    return manifest["state"]


class Learning(fathom.TestCase):
    @unittest.skipIf(h5py is None, "needs python3-h5py and python3-numpy")
    def test_clip_norm_bounds_the_gradient_that_adam_sees(self):
        # After one step m = (1 - beta1) g, beta1 being 0.9. Adam's step itself does not tell: it is
        # the same for every multiple of g.
        def first_moment(run):
            parts = []
            with h5py.File(run.checkpoints()[-1] / "state.h5", "r") as file:
                file["optimizer/m"].visititems(lambda _, item: parts.append(item[()].ravel())
                                               if isinstance(item, h5py.Dataset) else None)
            return float(numpy.linalg.norm(numpy.concatenate(parts).astype("float64")))

        free = self.run_directory("free")
        self.train(free, "train.max_steps=1")
        norm = free.metrics()[0]["gradient_norm"]
        self.assertAlmostEqual(first_moment(free), 0.1 * norm, delta=1e-4 * norm)
        for clip, seen in ((norm / 8, norm / 8), (norm * 8, norm)):
            with self.subTest(clip=clip):
                run = self.run_directory(f"clip-{clip:.3f}")
                self.train(run, "train.max_steps=1", f"optimizer.clip_norm={clip}")
                self.assertAlmostEqual(first_moment(run), 0.1 * seen, delta=1e-4 * seen)
                # What is reported is the norm before clipping.
                self.assertAlmostEqual(run.metrics()[0]["gradient_norm"], norm, delta=1e-6 * norm)

    def test_patience_counts_the_validations_after_the_best(self):
        # A rate that changes nothing: the first validation is the best one, the others are no better.
        for patience in (1, 2, 3):
            with self.subTest(patience=patience):
                run = self.run_directory(str(patience))
                self.train(run, "optimizer.learning_rate=1e-30", "optimizer.warmup_start=0",
                           "train.validate_every=2", f"train.patience={patience}")
                self.assertEqual(len(run.metrics()), 2 * (1 + patience))
                self.assertEqual(run.result()["status"], "completed")
                self.assertIn("train.patience", run.result()["reason"])

    def test_tokens_of_source_and_target_are_counted_apart(self):
        chance = self.directory / "uneven"
        chance.mkdir()
        for split in ("train", "valid", "test"):
            (chance / f"{split}.xx").write_text("ba\n" * 40, encoding="utf-8")
            (chance / f"{split}.yy").write_text("do ki lu me no pa ri so tu ve\n" * 40,
                                                encoding="utf-8")
        config = self.write_config("uneven", data={
            **{split: str(chance / split) for split in ("train", "valid", "test")},
            "vocabulary_size": 40})
        run = self.run_directory("run")
        self.train(run, "train.max_epochs=1", config=config)
        lines, values = run.metrics(), state_values(run)
        self.assertEqual(values["sentences"], 40)
        self.assertEqual(values["source_tokens"] % 40, 0)
        self.assertEqual(values["target_tokens"] % 40, 0)
        self.assertGreater(values["target_tokens"], 3 * values["source_tokens"])
        self.assertEqual(sum(line["tokens"] for line in lines), values["target_tokens"])

    def test_source_gain_is_what_the_sources_tell_the_model(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=150", "model.dropout=0")
        report = json.loads(self.fathom("evaluate", run.path, "--split", "valid").stdout)
        self.assertGreater(report["source_gain"], 0.02)
        self.assertEqual(run.validations()[150]["source_gain"], report["source_gain"])

    def test_a_decoder_has_no_source_gain(self):
        run = self.run_directory("run")
        config = self.write_config("decoder", model={"kind": "decoder", "depth": "D2"})
        self.train(run, "train.max_steps=10", config=config)
        self.assertNotIn("source_gain", run.validations()[10])


if __name__ == "__main__":
    unittest.main()
