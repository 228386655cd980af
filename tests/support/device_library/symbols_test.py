#!/usr/bin/python3
"""A device library exports its entry point alone and needs no symbol of ours.

    symbols_test.py NM LIBRARY     exit 0, or 1 naming the symbols
"""
import subprocess
import sys

ENTRY_POINT = "fathom_device_table"


def symbols(nm, which, library):
    text = subprocess.run([nm, "-D", which, library], check=True, capture_output=True,
                          text=True).stdout
    return [line.split()[-1].split("@")[0] for line in text.splitlines()]


def main():
    nm, library = sys.argv[1:]
    exported, needed = (symbols(nm, which, library)
                        for which in ("--defined-only", "--undefined-only"))
    found = [f"exports {name}" for name in exported if name != ENTRY_POINT]
    found += [f"needs {name}" for name in needed if "fathom" in name]
    if ENTRY_POINT not in exported:
        found.append(f"does not export {ENTRY_POINT}")
    if "memcpy" not in needed and "malloc" not in needed and "free" not in needed:
        found.append("needs not even the C library: was it read?")
    print("\n".join(f"{library}: {line}" for line in found) if found else "as it should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
