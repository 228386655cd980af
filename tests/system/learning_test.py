"""What the keys of the optimizer, of early stopping and of evaluation promise, seen from outside."""
import json
import re
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

    def other_corpus(self):
        """Other sentences of the same language: another tokenizer would be learned from them."""
        path = self.directory / "other"
        fathom.write_corpus(path, train=120, seed=5)
        return f"data.train={path / 'train'}"

    def test_weights_of_another_run_keep_their_meaning_on_another_corpus(self):
        donor, run = self.run_directory("donor"), self.run_directory("run")
        self.train(donor, "train.max_steps=150", "model.dropout=0")
        known = donor.validations()[150]["validation_loss"]
        self.assertLess(known, donor.validations()[10]["validation_loss"] - 0.3)
        begin = (self.other_corpus(), "train.max_steps=1", "optimizer.learning_rate=1e-9",
                 "optimizer.warmup_start=0", "--init-from", donor.path)
        for ranks in (0, 2):
            run = self.run_directory(f"run-{ranks}")
            result = self.train(run, *begin, ranks=ranks)
            self.assertIn(f"weights and tokenizer from {donor.path}", result.stderr)
            self.assertAlmostEqual(run.validations()[1]["validation_loss"], known, places=4)
            self.assertEqual((run.path / "tokenizer.model").read_bytes(),
                             (donor.path / "tokenizer.model").read_bytes())
        # And goes on with it, unasked.
        self.train(run, self.other_corpus(), "train.max_steps=5", "optimizer.learning_rate=1e-9",
                   "optimizer.warmup_start=0")
        self.assertEqual(run.result()["step"], 5)
        for override, key in (("model.heads=4", "model.heads: got 4"),
                              ("model.activation=gelu", "model.activation: got gelu"),
                              ("model.topology=pre-ln", "model.topology: got pre-ln")):
            refused = self.run_directory("refused")
            line = self.train(refused, *begin, override, code=2).last_line()
            self.assertIn(f"--init-from: {key}, but the weights of {donor.path}", line)
            self.assertFalse(refused.path.exists())

    def test_probe_reads_any_text_with_the_tokenizer_of_the_run(self):
        def nll(result):
            return float(re.search(r"nll ([0-9.]+)", result.stdout)[1])

        run = self.run_directory("run")
        corpus = self.directory / "changing"
        fathom.write_corpus(corpus)
        self.train(run, f"data.train={corpus / 'train'}", "train.max_steps=150", "model.dropout=0")
        before = nll(self.fathom("probe", run.path))
        fathom.write_corpus(corpus, train=120, seed=5)
        after = nll(self.fathom("probe", run.path))
        self.assertNotEqual(before, after)
        self.assertAlmostEqual(before, after, delta=0.3)  # another tokenizer: more than a nat

    def test_a_probe_as_json_is_its_table(self):
        words = ("probe", self.config, "run.seed=3")
        table = self.fathom(*words).stdout.splitlines()
        probe = json.loads(self.fathom(*words, "--json").stdout)
        self.assertEqual(table[0], f"{probe['topology']} at step {probe['step']}: loss "
                         f"{probe['loss']:.6f}, nll {probe['nll']:.6f}, gradient norm "
                         f"{probe['gradient_norm']:.6f}")
        names = table[1].split()
        self.assertEqual(len(probe["blocks"]), len(table) - 2)
        for line, block in zip(table[2:], probe["blocks"]):
            self.assertEqual(list(block), names)
            for name, text in zip(names, line.split()):
                value = block[name]
                self.assertEqual(text, value if isinstance(value, str) else f"{value:.4g}")

    def test_a_tokenizer_of_ones_own_is_used_and_never_written(self):
        donor, run = self.run_directory("donor"), self.run_directory("run")
        self.train(donor, "train.max_steps=1", "data.vocabulary_size=60")
        own = self.directory / "own.model"
        own.write_bytes((donor.path / "tokenizer.model").read_bytes())
        own.chmod(0o444)
        before = own.stat().st_mtime_ns
        given = (self.other_corpus(), f"data.tokenizer_model={own}")
        self.fathom("prepare", self.config, *given)
        self.train(run, *given, "train.max_steps=3")
        self.assertEqual((run.path / "tokenizer.model").read_bytes(), own.read_bytes())
        self.assertEqual(own.stat().st_mtime_ns, before)
        self.fathom("evaluate", run.path, "--split", "valid")

    def test_a_long_validation_or_test_pair_is_no_reason_to_fail(self):
        corpus = self.directory / "long"
        fathom.write_corpus(corpus)
        for split in ("valid", "test"):
            for side in ("xx", "yy"):
                with open(corpus / f"{split}.{side}", "a", encoding="utf-8") as file:
                    file.write("baba " * 60 + "\n")
        run = self.run_directory("run")
        data = [f"data.{split}={corpus / split}" for split in ("valid", "test")]
        self.train(run, *data, "data.max_length=200", "batch.tokens=200", "batch.micro_tokens=50",
                   "train.max_steps=3", "train.validate_every=2", "train.best_metric=bleu")
        self.assertEqual(sorted(run.validations()), [2, 3])
        self.fathom("evaluate", run.path, "--split", "test")

    def test_a_validation_set_of_equal_sources_is_not_blind(self):
        corpus = self.directory / "equal"
        fathom.write_corpus(corpus)
        for side in ("xx", "yy"):
            first = (corpus / f"train.{side}").read_text().splitlines()[6]
            (corpus / f"valid.{side}").write_text((first + "\n") * 4, encoding="utf-8")
        run = self.run_directory("run")
        self.train(run, f"data.valid={corpus / 'valid'}", "verdict.after=1", "train.max_steps=400",
                   "train.validate_every=400", "model.dropout=0")
        self.assertNotIn("source_gain", run.validations()[400])
        self.assertEqual(run.result()["status"], "completed")

    def test_a_decoder_has_no_source_gain(self):
        run = self.run_directory("run")
        config = self.write_config("decoder", model={"kind": "decoder", "depth": "D2"})
        self.train(run, "train.max_steps=10", config=config)
        self.assertNotIn("source_gain", run.validations()[10])


if __name__ == "__main__":
    unittest.main()
