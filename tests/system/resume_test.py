"""A run that is stopped, killed or moved to another number of ranks ends in the same bits as one
that was left alone; and what a resume refuses."""
import fcntl
import os
import random
import re
import shutil
import signal
import time
import unittest

import fathom

STOPPING = ("SIGUSR1", "SIGTERM", "SIGINT", "SIGHUP", "SIGXCPU")


class Interrupted(fathom.TestCase):
    STEPS = 20

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.golden = fathom.Run(cls.directory / "runs" / "golden")
        words = fathom.command("train", cls.config, f"run.directory={cls.golden.path}",
                               f"train.max_steps={cls.STEPS}")
        result = fathom.finish(fathom.start(words, cls.directory))
        assert result.code == 0, str(result)

    def assert_golden(self, run):
        self.assert_same_run(self.golden, run)
        self.assertEqual(run.result()["status"], "completed")

    def to_the_end(self, run, *overrides, ranks=0):
        return self.train(run, f"train.max_steps={self.STEPS}", *overrides, ranks=ranks)


class Resume(Interrupted):
    def test_seven_and_thirteen_steps_are_twenty(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=7")
        self.assertEqual(run.result()["step"], 7)
        result = self.to_the_end(run)
        self.assertIn("resumed from step 7", result.stderr)
        self.assert_golden(run)
        [event] = run.events("resumed")
        self.assertEqual(event["step"], 7)

    def test_seven_on_two_ranks_and_thirteen_on_three_are_twenty_on_one(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=7", ranks=2)
        self.to_the_end(run, ranks=3)
        self.assert_golden(run)

    def test_a_resume_at_the_end_of_an_epoch_goes_on_with_the_next(self):
        epochs = [line["epoch"] for line in self.golden.metrics()]
        last = epochs.index(1)  # steps of epoch 0
        for step in (last - 1, last, last + 1):
            with self.subTest(step=step):
                run = self.run_directory(f"at{step}")
                self.train(run, f"train.max_steps={step}", ranks=2)
                self.to_the_end(run)
                self.assert_golden(run)

    def test_a_chain_of_attempts_ends_in_the_same_bits(self):
        run = self.run_directory("run")
        for step in (1, 2, 10, 11):
            self.train(run, f"train.max_steps={step}")
        self.to_the_end(run)
        self.assert_golden(run)
        self.assertEqual(len(run.events("resumed")), 4)

    def test_what_was_not_saved_is_done_again_with_the_same_losses(self):
        run, kept = self.run_directory("run"), self.directory / "kept"
        self.train(run, "train.max_steps=7")
        shutil.copytree(run.path / "checkpoints", kept)
        self.train(run, "train.max_steps=13", "checkpoint.keep_last=1")
        shutil.rmtree(run.path / "checkpoints")
        shutil.move(kept, run.path / "checkpoints")
        self.to_the_end(run)
        self.assert_golden(run)

    def test_its_checkpoints_are_listed_with_their_validations(self):
        run = self.run_directory("run")
        self.train(run, "checkpoint.every_steps=10", "train.max_steps=25", "checkpoint.keep_last=9")
        validations = run.validations()
        for path in (run.path, run.path / "checkpoints"):
            lines = self.fathom("checkpoint", "list", path).stdout.splitlines()
            self.assertEqual([int(line.split()[0]) for line in lines], [25, 20, 10])
            best = min(validations, key=lambda step: validations[step]["validation_loss"])
            for line in lines:
                step = int(line.split()[0])
                loss = validations[step]["validation_loss"]
                self.assertAlmostEqual(float(re.search(r"validation_loss (\S+)", line)[1]), loss, 4)
                self.assertEqual("(best)" in line, step == best)
        shown = self.fathom("checkpoint", "inspect", run.path).stdout
        self.assertRegex(shown, r"parameters of the model: \d+\n$")

    def test_a_complete_run_says_so_and_changes_nothing(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=5")
        before = run.metrics()
        result = self.train(run, "train.max_steps=5")
        self.assertIn("already complete at step 5", result.stderr)
        self.assertEqual(run.metrics(), before)
        self.assertEqual(run.result()["status"], "completed")

    def test_keys_that_do_not_shape_the_result_may_change(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=7")
        self.to_the_end(run, "checkpoint.every_steps=4", "checkpoint.keep_last=2",
                        "monitoring.listen=127.0.0.1:0", "monitoring.detail=run",
                        "dist.timeout_seconds=100", "dist.bucket_mb=0.5", "dist.overlap=on",
                        "train.threads=2", ranks=2)
        self.assert_golden(run)

    def test_a_changed_key_is_refused_naming_both_values(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=3")
        for override, key, new, old in (
                ("optimizer.learning_rate=1e-3", "optimizer.learning_rate", "0.001", "0.005"),
                ("dist.reduction=fast", "dist.reduction", "fast", "tree"),
                ("batch.shards=8", "batch.shards", "8", "4"),
                ("run.seed=9", "run.seed", "9", "1")):
            with self.subTest(key=key):
                line = self.train(run, "train.max_steps=6", override, code=2).last_line()
                self.assertRegex(line, re.escape(key) + rf": got {new}\b.*made with {old}\b")
        self.to_the_end(run)
        self.assert_golden(run)

    def test_never_refuses_a_used_directory(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=2", "--resume", "never")
        line = self.train(run, "train.max_steps=4", "--resume", "never", code=2).last_line()
        self.assertIn("--resume never", line)
        self.assertIn(str(run.path), line)

    def test_require_needs_a_checkpoint(self):
        run = self.run_directory("run")
        line = self.train(run, "train.max_steps=2", "--resume", "require", code=4).last_line()
        self.assertIn("no checkpoint", line)
        self.train(run, "train.max_steps=2")
        self.to_the_end(run, "--resume", "require")
        self.assert_golden(run)

    def test_a_path_chooses_the_checkpoint(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=12", "checkpoint.every_steps=6")
        chosen = run.checkpoints()[0]
        result = self.to_the_end(run, "--resume", chosen)
        self.assertIn("resumed from step 6", result.stderr)
        self.assert_golden(run)

    def test_a_refused_path_costs_no_checkpoint(self):
        run, other = self.run_directory("run"), self.run_directory("other")
        self.train(run, "train.max_steps=12", "checkpoint.every_steps=4")
        self.train(other, "train.max_steps=2", "run.seed=2")
        before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()
                  and path.name not in (".owner", ".lock")}
        for path, overrides, code in ((run.checkpoints()[0], ["optimizer.learning_rate=1e-3"], 2),
                                      (other.path, [], 2),
                                      (run.checkpoints()[0],
                                       [f"data.train={self.directory / 'corpus' / 'valid'}"], 3),
                                      ("nowhere", [], 4)):
            self.train(run, "train.max_steps=20", "--resume", path, *overrides, code=code)
            after = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()
                     and path.name not in (".owner", ".lock")}
            self.assertEqual(before, after)
        self.to_the_end(run)
        self.assert_golden(run)

    def test_other_kernels_are_allowed_and_said(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=3", env=fathom.environment(OPENBLAS_CORETYPE="Haswell"))
        result = self.train(run, "train.max_steps=5",
                            env=fathom.environment(OPENBLAS_CORETYPE="Zen"))
        self.assertRegex(result.stderr, "computed with .*Haswell.* computes with .*Zen")

    def test_init_from_starts_a_new_run_with_the_weights_of_another(self):
        donor, run = self.run_directory("donor"), self.run_directory("run")
        self.train(donor, "train.max_steps=20")
        still = ("train.max_steps=3", "optimizer.learning_rate=1e-9", "optimizer.warmup_start=0",
                 "--init-from", donor.path)
        self.train(run, *still)
        self.assertEqual([line["step"] for line in run.metrics()], [1, 2, 3])
        self.assertAlmostEqual(run.validations()[3]["validation_loss"],
                               donor.validations()[20]["validation_loss"], places=5)
        two = self.run_directory("two")
        self.train(two, *still, ranks=2)
        self.assert_same_run(run, two)


class StartOptions(Interrupted):
    """Options that begin a run or a branch act once. A command line that is repeated, as that of a
    requeued job is, goes on from where they led, whenever it is killed."""

    SAVES = ("checkpoint.every_steps=3", "checkpoint.keep_last=60", "train.validate_every=7")

    def saved_steps(self, run):
        return [int(path.name[5:]) for path in run.checkpoints()]

    STEPS_TO_GO = "train.max_steps=150"

    def kill_when(self, run, words, condition):
        process = self.start_training(run, *words, *self.SAVES, self.STEPS_TO_GO)
        fathom.wait_until(lambda: self.assertIsNone(process.poll()) or condition(), "far enough")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def in_three_starts(self, run, words, from_step):
        """Killed while it is set up, then after some saves, then to the end."""
        before = self.saved_steps(run) if run.path.exists() else []
        attempts = run.path / ".owner"
        stamp = attempts.stat().st_mtime_ns if attempts.exists() else 0
        self.kill_when(run, words,
                       lambda: attempts.exists() and attempts.stat().st_mtime_ns != stamp)
        self.assertEqual(self.saved_steps(run), before)
        self.kill_when(run, words, lambda: max(
            [s for s in self.saved_steps(run) if s not in before] or [0]) >= from_step + 7)
        reached = self.saved_steps(run)[-1]
        self.assertGreater(reached, from_step)
        result = self.train(run, *words, *self.SAVES, self.STEPS_TO_GO)
        self.assertIn("done by an earlier start of this command; going on from there",
                      result.stderr)
        self.assertIn(f"resumed from step {reached}", result.stderr)
        self.assertEqual(run.result()["step"], 150)
        return 150

    def whole_run(self, steps, *words):
        run = self.run_directory("whole")
        self.train(run, *words, *self.SAVES, f"train.max_steps={steps}")
        return run

    def test_an_older_checkpoint_of_the_run(self):
        run = self.run_directory("run")
        self.train(run, *self.SAVES, "train.max_steps=20")
        steps = self.saved_steps(run)
        words = ("--resume", run.path / "checkpoints" / "step-00000006")
        # Later steps than the branch will reach: none of them may be taken for its own.
        last = self.in_three_starts(run, words, 6)
        self.assert_same_run(self.whole_run(last), run)
        aside = sorted(path.name for path in run.path.glob("checkpoints/abandoned-*/step-*"))
        self.assertEqual(aside, [f"step-{step:08}" for step in steps if step > 6])
        [event] = run.events("set_aside")
        self.assertEqual(len(event["paths"]), len(aside))

    def test_a_checkpoint_of_another_run(self):
        donor, run = self.run_directory("donor"), self.run_directory("run")
        self.train(donor, *self.SAVES, "train.max_steps=9")
        kept = {path: path.read_bytes() for path in donor.path.rglob("*") if path.is_file()}
        last = self.in_three_starts(run, ("--resume", donor.path), 9)
        self.assert_same_state(self.whole_run(last), run)
        self.assertEqual(run.metrics(), self.whole_run(last).metrics()[9:])
        self.assertEqual(kept, {path: path.read_bytes() for path in kept})

    def test_weights_of_another_run(self):
        donor, run = self.run_directory("donor"), self.run_directory("run")
        self.train(donor, "train.max_steps=9")
        words = ("--init-from", donor.path)
        last = self.in_three_starts(run, words, 0)
        self.assert_same_run(self.whole_run(last, *words), run)
        self.refuse_a_run_that_began_otherwise(words)

    def refuse_a_run_that_began_otherwise(self, words):
        other = self.run_directory("otherwise")
        self.train(other, "train.max_steps=2")
        line = self.train(other, *words, "train.max_steps=4", code=2).last_line()
        self.assertIn("did not begin with these weights", line)

    def test_a_run_that_is_overwritten(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=4", "run.seed=7")
        metrics = run.metrics()
        words = ("--overwrite", *self.SAVES, self.STEPS_TO_GO)
        process = self.start_training(run, *words)
        fathom.wait_until(lambda: self.saved_steps(run)[-1:] > [9], "far enough")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        result = self.train(run, *words)
        self.assertIn("--overwrite: done by an earlier start of this command", result.stderr)
        self.assert_same_run(self.whole_run(150), run)
        [old] = run.path.parent.glob(f"{run.path.name}.replaced-*")
        self.assertEqual(fathom.Run(old).metrics(), metrics)
        # What was moved aside is a run as before.
        self.fathom("train", old, "train.max_steps=6")
        self.assertEqual(fathom.Run(old).result()["step"], 6)
        self.assertEqual(len(run.metrics()), 150)

    def test_another_command_line_acts_anew(self):
        run = self.run_directory("run")
        self.train(run, *self.SAVES, "train.max_steps=9")
        path = ("--resume", run.path / "checkpoints" / "step-00000006")
        for rate in ("1e-3", "1e-4"):
            other = ("--allow-change", "optimizer.learning_rate",
                     f"optimizer.learning_rate={rate}", "train.max_steps=9")
            result = self.train(run, *self.SAVES, *path, *other)
            self.assertIn("resumed from step 6", result.stderr)
            [change] = run.result()["changes"]
            self.assertEqual((change["step"], float(change["to"])), (6, float(rate)))
        for seed in (2, 3):
            self.train(run, "--overwrite", f"run.seed={seed}", "train.max_steps=2")
            self.assertEqual(run.result()["step"], 2)
        self.assertEqual(len(list(run.path.parent.glob(f"{run.path.name}.replaced-*"))), 2)

    def test_a_run_without_its_checkpoints_can_be_overwritten_as_its_refusal_says(self):
        run = self.run_directory("run")
        self.train(run, "--overwrite", "train.max_steps=2")
        shutil.rmtree(run.path / "checkpoints")
        line = self.train(run, "train.max_steps=2", code=4).last_line()
        self.assertIn("or start anew with --overwrite", line)
        self.train(run, "--overwrite", "train.max_steps=2")
        self.assertEqual(run.result()["step"], 2)
        line = self.train(run, "--overwrite", "--resume", "never", code=2).last_line()
        self.assertIn("does not go with --resume never", line)


class Moved(Interrupted):
    """A run is what its directory holds, wherever that lies."""

    def test_a_moved_run_goes_on_by_its_directory_or_its_config(self):
        for name, word in (("directory", ""), ("config", "config.yaml")):
            run = self.run_directory(name)
            self.train(run, "train.max_steps=7")
            moved = run.path.with_name(f"moved-{name}")
            run.path.rename(moved)
            self.fathom("train", moved / word, f"train.max_steps={self.STEPS}")
            self.assertFalse(run.path.exists())
            self.assert_golden(fathom.Run(moved))

    def test_texts_are_found_from_any_working_directory(self):
        run = self.run_directory("run")
        relative = [f"data.{split}=corpus/{split}" for split in ("train", "valid", "test")]
        self.train(run, *relative, "train.max_steps=3")
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        for words in (("train", run.path, f"train.max_steps={self.STEPS}"),
                      ("evaluate", run.path), ("probe", run.path)):
            result = fathom.finish(fathom.start(fathom.command(*words), elsewhere))
            self.assertEqual(result.code, 0, str(result))
        self.assert_golden(run)

    def test_a_copy_leaves_the_original_alone(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=7")
        copy = fathom.Run(run.path.with_name("copy"))
        shutil.copytree(run.path, copy.path)
        self.fathom("train", copy.path / "config.yaml", f"train.max_steps={self.STEPS}")
        self.assertEqual(len(run.metrics()), 7)
        self.assert_golden(copy)

    def test_texts_may_lie_elsewhere_and_a_test_set_may_come_later(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=7", "data.test=")
        scratch = self.directory / "scratch"
        shutil.copytree(self.directory / "corpus", scratch)
        self.to_the_end(run, *(f"data.{split}={scratch / split}" for split in
                               ("train", "valid", "test")))
        self.assert_golden(run)

    def test_a_group_can_write_what_its_umask_allows(self):
        run = self.run_directory("run")
        words = fathom.command("train", self.config, f"run.directory={run.path}",
                               "data.directory=shared/set", "train.max_steps=3",
                               "monitoring.listen=127.0.0.1:0")
        result = fathom.finish(fathom.start(words, self.directory, umask=0o002))
        self.assertEqual(result.code, 0, str(result))
        paths = [*run.path.rglob("*"), *(self.directory / "shared").rglob("*")]
        self.assertGreater(len(paths), 12)
        for path in paths:
            bits = 0o060 if path.is_file() else 0o070
            self.assertEqual(path.stat().st_mode & bits, bits, path)

    def test_what_a_living_run_deletes_is_no_damage(self):
        run = self.run_directory("run")
        process = self.start_training(run, "train.max_steps=1000000", "checkpoint.every_steps=1",
                                      "checkpoint.keep_last=1", "checkpoint.keep_best=0")
        self.wait_for_step(run, 5, process)
        for _ in range(10):
            result = self.fathom("checkpoint", "verify", run.path)
            self.assertRegex(result.stdout, ": (valid|deleted by its run since it was listed)")
        self.assertIsNone(process.poll())

    def test_a_refused_start_leaves_nothing_behind(self):
        for words, code in ((("data.train=/nowhere",), 3), (("--init-from", "/nowhere"), 4),
                            (("--resume", "require"), 4), (("--resume", "/nowhere"), 4),
                            (("monitoring.max_series=1",), 2)):
            with self.subTest(words=words):
                run = self.run_directory("run")
                self.train(run, *words, code=code)
                self.assertFalse(run.path.exists())

    def test_a_run_that_lost_its_checkpoints_does_not_start_anew(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=4")
        for path in run.checkpoints():
            shutil.rmtree(path)
        line = self.train(run, "train.max_steps=6", code=4).last_line()
        self.assertIn("events.jsonl tells of checkpoints, but there is none", line)
        self.assertEqual(len(run.metrics()), 4)


class Ended(Interrupted):
    """How a run ended is its result.json; without it the end is made up for."""

    def end_again(self, run, *words, code=0):
        self.train(run, *words, code=code)
        before, metrics = run.result(), run.metrics()
        (run.path / "result.json").unlink()
        result = self.train(run, *words, code=code)
        self.assertEqual(run.result(), before)
        self.assertEqual(run.metrics(), metrics)
        return result

    def test_an_end_that_was_cut_off_is_made_up_for(self):
        result = self.end_again(self.run_directory("good"), "train.max_steps=7")
        self.assertNotIn("already complete", result.stderr)

    def test_a_failure_whose_end_was_cut_off_fails_again(self):
        stuck = ("optimizer.learning_rate=1e-9", "optimizer.warmup_start=0", "verdict.after=5",
                 "train.validate_every=0", "train.max_steps=7")
        result = self.end_again(self.run_directory("bad"), *stuck, code=5)
        self.assertRegex(result.last_line(), "failed at step 7: plateau: .* verdict.action=report")

    def test_a_failed_run_goes_on_as_its_reason_says(self):
        run = self.run_directory("run")
        stuck = ("optimizer.learning_rate=1e-9", "optimizer.warmup_start=0",
                 f"train.max_steps={self.STEPS}")
        self.train(run, *stuck, "verdict.after=5", code=5)
        self.assertEqual(run.result()["step"], 10)
        result = self.train(run, *stuck, "verdict.after=5", "verdict.action=report")
        self.assertIn("plateau: ", run.result()["verdict"])
        self.assertEqual(run.result()["status"], "completed")
        self.assertEqual(len(run.events("judged")), 1)
        self.assertIn("completed at step 20", result.last_line())

    def test_more_patience_goes_on(self):
        run = self.run_directory("run")
        still = ("optimizer.learning_rate=1e-30", "optimizer.warmup_start=0",
                 "train.validate_every=2", "train.max_steps=1000")
        result = self.train(run, *still, "train.patience=2")
        self.assertIn("train.patience", result.last_line())
        result = self.train(run, *still, "train.patience=2")
        self.assertIn("raise train.max_steps (or train.max_epochs, train.patience)", result.stderr)
        self.train(run, *still, "train.patience=5")
        self.assertEqual(run.result()["step"], 12)


class Damaged(Interrupted):
    """What becomes of a run whose checkpoints were damaged."""

    def saved_run(self, name="run"):
        run = self.run_directory(name)
        self.train(run, "train.max_steps=9", "checkpoint.every_steps=3")
        self.assertEqual(len(run.checkpoints()), 3)
        return run

    @staticmethod
    def flip_a_bit(file):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)

    @staticmethod
    def truncate(file):
        os.truncate(file, file.stat().st_size * 2 // 3)

    def test_a_damaged_newest_checkpoint_is_passed_over_and_said_so(self):
        for name, damage, file in (("flip", self.flip_a_bit, "state.h5"),
                                   ("cut", self.truncate, "state.h5"),
                                   ("gone", os.remove, "state.h5"),
                                   ("manifest", self.truncate, "manifest.json")):
            with self.subTest(damage=name):
                run = self.saved_run(name)
                damage(run.checkpoints()[-1] / file)
                verified = self.fathom("checkpoint", "verify", run.path, code=4)
                self.assertEqual(verified.stdout.count(": valid"), 2)
                result = self.to_the_end(run)
                self.assertRegex(result.stderr, "skipped checkpoint .*step-00000009")
                self.assertIn("resumed from step 6", result.stderr)
                self.assert_golden(run)

    def test_the_pointer_to_the_latest_is_only_a_hint(self):
        for text in ("step-00000003\n", "rubbish", None):
            with self.subTest(text=text):
                run = self.saved_run(f"hint-{str(text).strip()}")
                latest = run.path / "checkpoints" / "latest"
                os.remove(latest)
                if text is not None:
                    latest.write_text(text, encoding="utf-8")
                self.assertIn("resumed from step 9", self.to_the_end(run).stderr)
                self.assert_golden(run)

    def test_a_checkpoint_of_another_step_under_a_wrong_name_is_refused(self):
        run = self.saved_run()
        oldest, newest = run.checkpoints()[0], run.checkpoints()[-1]
        shutil.rmtree(newest)
        shutil.copytree(oldest, newest)
        self.assertIn("resumed from step 6", self.to_the_end(run).stderr)
        self.assert_golden(run)

    def test_only_damaged_checkpoints_do_not_start_the_run_anew(self):
        run = self.saved_run()
        for checkpoint in run.checkpoints():
            self.flip_a_bit(checkpoint / "state.h5")
        before = run.metrics()
        result = self.train(run, "train.max_steps=20", code=4)
        self.assertIn("none of 3 checkpoints is valid", result.last_line())
        for step in (3, 6, 9):
            self.assertRegex(result.stderr, rf"skipped checkpoint .*step-0000000{step}: .+")
        self.assertEqual(run.metrics(), before)
        self.assertEqual(len(run.checkpoints()), 3)

    def test_a_checkpoint_of_another_model_is_refused(self):
        run, other = self.run_directory("run"), self.run_directory("other")
        self.train(run, "train.max_steps=2")
        self.train(other, "train.max_steps=2", "model.width=32")
        line = self.train(run, "train.max_steps=4", "--resume", other.path, code=2).last_line()
        self.assertIn("is of another run or branch", line)
        empty = self.run_directory("empty")
        line = self.train(empty, "train.max_steps=4", "--resume", other.path, code=2).last_line()
        self.assertIn("model.width", line)
        self.assertFalse(empty.path.exists())


class Signalled(fathom.TestCase):
    """A run without end is asked to stop; it goes on for some steps and must be what an undisturbed
    run of as many steps is."""

    def stop(self, run, send, ranks):
        process = self.start_training(run, "train.max_steps=1000000", ranks=ranks)
        self.wait_for_step(run, 3, process)
        send(process)
        return fathom.finish(process)

    def assert_stopped_and_resumable(self, run, result, ranks):
        self.assertEqual(result.code, 75, str(result))
        outcome = run.result()
        self.assertEqual(outcome["status"], "interrupted")
        step = outcome["step"]
        self.assertEqual(run.metrics()[-1]["step"], step)
        self.assertEqual(run.checkpoints()[-1].name, f"step-{step:08}")
        self.assertIn(f"interrupted at step {step}", result.stderr)
        # Once for the signal; a validation that was the best so far has its own.
        best = {event["step"] for event in run.events("validated")}
        saved = [event["step"] for event in run.events("saved")]
        self.assertEqual(saved.count(step), 1)
        self.assertLessEqual(set(saved), best | {step})
        more = f"train.max_steps={step + 5}"
        self.train(run, more, ranks=ranks)
        golden = self.run_directory("golden")
        self.train(golden, more)
        self.assert_same_run(golden, run)

    def check(self, send, ranks):
        run = self.run_directory("run")
        self.assert_stopped_and_resumable(run, self.stop(run, send, ranks), ranks)

    def test_usr1_to_mpirun_stops_all_ranks(self):
        self.check(lambda p: p.send_signal(signal.SIGUSR1), 2)

    def test_usr1_to_the_last_rank_alone_stops_all_ranks(self):
        self.check(lambda p: os.kill(fathom.children(p.pid)[-1], signal.SIGUSR1), 3)

    def test_term_to_one_rank_stops_all_ranks(self):
        self.check(lambda p: os.kill(fathom.children(p.pid)[-1], signal.SIGTERM), 2)

    def test_int_to_the_first_rank_stops_all_ranks(self):
        self.check(lambda p: os.kill(fathom.children(p.pid)[0], signal.SIGINT), 2)

    def test_each_signal_stops_a_lone_process(self):
        for name in STOPPING:
            with self.subTest(signal=name):
                run = self.run_directory(name)
                result = self.stop(run, lambda p, s=name: p.send_signal(getattr(signal, s)), 0)
                self.assertEqual(result.code, 75, str(result))
                self.assertIn("run the same command to go on", result.last_line())
                self.assertEqual(run.result()["status"], "interrupted")

    def test_further_signals_do_no_harm(self):
        def send_many(process):
            for name in ("SIGUSR1", "SIGUSR1", "SIGINT", "SIGTERM", "SIGUSR1"):
                process.send_signal(getattr(signal, name))
                time.sleep(0.003)

        self.check(send_many, 0)

    def test_usr2_saves_and_the_run_goes_on(self):
        for ranks in (0, 2):
            run = self.run_directory(f"on{ranks}")
            process = self.start_training(run, "train.max_steps=1000000", "train.validate_every=0",
                                          ranks=ranks)
            self.wait_for_step(run, 3, process)
            for saves in (1, 2):
                process.send_signal(signal.SIGUSR2)
                fathom.wait_until(lambda n=saves: len(run.events("saved")) == n, "saved")
            step = run.events("saved")[-1]["step"]
            self.wait_for_step(run, step + 2, process)
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(fathom.finish(process).code, 75)
            self.assertEqual(len(run.events("saved")), 3)

    def test_a_hangup_is_ignored_where_the_caller_ignores_it(self):
        run = self.run_directory("run")
        process = self.start_training(run, "train.max_steps=1000000", preexec_fn=lambda:
                                      signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_step(run, 2, process)
        process.send_signal(signal.SIGHUP)
        self.wait_for_step(run, len(run.metrics()) + 3, process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(fathom.finish(process).code, 75)


class SignalledInValidation(Interrupted):
    """A validation of many seconds is left within a batch, and is made up for."""
    KEYS = ("train.validate_every=5", "train.patience=50", "checkpoint.every_steps=5",
            "checkpoint.keep_last=20", "batch.micro_tokens=100")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, lines in (("large", 40000), ("medium", 6000)):
            fathom.write_corpus(cls.directory / name, train=1, valid=lines, test=1, seed=7)

    def words(self, corpus):
        return (*self.KEYS, f"data.valid={self.directory / corpus / 'valid'}", "train.max_steps=10")

    def wait_for_validation(self, run, process):
        self.wait_for_step(run, 5, process)
        fathom.wait_until(run.checkpoints, "saved")
        self.assertEqual(run.events("validated"), [])

    def test_a_stop_is_done_within_seconds_with_the_step_saved(self):
        for ranks, save in ((0, 5), (2, 5), (0, 0)):
            with self.subTest(ranks=ranks, save=save):
                run = self.run_directory(f"{ranks}-{save}")
                process = self.start_training(run, *self.words("large"),
                                              f"checkpoint.every_steps={save}", ranks=ranks)
                if save:
                    self.wait_for_validation(run, process)
                else:
                    self.wait_for_step(run, 5, process)
                time.sleep(0.5)
                begin = time.monotonic()
                process.send_signal(signal.SIGUSR1)
                result = fathom.finish(process)
                self.assertLess(time.monotonic() - begin, 5 * fathom.SLOWNESS)
                self.assertEqual(result.code, 75, str(result))
                self.assertEqual([c.name for c in run.checkpoints()], ["step-00000005"])
                self.assertEqual(run.events("validated"), [])
                self.assertEqual([e["step"] for e in run.events("saved")], [5])

    def test_after_a_kill_between_save_and_validation_nothing_is_missing(self):
        golden, run = self.run_directory("golden"), self.run_directory("run")
        words = self.words("medium")
        self.train(golden, *words)
        process = self.start_training(run, *words)
        self.wait_for_validation(run, process)
        process.kill()
        process.wait()
        self.assertEqual(run.events("validated"), [])
        self.train(run, *words)
        self.assert_same_run(golden, run)
        self.assertEqual(run.validations(), golden.validations())
        self.assertEqual([c.name for c in run.checkpoints()],
                         [c.name for c in golden.checkpoints()])
        for one, other in zip(run.checkpoints(), golden.checkpoints()):
            self.fathom("checkpoint", "diff", one, other)
        for name in ("best", "latest"):
            self.assertEqual((run.path / "checkpoints" / name).read_text(),
                             (golden.path / "checkpoints" / name).read_text())


class SignalledEarly(fathom.TestCase):
    """A signal before the first step finds nothing to save."""

    def stop_while_it_waits(self, send, ranks, name="run"):
        # Another process prepares the same data: the run waits for its lock.
        run = self.run_directory(name)
        data = self.directory / f"data-{run.path.name}"
        with open(f"{data}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = self.start_training(run, f"data.directory={data}", "train.max_steps=5",
                                          ranks=ranks)
            fathom.wait_until((run.path / ".owner").exists, "set up")
            time.sleep(0.2)
            send(process)
            result = fathom.finish(process, timeout=20)
        self.assertEqual(result.code, 75, str(result))
        self.assertEqual(result.stderr.count("interrupted before the first step"), 1)
        self.assertEqual(run.checkpoints(), [])
        self.train(run, f"data.directory={data}", "train.max_steps=5", ranks=ranks)
        self.assertEqual(run.result()["status"], "completed")

    def test_each_signal_ends_a_lone_process(self):
        for name in STOPPING:
            with self.subTest(signal=name):
                self.stop_while_it_waits(lambda p, s=name: p.send_signal(getattr(signal, s)), 0,
                                         name)

    def test_usr1_to_mpirun_ends_all_ranks(self):
        self.stop_while_it_waits(lambda p: p.send_signal(signal.SIGUSR1), 2)

    def test_usr1_to_the_last_rank_alone_ends_all_ranks(self):
        self.stop_while_it_waits(lambda p: os.kill(fathom.children(p.pid)[-1], signal.SIGUSR1), 3)

    def test_where_a_rank_was_lost_the_others_do_not_speak_after_it(self):
        run = self.run_directory("run")
        data = self.directory / "data-lost"
        with open(f"{data}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = self.start_training(run, f"data.directory={data}", ranks=2)
            fathom.wait_until((run.path / ".owner").exists, "set up")
            os.kill(fathom.children(process.pid)[-1], signal.SIGKILL)
            result = fathom.finish(process, timeout=20)
        self.assertNotEqual(result.code, 0)
        self.assertNotRegex(result.stderr, "(?m)^fathom train: interrupted")

    def test_no_moment_after_the_start_is_too_early(self):
        for name in STOPPING:
            run = self.run_directory(name)
            number = getattr(signal, name)
            process = self.start_training(run, "train.max_steps=1000000")

            def handles_it(pid=process.pid, number=number):
                with open(f"/proc/{pid}/status", encoding="ascii") as file:
                    [mask] = [line.split()[1] for line in file if line.startswith("SigCgt")]
                return int(mask, 16) >> (number - 1) & 1

            fathom.wait_until(handles_it, "handling signals")
            process.send_signal(number)
            self.assertEqual(fathom.finish(process).code, 75)


class Killed(Interrupted):
    STEPS = 300

    def kill_within(self, run, steps, chance):
        """Starts an attempt and kills it at a random moment of its first so many steps."""
        path = run.path / "metrics.jsonl"

        def lines():
            return path.read_bytes().count(b"\n") if path.exists() else 0

        until = lines() + chance.randint(0, steps)
        process = self.start_training(run, f"train.max_steps={self.STEPS}",
                                      "checkpoint.every_steps=7")
        fathom.wait_until(lambda: process.poll() is not None or lines() > until, "under way")
        time.sleep(chance.uniform(0, 0.01))
        process.kill()
        return process.wait() == -signal.SIGKILL

    def test_after_sigkill_at_any_time_the_losses_are_the_same(self):
        seed = random.SystemRandom().getrandbits(32)
        chance = random.Random(seed)
        run = self.run_directory("run")
        with self.subTest(seed=seed):
            kills = sum(self.kill_within(run, 30, chance) for _ in range(6))
            self.to_the_end(run)
            self.assertGreater(kills, 0)
            self.assertGreater(len(run.events("resumed")), 0)
            self.assert_golden(run)

    def test_a_run_killed_before_its_first_save_starts_anew_with_a_clean_record(self):
        run = self.run_directory("run")
        process = self.start_training(run, f"train.max_steps={self.STEPS}")
        self.wait_for_step(run, 2, process)
        process.kill()
        process.wait()
        self.assertEqual(run.checkpoints(), [])
        self.assertIn("left no checkpoint; starting anew", self.to_the_end(run).stderr)
        self.assert_golden(run)

    def test_a_killed_rank_ends_all_and_the_run_goes_on(self):
        run = self.run_directory("run")
        process = self.start_training(run, f"train.max_steps={self.STEPS}",
                                      "checkpoint.every_steps=2", ranks=2)
        self.wait_for_step(run, 5, process)
        os.kill(fathom.children(process.pid)[-1], signal.SIGKILL)
        result = fathom.finish(process, timeout=20)
        self.assertNotEqual(result.code, 0, str(result))
        self.to_the_end(run)
        self.assert_golden(run)


    def test_a_terminated_mpirun_leaves_a_run_that_goes_on(self):
        # mpirun gives its ranks a second: whether they save in time is up to the machine.
        run = self.run_directory("run")
        process = self.start_training(run, f"train.max_steps={self.STEPS}",
                                      "checkpoint.every_steps=2", ranks=2)
        self.wait_for_step(run, 5, process)
        process.terminate()
        self.assertNotEqual(fathom.finish(process, timeout=20).code, 0)
        self.to_the_end(run)
        self.assert_golden(run)

    def test_a_rank_that_hangs_ends_all_with_exit_7_and_the_run_goes_on(self):
        run = self.run_directory("run")
        process = self.start_training(run, f"train.max_steps={self.STEPS}",
                                      "dist.timeout_seconds=2", "checkpoint.every_steps=2",
                                      ranks=2)
        self.wait_for_step(run, 5, process)
        os.kill(fathom.children(process.pid)[-1], signal.SIGSTOP)
        result = fathom.finish(process, timeout=30)
        self.assertEqual(result.code, 7, str(result))
        self.assertRegex(result.stderr,
                         r"(?m)^fathom: rank 0: watchdog: no progress for \d+ s .* after step \d+")
        self.to_the_end(run, "dist.timeout_seconds=300")
        self.assert_golden(run)

    def test_a_lone_rank_waits_for_nobody(self):
        run = self.run_directory("run")
        self.to_the_end(run, "dist.timeout_seconds=0.001")
        self.assert_golden(run)

    def test_a_rank_that_hangs_while_the_others_wait_for_its_validation_is_noticed_too(self):
        run = self.run_directory("run")
        process = self.start_training(run, "train.max_steps=1000000", "dist.timeout_seconds=2",
                                      "train.validate_every=1", ranks=2)
        self.wait_for_step(run, 3, process)
        os.kill(fathom.children(process.pid)[0], signal.SIGSTOP)
        result = fathom.finish(process, timeout=60)  # ten times the limit, and mpirun's own
        self.assertEqual(result.code, 7, str(result))
        self.assertRegex(result.stderr, r"fathom: rank 1: watchdog: no progress for \d+ s")


class EveryStep(Interrupted):
    """One epoch and a half, step by step."""

    def test_a_stop_after_any_step_changes_nothing(self):
        for step in range(1, 13):
            with self.subTest(step=step):
                run = self.run_directory(f"at{step}")
                self.train(run, f"train.max_steps={step}")
                self.to_the_end(run)
                self.assert_golden(run)


if __name__ == "__main__":
    unittest.main()
