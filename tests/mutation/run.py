#!/usr/bin/python3
"""Plants one fault at a time and expects a named test to fail.

    tests/mutation/run.py [--sample N] [--keep] [PATCH ...]      default: all of tests/mutation/*.patch

A patch begins with what it is about, then two lines, then the diff against the tree:

    Build: fathom guard_test          targets that the tests need
    Expect: ^system_guard$            CTest's -R: at least one of these tests fails

The tree is a clone of HEAD under build/mutation, built once with the release preset; each patch is
applied, its targets are built, its tests run, and it is taken back. Each line says which case caught it,
or that a test ran into its time limit. The last line counts; exit 1 if a fault survived, or if a patch
does not apply or build.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TREE = ROOT / "build" / "mutation" / "tree"


def run(*words, directory=TREE, check=True, timeout=None):
    done = subprocess.run(words, cwd=directory, text=True, capture_output=True, timeout=timeout,
                          check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit {done.returncode}\n"
                           f"{(done.stdout + done.stderr)[-3000:]}")
    return done


def prepare():
    """A clean clone of HEAD, with what was built before kept."""
    head = run("git", "rev-parse", "HEAD", directory=ROOT).stdout.strip()
    if not (TREE / ".git").exists():
        TREE.parent.mkdir(parents=True, exist_ok=True)
        run("git", "clone", "-q", "--shared", str(ROOT), str(TREE), directory=ROOT)
    run("git", "fetch", "-q", "origin", head)
    run("git", "checkout", "-q", "--force", "--detach", head)
    run("cmake", "--preset", "release", "-DFATHOM_TESTS=ON")


def build(*targets):
    run("cmake", "--build", "--preset", "release", "--parallel", "2", "--target", *targets)


def field(text, name):
    match = re.search(rf"^{name}: (.+)$", text, re.MULTILINE)
    if not match:
        raise RuntimeError(f"has no line '{name}: ...'")
    return match[1].strip()


# What GoogleTest, unittest and CTest print of a case or test that did not pass.
FAILED = re.compile(r"^\[  FAILED  \] ([\w./]+)|^(?:FAIL|ERROR): (\w+)|^\s*\d+ - (\w+ \((?!Failed)[^)]+\))",
                    re.MULTILINE)


def first_failure(expected):
    """The first case that fails, else None."""
    done = run("ctest", "--test-dir", "build/release", "-R", expected, "--no-tests=error",
               "--stop-on-failure", "--output-on-failure", check=False)
    if "No tests were found" in done.stdout + done.stderr:
        raise RuntimeError(f"there is no test {expected}")
    if done.returncode == 0:
        return None
    match = FAILED.search(done.stdout)
    return next(filter(None, match.groups())) if match else expected


def outcome(patch, sound):
    """Whether the fault was caught, and by what or why not. `sound` holds the tests that are known to pass
    without a fault."""
    text = patch.read_text(encoding="utf-8")
    targets, expected = field(text, "Build").split(), field(text, "Expect")
    build(*targets)
    if expected not in sound:
        if failure := first_failure(expected):
            return False, f"{failure} fails without the fault"
        sound.add(expected)
    if run("git", "apply", str(patch), check=False).returncode != 0:
        return False, "does not apply"
    try:
        build(*targets)
        failure = first_failure(expected)
        return (True, f"caught by {failure}") if failure else (False, f"SURVIVED {expected}")
    finally:
        run("git", "checkout", "-q", "--", ".")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="only so many, chosen by the day")
    parser.add_argument("patches", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    patches = [p.resolve() for p in arguments.patches] or sorted(HERE.glob("*.patch"))
    if arguments.sample and arguments.sample < len(patches):
        patches = sorted(random.Random(time.strftime("%F")).sample(patches, arguments.sample))
    os.environ["GTEST_FAIL_FAST"] = "1"
    prepare()
    failed, sound = 0, set()
    for patch in patches:
        start = time.monotonic()
        try:
            caught, how = outcome(patch, sound)
        except RuntimeError as error:
            caught, how = False, str(error)
        failed += not caught
        print(f"{patch.stem}: {how} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{len(patches) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
