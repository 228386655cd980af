"""make_hostile.py FORMAT.md DIRECTORY: one checkpoint per trick, each with hashes that are right."""
import json
import os
import re
import sys

import h5py
import numpy

document, root = sys.argv[1:]
with open(document) as file:
    blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
exec(blocks[1])  # write_checkpoint, xxh3_128

A = numpy.arange(6, dtype="<f4").reshape(2, 3)
B = numpy.arange(12, dtype="<f4").reshape(4, 3)


def seal(path, edit=lambda manifest: None):
    """Makes the manifest agree with whatever state.h5 has become."""
    with open(path + "/state.h5", "rb") as file:
        image = file.read()
    with open(path + "/manifest.json") as file:
        manifest = json.load(file)
    manifest["file"].update(bytes=len(image), xxh3_128=xxh3_128(image))
    manifest["manifest_xxh3_128"] = "0" * 32
    edit(manifest)
    text = json.dumps(manifest, indent=1) + "\n"
    key = '"manifest_xxh3_128": "'
    text = text.replace(key + "0" * 32, key + xxh3_128(text.encode()))
    with open(path + "/manifest.json", "w") as file:
        file.write(text)


def hostile(name, change=None, edit=lambda manifest: None, **options):
    path = root + "/" + name
    write_checkpoint(path, 1, "run", {"model/a": A, "model/b": B}, {"step": 1})
    if change:
        with h5py.File(path + "/state.h5", "w", libver=("earliest", "v110"), **options) as file:
            file["model/a"] = A
            change(file)
    seal(path, edit)


def create(**options):
    return lambda file: file.create_dataset("model/b", data=B, **options)


def compact(file):
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((4, 3))
    data = h5py.h5d.create(file["model"].id, b"b", h5py.h5t.IEEE_F32LE, space, properties)
    data.write(h5py.h5s.ALL, h5py.h5s.ALL, B)


def virtual(file):
    layout = h5py.VirtualLayout(shape=(4, 3), dtype="<f4")
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", shape=(4, 3))
    file.create_virtual_dataset("model/b", layout)


def attribute(file):
    create()(file)
    file["model/b"].attrs["x"] = 1


def extra(file):
    create()(file)
    file["model/extra"] = A


def put(value):
    def change(file):
        file["model/b"] = value
    return change


def group_link(file):
    del file["model"]
    file["model"] = h5py.ExternalLink("/tmp/other.h5", "/model")


def hard_link(file):
    file["model/b"] = file["model/a"]


def cycle(file):
    create()(file)
    file["model/again"] = file["/"]


def named_type(file):
    create()(file)
    file["model/t"] = numpy.dtype("<f4")


def huge(file):
    file.create_dataset("model/b", shape=(1 << 60,), dtype="<f4")


def huge_manifest(manifest):
    manifest["arrays"][1]["shape"] = [1 << 52]


def huge_in_both(file):
    file.create_dataset("model/b", shape=(1 << 52,), dtype="<f4")


def not_finite(manifest):
    manifest["arrays"][1]["xxh3_128"] = xxh3_128(bad.tobytes())


hostile("plain")
hostile("soft-link", put(h5py.SoftLink("/model/a")))
hostile("external-link", put(h5py.ExternalLink("/etc/passwd", "/x")))
hostile("group-link", group_link)
hostile("hard-link", hard_link)
hostile("cycle", cycle)
hostile("external-storage", lambda file: file.create_dataset(
    "model/b", shape=(4, 3), dtype="<f4", external=[("/etc/passwd", 0, 48)]))
hostile("virtual", virtual)
hostile("gzip", create(compression="gzip"))
hostile("chunked", create(chunks=(2, 3)))
hostile("compact", compact)
hostile("attribute", attribute)
hostile("extra", extra)
hostile("missing", lambda file: None)
hostile("shape", put(B.reshape(3, 4)))
hostile("rank", put(B.reshape(12)))
hostile("dtype", put(B.astype("<f8")))
hostile("big-endian", put(B.astype(">f4")))
hostile("named-type", named_type)
hostile("group-for-array", lambda file: file.create_group("model/b"))
hostile("huge", huge)
hostile("huge-in-both", huge_in_both, huge_manifest)
hostile("null-space", put(h5py.Empty("<f4")))
hostile("user-block", create(), userblock_size=512)
bad = B.copy()
bad.flat[5] = numpy.nan
hostile("nan", put(bad), not_finite)
hostile("not-hdf5")
with open(root + "/not-hdf5/state.h5", "wb") as file:
    file.write(b"\0" * 4096)
seal(root + "/not-hdf5")
