"""Any number of ranks and threads gives the same bits under tree, and the same up to rounding under
fast."""
import json
import math
import shutil
import unittest

import fathom

try:
    import h5py
    import numpy
except ImportError:
    h5py = None


class Tree(fathom.TestCase):
    def test_one_to_four_ranks_with_one_or_two_threads_give_the_same_bits(self):
        first = None
        for ranks, threads in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2)):
            with self.subTest(ranks=ranks, threads=threads):
                run = self.run_directory(f"{ranks}x{threads}")
                self.train(run, "dist.reduction=tree", f"train.threads={threads}", ranks=ranks)
                lines = run.metrics()
                self.assertEqual([line["step"] for line in lines], list(range(1, 31)))
                self.assertEqual([line["step"] for line in run.layers()],
                                 [1, 5, 10, 15, 20, 25, 30])
                self.assertEqual(sorted(run.validations()), [10, 20, 30])
                first = first or run
                self.assert_same_run(first, run)

    def test_without_mpirun_it_is_the_same_run(self):
        alone, under_mpirun = self.run_directory("alone"), self.run_directory("mpirun")
        self.train(alone, "train.max_steps=12")
        self.train(under_mpirun, "train.max_steps=12", ranks=1)
        self.assert_same_run(alone, under_mpirun)

    def test_overlap_and_bucket_size_change_no_bit(self):
        plain, overlapped = self.run_directory("plain"), self.run_directory("overlapped")
        self.train(plain, "train.max_steps=12", "dist.overlap=off", ranks=2)
        self.train(overlapped, "train.max_steps=12", "dist.overlap=on", "dist.bucket_mb=0.004",
                   ranks=3)
        self.assert_same_run(plain, overlapped)

    def test_another_seed_is_another_run(self):
        # Else every comparison above could pass on something that never changes.
        a, b = self.run_directory("a"), self.run_directory("b")
        self.train(a, "train.max_steps=3")
        self.train(b, "train.max_steps=3", "run.seed=2")
        self.assertNotEqual(a.losses(), b.losses())
        self.assertEqual(self.fathom("checkpoint", "diff", a.path, b.path, code=1).code, 1)

    def test_each_sentence_is_trained_on_once_per_epoch(self):
        run = self.run_directory("epochs")
        self.train(run, "train.max_epochs=2", "train.max_steps=1000", ranks=3)
        tokens = {}
        for line in run.metrics():
            tokens[line["epoch"]] = tokens.get(line["epoch"], 0) + line["tokens"]
        self.assertEqual(set(tokens), {0, 1})
        self.assertEqual(tokens[0], tokens[1])


class Profiled(fathom.TestCase):
    """Admin sets weights by what it measures over the first batch, before the first step."""

    OPTIONS = ("model.topology=admin", "train.max_steps=8", "train.validate_every=4")

    def test_any_number_of_ranks_and_threads_gives_the_same_bits(self):
        golden = self.run_directory("1x1")
        self.train(golden, *self.OPTIONS)
        for ranks, threads in ((1, 2), (2, 1), (3, 1), (3, 2)):
            with self.subTest(ranks=ranks, threads=threads):
                run = self.run_directory(f"{ranks}x{threads}")
                self.train(run, *self.OPTIONS, f"train.threads={threads}", ranks=ranks)
                self.assert_same_run(golden, run)

    def test_a_run_that_goes_on_does_not_measure_again(self):
        golden, run = self.run_directory("golden"), self.run_directory("run")
        self.train(golden, *self.OPTIONS)
        self.train(run, *self.OPTIONS, "train.max_steps=4")
        self.train(run, *self.OPTIONS, ranks=2)
        self.assert_same_run(golden, run)

    def test_a_probe_of_the_config_measures_as_well(self):
        run = self.run_directory("run")
        self.train(run, *self.OPTIONS, "train.max_steps=1", "model.dropout=0")
        probe = self.fathom("probe", self.config, "model.topology=admin", "model.dropout=0").stdout
        self.assertTrue(probe.startswith(f"admin at step 0: loss {run.losses()[0]:.6f}, "),
                        (probe, run.losses()))


class Recomputed(fathom.TestCase):
    """Activations computed again in the backward pass: the bits of a run that keeps them."""

    AGAIN = "model.recompute_activations=true"

    def test_it_changes_no_bit_on_any_number_of_ranks(self):
        for topology in ("residual", "denseformer", "branchnorm"):
            options = (f"model.topology={topology}", "train.max_steps=8")
            golden = self.run_directory(topology)
            self.train(golden, *options)
            for ranks in (1, 2):
                with self.subTest(topology=topology, ranks=ranks):
                    run = self.run_directory(f"{topology}-{ranks}")
                    self.train(run, *options, self.AGAIN, "dist.overlap=on", "dist.bucket_mb=0.004",
                               ranks=ranks)
                    self.assert_same_run(golden, run)

    def test_a_run_may_change_it_when_it_goes_on(self):
        golden, run = self.run_directory("golden"), self.run_directory("run")
        self.train(golden, "train.max_steps=12")
        self.train(run, "train.max_steps=4")
        self.train(run, "train.max_steps=8", self.AGAIN)
        self.train(run, "train.max_steps=12", ranks=2)
        self.assert_same_state(golden, run)
        self.assertEqual(golden.losses(), run.losses())


