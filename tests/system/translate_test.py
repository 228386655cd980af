"""translate, evaluate and score of a trained run."""
import gzip
import json
import os
import select
import shutil
import subprocess
import unittest

import fathom


class Translate(fathom.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.run_path = cls.directory / "runs" / "trained"
        words = fathom.command("train", cls.config, f"run.directory={cls.run_path}",
                               "train.max_steps=400", "train.validate_every=0", ranks=2)
        result = fathom.finish(fathom.start(words, cls.directory))
        assert result.code == 0, str(result)
        corpus = cls.directory / "corpus"
        cls.source = (corpus / "test.xx").read_text(encoding="utf-8")
        cls.reference = corpus / "test.yy"

    def translate(self, text, *options):
        return self.fathom("translate", self.run_path, *options, stdin=text)

    def test_batches_and_threads_do_not_change_the_output(self):
        expected = self.translate(self.source).stdout
        self.assertEqual(expected.count("\n"), 20)
        self.assertGreater(len(set(expected.splitlines())), 5,
                           "the model says the same to everything")
        for options in (("--batch-tokens", 1), ("--batch-tokens", 50), ("--batch-tokens", 2000),
                        ("--threads", 1), ("--threads", 2), ("--threads", 2, "--batch-tokens", 33)):
            with self.subTest(options=options):
                self.assertEqual(self.translate(self.source, *options).stdout, expected)

    def test_a_line_does_not_depend_on_its_neighbours(self):
        together = self.translate(self.source).stdout.splitlines()
        for line, expected in list(zip(self.source.splitlines(), together))[:3]:
            self.assertEqual(self.translate(line + "\n").stdout, expected + "\n")

    def test_n_lines_in_are_n_lines_out_and_an_empty_one_stays_empty(self):
        lines = self.source.splitlines()[:4]
        text = "\n".join(["", lines[0], "", lines[1], "   ", ""]) + "\n"
        out = self.translate(text).stdout.split("\n")
        expected = self.translate("\n".join(lines[:2]) + "\n").stdout.split("\n")
        self.assertEqual(out, ["", expected[0], "", expected[1], "", "", ""])

    def test_a_long_input_comes_out_while_it_is_still_read(self):
        lines = self.source.splitlines()
        words = fathom.command("translate", self.run_path)
        process = subprocess.Popen(words, cwd=self.directory, text=True, bufsize=1,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=fathom.environment())
        self.addCleanup(process.kill)
        process.stdin.write("".join(lines[i % 20] + "\n" for i in range(2001)))
        process.stdin.flush()
        first = [process.stdout.readline() for _ in range(2000)]  # hangs if it waits for the end
        process.stdin.close()
        out = process.stdout.read()
        process.wait(timeout=60 * fathom.SLOWNESS)
        expected = self.translate(self.source).stdout.splitlines(keepends=True)
        self.assertEqual(first + [out], [expected[i % 20] for i in range(2001)])
        self.assertEqual(process.returncode, 0)

    def test_no_input_gives_no_output(self):
        self.assertEqual(self.translate("").stdout, "")

    def test_a_last_line_without_a_newline_counts(self):
        self.assertEqual(self.translate(self.source.rstrip("\n")).stdout,
                         self.translate(self.source).stdout)

    def test_unknown_characters_do_no_harm(self):
        out = self.translate("\u2603 \u00e4\u00f6 \U0001f600\n" + self.source).stdout
        self.assertEqual(out.count("\n"), 21)
        self.assertEqual(out.split("\n", 1)[1], self.translate(self.source).stdout)

    def test_an_over_long_line_is_cut_with_a_warning(self):
        long_line = " ".join(["bado"] * 200)
        result = self.translate(f"{self.source}{long_line}\n")
        self.assertEqual(result.stdout.count("\n"), 21)
        self.assertRegex(result.stderr, r"line 21: \d+ tokens, cut to 60 \(data\.max_length\)")
        self.assertTrue(result.stdout.startswith(self.translate(self.source).stdout))

    def test_a_checkpoint_is_as_good_as_its_run(self):
        [checkpoint] = (self.run_path / "checkpoints").glob("step-*")
        by_path = self.fathom("translate", checkpoint, stdin=self.source).stdout
        self.assertEqual(by_path, self.translate(self.source).stdout)

    def test_evaluate_is_the_same_on_any_number_of_ranks_and_threads(self):
        expected = self.fathom("evaluate", self.run_path, "--samples", 3).stdout
        self.assertEqual(json.loads(expected)["sentences"], 20)
        self.assertEqual(len(json.loads(expected)["samples"]), 3)
        for ranks, threads in ((0, 2), (1, 1), (2, 1), (3, 2)):
            with self.subTest(ranks=ranks, threads=threads):
                result = self.fathom("evaluate", self.run_path, "--samples", 3, "--threads",
                                     threads, ranks=ranks)
                self.assertEqual(result.stdout, expected)

    def test_who_writes_a_line_and_waits_gets_its_translation(self):
        lines = self.source.splitlines()[:4]
        expected = self.translate("\n".join(lines) + "\n").stdout.splitlines()
        with subprocess.Popen(fathom.command("translate", self.run_path), text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=fathom.environment()) as process:
            for line, translation in zip(lines, expected):
                process.stdin.write(line + "\n")
                process.stdin.flush()
                ready, _, _ = select.select([process.stdout], [], [], 30 * fathom.SLOWNESS)
                self.assertTrue(ready, "no answer")
                self.assertEqual(process.stdout.readline(), translation + "\n")
            process.stdin.close()
            self.assertEqual(process.wait(30 * fathom.SLOWNESS), 0)

    def test_files_are_translated_one_after_the_other(self):
        expected = self.translate(self.source).stdout
        plain, packed = self.directory / "a.txt", self.directory / "b.txt.gz"
        lines = self.source.splitlines(keepends=True)
        plain.write_text("".join(lines[:7]), encoding="utf-8")
        packed.write_bytes(gzip.compress("".join(lines[7:12]).encode()))
        out = self.directory / "out.txt"
        for files in ((plain, packed, "-"), (plain, self.directory / "b.txt", "-")):
            result = self.translate("".join(lines[12:]), *files, "--output", out)
            self.assertEqual((result.stdout, out.read_text(encoding="utf-8")), ("", expected))
        # What is asked for first is found first, and nothing is lost.
        line = self.fathom("translate", self.run_path, plain, "none", code=3).last_line()
        self.assertIn("none", line)
        line = self.fathom("translate", self.run_path, plain, "--output", plain, code=2).last_line()
        self.assertIn("is the text to translate", line)
        self.assertEqual(plain.read_text(encoding="utf-8"), "".join(lines[:7]))
        line = self.fathom("translate", self.run_path, plain, "--output", "no/where",
                           code=6).last_line()
        self.assertIn("--output: ", line)
        self.fathom("translate", self.run_path, plain, "--output", "/dev/full", code=6)

    def test_bytes_that_are_no_text_are_not_taken_for_it(self):
        for text, words in ((gzip.compress(self.source.encode()), "is a gzip file"),
                            (self.source.encode("utf-16"), "is UTF-16")):
            done = subprocess.run(fathom.command("translate", self.run_path), input=text,
                                  capture_output=True, env=fathom.environment(), check=False)
            self.assertEqual((done.returncode, done.stdout), (3, b""))
            self.assertIn(f"standard input {words}", done.stderr.decode().splitlines()[-1])

    def test_evaluate_takes_any_two_files(self):
        corpus = self.directory / "corpus"
        split = json.loads(self.fathom("evaluate", self.run_path).stdout)
        words = ("--source", corpus / "test.xx", "--reference", corpus / "test.yy")
        for ranks in (0, 2):
            files = json.loads(self.fathom("evaluate", self.run_path, *words, ranks=ranks).stdout)
            self.assertEqual(files.pop("source"), str(words[1]))
            self.assertEqual(files.pop("reference"), str(words[3]))
            self.assertEqual(files, {k: v for k, v in split.items() if k != "split"})
        for one in (words[:2], words[2:]):
            line = self.fathom("evaluate", self.run_path, *one, code=2).last_line()
            self.assertIn("--source and --reference go together", line)
        self.fathom("evaluate", self.run_path, "--source", corpus / "test.xx", "--reference",
                    corpus / "valid.yy", code=3)

    def test_evaluate_in_a_directory_whose_name_is_not_utf8(self):
        path = os.fsencode(self.directory) + b"/caf\xe9"
        shutil.copytree(os.fsencode(self.run_path), path + b"/run")
        result = fathom.finish(fathom.start(fathom.command("evaluate", "run"), path))
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("caf\ufffd/run", json.loads(result.stdout)["model"])

    def test_evaluate_scores_what_translate_writes(self):
        hypothesis = self.directory / "hypothesis"
        hypothesis.write_text(self.translate(self.source).stdout, encoding="utf-8")
        score = json.loads(self.fathom("score", hypothesis, self.reference).stdout)
        evaluated = json.loads(self.fathom("evaluate", self.run_path).stdout)
        self.assertEqual(evaluated["bleu"], score["bleu"])
        self.assertGreater(evaluated["bleu"], 0)
        for key in ("bleu_line", "signature", "chrf2", "chrf2++"):
            self.assertEqual(evaluated[key], score[key])

    def test_evaluate_of_valid_is_the_last_validation_of_the_run(self):
        evaluated = json.loads(self.fathom("evaluate", self.run_path, "--split", "valid").stdout)
        last = fathom.Run(self.run_path).validations()[400]
        self.assertEqual(evaluated["loss"], last["validation_loss"])
        self.assertEqual(evaluated["perplexity"], last["perplexity"])
        self.assertEqual(evaluated["source_gain"], last["source_gain"])


if __name__ == "__main__":
    unittest.main()
