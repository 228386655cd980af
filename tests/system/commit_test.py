#!/usr/bin/python3
"""cmake/write_commit.cmake: the commit that --version and a checkpoint's provenance name is the one built.

CMAKE names cmake, WRITE_COMMIT the script.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

CMAKE, SCRIPT = os.environ["CMAKE"], os.environ["WRITE_COMMIT"]


class WriteCommit(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.source = pathlib.Path(directory.name) / "source"
        self.source.mkdir()
        self.output = pathlib.Path(directory.name) / "commit.cpp"

    def git(self, *words):
        return subprocess.run(["git", "-C", self.source, "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
                              check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, message):
        """A new commit's short hash."""
        self.git("commit", "--allow-empty", "--quiet", "-m", message)
        return self.git("rev-parse", "--short", "HEAD")

    def written(self, source=None, **environment):
        """What the script says, run on `source`."""
        command = [CMAKE, f"-DSOURCE={source or self.source}", f"-DOUTPUT={self.output}", "-P", SCRIPT]
        subprocess.run(command, check=True, env={**os.environ, **environment})
        return re.search(r'return "(.*)";', self.output.read_text(encoding="utf-8"))[1]

    def require_git(self):
        if shutil.which("git") is None:
            self.skipTest("git is not installed")
        self.git("init", "--quiet")

    def test_a_new_commit_is_seen(self):
        self.require_git()
        first = self.commit("one")
        self.assertEqual(self.written(), first)

        second = self.commit("two")

        self.assertNotEqual(second, first)
        self.assertEqual(self.written(), second)

    def test_an_unchanged_commit_leaves_the_file_alone(self):
        self.require_git()
        self.commit("one")
        self.written()
        os.utime(self.output, ns=(1, 1))

        self.written()
        self.assertEqual(self.output.stat().st_mtime_ns, 1)

        self.commit("two")
        self.written()
        self.assertNotEqual(self.output.stat().st_mtime_ns, 1)

    def test_a_worktree_names_its_own_commit(self):
        self.require_git()
        self.commit("one")
        tree = self.source.parent / "tree"
        self.git("worktree", "add", "--quiet", "--detach", tree)
        second = self.commit("two")

        self.assertNotEqual(self.written(tree), second)
        self.assertNotEqual(self.written(tree), "unknown")

    def test_a_source_archive_has_none_even_inside_of_a_repository(self):
        self.assertEqual(self.written(), "unknown")
        self.require_git()
        self.commit("one")
        archive = self.source / "archive"
        archive.mkdir()

        self.assertEqual(self.written(archive), "unknown")

    def test_without_git_it_is_unknown(self):
        self.require_git()
        self.commit("one")

        self.assertEqual(self.written(PATH="/nowhere"), "unknown")

    def test_a_repository_without_a_commit_has_none(self):
        self.require_git()

        self.assertEqual(self.written(), "unknown")


if __name__ == "__main__":
    unittest.main()
