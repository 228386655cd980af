#!/usr/bin/python3
"""How CMake is told to compile: release optimises as the results were measured, without assertions, and
what the user passes wins.

CMAKE names cmake, SOURCE the source tree. Configures it in temporary folders and builds nothing.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

CMAKE, SOURCE = os.environ["CMAKE"], os.environ["SOURCE"]


class Release(unittest.TestCase):
    def flags(self, *words):
        """How the program's main() would be compiled, as a list of words."""
        with tempfile.TemporaryDirectory() as build:
            subprocess.run([CMAKE, "-B", build, "-DFATHOM_TESTS=OFF", *words], cwd=SOURCE, check=True,
                           capture_output=True)
            commands = json.loads((pathlib.Path(build) / "compile_commands.json").read_text(encoding="utf-8"))
        return next(c["command"] for c in commands if "/fathom.dir/" in c["command"]).split()

    def test_the_preset_optimises_and_drops_assertions(self):
        flags = self.flags("--preset", "release")

        self.assertIn("-O2", flags)
        self.assertIn("-DNDEBUG", flags)
        self.assertNotIn("-O3", flags)

    def test_a_release_without_the_preset_is_the_same(self):
        flags = self.flags("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release")

        self.assertEqual([f for f in flags if f.startswith(("-O", "-DNDEBUG"))], ["-O2", "-DNDEBUG"])

    def test_what_the_user_passes_wins(self):
        flags = self.flags("--preset", "release", "-DCMAKE_CXX_FLAGS_RELEASE=-Og -fno-inline")

        self.assertIn("-Og", flags)
        self.assertNotIn("-O2", flags)
        self.assertNotIn("-DNDEBUG", flags)


if __name__ == "__main__":
    unittest.main()
