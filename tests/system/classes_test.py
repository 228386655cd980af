#!/usr/bin/python3
"""Every class of system tests is run by CTest: a new one must be named where its file's are.

    classes_test.py CMAKELISTS      exit 0, or 1 naming what nothing runs
"""
import ast
import pathlib
import re
import sys


def registered(text):
    """Script -> the classes that are named, None where the whole file is run."""
    found = {}
    for words in re.findall(r"^system_test\(([^)]*)\)", text, re.MULTILINE):
        script, rest = words.split()[1], words.split()[2:]
        if "CLASSES" not in rest:
            found[script] = None
        elif found.setdefault(script, set()) is not None:
            names = rest[rest.index("CLASSES") + 1:]
            found[script] |= set(names[:names.index("LABELS")])
    return found


def classes_with_tests(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {c.name for c in tree.body if isinstance(c, ast.ClassDef)
            and any(isinstance(f, ast.FunctionDef) and f.name.startswith("test") for f in c.body)}


def missing(directory, text):
    for path in sorted(directory.glob("*_test.py")):
        run = registered(text).get(path.name)
        if path.name not in text:
            yield f"{path.name}: no test of CTest"
        elif run:
            yield from (f"{path.name}: class {name}" for name in classes_with_tests(path) - run)


def main():
    path = pathlib.Path(sys.argv[1])
    text = path.read_text(encoding="utf-8")
    lost = text.replace("SignalledEarly ", "")
    assert lost != text and any("SignalledEarly" in line for line in missing(path.parent, lost))
    lines = list(missing(path.parent, text))
    print("\n".join(f"{line} is run by nothing" for line in lines) or "all classes are run")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