class Sharded(fathom.TestCase):
    """dist.shard_optimizer changes where moments are, not a bit of a run."""

    OPTIONS = ("dist.shard_optimizer=true", "dist.bucket_mb=0.004")

    def test_it_gives_the_bits_of_a_run_that_is_not_sharded(self):
        golden = self.run_directory("whole")
        self.train(golden)
        for ranks in (1, 2, 3, 4):
            for overlap in ("on", "off"):
                with self.subTest(ranks=ranks, overlap=overlap):
                    run = self.run_directory(f"{ranks}-{overlap}")
                    self.train(run, *self.OPTIONS, f"dist.overlap={overlap}", ranks=ranks)
                    self.assert_same_run(golden, run)

    def test_one_bucket_is_enough(self):
        golden, run = self.run_directory("whole"), self.run_directory("sharded")
        self.train(golden, "train.max_steps=12")
        self.train(run, "train.max_steps=12", "dist.shard_optimizer=true", ranks=3)
        self.assert_same_run(golden, run)

    def test_clipping_sees_the_norm_of_the_whole_gradient(self):
        golden, run = self.run_directory("whole"), self.run_directory("sharded")
        options = ("train.max_steps=12", "optimizer.clip_norm=0.5")
        self.train(golden, *options)
        self.assertGreater(max(line["gradient_norm"] for line in golden.metrics()), 0.5)
        self.train(run, *options, *self.OPTIONS, ranks=3)
        self.assert_same_run(golden, run)

    def test_fast_gives_the_same_run_twice_and_with_any_overlap(self):
        first = self.run_directory("first")
        self.train(first, *self.OPTIONS, "dist.reduction=fast", "dist.overlap=off", ranks=3)
        for overlap in ("off", "on"):
            with self.subTest(overlap=overlap):
                run = self.run_directory(overlap)
                self.train(run, *self.OPTIONS, "dist.reduction=fast", f"dist.overlap={overlap}",
                           ranks=3)
                self.assert_same_run(first, run)
        tree = self.run_directory("tree")
        self.train(tree)
        for a, b in zip(tree.losses(), first.losses()):
            self.assertAlmostEqual(a, b, delta=1e-3)

    def test_a_checkpoint_of_four_ranks_goes_on_anywhere(self):
        golden, saved = self.run_directory("golden"), self.run_directory("saved")
        self.train(golden, "train.max_steps=20")
        self.train(saved, "train.max_steps=8", *self.OPTIONS, ranks=4)
        for ranks in (1, 2, 3):
            for shards in ("true", "false"):
                with self.subTest(ranks=ranks, shard_optimizer=shards):
                    run = self.run_directory(f"{ranks}-{shards}")
                    shutil.copytree(saved.path, run.path)
                    self.train(run, "train.max_steps=14", "dist.bucket_mb=0.01",
                               f"dist.shard_optimizer={shards}", ranks=ranks)
                    self.train(run, "train.max_steps=20", *self.OPTIONS, ranks=4)
                    self.assert_same_run(golden, run)

    def test_a_run_of_one_rank_goes_on_sharded(self):
        golden, run = self.run_directory("golden"), self.run_directory("run")
        self.train(golden, "train.max_steps=12")
        self.train(run, "train.max_steps=5")
        self.train(run, "train.max_steps=12", *self.OPTIONS, ranks=3)
        self.assert_same_run(golden, run)


