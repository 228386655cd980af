"""Every error a user can cause ends in its exit code and a last line that names what was wrong."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import unittest

import fathom

NOBODY = 65534


class Errors(fathom.TestCase):
    def assert_refused(self, result, code, *words):
        """Exit code, and a last line that begins with the program's name and holds the words."""
        self.assertEqual(result.code, code, str(result))
        line = result.last_line()
        self.assertTrue(line.startswith("fathom: "), str(result))
        for word in words:
            self.assertIn(word, line)
        for crash in ("Traceback", *fathom.CRASHES):
            self.assertNotIn(crash, result.stderr)

    def refuse(self, code, *words, command, **options):
        self.assert_refused(self.fathom(*command, code=None, **options), code, *words)

    def refuse_training(self, code, *words, overrides=(), config=None, run=None, **options):
        run = run or self.run_directory("run")
        result = self.train(run, *overrides, config=config, code=None, **options)
        self.assert_refused(result, code, *words)


class CommandLine(Errors):
    def test_wrong_words(self):
        for command, words in (
                ((), ("subcommand", "--help")),
                (("trian",), ("trian",)),
                (("checkpoint", "verfy", "x"), ("verfy",)),
                (("config",), ("subcommand", "--help")),
                (("train",), ("config",)),
                (("train", self.config, "--resum", "never"), ("--resum",)),
                (("train", self.config, "max_steps"), ("max_steps", "key=value")),
                (("train", self.directory / "missing.yaml"), ("missing.yaml", "no such config")),
                (("train", self.directory), ("is a directory",)),
                (("checkpoint", "diff", "only-one"), ("needs two paths",)),
                (("evaluate", "x", "--split", "train"), ("--split", "valid or test")),
                (("translate", "x", "--batch-tokens", "0"), ("--batch-tokens", "at least 1")),
                (("translate", "x", "--batch-tokens", "many"), ("--batch-tokens", "many"))):
            with self.subTest(command=command):
                self.refuse(2, *words, command=command)

    def test_help_and_version_succeed(self):
        for words, expected in ((("--help",), "train"), (("train", "--help"), "--resume"),
                                (("help", "train"), "--resume"), (("version",), "fathom "),
                                (("-V",), "MPI"), (("--version",), "fathom ")):
            with self.subTest(words=words):
                self.assertIn(expected, self.fathom(*words).stdout)


