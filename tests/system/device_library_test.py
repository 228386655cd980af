"""A device in a library of its own takes the place of the built-in one, and trains the same bits. The
host cannot reach its memory: the ranks exchange through collectives that the library brings."""
import os
import unittest

import fathom

LIBRARY = os.environ.get("FATHOM_TEST_DEVICE",
                         "build/release/tests/support/device_library/libfathom_test_device.so")
OPTIONS = ("train.device=reference", "train.max_steps=6", "train.validate_every=3")


class DeviceLibrary(fathom.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plugged_in = fathom.environment(FATHOM_DEVICE_LIBRARY=os.path.abspath(LIBRARY))

    def test_a_run_on_it_is_that_of_the_built_in_device(self):
        for precision in ("fp32", "fp64"):
            with self.subTest(precision=precision):
                golden = self.run_directory(f"golden-{precision}")
                run = self.run_directory(f"run-{precision}")
                options = (*OPTIONS, f"train.precision={precision}")
                self.train(golden, *options)
                self.train(run, *options, env=self.plugged_in)
                self.assertEqual(len(run.losses()), 6)
                self.assert_same_run(golden, run)

    def test_any_number_of_ranks_exchanges_through_its_collectives(self):
        golden = self.run_directory("golden")
        self.train(golden, *OPTIONS)
        for ranks, sharded in ((2, "false"), (3, "true")):
            with self.subTest(ranks=ranks, sharded=sharded):
                run = self.run_directory(f"run-{ranks}")
                self.train(run, *OPTIONS, "dist.overlap=on", "dist.bucket_mb=0.004",
                           f"dist.shard_optimizer={sharded}", ranks=ranks, env=self.plugged_in)
                self.assert_same_run(golden, run)

    def test_ranks_and_a_change_of_device_within_a_run_change_no_bit(self):
        golden, run = self.run_directory("golden"), self.run_directory("run")
        self.train(golden, *OPTIONS)
        self.train(run, *OPTIONS, "train.max_steps=3", "dist.overlap=on", "dist.bucket_mb=0.004",
                   ranks=2, env=self.plugged_in)
        self.train(run, *OPTIONS)
        self.assert_same_run(golden, run)

    def test_what_is_no_device_library_ends_the_run_with_exit_7(self):
        for path, reason in (("/nowhere/libdevice.so", "cannot be opened: "),
                             ("libm.so.6", "exports no fathom_device_table")):
            with self.subTest(path=path):
                env = fathom.environment(FATHOM_DEVICE_LIBRARY=path)
                result = self.train(self.run_directory("run"), *OPTIONS, code=7, env=env)
                self.assertIn(f"device library {path}: {reason}", result.last_line())
                self.assertIn("; give the path of a device library", result.last_line())


if __name__ == "__main__":
    unittest.main()
