# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of fuzz_readers: a small file of each kind, each cut short and too long as
well, since libFuzzer seldom finds that by itself. make_seeds.py FOLDER"""

import io
import json
import pathlib
import struct
import sys
import zipfile


def safetensors(tensors, data, metadata=None):
    header = {"__metadata__": metadata} if metadata else {}
    for name, dtype, shape, offsets in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def npy(descr, shape, data, version=1, fortran=False):
    header = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def npz(members, method):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members:
            with archive.open(name, "w", force_zip64=True) as member:  # as numpy.savez does
                member.write(data)
    return stream.getvalue()


def seeds():
    arrays = [
        ("w.npy", npy("<f4", (2,), bytes(8))),
        ("b.npy", npy(">f2", (2, 1), b"\0\1\2\3", fortran=True)),
        ("ids.npy", npy("<i8", (), bytes(8))),
    ]
    yield "two.safetensors", safetensors(
        [("weight_grad/w", "F32", [2], [0, 8]), ("b", "F16", [1, 2], [8, 12])],
        bytes(12),
        {"scale": "65536"},
    )
    yield "more.safetensors", safetensors(
        [
            ("e", "BF16", [0], [0, 0]),
            ("q", "F8_E4M3", [3], [0, 3]),
            ("i", "I64", [1], [3, 11]),
            ("f", "F4", [2], [11, 12]),
        ],
        bytes(12),
    )
    yield "overlap.safetensors", safetensors(
        [("a", "F16", [2], [0, 4]), ("b", "F16", [2], [2, 6])], bytes(6)
    )
    yield "hole.safetensors", safetensors(
        [("a", "F16", [1], [0, 2]), ("b", "F16", [1], [4, 6])], bytes(6)
    )
    yield "size.safetensors", safetensors([("a", "F64", [1], [0, 2])], bytes(2))
    yield "empty.safetensors", safetensors([], b"")
    for name, data in arrays:
        yield name, data
    yield "size.npy", npy("<f8", (3,), bytes(8))
    yield "v2.npy", npy("<f8", (1,), bytes(8), version=2)
    yield "object.npy", npy("|O", (1,), b"\x80\x04N.")
    yield "structured.npy", npy([("a", "<f4"), ("b", "<i4", (2,))], (1,), bytes(12))
    yield "stored.npz", npz(arrays, zipfile.ZIP_STORED)
    yield "deflated.npz", npz(arrays, zipfile.ZIP_DEFLATED)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds():
        (folder / name).write_bytes(data)
        (folder / f"cut-{name}").write_bytes(data[:-1])
        (folder / f"long-{name}").write_bytes(data + b"\0")


if __name__ == "__main__":
    main()