class Configs(Errors):
    def test_overrides(self):
        for override, words in (
                ("train.max_stps=3",
                 ("command line", "train.max_stps", "did you mean train.max_steps")),
                ("optimiser.epsilon=1", ("optimiser", "did you mean optimizer")),
                ("train.max_steps=few", ("train.max_steps", "got few", "integer")),
                ("train.max_steps=2.5", ("train.max_steps", "got 2.5")),
                ("train.max_steps=0", ("train.max_steps", "got 0", "[1, ")),
                ("model.dropout=1", ("model.dropout", "got 1", "[0, 1)")),
                ("model.dropout=nan", ("model.dropout", "got nan")),
                ("optimizer.learning_rate=1e400", ("optimizer.learning_rate", "1e400")),
                ("optimizer.learning_rate=-1", ("optimizer.learning_rate", "-1")),
                ("model.heads=0", ("model.heads", "got 0")),
                ("model.heads=3", ("model.heads", "model.width (16)")),
                ("model.topology=postln", ("model.topology", "did you mean post-ln")),
                ("batch.tokens=0", ("batch.tokens", "got 0")),
                ("train.device=cuda", ("train.device", "cuda", "not available")),
                ("monitoring.listen='[::1]:9464'", ("monitoring.listen", "IPv4")),
                ("run.name=../up", ("run.name",))):
            with self.subTest(override=override):
                self.refuse_training(2, *words, overrides=[override])

    def test_files(self):
        text = self.config.read_text(encoding="utf-8")
        for name, change, words in (
                ("duplicate", text + 'train: {"max_steps": 3}\n', ("duplicate.yaml:8", "train")),
                ("twice", text.replace('"heads": 2', '"heads": 2, "heads": 4'),
                 ("twice.yaml:1", "heads")),
                ("unknown", text.replace('"dropout"', '"dropuot"'),
                 ("unknown.yaml:1", "model.dropuot", "did you mean model.dropout")),
                ("type", text.replace('"heads": 2', '"heads": [2]'),
                 ("type.yaml:1", "model.heads", "a list")),
                ("syntax", text + "}{\n", ("syntax.yaml:8",)),
                ("list", "- train\n- model\n", ("list.yaml:1", "map"))):
            with self.subTest(config=name):
                config = self.write_config(name, text=change)
                self.refuse_training(2, *words, config=config)
                self.refuse(2, *words, command=("config", "check", config))

    def test_a_shard_larger_than_a_micro_batch_is_refused_under_tree_naming_the_keys(self):
        keys = ("batch.shards", "batch.tokens", "batch.micro_tokens", "dist.reduction")
        self.refuse_training(2, *keys, overrides=["batch.micro_tokens=40"])

    def test_a_sentence_larger_than_a_batch_is_refused(self):
        self.refuse_training(2, "data.max_length", "batch.tokens",
                             overrides=["batch.tokens=5", "dist.reduction=fast"])

    def test_data_train_is_needed(self):
        self.refuse_training(2, "data.train", overrides=["data.train="])

    def test_more_series_than_allowed(self):
        for detail, remedy in (("block", "set monitoring.detail: run"), ("run", "raise it")):
            for ranks in (0, 2):
                run, keys = self.run_directory(f"{detail}{ranks}"), ["train.max_steps=3"]
                keys += [f"monitoring.detail={detail}", "monitoring.layer_statistics_every=1",
                         "train.best_metric=bleu", "train.validate_every=2"]
                result = self.train(run, *keys, "monitoring.max_series=10", ranks=ranks, code=2)
                self.assertIn(remedy, result.stderr)
                needed = int(re.search(r"monitoring\.max_series: .* ranks? need (\d+)",
                                       result.stderr)[1])
                self.assertFalse(run.path.exists())
                self.train(run, *keys, f"monitoring.max_series={needed - 1}", ranks=ranks, code=2)
                self.train(run, *keys, f"monitoring.max_series={needed}", ranks=ranks)


