# SPDX-License-Identifier: Apache-2.0
"""The C++ readers see in files of the real numpy and safetensors packages what those wrote, and
safetensors reads what C++ writes."""
import json
import os
import pathlib
import struct
import subprocess

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
    (np.arange(3), "dtype <i8 is no floating-point type"),
    (np.array([True]), "dtype |b1 is no floating-point type"),
    (np.array(["x"]), "dtype <U1 is no floating-point type"),
    (np.ones(2, np.complex64), "dtype <c8 is complex, want f2, f4 or f8"),
    (np.ones(2, np.longdouble), "dtype <f16 is not counted, want f2, f4 or f8"),
    (np.zeros(2, [("a", "f4"), ("b", "i4", (2,))]),
     "dtype [('a', '<f4'), ('b', '<i4', (2,))] is structured, want f2, f4 or f8"),
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
                    {"name": "ids", "skipped": "dtype I64 is no floating-point type"}]
