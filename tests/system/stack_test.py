"""A reader goes from main to a kernel in a dozen plain calls: the call stack inside the first kernel of
a training step. Most telling in a build without optimisation, where nothing is inlined.

STACK_RECORDER names the device library that writes the stack, see tests/support/stack_recorder.
"""
import os
import re
import subprocess
import unittest

import fathom

MOST = 12


def without_brackets(name):
    """A demangled name without template arguments and parameters."""
    depth, kept = 0, []
    for part in re.split(r"([<>()])", name.replace("(anonymous namespace)", "anonymous")
                         .replace("operator()", "operator_call")):
        if part in ("<", "("):
            depth += 1
        elif part in (">", ")"):
            depth -= 1
        elif depth == 0:
            kept.append(part)
    return "".join(kept)


class Stack(fathom.TestCase):
    def test_is_at_most_a_dozen_calls_from_main_to_a_kernel(self):
        stack = self.directory / "stack"
        self.train(self.run_directory("run"), "train.max_steps=1", "train.device=reference",
                   env=fathom.environment(FATHOM_DEVICE_LIBRARY=os.environ["STACK_RECORDER"],
                                          FATHOM_STACK=str(stack)))
        program = os.path.realpath(fathom.PROGRAM)
        offsets = []
        for line in stack.read_text(encoding="utf-8").splitlines():
            frame = re.match(r"(.+)\((?:.*)\+(0x[0-9a-f]+)\)", line)
            if frame and os.path.realpath(frame[1]) == program:
                offsets.append(hex(int(frame[2], 16) - 1))  # the call, not where it returns to
        found = subprocess.run(["addr2line", "-f", "-C", "-e", program, *offsets], text=True,
                               capture_output=True, check=True).stdout.splitlines()[::2]
        calls = [without_brackets(name) for name in found]

        self.assertIn("main", calls)
        ours = [name for name in calls[:calls.index("main")] if "fathom::" in name]
        self.assertTrue(any("StepLoop::run" in name for name in ours), ours)
        self.assertTrue(any("Transformer::losses" in name for name in ours), ours)
        self.assertTrue(any(re.search(r"::(forward|linear)\b", name) for name in ours), ours)
        # And the kernel itself, which is in the library.
        self.assertLessEqual(len(ours) + 1, MOST, "\n".join(ours))


if __name__ == "__main__":
    unittest.main()