class Data(Errors):
    def corpus(self, name, source, target):
        """A config whose training set has these bytes."""
        directory = self.directory / name
        directory.mkdir()
        (directory / "train.xx").write_bytes(source)
        (directory / "train.yy").write_bytes(target)
        return self.write_config(name, data={"train": str(directory / "train")})

    def lines(self, side):
        return (self.directory / "corpus" / f"train.{side}").read_bytes()

    def test_a_missing_file_is_named(self):
        for split in ("train", "valid"):
            with self.subTest(split=split):
                self.refuse_training(3, "gone.xx", overrides=[f"data.{split}=gone"])

    def test_unequal_line_counts_are_both_named(self):
        config = self.corpus("unequal", self.lines("xx"), self.lines("yy") + b"more\n")
        self.refuse_training(3, "150", "151", "train.xx", "train.yy", "line 151", config=config)

    def test_invalid_utf8_fails_with_its_place_or_is_skipped_and_counted(self):
        source = self.lines("xx").split(b"\n")
        source[4] = b"ba\xffdo"
        config = self.corpus("utf8", b"\n".join(source), self.lines("yy"))
        self.refuse_training(3, "train.xx:5", "data.on_bad_line: skip", config=config)
        run = self.run_directory("skip")
        result = self.train(run, "data.on_bad_line=skip", "train.max_steps=1", config=config)
        self.assertIn("149 training pairs", result.stderr)
        report = self.fathom("prepare", config, "data.on_bad_line=skip").stdout
        self.assertIn("invalid_utf8", report)

    def test_carriage_returns_fail_with_a_remedy(self):
        config = self.corpus("crlf", self.lines("xx").replace(b"\n", b"\r\n"), self.lines("yy"))
        self.refuse_training(3, "train.xx:1", "sed", config=config)

    def test_nothing_left_to_train_on(self):
        config = self.corpus("empty", b"\n" * 150, self.lines("yy"))
        self.refuse_training(3, "all 150", "empty_source", config=config)
        config = self.corpus("none", b"", b"")
        self.refuse_training(3, "no lines", config=config)
        self.refuse_training(3, "too_long", "data.max_length", overrides=["data.max_length=1"])

    def test_a_vocabulary_that_the_text_cannot_fill(self):
        self.refuse_training(3, "data.vocabulary_size", "50000",
                             overrides=["data.vocabulary_size=50000"])

    def test_a_data_set_cut_short_while_it_is_used_is_named(self):
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                run, data = self.run_directory(f"on{ranks}"), self.directory / f"cut{ranks}"
                keys = (f"data.directory={data}", "checkpoint.every_steps=1")
                process = self.start_training(run, "train.max_steps=1000000", *keys, ranks=ranks)
                self.wait_for_step(run, 3, process)
                os.truncate(data / "train.bin", 0)
                result = fathom.finish(process)
                self.assertEqual(result.code, 3, str(result))
                self.assertRegex(result.stderr, f"fathom: data: {data}/train.bin was cut short")
                step = run.metrics()[-1]["step"]
                self.train(run, f"train.max_steps={step + 3}", *keys, ranks=ranks)

    def test_an_error_of_the_data_ends_all_ranks(self):
        result = self.train(self.run_directory("run"), "data.train=gone", ranks=2, code=3)
        self.assertIn("gone.xx", result.stderr)


class Ranks(Errors):
    def test_a_lone_rank_ends_as_a_process_without_mpirun(self):
        run = self.run_directory("trained")
        self.train(run, "train.max_steps=2")
        for code, words in (
                (2, ("train", self.config, "model.width=15")),
                (2, ("train", self.config, f"run.directory={run.path}", "model.width=32")),
                (3, ("train", self.config, "data.train=gone")),
                (4, ("train", self.config, "--resume", "gone")),
                (4, ("evaluate", "gone"))):
            with self.subTest(words=words):
                cause = self.fathom(*words, code=code).last_line()
                self.assertTrue(cause.startswith("fathom: "), cause)
                result = self.fathom(*words, ranks=1, code=code)
                self.assertIn(cause, result.stderr.splitlines())

    def test_more_ranks_than_shards(self):
        result = self.train(self.run_directory("run"), "batch.shards=2", ranks=3, code=2)
        self.assertRegex(result.stderr, r"batch\.shards: 2 .* 3 ranks")

    def test_a_process_that_mpirun_did_not_reach_is_not_rank_0_of_1(self):
        env = fathom.environment(OMPI_COMM_WORLD_SIZE="2")
        self.refuse_training(2, "2 processes", "OMPI_COMM_WORLD_SIZE=2", env=env)

    def test_ranks_with_different_configs_end_naming_the_odd_one(self):
        run = self.run_directory("run")
        one = [fathom.PROGRAM, "train", str(self.config), f"run.directory={run.path}"]
        words = fathom.mpirun(1) + one + [":", "-np", "2"] + one[:]
        words += [":", "-np", "1"] + one + ["optimizer.learning_rate=1e-3"]
        result = fathom.finish(fathom.start(words, self.directory))
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.stderr, r"the ranks differ in config: rank 3 on \S+ has .*"
                                        r"ranks 0, 1, 2 have ")

    def test_a_wrong_config_on_one_rank_ends_all(self):
        run = self.run_directory("run")
        one = [fathom.PROGRAM, "train", str(self.config), f"run.directory={run.path}"]
        words = fathom.mpirun(1) + one + [":", "-np", "1"] + one + ["model.heads=5"]
        result = fathom.finish(fathom.start(words, self.directory))
        self.assertEqual(result.code, 2, str(result))
        self.assertIn("model.heads", result.stderr)


