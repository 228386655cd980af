"""Texts that can be read only once: a pipe in place of a file. Whoever reads it reads it once, and
what would wait for it for ever is refused."""
import os
import shutil
import subprocess
import unittest

import fathom


class Pipes(fathom.TestCase):
    def pipes(self, *splits):
        """The corpus with pipes for the files of some splits: key=value words that name it."""
        self.place = self.directory / self.id()
        shutil.copytree(self.directory / "corpus", self.place)
        for split in splits:
            for side in ("xx", "yy"):
                (self.place / f"{split}.{side}").unlink()
                os.mkfifo(self.place / f"{split}.{side}")
        return [f"data.{split}={self.place / split}" for split in splits]

    def write(self, *splits):
        """In the background; whoever is left at the end is killed."""
        for split in splits:
            for side in ("xx", "yy"):
                words = f"cat {self.directory}/corpus/{split}.{side} > {self.place}/{split}.{side}"
                process = subprocess.Popen(["sh", "-c", words], start_new_session=True)
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)

    def test_any_number_of_ranks_reads_them_once(self):
        golden = self.run_directory("golden")
        self.train(golden)
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                keys = self.pipes("train", "valid", "test")
                self.write("train", "valid", "test")
                run = self.run_directory(str(ranks))
                result = self.train(run, *keys, f"data.directory={self.directory}/set{ranks}",
                                    ranks=ranks)
                self.assertIn("which is no file: this waits for who writes it", result.stderr)
                self.assert_same_run(golden, run)
                shutil.rmtree(self.place)

    def test_a_rank_that_does_not_see_the_data_set_says_so(self):
        keys = self.pipes("train")
        self.write("train")
        run = self.run_directory("run")
        words = fathom.command("train", self.config, f"run.directory={run.path}", *keys,
                               "data.directory=set")
        command = ["mpirun", "--oversubscribe", "--bind-to", "none"]
        for rank in (0, 1):
            (self.directory / f"cwd{rank}").mkdir()
            command += ["-np", "1", "--wdir", str(self.directory / f"cwd{rank}"), *words, ":"]
        result = fathom.finish(fathom.start(command[:-1], self.directory))
        self.assertEqual(result.code, 3, str(result))
        self.assertRegex(result.stderr, r"fathom: rank 1: data: .*train\.xx is no file.*"
                                        r"data\.directory")

    def test_a_text_that_is_needed_again_is_refused_before_it_is_read(self):
        keys = self.pipes("valid")
        for ranks in (0, 2):
            result = self.train(self.run_directory(str(ranks)), *keys, "train.best_metric=bleu",
                                ranks=ranks, code=3)
            self.assertRegex(result.stderr, r"data\.valid: .*valid\.yy is no file.*best_metric")

    def test_an_evaluation_on_several_ranks_is_refused_and_on_one_works(self):
        run = self.run_directory("run")
        self.pipes()
        self.train(run, f"data.test={self.place / 'test'}")
        golden = self.fathom("evaluate", run.path)
        for side in ("xx", "yy"):
            (self.place / f"test.{side}").unlink()
            os.mkfifo(self.place / f"test.{side}")
        result = self.fathom("evaluate", run.path, ranks=2, code=3)
        self.assertRegex(result.stderr, r"data\.test: .*test\.xx is no file.*on one rank")
        self.write("test")
        self.assertEqual(self.fathom("evaluate", run.path).stdout, golden.stdout)

    def test_a_config_that_several_ranks_would_read_is_refused(self):
        pipe = self.directory / "config-pipe"
        os.mkfifo(pipe)
        result = self.fathom("train", pipe, ranks=2, code=2)
        self.assertRegex(result.stderr, r"config-pipe: is no file, and every rank reads it")


if __name__ == "__main__":
    unittest.main()
