"""Everything runs on the guard device with the cpu device's bits: common code keeps the contract of
devices. The guard's memory is out of the host's reach and its queues run as late, or as early, as
the contract allows; see tests/support/guard_device/guard_device.cpp.

GUARD_DEVICE names the library. With EVERY_CASE=1 each schedule meets each number of ranks; without,
each schedule and each number of ranks occurs, which is what the quick tests have time for.
"""
import json
import os
import unittest

import fathom

GUARD = os.path.abspath(os.environ.get("GUARD_DEVICE",
                                       "build/release/lib/libfathom_guard_device.so"))
SCHEDULES = ("late", "early:0", "early:1", "early:2")
EVERY_CASE = os.environ.get("EVERY_CASE") == "1"
STEPS = 12 if EVERY_CASE else 6  # the guard's queues make a step many times slower


def cases(schedules, others):
    """Pairs of a schedule and one of the others: all of them, or so many that each occurs."""
    if EVERY_CASE:
        return [(schedule, other) for schedule in schedules for other in others]
    return [(schedules[i % len(schedules)], others[i % len(others)])
            for i in range(max(len(schedules), len(others)))]


class Guard(fathom.TestCase):
    def guarded(self, schedule="late", **more):
        return fathom.environment(FATHOM_DEVICE_LIBRARY=GUARD, FATHOM_GUARD_SCHEDULE=schedule,
                                  **more)

    def test_training_gives_the_bits_of_the_cpu_on_any_number_of_ranks(self):
        golden = self.run_directory("cpu")
        self.train(golden, f"train.max_steps={STEPS}")
        # One rank has nothing to overlap; without overlap only the compute context matters.
        without = cases(("late", "early:0"), ((1, "off"), (3, "off")))
        for schedule, (ranks, overlap) in without + cases(SCHEDULES, ((2, "on"), (3, "on"))):
            with self.subTest(schedule=schedule, ranks=ranks, overlap=overlap):
                run = self.run_directory(f"{schedule}-{ranks}-{overlap}")
                self.train(run, f"train.max_steps={STEPS}", f"dist.overlap={overlap}",
                           "dist.bucket_mb=0.004", ranks=ranks, env=self.guarded(schedule))
                self.assert_same_run(golden, run)

    def test_a_sharded_optimizer_gives_the_bits_of_the_cpu(self):
        golden = self.run_directory("cpu")
        self.train(golden, f"train.max_steps={STEPS}")
        for schedule, (ranks, overlap) in (cases(SCHEDULES, ((2, "on"), (3, "on"))) +
                                           [("late", (3, "off"))]):
            with self.subTest(schedule=schedule, ranks=ranks, overlap=overlap):
                run = self.run_directory(f"{schedule}-{ranks}-{overlap}")
                options = ("dist.shard_optimizer=true", "dist.bucket_mb=0.004",
                           f"dist.overlap={overlap}")
                for steps in (STEPS // 2, STEPS):
                    self.train(run, f"train.max_steps={steps}", *options, ranks=ranks,
                               env=self.guarded(schedule))
                self.assert_same_run(golden, run)

    def test_a_sharded_fast_reduction_gives_the_bits_of_the_cpu(self):
        options = ("train.max_steps=8", "dist.reduction=fast", "dist.shard_optimizer=true")
        for schedule, ranks in cases(("early:1", "late"), (2, 3)):
            with self.subTest(schedule=schedule, ranks=ranks):
                golden = self.run_directory(f"cpu-{schedule}-{ranks}")
                self.train(golden, *options, ranks=ranks)
                run = self.run_directory(f"{schedule}-{ranks}")
                self.train(run, *options, "dist.overlap=on", ranks=ranks,
                           env=self.guarded(schedule))
                self.assert_same_run(golden, run)

    def test_every_save_beside_the_training_is_that_of_its_step(self):
        options = ("train.max_steps=6", "checkpoint.every_steps=2", "checkpoint.keep_last=9")
        golden = self.run_directory("cpu")
        self.train(golden, *options)
        for schedule, (ranks, sharded) in cases(SCHEDULES, ((1, "false"), (3, "true"))):
            with self.subTest(schedule=schedule, ranks=ranks, sharded=sharded):
                run = self.run_directory(f"{schedule}-{ranks}")
                self.train(run, *options, f"dist.shard_optimizer={sharded}",
                           "dist.bucket_mb=0.004", ranks=ranks, env=self.guarded(schedule))
                self.assertEqual([event["step"] for event in run.events("saved")], [2, 4, 6])
                for step in (2, 4, 6):
                    name = f"checkpoints/step-{step:08}"
                    self.assert_same_state(golden.path / name, run.path / name)

    def test_fast_reduction_gives_the_bits_of_the_cpu(self):
        config = self.write_config("fast", batch={"micro_tokens": 200})
        options = ("train.max_steps=8", "dist.reduction=fast")
        for schedule, ranks in cases(("late", "early:1"), (1, 2, 3)):
            with self.subTest(schedule=schedule, ranks=ranks):
                golden = self.run_directory(f"cpu-{schedule}-{ranks}")
                self.train(golden, *options, ranks=ranks, config=config)
                run = self.run_directory(f"{schedule}-{ranks}")
                self.train(run, *options, "dist.overlap=on", ranks=ranks, config=config,
                           env=self.guarded(schedule))
                self.assert_same_run(golden, run)

    def test_recomputed_activations_and_profiled_weights_give_the_bits_of_the_cpu(self):
        for topology in ("residual", "admin", "hyper-connections"):
            options = ("train.max_steps=6", f"model.topology={topology}")
            golden = self.run_directory(topology)
            self.train(golden, *options)
            for schedule, ranks in cases(("late", "early:1"), (1, 2)):
                with self.subTest(topology=topology, schedule=schedule, ranks=ranks):
                    run = self.run_directory(f"{topology}-{schedule}-{ranks}")
                    self.train(run, *options, "model.recompute_activations=true", ranks=ranks,
                               env=self.guarded(schedule))
                    self.assert_same_run(golden, run)

    def test_a_run_goes_on_from_one_device_to_the_other(self):
        golden = self.run_directory("cpu")
        self.train(golden, "train.max_steps=12")
        for schedule in SCHEDULES if EVERY_CASE else ("late", "early:1"):
            with self.subTest(schedule=schedule):
                run = self.run_directory(schedule)
                self.train(run, "train.max_steps=4", env=self.guarded(schedule))
                self.train(run, "train.max_steps=8")
                self.train(run, "train.max_steps=12", ranks=2, env=self.guarded(schedule))
                self.assert_same_state(golden, run)
                self.assertEqual(golden.losses(), run.losses())

    def test_probe_evaluate_and_translate_say_the_same(self):
        run = self.run_directory("run")
        self.train(run)
        source = (self.directory / "corpus" / "test.xx").read_text(encoding="utf-8")
        gradients = self.directory / "gradients"
        for words, stdin in ((("probe", self.config), None),
                             (("probe", run.path), None),
                             (("evaluate", run.path, "--split", "test"), None),
                             (("translate", run.path), source)):
            golden = self.fathom(*words, stdin=stdin)
            self.assertTrue(golden.stdout)
            for schedule in ("late", "early:0"):
                with self.subTest(words=words, schedule=schedule):
                    result = self.fathom(*words, stdin=stdin, env=self.guarded(schedule))
                    self.assertEqual(golden.stdout, result.stdout)
        self.fathom("probe", run.path, "--out", gradients)
        self.fathom("probe", run.path, "--out", f"{gradients}-guard", env=self.guarded())
        self.assert_same_state(gradients, f"{gradients}-guard")

    def test_translation_waits_once_a_token_however_many_lines_there_are(self):
        run = self.run_directory("run")
        self.train(run)
        line = (self.directory / "corpus" / "test.xx").read_text(encoding="utf-8").split("\n")[0]
        counts = []
        for lines in (0, 1, 30):
            report = self.directory / f"report-{lines}"
            out = self.fathom("translate", run.path, stdin=f"{line}\n" * lines,
                              env=self.guarded(FATHOM_GUARD_REPORT=str(report))).stdout
            self.assertEqual(out.count("\n"), lines)
            counts.append(json.loads(report.read_text(encoding="utf-8"))["waits"])
        self.assertGreater(counts[1], counts[0])
        self.assertEqual(counts[2], counts[1])

    def waits(self, run, steps, *overrides, ranks=0):
        """How often a run of so many steps waited for its device, on the rank that did so most."""
        report = self.directory / "report"
        report.unlink(missing_ok=True)
        self.train(run, f"train.max_steps={steps}", "train.validate_every=0", *overrides,
                   ranks=ranks, env=self.guarded(FATHOM_GUARD_REPORT=str(report)))
        return max(json.loads(line)["waits"]
                   for line in report.read_text(encoding="utf-8").splitlines())

    def test_the_host_waits_at_most_twice_a_step_whatever_the_depth(self):
        for every, most in ((0, 1), (1, 2)):
            per_step = []
            for depth in ("E2D2", "E12D12"):
                counts = [self.waits(self.run_directory(f"{depth}-{every}-{steps}"), steps,
                                     f"model.depth={depth}",
                                     f"monitoring.layer_statistics_every={every}")
                          for steps in (2, 12)]
                per_step.append((counts[1] - counts[0]) / 10)
            with self.subTest(layer_statistics_every=every):
                self.assertEqual(per_step[0], per_step[1])
                self.assertGreaterEqual(per_step[0], 1)  # else nothing was counted
                self.assertLessEqual(per_step[0], most)

    def test_sharding_adds_no_wait_to_a_step(self):
        for every, most in ((0, 1), (1, 2)):
            with self.subTest(layer_statistics_every=every):
                counts = [self.waits(self.run_directory(f"{every}-{steps}"), steps,
                                     "dist.shard_optimizer=true", "dist.bucket_mb=0.004",
                                     f"monitoring.layer_statistics_every={every}", ranks=2)
                          for steps in (2, 12)]
                self.assertLessEqual((counts[1] - counts[0]) / 10, most)


if __name__ == "__main__":
    unittest.main()