class RunDirectories(Errors):
    def test_a_second_process_is_refused_with_the_pid_of_the_first(self):
        run = self.run_directory("run")
        first = self.start_training(run, "train.max_steps=1000000")
        self.wait_for_step(run, 1, first)
        self.refuse_training(2, "in use by", f"{first.pid}", "run.directory", run=run)
        first.send_signal(signal.SIGTERM)
        self.assertEqual(fathom.finish(first).code, 75)
        self.train(run, f"train.max_steps={run.result()['step'] + 1}")

    def test_a_directory_that_is_removed_ends_the_run_at_its_next_save(self):
        run = self.run_directory("run")
        process = self.start_training(run, "train.max_steps=1000000", "checkpoint.every_steps=5")
        self.wait_for_step(run, 2, process)
        def removed():  # the run may write a file meanwhile
            shutil.rmtree(run.path, ignore_errors=True)
            return not run.path.exists()

        fathom.wait_until(removed, "removed")
        result = fathom.finish(process)
        self.assert_refused(result, 2, "is gone", str(run.path))
        self.assertFalse(run.path.exists())

    def test_a_directory_that_cannot_be_written(self):
        base = self.directory / "readonly"
        base.mkdir()
        base.chmod(0o555)
        run = fathom.Run(base / "run")
        if os.geteuid() != 0:
            self.refuse_training(6, str(run.path), "Permission denied", run=run)
            return
        # root may write anywhere: be somebody else, with a copy that somebody else can reach.
        self.directory.chmod(0o755)
        program = shutil.copy(fathom.PROGRAM, self.directory / "fathom")
        words = [program, "train", str(self.config), f"run.directory={run.path}"]
        options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        probe = subprocess.run([program, "--version"], cwd=self.directory, capture_output=True,
                               check=False, **options)
        if probe.returncode != 0:
            self.skipTest("another user cannot reach the temporary directory")
        result = fathom.finish(fathom.start(words, self.directory, **options))
        self.assert_refused(result, 6, str(run.path), "Permission denied")

    def test_a_file_in_the_place_of_the_directory(self):
        path = self.directory / "file"
        path.write_text("", encoding="utf-8")
        self.refuse_training(6, str(path), run=fathom.Run(path))


