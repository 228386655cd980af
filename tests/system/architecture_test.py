#!/usr/bin/python3
"""The arrows between folders, as CONTRIBUTING.md draws them, what headers may include, and that every
room of core/ keeps to its namespace.

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
    "dist": ["core/base/", "core/kernels/", "core/tensor/"],
    "checkpoint": ["core/base/"],
    "monitoring": ["core/base/"],
    "launcher": ["core/", "dist/", "checkpoint/", "monitoring/"],
}
# The same inside core/: room -> the rooms below it that it may include.
ROOMS = {
    "base": [],
    "kernels": ["base"],
    "tensor": ["base", "kernels"],
    "autograd": ["base", "kernels", "tensor"],
    "ops": ["base", "kernels", "tensor", "autograd"],
    "topology": ["base", "tensor", "autograd", "ops"],
    "data": ["base"],
    "model": ["base", "kernels", "tensor", "autograd", "ops", "topology", "data"],
    "optim": ["base", "kernels", "tensor", "autograd"],
    "observe": ["base", "kernels", "tensor", "autograd", "topology", "data", "model", "optim"],
    "decode": ["base", "kernels", "tensor", "autograd", "ops", "model", "data"],
    "score": ["base"],
}
# The words that a room gives to all of fathom, each by a using-declaration.
VOCABULARY = {
    "tensor": {"Tensor", "DType", "Device", "Context", "Arena"},
    "autograd": {"Var", "Tape", "Parameter", "ParameterStore", "Role"},
}
# Looking at elements: for the devices' own files alone. The others hand tensors to kernels.
TOUCH = re.compile(r"(\.|->)(data|row|as)<")
TOUCHING = ("core/kernels/", "core/tensor/tensor.h")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
THIRD_PARTY = re.compile(r"(mpi|hdf5|H5\w*)\.h$|(prometheus|yaml-cpp)/|CivetServer\.h$")
# Headers whose purpose is to own a library's handles: for .cpp files of their folder alone.
PRIVATE_HEADERS = {"checkpoint/h5_handle.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# What namespaces and braces do not depend on, then the tokens they do depend on.
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|R"([^(\s]*)\(.*?\)\1"'
                     r'|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'', re.S | re.M)
ANONYMOUS = "(anonymous)"
TYPE_KEYWORDS = ("class", "struct", "union", "enum")
TOKEN = re.compile(r"[A-Za-z_]\w*|::|[^\s\w]")
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
    return check_room(file, name) if folder == target == "core" else None


def check_room(file, name):
    """The arrows inside core/."""
    room, target = file.split("/")[1], name.split("/")[1]
    if room not in ROOMS or room == target or target in ROOMS[room]:
        return None
    return f"includes {name}; core/{room}/ may include only {', '.join([room, *ROOMS[room]])}"


def touches(file, text):
    for number, line in enumerate(text.splitlines(), 1):
        if TOUCH.search(line):
            yield f"{file}:{number}: looks at a tensor's elements; that is for kernels"


def declarations(text):
    """(namespace, line, words, end) of what stands at namespace scope; `end` is { or ;. The opening of
    a namespace has no words. What is in parentheses, brackets and bodies is left out."""
    text = SKIPPED.sub(lambda match: "\n" * match[0].count("\n"), text)
    namespaces, words, inner, body, line, end = [], [], 0, 0, 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", end, match.start())
        end, token = match.start(), match[0]
        if body:
            body += (token == "{") - (token == "}")
        elif token in ("(", "["):
            inner += 1
        elif token in (")", "]"):
            inner -= 1
        elif inner:
            continue
        elif token == "}":
            namespaces.pop()
        elif token == "{" and "namespace" in words:
            namespaces.append("".join(words[words.index("namespace") + 1:]) or ANONYMOUS)
            yield "::".join(namespaces), line, [], token
            words = []
        elif token in ("{", ";"):
            if words:
                yield "::".join(namespaces), line, words, token
            body, words = int(token == "{"), []
        else:
            words.append(token)


def defined_type(words, end):
    """The name of the class or enumeration defined by a declaration, or None."""
    words = list(words)
    if words[:1] == ["template"]:
        depth = 0
        while words:
            word = words.pop(0)
            depth += (word == "<") - (word == ">")
            if word == ">" and depth == 0:
                break
    if end != "{" or not words or words[0] not in TYPE_KEYWORDS:
        return None
    words = [word for word in words if word not in TYPE_KEYWORDS]
    head = words[:words.index(":")] if ":" in words else words
    return None if "<" in head else "".join(word for word in head if word != "final") or None


def home_of(room):
    return "fathom" if room == "base" else f"fathom::{room}"


def check_namespace(file, namespace, words):
    """The rule that a declaration of a file of core/ breaks by where it stands, or None."""
    room = file.split("/")[1]
    home = home_of(room)
    if namespace == "" or namespace.startswith("std"):
        return None
    if room == "base" and namespace.split("::")[1:2] and namespace.split("::")[1] in ROOMS:
        return f"opens namespace {namespace}; core/base/ is namespace fathom"
    if namespace == home or namespace.startswith(home + "::"):
        return None
    if namespace != "fathom":
        return f"opens namespace {namespace}; core/{room}/ is namespace {home}"
    is_hoist = words[:3] == ["using", room, "::"] and words[3] in VOCABULARY.get(room, ())
    is_forward = len(words) == 2 and words[0] in ("class", "struct")  # of a class of core/base
    if words and not is_hoist and not is_forward:
        return f"declares {' '.join(words)} in fathom; core/{room}/ is namespace {home}"
    return None


def check_declarations(file, text, owners):
    """(line, rule) for every rule on namespaces that `file` breaks; `owners` knows earlier types."""
    room, opened = file.split("/")[1] if file.startswith("core/") else None, set()
    if room and room not in ROOMS:
        yield 1, f"is in no room of core/; they are {', '.join(ROOMS)}"
    for namespace, line, words, end in declarations(text):
        opened.add("::".join(namespace.split("::")[:2]))
        name = defined_type(words, end)
        if name and ANONYMOUS not in namespace:
            owner = owners.setdefault(f"{namespace}::{name}", file)
            if owner != file:
                yield line, f"defines {namespace}::{name}, as does {owner}"
        if room in ROOMS:
            rule = check_namespace(file, namespace, words)
            if rule:
                yield line, rule
    if room in ROOMS and home_of(room) not in opened:
        yield 1, f"does not open namespace {home_of(room)}"


def violations(root):
    files = [path for folder in ARROWS for path in sorted((root / folder).rglob("*"))
             if path.suffix in SUFFIXES]
    owners = {}  # qualified name of a type -> the file that defines it
    for path in files:
        file = path.relative_to(root).as_posix()
        if not file.startswith(TOUCHING):
            yield from touches(file, path.read_text(encoding="utf-8"))
        for number, is_ours, name in includes(path):
            rule = check_include(file, is_ours, name)
            if rule:
                yield f"{file}:{number}: {rule}"
        for number, rule in check_declarations(file, path.read_text(encoding="utf-8"), owners):
            yield f"{file}:{number}: {rule}"
    main = root / MAIN
    if not main.is_file():
        yield f"{MAIN}: is missing"
    else:
        lines = len(main.read_text(encoding="utf-8").splitlines())
        if lines > MAIN_LINES:
            yield f"{MAIN}: {lines} lines, expected at most {MAIN_LINES}"


SOUND = {
    "core/base/a.h": "#include <vector>\nnamespace fathom {\nstruct Segments {};\n}\n",
    "core/kernels/a.h": '#include "core/base/a.h"\nfloat* f(M m) { return m.row<float>(0); }\n'
                        "namespace fathom {\nclass Pool;\n}\n"
                        "namespace fathom::kernels {\nstruct Segments {};\nnamespace cpu {\nint f();\n}\n}\n",
    "core/tensor/tensor.h": '#include "core/base/a.h"\nnamespace fathom::tensor {\nclass Tensor {};\n}\n'
                            "namespace fathom {\nusing tensor::Tensor;\n}\n",
    "core/score/a.cpp": "// namespace fathom::tensor {\n#define X namespace fathom::tensor {\n"
                        'namespace fathom::score {\nconst char* s = R"(})" "}", c = \'}\';\n'
                        "struct Segments;\ntemplate <class T> struct Of {};\n"
                        "template <> struct Of<int> {};\nnamespace {\nstruct Own {};\n}\n}\n",
    "core/score/c.cpp": "namespace fathom::score {\nnamespace {\nstruct Own {};\n}\n}\n",
    "dist/a.cpp": '#include <mpi.h>\n#include "core/tensor/tensor.h"\n#include "dist/a.h"\n',
    "checkpoint/a.cpp": '#include "checkpoint/h5_handle.h"\n',
    "checkpoint/h5_handle.h": "#include <hdf5.h>\n",
    "monitoring/a.cpp": '#include <prometheus/exposer.h>\n#include "core/base/error.h"\n',
    "launcher/a.cpp": '#include "core/score/a.h"\n#include "dist/a.h"\n#include "monitoring/a.h"\n',
    "launcher/main.cpp": "int main() {}\n" * 80,
    "tests/a.cpp": '#include "launcher/a.h"\n#include "checkpoint/h5_handle.h"\n',
}


def in_room(room, includes=(), inside=""):
    lines = "".join(f'#include "{name}"\n' for name in includes)
    return lines + f"namespace {home_of(room)} {{\n{inside}}}\n"


PLANTED = [  # file, text, words of the finding
    ("core/ops/b.cpp", in_room("ops") + "\nfloat f(T t) { return t.data<float>()[0]; }\n",
     "looks at a tensor's elements"),
    ("launcher/b.cpp", "\nfloat f(T* t) { return t->row<float>(0)[0]; }\n",
     "launcher/b.cpp:2: looks at a tensor's elements"),
    ("core/ops/b.h", in_room("ops", ["dist/a.h"]), "core/ops/b.h:1: includes dist/a.h"),
    ("core/ops/b.cpp", '\n  #  include "monitoring/a.h"\n' + in_room("ops"),
     "core/ops/b.cpp:2: includes monitoring/a.h"),
    ("core/ops/b.cpp", in_room("ops", ["launcher/a.h"]), "includes launcher/a.h"),
    ("core/ops/b.cpp", "#include <launcher/a.h>\n" + in_room("ops"), "includes launcher/a.h"),
    ("core/b.h", "namespace fathom::tensor {\n}\n", "core/b.h:1: is in no room of core/"),
    *((f"core/{room}/b.h", in_room(room, [f"core/{target}/b.h"]),
       f"core/{room}/b.h:1: includes core/{target}/b.h; core/{room}/ may include only")
      for room in ROOMS for target in ROOMS if target not in [room, *ROOMS[room]]),
    ("core/kernels/b.h", in_room("kernels", ["core/tensor/arena.h"]), "includes core/tensor/arena.h"),
    ("core/ops/b.h", "\nnamespace fathom::ops {\n}\nnamespace fathom::tensor {\n}\n",
     "core/ops/b.h:4: opens namespace fathom::tensor; core/ops/ is namespace fathom::ops"),
    ("core/ops/b.h", in_room("ops") + "namespace fathom {\nnamespace tensor {\n}\n}\n",
     "core/ops/b.h:4: opens namespace fathom::tensor"),
    ("core/base/b.h", in_room("base") + in_room("tensor"), "core/base/ is namespace fathom"),
    ("core/ops/b.h", "#pragma once\n", "core/ops/b.h:1: does not open namespace fathom::ops"),
    ("core/ops/b.h", in_room("ops") + "namespace fathom {\nint f();\n}\n", "declares int f in fathom"),
    ("core/ops/b.h", in_room("ops") + "namespace fathom {\nusing ops::linear;\n}\n",
     "declares using ops :: linear in fathom"),
    ("core/kernels/b.h", in_room("kernels", inside="struct [[nodiscard]] Segments final : A {\n};\n"),
     "core/kernels/b.h:2: defines fathom::kernels::Segments, as does core/kernels/a.h"),
    ("core/tensor/z.h", in_room("tensor", inside="int f() { return '{'; }\nenum class Tensor { kA };\n"),
     "core/tensor/z.h:3: defines fathom::tensor::Tensor, as does core/tensor/tensor.h"),
    ("core/score/d.cpp", in_room("score", inside="template <class T = A<B>>\nclass Of {\n};\n"),
     "core/score/d.cpp:3: defines fathom::score::Of, as does core/score/a.cpp"),
    ("dist/b.cpp", '#include "checkpoint/a.h"\n', "includes checkpoint/a.h"),
    ("dist/b.h", '#include "launcher/a.h"\n', "includes launcher/a.h"),
    ("dist/b.h", '#include "core/autograd/tape.h"\n', "dist/ may include only"),
    ("checkpoint/b.cpp", '#include "monitoring/a.h"\n', "includes monitoring/a.h"),
    ("checkpoint/b.cpp", '#include "core/tensor/tensor.h"\n', "checkpoint/ may include only"),
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
