# SPDX-License-Identifier: Apache-2.0
"""Files of tensors. An NPZ seed is an archive behind a 'Z', or the parts fuzz_npz.cpp packs."""

import io
import json
import pathlib
import struct
import zipfile
from pickle import dumps as pickle_dumps


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


def part(data):
    """As Cursor::part reads it."""
    return struct.pack("<H", len(data)) + data


def packed(members, packing):
    """As fuzz_npz.cpp packs it."""
    return bytes([packing]) + b"".join(
        bytes([len(name) - 1]) + name.encode() + part(data) for name, data in members
    )


def safetensors_seeds():
    yield "two", safetensors(
        [("weight_grad/w", "F32", [2], [0, 8]), ("b", "F16", [1, 2], [8, 12])],
        bytes(12),
        {"scale": "65536"},
    )
    yield "more", safetensors(
        [
            ("e", "BF16", [0], [0, 0]),
            ("q", "F8_E4M3", [3], [0, 3]),
            ("i", "I64", [1], [3, 11]),
            ("f", "F4", [2], [11, 12]),
        ],
        bytes(12),
    )
    yield "codes", safetensors(
        [
            ("w_packed", "U8", [1, 8], [0, 8]),
            ("w_scale", "F8_E4M3", [1, 1], [8, 9]),
            ("w_global_scale", "F32", [1], [9, 13]),
        ],
        b"\x10\x32\x54\x76\x98\xba\xdc\xfe\x38\0\0\x80\x3f",
    )
    yield "overlap", safetensors([("a", "F16", [2], [0, 4]), ("b", "F16", [2], [2, 6])], bytes(6))
    yield "hole", safetensors([("a", "F16", [1], [0, 2]), ("b", "F16", [1], [4, 6])], bytes(6))
    yield "size", safetensors([("a", "F64", [1], [0, 2])], bytes(2))
    yield "empty", safetensors([], b"")


def npy_seeds():
    yield "f4", npy("<f4", (2,), bytes(8))
    yield "big", npy(">f2", (2, 1), b"\0\1\2\3", fortran=True)
    yield "fortran", npy("<f2", (2, 3), bytes(range(12)), fortran=True)
    yield "integers", npy("<i8", (), bytes(8))
    yield "size", npy("<f8", (3,), bytes(8))
    yield "v2", npy("<f8", (1,), bytes(8), version=2)
    yield "object", npy("|O", (1,), b"\x80\x04N.")
    yield "opaque", npy("|V2", (1,), b"\0\1")
    yield "structured", npy([("a", "<f4"), ("b", "<i4", (2,))], (1,), bytes(12))


def npz_seeds():
    arrays = [
        ("w.npy", npy("<f4", (2,), bytes(8))),
        ("b.npy", npy(">f2", (2, 1), b"\0\1\2\3", fortran=True)),
        ("ids.npy", npy("<i8", (), bytes(8))),
        ("notes.txt", b"of the run"),
    ]
    yield "stored", b"Z" + npz(arrays, zipfile.ZIP_STORED)
    yield "deflated", b"Z" + npz(arrays, zipfile.ZIP_DEFLATED)
    for packing in range(4):
        yield f"packed-{packing}", packed(arrays, packing)
    yield "twice", packed(arrays[:1] * 2, 0)


def text(word):
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def tensor(storage, key, count, shape=b"K\2K\2\x86", strides=b"K\2K\1\x86", parameter=False):
    """The opcodes torch.save writes for a tensor."""
    made = b"ctorch._utils\n_rebuild_tensor_v2\n(("
    made += text("storage") + f"ctorch\n{storage}\n".encode() + text(key) + text("cpu")
    made += b"K" + bytes([count]) + b"tQK\0" + shape + strides
    made += b"\x89ccollections\nOrderedDict\n)RtR"
    if parameter:
        made = b"ctorch._utils\n_rebuild_parameter\n(" + made
        made += b"\x88ccollections\nOrderedDict\n)RtR"
    return made


def torch_seeds():
    """As fuzz_torch.cpp packs them: a byte order, the pickle, storages."""
    half = tensor("HalfStorage", "0", 4)
    state = b"\x80\2}q\0(" + text("w") + half + text("b") + tensor(
        "FloatStorage", "1", 2, b"K\2\x85", b"K\1\x85", parameter=True) + b"u."
    nested = b"\x80\2}(" + text("model") + b"}" + text("w") + half + b"s" + text("epoch") + b"K\3u."
    for name, pickle in (("state", state), ("nested", nested)):
        for order in (b"\0", b"\1"):
            yield f"{name}-{order[0]}", order + part(pickle) + part(bytes(8)) + part(bytes(8))
    transposed = b"\x80\2}" + text("w") + tensor("BFloat16Storage", "0", 4, strides=b"K\1K\2\x86")
    yield "transposed", b"\0" + part(transposed + b"s.") + part(bytes(range(8)))
    listed = b"\x80\2]q\0(" + half + b"\x89N" + b"cos\nsystem\n" + text("x") + b"\x85Re."
    yield "call", b"\0" + part(listed) + part(bytes(8))
    for protocol in (2, 4, 5):
        plain = pickle_dumps({"lr": 0.1, "names": ["a", "b"], "at": (1, 2, 3, 4)}, protocol)
        yield f"plain-{protocol}", b"\0" + part(plain)


def dcp_seeds():
    """As fuzz_dcp.cpp reads them: of two ranks the first one's file."""
    folder = pathlib.Path(__file__).resolve().parents[2] / "data/dcp/two-ranks"
    metadata = (folder / ".metadata").read_bytes()
    for rank in (0, 1):
        data = (folder / f"__{rank}_0.distcp").read_bytes()
        yield f"rank-{rank}", part(metadata) + data
        yield f"called-first-{rank}", part(metadata.replace(f"__{rank}_0".encode(), b"__0_0")) + data


def seeds():
    for target, of_target in (
        ("safetensors", safetensors_seeds),
        ("npy", npy_seeds),
        ("npz", npz_seeds),
        ("torch", torch_seeds),
        ("dcp", dcp_seeds),
    ):
        for name, data in of_target():
            yield target, name, data
            yield target, f"{name}-cut", data[:-1]
            yield target, f"{name}-long", data + b"\0"