class Ports(Errors):
    def setUp(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        self.port = taken.getsockname()[1]
        self.listen = f"monitoring.listen=127.0.0.1:{self.port}"

    def test_a_taken_port_is_replaced_and_said_so(self):
        run = self.run_directory("run")
        process = self.start_training(run, self.listen, "train.max_steps=1000000")
        self.wait_for_step(run, 1, process)
        [target] = json.loads((run.path / "targets.json").read_text(encoding="utf-8"))
        [address] = target["targets"]
        process.send_signal(signal.SIGTERM)
        result = fathom.finish(process)
        self.assertEqual(result.code, 75, str(result))
        said = re.search(rf"port {self.port} .*serving on port (\d+)", result.stderr)
        self.assertIsNotNone(said, str(result))
        self.assertEqual(address, f"127.0.0.1:{said[1]}")

    def test_a_taken_port_ends_the_run_where_metrics_are_required(self):
        self.refuse_training(6, f"{self.port}", "monitoring.required",
                             overrides=[self.listen, "monitoring.required=true"])


class Surroundings(Errors):
    """What a process may meet in its environment."""

    def test_output_that_cannot_be_written_is_an_error(self):
        run = self.run_directory("run")
        self.train(run, "train.max_steps=2")
        for words in (("--version",), ("--help",), ("config", "keys"),
                      ("config", "show", self.config), ("config", "check", self.config),
                      ("prepare", self.config), ("probe", self.config),
                      ("evaluate", run.path), ("checkpoint", "verify", run.path),
                      ("checkpoint", "inspect", run.path),
                      ("checkpoint", "diff", run.path, run.path),
                      ("score", self.directory / "corpus" / "test.yy",
                       self.directory / "corpus" / "test.yy")):
            with self.subTest(words=words), open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run(fathom.command(*words), cwd=self.directory, text=True,
                                      stdout=full, stderr=subprocess.PIPE, timeout=60,
                                      check=False, env=fathom.environment())
                self.assert_refused(fathom.Result(done.returncode, "", done.stderr), 6, "writ")

    def test_little_memory_ends_in_an_error_not_in_a_hang(self):
        def limited(kilobytes, words):
            return subprocess.run(["bash", "-c", f"ulimit -v {kilobytes}; exec {words}"],
                                  cwd=self.directory, timeout=60, capture_output=True, text=True,
                                  check=False)

        if limited(400000, f"{fathom.PROGRAM} --version").returncode != 0:
            self.skipTest("this build needs more to start, as one with AddressSanitizer does")
        for kilobytes in (150000, 200000, 250000, 300000, 400000):
            words = " ".join(map(str, fathom.command(
                "train", self.config, f"run.directory={self.run_directory(str(kilobytes)).path}",
                "train.max_steps=2", "train.threads=2")))
            done = limited(kilobytes, words)
            # 127: too little even to load the libraries.
            self.assertIn(done.returncode, (0, 2, 6, 7, 127), done.stderr)


class Verdicts(Errors):
    def test_a_run_that_does_not_learn_exits_5_with_the_reason_now_and_when_started_again(self):
        run = self.run_directory("run")
        for ranks in (2, 0, 2):
            result = self.train(run, "verdict.after=10", ranks=ranks, code=5)
            self.assertRegex(result.stderr, r"failed at step 10: plateau: .* unigram entropy")
            outcome = run.result()
            self.assertEqual((outcome["status"], outcome["step"]), ("failed", 10))
            self.assertIn("plateau", outcome["reason"])
            self.assertEqual(run.checkpoints()[-1].name, "step-00000010")
            self.assertEqual(len(run.events("validated")), 1)  # nothing is done twice

    def test_a_run_whose_numbers_overflow_skips_its_updates_and_exits_5(self):
        # Every update multiplies the weights by 1 - 100 * 1000.
        overflow = ("optimizer.learning_rate=100", "optimizer.weight_decay=1000",
                    "optimizer.warmup_steps=1", "train.validate_every=100")
        runs = []
        for ranks in (0, 2):
            run = self.run_directory(f"on{ranks}")
            result = self.train(run, *overflow, ranks=ranks, code=5)
            self.assertIn("failed at step", result.stderr)
            outcome = run.result()
            self.assertEqual(outcome["status"], "failed")
            self.assertTrue(outcome["reason"].startswith("nan: "), outcome)
            self.assertEqual(len(run.events("skipped")), 10)
            runs.append(run)
        self.assertEqual(runs[0].metrics(), runs[1].metrics())
        self.assert_same_state(*runs)
        self.train(runs[0], *overflow, code=5)


class NothingIsLost(Errors):
    """What a user has stays, and what would silently become another run is refused."""

    def test_probe_never_replaces_what_is_there(self):
        kept = self.directory / "precious"
        kept.mkdir()
        (kept / "thesis.txt").write_text("mine")
        self.refuse(2, "--out", "already there",
                    command=("probe", self.config, "--out", kept))
        self.assertEqual((kept / "thesis.txt").read_text(), "mine")
        self.fathom("probe", self.config, "--out", self.directory / "gradients")
        self.fathom("checkpoint", "verify", self.directory / "gradients")

    def test_a_resume_on_other_texts_is_refused(self):
        corpus = self.directory / "changing"
        shutil.copytree(self.directory / "corpus", corpus)
        data = [f"data.{split}={corpus / split}" for split in ("train", "valid", "test")]
        run = self.run_directory("run")
        self.train(run, *data, "train.max_steps=3")
        tokenizer = (run.path / "tokenizer.model").read_bytes()
        for path in corpus.glob("train.*"):
            lines = path.read_text().splitlines()
            path.write_text("\n".join(lines[10:] + lines[:9] + ["zu zu"]) + "\n")
        for ranks in (0, 2):
            result = self.train(run, *data, "train.max_steps=6", ranks=ranks, code=3)
            self.assertRegex(result.stderr, "data.train: its tokens .* the text or the tokenizer has changed")
        self.assertEqual((run.path / "tokenizer.model").read_bytes(), tokenizer)

    def test_another_tokenizer_beside_a_checkpoint_is_refused(self):
        runs = [self.run_directory(name) for name in ("one", "two")]
        self.train(runs[0], "train.max_steps=2")
        self.train(runs[1], "train.max_steps=2", "data.vocabulary_size=70")
        shutil.copy(runs[1].path / "tokenizer.model", runs[0].path / "tokenizer.model")
        self.refuse(3, "tokenizer.model", "trained with", command=("translate", runs[0].path))

    def test_a_schedule_that_ends_at_max_steps_is_not_prolonged_unasked(self):
        for schedule in ("cosine", "linear"):
            run = self.run_directory(schedule)
            how = (f"optimizer.schedule={schedule}", "optimizer.warmup_steps=2")
            self.train(run, *how, "train.max_steps=4")
            self.refuse_training(2, "train.max_steps", "got 8", "with 4",
                                 "--allow-change train.max_steps", run=run,
                                 overrides=(*how, "train.max_steps=8"))

    def test_the_best_validation_is_kept(self):
        run = self.run_directory("run")
        # So large a rate soon makes it worse.
        self.train(run, "train.max_steps=12", "train.validate_every=3", "checkpoint.keep_last=1",
                   "optimizer.learning_rate=3", "optimizer.warmup_steps=3", code=None)
        best = min(run.events("validated"), key=lambda v: v["validation_loss"])["step"]
        self.assertLess(best, 12)
        names = [path.name for path in run.checkpoints()]
        self.assertIn(f"step-{best:08d}", names)
        self.assertEqual((run.path / "checkpoints" / "best").read_text().strip(),
                         f"step-{best:08d}")

    def test_closed_descriptors_put_no_log_into_the_run(self):
        run = self.run_directory("run")
        words = fathom.command("train", self.config, f"run.directory={run.path}",
                               "train.max_steps=3")
        shell = " ".join(map(str, words)) + " <&- >&- 2>&-"
        subprocess.run(["bash", "-c", shell], cwd=self.directory, check=True, timeout=60)
        for name in ("metrics", "layers", "events"):
            for line in (run.path / f"{name}.jsonl").read_text().splitlines():
                json.loads(line)

    def test_a_limit_on_file_sizes_is_an_error_of_the_save(self):
        run = self.run_directory("run")
        big = ("train.max_steps=3", "model.width=128", "model.ffn_width=256")
        self.fathom("prepare", self.config)
        words = fathom.command("train", self.config, f"run.directory={run.path}", *big)
        # More than the tokenizer has, less than the checkpoint.
        shell = "ulimit -f 1024; exec " + " ".join(map(str, words))
        result = subprocess.run(["bash", "-c", shell], cwd=self.directory, timeout=60,
                                stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 6, result.stderr)
        self.assertRegex(result.stderr.splitlines()[-1],
                         "^fathom: the last checkpoint, of step 3, could not be written: .*File too large")
        self.assertEqual(run.checkpoints(), [])
        outcome = run.result()
        self.assertEqual((outcome["status"], outcome["step"]), ("stopped", 3))
        self.assertIn("could not be written", outcome["reason"])
        self.train(run, *big)
        self.assertEqual(run.result()["status"], "completed")

    def test_a_limit_on_file_sizes_is_an_error_of_the_data_set(self):
        words = fathom.command("prepare", self.config, "data.directory=limited")
        shell = "ulimit -f 64; exec " + " ".join(map(str, words))
        result = subprocess.run(["bash", "-c", shell], cwd=self.directory, timeout=60,
                                stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 6, result.stderr)
        self.assertRegex(result.stderr.splitlines()[-1], "^fathom: data: writing limited.*large")
        self.fathom("prepare", self.config, "data.directory=limited")

    def test_references_are_those_of_the_start(self):
        runs = []
        for name in ("left", "changed"):
            corpus = self.directory / f"corpus-{name}"
            shutil.copytree(self.directory / "corpus", corpus)
            run = self.run_directory(name)
            # An empty reference does not end the run.
            lines = (corpus / "valid.yy").read_text().splitlines()
            (corpus / "valid.yy").write_text("\n".join([""] + lines[1:]) + "\n")
            process = self.start_training(
                run, f"data.valid={corpus / 'valid'}", "train.best_metric=bleu",
                "optimizer.learning_rate=0.02", "model.dropout=0", "train.max_steps=600",
                "train.validate_every=200")
            self.wait_for_step(run, 20, process)
            if name == "changed":
                (corpus / "valid.yy").write_text("\n".join(lines[::-1]) + "\n")
            result = fathom.finish(process)
            self.assertEqual(result.code, 0, str(result))
            self.assertIn("1 of 24 references are empty", result.stderr)
            runs.append(run)
        self.assertGreater(runs[0].validations()[600]["bleu"], 0)
        self.assertEqual(runs[0].validations(), runs[1].validations())
        self.assert_same_state(*runs)

    def test_bleu_needs_something_to_translate(self):
        self.refuse_training(2, "train.best_metric", overrides=(
            "model.kind=decoder", "model.depth=D2", "train.best_metric=bleu"))


class Models(Errors):
    """translate and evaluate on what is no usable model."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trained = fathom.Run(cls.directory / "runs" / "trained")
        words = fathom.command("train", cls.config, f"run.directory={cls.trained.path}",
                               "train.max_steps=2", "data.test=")
        result = fathom.finish(fathom.start(words, cls.directory))
        assert result.code == 0, str(result)

    def copy(self, name):
        path = self.directory / name
        shutil.copytree(self.trained.path, path)
        return fathom.Run(path)

    def test_no_such_model(self):
        for verb in ("translate", "evaluate"):
            self.refuse(4, "nowhere", command=(verb, "nowhere"))

    def test_a_source_that_cannot_be_read(self):
        words = " ".join(map(str, fathom.command("translate", self.trained.path)))
        result = subprocess.run(["bash", "-c", words + " < /"], cwd=self.directory, timeout=60,
                                stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 6, result.stderr)

    def test_counts_below_zero(self):
        for option in ("--sentences", "--samples", "--threads"):
            self.refuse(2, option, command=("evaluate", self.trained.path, option, "-1"))
        self.refuse(2, "--threads", command=("translate", self.trained.path, "--threads", "5000"))

    def test_a_directory_without_a_checkpoint(self):
        self.refuse(4, "neither a checkpoint nor a run", command=("translate", self.directory))

    def test_a_damaged_model(self):
        run = self.copy("damaged")
        [checkpoint] = run.checkpoints()
        os.truncate(checkpoint / "state.h5", 1000)
        for path in (run.path, checkpoint):
            self.refuse(4, "state.h5", command=("translate", path))

    def test_a_missing_tokenizer(self):
        run = self.copy("mute")
        os.remove(run.path / "tokenizer.model")
        self.refuse(3, "tokenizer.model", command=("translate", run.path))

    def test_a_missing_test_set(self):
        self.refuse(2, "data.test", command=("evaluate", self.trained.path))
        self.fathom("evaluate", self.trained.path, "--split", "valid")

    def test_score_of_unequal_files(self):
        a, b = self.directory / "a", self.directory / "b"
        a.write_text("one\ntwo\n", encoding="utf-8")
        b.write_text("one\n", encoding="utf-8")
        self.refuse(3, "2", "1", command=("score", a, b))
        self.refuse(6, "gone", command=("score", pathlib.Path("gone"), b))


if __name__ == "__main__":
    unittest.main()
