#!/usr/bin/python3
"""Every metric of monitoring/catalogue.h is set by the program: what is served, documented and counted
towards monitoring.max_series must have somebody who writes it.

    catalogue_test.py SOURCE_DIR     exit 0, or 1 naming each metric

First it checks itself: a planted metric that only the catalogue names must be found.
"""
import pathlib
import re
import sys

FOLDERS = ("core", "dist", "checkpoint", "launcher")  # product code that may set a metric
ENUM = re.compile(r"enum class (Counter|Gauge|Histogram) \{(.*?)\};", re.S)


def metrics(header):
    """Gauge::kLoss, ...: every enumerator of the catalogue."""
    for kind, body in ENUM.findall(re.sub(r"//.*", "", header)):
        yield from (f"{kind}::{name}" for name in re.findall(r"\bk[A-Z]\w*", body) if name != "kCount")


def unset(header, code):
    return [name for name in metrics(header) if not re.search(rf"\b{name}\b", code)]


def check_itself():
    header = "enum class Gauge {\n  kLoss,\n  kLossOfSleep,  // {rank}, not kOther\n  kCount,\n};\n"
    assert unset(header, "m.set(Gauge::kLoss, 1);") == ["Gauge::kLossOfSleep"]
    assert unset(header, "m.set(Gauge::kLossOfSleep, 1);") == ["Gauge::kLoss"]


def main(root):
    check_itself()
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.cpp"))
    code = "\n".join(re.sub(r"//.*", "", path.read_text(encoding="utf-8")) for path in files)
    header = (root / "monitoring/catalogue.h").read_text(encoding="utf-8")
    found = list(metrics(header))
    missing = unset(header, code)
    for name in missing:
        print(f"monitoring/catalogue.h: {name}: set nowhere in {', '.join(FOLDERS)}")
    print(f"{len(found)} metrics, {len(missing)} set by nothing")
    return 1 if missing or not found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
