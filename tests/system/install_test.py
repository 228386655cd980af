#!/usr/bin/python3
"""What `cmake --install` leaves works from where it lies, and the package says what it needs.

CMAKE and CPACK name the programs, BUILD the build folder.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import fathom

CMAKE, CPACK, BUILD = (os.environ[name] for name in ("CMAKE", "CPACK", "BUILD"))
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.prefix = pathlib.Path(directory.name) / "prefix"
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.prefix], check=True,
                       capture_output=True)
        cls.configs = cls.prefix / "share/fathom/configs"
        cls.elsewhere = pathlib.Path(directory.name) / "elsewhere"
        cls.elsewhere.mkdir()

    def run_installed(self, *words):
        result = fathom.finish(fathom.start([str(self.prefix / "bin/fathom"), *map(str, words)],
                                            self.elsewhere))
        self.assertEqual(result.code, 0, result)
        return result

    def test_every_config_is_accepted(self):
        configs = sorted(self.configs.glob("*.yaml"))

        self.assertIn(self.configs / "quickstart.yaml", configs)
        for config in configs:
            with self.subTest(config.name):
                if "corpora/" in config.read_text(encoding="utf-8"):
                    check = self.run_installed("config", "check", config)
                    self.assertIn(": ok: run ", check.stdout)
                else:  # its texts are not packaged
                    self.run_installed("config", "show", config)

    def test_the_quickstart_trains_on_its_corpus_from_any_directory(self):
        # On the small half of the corpus, so that a tokenizer is learned in a second.
        small = ["data.train=corpora/tatoeba-deen/valid", "data.vocabulary_size=400",
                 "model.depth=E1D1", "train.max_steps=1", "monitoring.listen=off"]

        result = self.run_installed("train", self.configs / "quickstart.yaml", *small)

        self.assertIn("completed at step 1", result.last_line())
        config = (self.elsewhere / "runs/quickstart/config.yaml").read_text(encoding="utf-8")
        self.assertIn(f"test: {self.configs}/corpora/tatoeba-deen/test\n", config)

    def test_links_in_the_documents_lead_somewhere(self):
        documents = sorted((self.prefix / "share/doc/fathom").rglob("*.md"))

        self.assertGreater(len(documents), 5)
        for document in documents:
            for target in LINK.findall(document.read_text(encoding="utf-8")):
                with self.subTest(document=document.name, target=target):
                    self.assertTrue((document.parent / target).exists())


@unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "no dpkg-shlibdeps")
class Packaged(unittest.TestCase):
    def test_the_debian_package_depends_on_what_the_program_opens_and_starts(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([CPACK, "-G", "DEB", "-B", directory, "--config",
                            pathlib.Path(BUILD) / "CPackConfig.cmake"], check=True, cwd=directory,
                           capture_output=True)
            [package] = pathlib.Path(directory).glob("*.deb")
            depends = self.ask("--field", package, "Depends")
            files = self.ask("--contents", package)

        for needed in ("libopenblas0-pthread", "openmpi-bin", "libopenmpi", "libhdf5",
                       "libsentencepiece", "libc6"):
            self.assertIn(needed, depends)
        self.assertIn("./usr/bin/fathom\n", files)
        self.assertIn("./usr/share/fathom/configs/quickstart.yaml\n", files)

    def ask(self, *words):
        return subprocess.run(["dpkg-deb", *words], check=True, capture_output=True,
                              text=True).stdout


if __name__ == "__main__":
    unittest.main()
