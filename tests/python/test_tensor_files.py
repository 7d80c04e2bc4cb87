# SPDX-License-Identifier: Apache-2.0
"""The C++ readers see in files of the real numpy and safetensors packages what those wrote, and
safetensors reads what C++ writes."""
import io
import json
import os
import pathlib
import struct
import subprocess
import zipfile
import zlib

import numpy as np
import pytest
import safetensors
import safetensors.numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HALFSCOPE_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin" / "write_tensors"
NAMES = {"f2": "F16", "f4": "F32", "f8": "F64"}
SHAPES = [(), (1,), (0,), (3, 4), (2, 3, 5), (7, 0, 2)]


def run(*arguments):
    assert PROGRAM.exists(), f"{PROGRAM} is missing: build the target write_tensors first"
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def read(*arguments):
    """What the program says of a file: a list of dicts."""
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def seen(name, array):
    """What it should say of a NumPy array: little-endian bytes in C order, whatever the file's."""
    little = array.astype(array.dtype.newbyteorder("<"))
    return {"name": name, "dtype": NAMES[array.dtype.str[1:]], "shape": list(array.shape),
            "bytes": little.tobytes("C").hex()}


def arrays():
    generator = np.random.default_rng(1)
    for dtype in ("<f2", "<f4", "<f8", ">f2", ">f4", ">f8"):
        for shape in SHAPES:
            for order in "CF":
                yield np.asarray(generator.standard_normal(shape)).astype(dtype, order=order)


def test_npy(tmp_path):
    for array in arrays():
        np.save(tmp_path / "w.npy", array)
        assert read(tmp_path / "w.npy") == [seen("w", array)]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(tmp_path, version):
    array = np.arange(5, dtype=np.float32)
    with open(tmp_path / "w.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=version)
    assert read(tmp_path / "w.npy") == [seen("w", array)]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    named = {f"weight_grad/é.{i}": array for i, array in enumerate(arrays())}
    save(tmp_path / "g.npz", **named)
    assert read(tmp_path / "g.npz") == [seen(name, array) for name, array in named.items()]


def test_npz_of_zeros_is_no_bomb(tmp_path):
    zeros = np.zeros(1 << 20, np.float32)  # deflate's best case, about 1,000 to 1
    np.savez_compressed(tmp_path / "g.npz", zeros=zeros)
    assert read(tmp_path / "g.npz") == [seen("zeros", zeros)]


@pytest.mark.parametrize("array, reason", [
    (np.arange(3), "dtype <i8 is not a floating-point type"),
    (np.array([True]), "dtype |b1 is not a floating-point type"),
    (np.array(["x"]), "dtype <U1 is not a floating-point type"),
    (np.ones(2, np.complex64), "dtype <c8 is complex, expected f2, f4 or f8"),
    (np.ones(2, np.longdouble), "dtype <f16 is not supported, expected f2, f4 or f8"),
    (np.zeros(2, [("a", "f4"), ("b", "i4", (2,))]),
     "dtype [('a', '<f4'), ('b', '<i4', (2,))] is structured, expected f2, f4 or f8"),
])
def test_other_dtypes_are_skipped(tmp_path, array, reason):
    np.save(tmp_path / "w.npy", array)
    assert read(tmp_path / "w.npy") == [{"name": "w", "skipped": reason}]


@pytest.mark.parametrize("array", [np.array([1.0, None], dtype=object),
                                   np.zeros(2, [("a", "f4"), ("b", "O")])])
def test_pickled_objects_are_refused(tmp_path, array):
    np.save(tmp_path / "w.npy", array, allow_pickle=True)
    np.savez(tmp_path / "w.npz", w=array)
    for path in (tmp_path / "w.npy", tmp_path / "w.npz"):
        done = run(path)
        assert done.returncode == 1
        assert done.stderr.startswith(f"{path}: tensor 'w' holds pickled Python objects")
        assert done.stderr.count("\n") == 1


def tensors():
    generator = np.random.default_rng(2)
    return {
        "weight_grad/conv1.weight": generator.standard_normal((3, 4)).astype(np.float32),
        "h": generator.standard_normal(5).astype(np.float16),
        "d": np.asarray(np.float64(3)),
        "empty": np.zeros((0, 3), np.float32),
        "層": np.ones(1, np.float32),
    }


def test_safetensors_both_ways(tmp_path):
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.safetensors"
    safetensors.numpy.save_file(tensors(), theirs, metadata={"scale": "65536"})
    got = {row["name"]: row for row in read(theirs, ours)}
    assert got == {name: seen(name, array) for name, array in tensors().items()}

    back = safetensors.numpy.load_file(ours)
    assert back.keys() == tensors().keys()
    for name, array in tensors().items():
        assert back[name].dtype == array.dtype and back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()
    with safetensors.safe_open(ours, "numpy") as file:
        assert file.metadata() == {"scale": "65536"}
    (header,) = struct.unpack("<Q", ours.read_bytes()[:8])
    assert header % 8 == 0


def test_safetensors_other_dtypes_are_skipped(tmp_path):
    safetensors.numpy.save_file({"ids": np.arange(4), "w": np.ones(1, np.float32)},
                                tmp_path / "g.safetensors")
    rows = read(tmp_path / "g.safetensors")
    assert rows == [seen("w", np.ones(1, np.float32)),
                    {"name": "ids", "skipped": "dtype I64 is not a floating-point type"}]


@pytest.mark.parametrize("packed", [False, True])
def test_npz_with_zip64_fields(tmp_path, packed):
    """As numpy and others write them where sizes are not known beforehand."""
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    named = {f"w{i}": np.full(i, i, np.float32) for i in range(1, 4)}
    with zipfile.ZipFile(tmp_path / "g.npz", "w", kind) as archive:
        for name, array in named.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array)
    assert read(tmp_path / "g.npz") == [seen(name, array) for name, array in named.items()]


