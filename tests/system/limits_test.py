"""What the machine withholds: threads, address space, cores. The program uses what there is, or
says which limit to raise."""
import os
import re
import subprocess
import unittest

import fathom

THREAD_LIMIT = os.environ.get("THREAD_LIMIT")
# Of a run with all that needs one.
KEYS = ("train.threads=3", "train.max_steps=2", "checkpoint.every_steps=1")


@unittest.skipUnless(THREAD_LIMIT, "THREAD_LIMIT names no library to preload")
class Threads(fathom.TestCase):
    def limited(self, words, variable, number, ranks=0, stdin=None):
        """The result, and whether a thread was refused."""
        log = self.directory / f"{self.id()}-refused"
        log.unlink(missing_ok=True)
        limit = {"LD_PRELOAD": THREAD_LIMIT, variable: str(number), "FATHOM_THREAD_LOG": str(log)}
        # mpirun itself is left alone.
        command = ["env", *(f"{key}={value}" for key, value in limit.items()),
                   *fathom.command(*words)]
        if ranks:
            command = fathom.mpirun(ranks) + command
        with open(stdin or os.devnull, encoding="utf-8") as file:
            process = subprocess.Popen(command, cwd=self.directory, text=True, stdin=file,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=fathom.environment(), start_new_session=True)
            return fathom.finish(process), log.exists()

    def assert_clear(self, result, what):
        for crash in fathom.CRASHES:
            self.assertNotIn(crash, result.stderr, what)
        if result.code == 0:
            return
        self.assertEqual(result.code, 6, f"{what}: {result}")
        lines = [line for line in result.stderr.splitlines() if line.startswith("fathom: ")]
        self.assertRegex(lines[-1], r"cannot be started: .*temporarily unavailable; "
                                    r".*train\.threads.*ulimit -u.*pids\.max", what)

    def until_it_suffices(self, variable, words, least=1, **options):
        """Every number, up to the first with which no thread is refused."""
        for number in range(least, 40):
            result, is_refused = self.limited(words(number), variable, number, **options)
            self.assert_clear(result, f"{variable}={number}")
            if not is_refused:
                self.assertEqual(result.code, 0, str(result))
                return number
        self.fail("still refused")

    def train_words(self, *more):
        return lambda number: ("train", self.config,
                               f"run.directory={self.run_directory(str(number)).path}",
                               *KEYS, *more)

    def test_a_training_run_that_may_not_start_its_nth_thread(self):
        self.assertGreater(
            self.until_it_suffices("FATHOM_FAILING_THREAD", self.train_words()), 6)

    def test_a_training_run_that_may_only_have_n_threads(self):
        words = self.train_words("monitoring.listen=127.0.0.1:0")
        self.assertGreater(self.until_it_suffices("FATHOM_MOST_THREADS", words, least=0), 8)

    def test_a_run_serves_no_metrics_rather_than_none_at_all(self):
        words = self.train_words("monitoring.listen=127.0.0.1:0")
        # Two of the pool, the watchdog; then the snapshot's and the checkpoint's.
        result, _ = self.limited(words(5), "FATHOM_MOST_THREADS", 5)
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("this run serves no metrics", result.stderr)

    def test_a_translation_that_may_not_start_its_nth_thread(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=2")
        source = self.directory / "corpus" / "test.xx"
        self.assertGreater(self.until_it_suffices(
            "FATHOM_FAILING_THREAD", lambda number: ("translate", run.path, "--threads", "4"),
            stdin=source), 3)

    def test_two_ranks_that_may_only_have_n_threads(self):
        words = self.train_words("dist.overlap=on")
        most = self.until_it_suffices("FATHOM_MOST_THREADS", words, least=0, ranks=2)
        self.assertGreater(most, 6)


class AddressSpace(fathom.TestCase):
    def limited(self, kilobytes, *words):
        shell = f"ulimit -v {kilobytes} && exec \"$@\""
        command = ["bash", "-c", shell, "bash", *fathom.command(*words)]
        return fathom.finish(fathom.start(command, self.directory))

    def setUp(self):
        if self.limited(400_000, "--version").code != 0:
            self.skipTest("this build needs more to start, as one with AddressSanitizer does")

    def test_a_run_needs_not_what_the_machine_has(self):
        run, free = self.run_directory("run"), self.run_directory("free")
        result = self.limited(1_000_000, "train", self.config, f"run.directory={run.path}")
        self.assertEqual(result.code, 0, str(result))
        self.train(free)
        self.assert_same_run(free, run)
        for words in (("evaluate", run.path), ("translate", run.path), ("probe", run.path)):
            result = self.limited(1_000_000, *words)
            self.assertEqual(result.code, 0, f"{words}: {result}")

    def test_whatever_the_limit_a_run_ends_and_says_why(self):
        for kilobytes in range(100_000, 700_000, 15_000):
            run = self.run_directory(str(kilobytes))
            result = self.limited(kilobytes, "train", self.config, f"run.directory={run.path}",
                                  "train.max_steps=2", "train.threads=2")
            if result.code == 127:  # too little even to load the libraries
                continue
            self.assertIn(result.code, (0, 6, 7), f"{kilobytes}: {result}")
            if result.code != 0:
                self.assertRegex(result.last_line(), r"^fathom: .*ulimit -v", kilobytes)
        self.assertEqual(result.code, 0, str(result))

    def test_a_batch_that_does_not_fit_names_the_limit(self):
        result = self.limited(600_000, "train", self.config, "model.width=512", "model.heads=8",
                              f"run.directory={self.run_directory('run').path}",
                              "model.ffn_width=4096", "batch.tokens=20000", "train.threads=1",
                              "batch.micro_tokens=20000")
        self.assertEqual(result.code, 7, str(result))
        self.assertRegex(result.last_line(), r"^fathom: .*batch.*ulimit -v")


class Cores(fathom.TestCase):
    def threads(self, run, result):
        return re.search(r"threads of each: (\d+)", result.stderr)[1]

    def test_ranks_that_are_not_bound_share_the_cores_whatever_the_launcher_says(self):
        cores = len(os.sched_getaffinity(0))
        run = self.run_directory("run")
        words = ("train", self.config, f"run.directory={run.path}", "train.threads=0",
                 "train.max_steps=1")
        # As srun without --ntasks-per-node.
        slurm = ["env", "-u", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_STEP_ID=0", "SLURM_NTASKS=2",
                 "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_TASKS_PER_NODE=2"]
        result = fathom.finish(fathom.start(fathom.mpirun(2) + slurm + fathom.command(*words),
                                            self.directory))
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(self.threads(run, result), str(max(1, cores // 2)))

    def test_a_lone_process_of_a_batch_script_has_all_its_cores(self):
        run = self.run_directory("run")
        result = self.train(run, "train.threads=0", "train.max_steps=1",
                            env=fathom.environment(SLURM_NTASKS_PER_NODE="2", SLURM_JOB_ID="7"))
        self.assertEqual(self.threads(run, result), str(len(os.sched_getaffinity(0))))


if __name__ == "__main__":
    unittest.main()
