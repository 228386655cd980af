#!/usr/bin/python3
"""The arrows between folders, as CONTRIBUTING.md draws them, and what headers may include.

    architecture_test.py SOURCE_DIR     exit 0, or 1 naming each file, line and rule

First it checks itself: one planted violation of every rule, in a temporary tree, must be found.
"""
import pathlib
import re
import sys
import tempfile

# Folder -> prefixes of what it may include besides itself. Tests may include anything.
ARROWS = {
    "core": [],
    "dist": ["core/"],
    "checkpoint": ["core/"],
    "monitoring": ["core/base/"],
    "launcher": ["core/", "dist/", "checkpoint/", "monitoring/"],
}
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
THIRD_PARTY = re.compile(r"(mpi|hdf5|H5\w*)\.h$|(prometheus|yaml-cpp)/|CivetServer\.h$")
# Headers whose purpose is to own a library's handles: for .cpp files of their folder alone.
PRIVATE_HEADERS = {"checkpoint/h5_handle.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MAIN, MAIN_LINES = "launcher/main.cpp", 80


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def check_include(file, is_ours, name):
    """The rule that `file` breaks by including `name`, or None."""
    folder, is_header = file.split("/")[0], file.endswith((".h", ".cuh"))
    if THIRD_PARTY.search(name):
        if is_header and file not in PRIVATE_HEADERS:
            return f"a header includes <{name}>; keep third-party types in the .cpp"
        return None
    target = name.split("/")[0]
    if target == "tests":
        return f"includes {name}, which belongs to the tests"
    if target not in ARROWS:
        return f'includes "{name}"; ours are written from the repository root' if is_ours else None
    if name in PRIVATE_HEADERS and (is_header or target != folder):
        return f"includes {name}, which is for .cpp files of {target}/"
    if target != folder and not name.startswith(tuple(ARROWS[folder])):
        allowed = ", ".join([folder + "/", *ARROWS[folder]])
        return f"includes {name}; {folder}/ may include only {allowed}"
    return None


def violations(root):
    files = [path for folder in ARROWS for path in sorted((root / folder).rglob("*"))
             if path.suffix in SUFFIXES]
    for path in files:
        file = path.relative_to(root).as_posix()
        for number, is_ours, name in includes(path):
            rule = check_include(file, is_ours, name)
            if rule:
                yield f"{file}:{number}: {rule}"
    main = root / MAIN
    if not main.is_file():
        yield f"{MAIN}: is missing"
    else:
        lines = len(main.read_text(encoding="utf-8").splitlines())
        if lines > MAIN_LINES:
            yield f"{MAIN}: {lines} lines, expected at most {MAIN_LINES}"


SOUND = {
    "core/a.h": '#include <vector>\n#include "core/base/error.h"\n',
    "dist/a.cpp": '#include <mpi.h>\n#include "core/a.h"\n#include "dist/a.h"\n',
    "checkpoint/a.cpp": '#include "checkpoint/h5_handle.h"\n',
    "checkpoint/h5_handle.h": "#include <hdf5.h>\n",
    "monitoring/a.cpp": '#include <prometheus/exposer.h>\n#include "core/base/error.h"\n',
    "launcher/a.cpp": '#include "core/a.h"\n#include "dist/a.h"\n#include "monitoring/a.h"\n',
    "launcher/main.cpp": "int main() {}\n" * 80,
    "tests/a.cpp": '#include "launcher/a.h"\n#include "checkpoint/h5_handle.h"\n',
}
PLANTED = [  # file, text, words of the finding
    ("core/b.h", '#include "dist/a.h"\n', "core/b.h:1: includes dist/a.h"),
    ("core/x/b.cpp", '\n  #  include "monitoring/a.h"\n', "core/x/b.cpp:2: includes monitoring/a.h"),
    ("core/b.cpp", '#include "launcher/a.h"\n', "includes launcher/a.h"),
    ("core/b.cpp", "#include <launcher/a.h>\n", "includes launcher/a.h"),
    ("dist/b.cpp", '#include "checkpoint/a.h"\n', "includes checkpoint/a.h"),
    ("dist/b.h", '#include "launcher/a.h"\n', "includes launcher/a.h"),
    ("checkpoint/b.cpp", '#include "monitoring/a.h"\n', "includes monitoring/a.h"),
    ("monitoring/b.cpp", '#include "core/tensor/tensor.h"\n', "monitoring/ may include only"),
    ("monitoring/b.cpp", '#include "dist/a.h"\n', "includes dist/a.h"),
    ("launcher/b.cpp", '#include "tests/support/a.h"\n', "belongs to the tests"),
    ("launcher/b.cpp", '#include "trainer.h"\n', "from the repository root"),
    ("dist/b.h", "#include <mpi.h>\n", "a header includes <mpi.h>"),
    ("checkpoint/b.h", "#include <hdf5.h>\n", "a header includes <hdf5.h>"),
    ("monitoring/b.h", "#include <prometheus/registry.h>\n", "a header includes <prometheus"),
    ("launcher/b.h", "#include <yaml-cpp/yaml.h>\n", "a header includes <yaml-cpp"),
    ("checkpoint/b.h", '#include "checkpoint/h5_handle.h"\n', "for .cpp files of checkpoint/"),
    ("launcher/b.cpp", '#include "checkpoint/h5_handle.h"\n', "for .cpp files of checkpoint/"),
    ("launcher/main.cpp", "\n" * 81, "81 lines, expected at most 80"),
]


def findings_in(tree):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for file, text in tree.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text, encoding="utf-8")
        return list(violations(root))


def self_test():
    found = findings_in(SOUND)
    if found:
        yield f"self-test: a sound tree was refused: {found}"
    for file, text, words in PLANTED:
        found = findings_in({**SOUND, file: text})
        if len(found) != 1 or words not in found[0]:
            yield f"self-test: {text!r} in {file}: got {found}, expected one finding with '{words}'"


def main():
    root = pathlib.Path(sys.argv[1])
    if not (root / "core").is_dir():
        print(f"{root}: no core/ there; give the source directory")
        return 1
    found = [*self_test(), *violations(root)]
    print("\n".join(found) if found else "the arrows are as drawn")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