def zip64_end(directory_at, directory_bytes, members):
    """The ZIP64 end record, its locator, and an end record whose fields all say "see there"."""
    at = directory_at + directory_bytes
    return (struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, members, members,
                        directory_bytes, directory_at) +
            struct.pack("<4sIQI", b"PK\6\7", 0, at, 1) +
            struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0))


def test_npz_beyond_4_gib(tmp_path):
    """A hole of 5 GiB that takes no disk, and behind it an array."""
    array = np.arange(5, dtype=np.float64)
    stream = io.BytesIO()
    np.save(stream, array)
    stream, hole = stream.getvalue(), 5 << 30
    directory = b""
    with open(tmp_path / "g.npz", "wb") as file:
        for name, size, data in ((b"hole.bin", hole, None), (b"w.npy", len(stream), stream)):
            at = file.tell()
            crc = zlib.crc32(data) if data else 0
            fields = struct.pack("<HHHHHIIIHH", 45, 0, 0, 0, 0, crc, 2**32 - 1, 2**32 - 1,
                                 len(name), 20)
            sizes = struct.pack("<HHQQ", 1, 16, size, size)
            file.write(b"PK\3\4" + fields + name + sizes)
            file.write(data) if data else file.seek(size, os.SEEK_CUR)
            directory += (b"PK\1\2" + struct.pack("<H", 45) + fields[:-2] +
                          struct.pack("<HHHHII", 28, 0, 0, 0, 0, 2**32 - 1) + name +
                          struct.pack("<HHQQQ", 1, 24, size, size, at))
        directory_at = file.tell()
        file.write(directory + zip64_end(directory_at, len(directory), 2))
    assert read(tmp_path / "g.npz") == [seen("w", array), {
        "name": "hole.bin", "skipped": "is not an array (its name does not end in .npy)"}]


@pytest.mark.parametrize("save", ["npy", "npz"])
def test_bfloat16_by_its_name_alone(tmp_path, save):
    """The bits are the upper halves of binary32's; ml_dtypes saves them as V2, others as u2."""
    bits = (np.array([1, -2.5, 3e-39], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    for array in (bits, bits.view("V2")):
        path = tmp_path / f"w.{save}"
        np.save(path, array) if save == "npy" else np.savez(path, w=array)
        assert read(path, "--as", "BF16") == [{"name": "w", "dtype": "BF16", "shape": [3],
                                               "bytes": bits.tobytes().hex()}]
    assert "--as bf16" in run(path).stderr