class Bf16(fathom.TestCase):
    """On the reference device, which specifies it."""

    OPTIONS = ("train.device=reference", "train.precision=bf16", "train.max_steps=8")

    def test_any_number_of_ranks_gives_the_same_bits(self):
        golden = self.run_directory("1")
        self.train(golden, *self.OPTIONS)
        for ranks, shards in ((2, "false"), (3, "false"), (1, "true"), (2, "true"), (3, "true")):
            with self.subTest(ranks=ranks, shard_optimizer=shards):
                run = self.run_directory(f"{ranks}-{shards}")
                self.train(run, *self.OPTIONS, "dist.overlap=on", "dist.bucket_mb=0.004",
                           f"dist.shard_optimizer={shards}", ranks=ranks)
                self.assert_same_run(golden, run)

    def test_it_goes_on_from_its_own_checkpoint_and_starts_from_one_of_fp32(self):
        golden, run = self.run_directory("golden"), self.run_directory("run")
        self.train(golden, *self.OPTIONS)
        self.train(run, *self.OPTIONS, "train.max_steps=3")
        self.train(run, *self.OPTIONS, ranks=2)
        self.assert_same_run(golden, run)
        for precision, other in (("fp32", "bf16"), ("bf16", "fp32")):
            with self.subTest(precision=precision, other=other):
                first, second = self.run_directory(precision), self.run_directory(f"to-{other}")
                reference = ("train.device=reference", "train.max_steps=8")
                self.train(first, *reference, f"train.precision={precision}")
                self.train(second, *reference, f"train.precision={other}", "--init-from",
                           first.path)
                self.assertLess(second.losses()[0], first.losses()[0] - 0.05)

    def test_a_run_goes_on_from_fp32_and_to_fp32(self):
        reference = ("train.device=reference", "train.max_steps=8")
        for before, after in (("fp32", "bf16"), ("bf16", "fp32")):
            golden = None
            for ranks, shards in ((1, "false"), (2, "false"), (3, "true")):
                with self.subTest(before=before, ranks=ranks, shard_optimizer=shards):
                    run = self.run_directory(f"{before}-{ranks}-{shards}")
                    options = (*reference, f"dist.shard_optimizer={shards}")
                    self.train(run, *options, f"train.precision={before}", "train.max_steps=3",
                               ranks=ranks)
                    if ranks == 1:
                        refused = self.train(run, *options, f"train.precision={after}", code=2)
                        self.assertIn("--allow-change train.precision", refused.stderr)
                    self.train(run, *options, f"train.precision={after}", "--allow-change",
                               "train.precision", ranks=ranks)
                    golden = golden or run
                    self.assert_same_run(golden, run)
                    changed = [event["changes"] for event in run.events() if "changes" in event]
                    self.assertEqual(changed, [[{"step": 3, "key": "train.precision",
                                                 "from": before, "to": after}]])

    def test_its_losses_are_near_those_of_fp32(self):
        rough, exact = self.run_directory("bf16"), self.run_directory("fp32")
        self.train(rough, *self.OPTIONS)
        self.train(exact, *self.OPTIONS, "train.precision=fp32")
        self.assertNotEqual(rough.losses(), exact.losses())
        for a, b in zip(rough.losses(), exact.losses()):
            self.assertAlmostEqual(a, b, delta=0.02 * b)


class Fast(fathom.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A fast rank fuses its shards up to micro_tokens: give it room to.
        cls.config = cls.write_config("fast", batch={"micro_tokens": 200})

    def test_losses_of_thirty_steps_are_those_of_tree_to_a_thousandth(self):
        tree = self.run_directory("tree")
        self.train(tree, "dist.reduction=tree")
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                fast = self.run_directory(f"fast{ranks}")
                self.train(fast, "dist.reduction=fast", ranks=ranks)
                a, b = tree.metrics(), fast.metrics()
                self.assertEqual(len(a), len(b))
                for x, y in zip(a, b):
                    self.assertEqual(x["tokens"], y["tokens"])
                    self.assertAlmostEqual(x["loss"], y["loss"], delta=1e-3)
                self.assertLess(abs(a[0]["gradient_norm"] / b[0]["gradient_norm"] - 1), 1e-5)

    @unittest.skipIf(h5py is None, "needs python3-h5py and python3-numpy")
    def test_first_gradient_is_that_of_tree(self):
        # After one step m = (1 - beta1) g.
        def first_moment(run):
            [checkpoint] = run.checkpoints()
            parts = []
            with h5py.File(checkpoint / "state.h5", "r") as file:
                group = file["optimizer/m"]
                group.visititems(lambda _, item: parts.append(item[()].ravel())
                                 if isinstance(item, h5py.Dataset) else None)
            return numpy.concatenate(parts).astype("float64")

        tree, fast = self.run_directory("tree"), self.run_directory("fast")
        self.train(tree, "train.max_steps=1")
        self.train(fast, "train.max_steps=1", "dist.reduction=fast", ranks=2)
        a, b = first_moment(tree), first_moment(fast)
        self.assertGreater(numpy.linalg.norm(a), 0)
        self.assertLess(numpy.linalg.norm(a - b), 1e-5 * numpy.linalg.norm(a))
        norm = numpy.linalg.norm(a) / 0.1  # beta1 is 0.9
        self.assertTrue(math.isclose(norm, tree.metrics()[0]["gradient_norm"], rel_tol=1e-5),
                        json.dumps(tree.metrics()[0]))


if __name__ == "__main__":
    unittest.main()
