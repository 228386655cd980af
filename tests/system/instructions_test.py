"""Nothing but the cpu device's vector loops needs more than an x86-64 processor of 2008: no other
function holds such an instruction, and on one (emulated, where qemu-user is installed) the program
runs, and trains on the reference device.
"""
import collections
import re
import shutil
import subprocess
import unittest

import fathom

OBJDUMP, QEMU = shutil.which("objdump"), shutil.which("qemu-x86_64")
FUNCTION = re.compile(r"[0-9a-f]+ <(.*)>:$")
# AVX and above, and the instructions on general registers that come with them.
LATER = re.compile(r"\s+[0-9a-f]+:\s(v\w+\s.*%[xyz]mm|(andn|bextr|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx)\s)")
LOOPS = re.compile(r"N_(AVX[23])")  # a namespace of functions for that instruction set


class Instructions(unittest.TestCase):
    @unittest.skipUnless(OBJDUMP, "no objdump")
    def test_later_ones_are_in_the_vector_loops_alone(self):
        found, function = collections.Counter(), ""
        with subprocess.Popen([OBJDUMP, "-d", "--no-show-raw-insn", fathom.PROGRAM], text=True,
                              errors="replace", stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                header = FUNCTION.match(line)
                if header:
                    function = header[1]
                elif LATER.match(line):
                    loops = LOOPS.search(function)
                    found[loops[1] if loops else function] += 1
        self.assertEqual(process.returncode, 0)
        self.assertEqual(sorted(found), ["AVX2", "AVX3"])


@unittest.skipUnless(QEMU, "no qemu-x86_64")
class OldProcessor(fathom.TestCase):
    def on_it(self, *words, code=0):
        result = fathom.finish(fathom.start([QEMU, "-cpu", "Nehalem", fathom.PROGRAM, *map(str, words)],
                                            self.directory), timeout=300)
        self.assertEqual(result.code, code, result)
        return result

    def test_commands_that_compute_nothing_on_the_cpu_device_run(self):
        text = self.directory / "text"
        text.write_text("a b c d\n", encoding="utf-8")
        self.assertIn("no AVX2 and FMA", self.on_it("--version").stdout)
        self.on_it("config", "check", self.config)
        self.assertIn('"bleu": 100.0', self.on_it("score", text, text).stdout)

    def test_the_reference_device_trains_and_the_cpu_device_refuses(self):
        run = self.run_directory("run")
        options = (self.config, "train.max_steps=2", "train.validate_every=2",
                   f"run.directory={run.path}")
        refused = self.on_it("train", *options, "train.device=cpu", code=7)
        self.assertIn("this processor has no AVX2 and FMA; use train.device reference",
                      refused.last_line())
        self.on_it("train", *options, "train.device=reference")
        self.assertEqual(len(run.losses()), 2)


if __name__ == "__main__":
    unittest.main()
