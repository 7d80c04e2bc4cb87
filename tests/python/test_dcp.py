# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of torch.distributed.checkpoint: their chunks are the tensors, whoever wrote them; what
is damaged or hostile is named, and the other tensors are read."""

import contextlib
import io
import json
import pickle
import shutil
import subprocess
import sys
import types

import pytest

from frameworks import need
from program import PROGRAM, ROOT

DATA = ROOT / "tests/data/dcp"


def analyze(log, *options, expect=(0,)):
    """({name: what is said of it}, lines)"""
    done = subprocess.run([PROGRAM, "analyze", log, "--json", "-", *options], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode in expect, done.stderr
    found = json.loads(done.stdout)["tensors"] if done.returncode == 0 else []
    return {tensor["name"]: tensor for tensor in found}, done.stderr


def same(found, expected, role="*=weight_grad"):
    """Whether all tensors of torch.save are found with all their counts."""
    checkpoint, plain = analyze(found, "--role", role)[0], analyze(expected, "--role", role)[0]
    for name, tensor in plain.items():
        kept = {key: value for key, value in tensor.items() if key not in ("log", "steps")}
        other = {key: value for key, value in checkpoint[name].items() if key not in ("log", "steps")}
        assert other == kept, name
    return checkpoint


@pytest.fixture
def checkpoint(tmp_path):
    shutil.copytree(DATA / "two-ranks", tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def test_chunks_of_ranks_are_the_tensors():
    found = same(DATA / "two-ranks", DATA / "tensors.pt")
    assert set(found) == {"weight_grad.w", "weight_grad.e", "weight_grad.b", "plain"}


def test_weights_are_recognised(checkpoint):
    found, told = analyze(checkpoint)
    assert found["plain"]["role"] == "weight"
    assert "treated as a model's weights" in told
    assert "tensor 'ids' skipped: dtype int64 is not a floating-point type" in told


def test_folders_of_steps(checkpoint, tmp_path):
    run = tmp_path / "run"
    for step in (100, 200):
        shutil.copytree(checkpoint, run / f"step-{step}")
    assert len(analyze(run)[0]["plain"]["steps"]) == 2
    assert len(analyze(run, "--step", "200")[0]["plain"]["steps"]) == 1


def test_no_step_is_lost_without_a_word(checkpoint, tmp_path):
    run = tmp_path / "run"
    for step in (100, 200):
        shutil.copytree(checkpoint, run / f"step-{step}")
    (run / "step-200/.metadata").write_bytes(b"garbage" * 30)
    told = analyze(run, expect=(1,))[1]
    assert "step-200/.metadata" in told and "write the checkpoint again" in told
    (run / "step-200/.metadata").unlink()
    found, told = analyze(run)
    assert len(found["plain"]["steps"]) == 1
    assert "step-200: has files of a checkpoint (.distcp) without its .metadata" in told


def test_the_metadata_of_megatron_is_read(checkpoint):
    data = (checkpoint / ".metadata").read_bytes()
    theirs = b"megatron.core.dist_checkpointing.strategies.torch"
    ours = b"torch.distributed.checkpoint.metadata"
    # The first name alone is of their class; the others fetch ours from the memo, so that it is
    # written once more.
    root = data.index(b"\x8c" + bytes([len(ours)]) + ours)
    name = data.index(b"\x8c\x08Metadata", root)
    changed = (data[:root] + b"\x8c" + bytes([len(ours)]) + ours + b"\x94" +
               b"\x8c" + bytes([len(theirs)]) + theirs + b"\x8c\x0dMCoreMetadata" + b"\x94" +
               data[name + 11:])
    start = changed.index(b"\x95")
    (checkpoint / ".metadata").write_bytes(changed[:start] + changed[start + 9:])
    assert "plain" in analyze(checkpoint)[0]


def test_a_part_alone_is_refused(checkpoint):
    told = analyze(checkpoint / "__0_0.distcp", expect=(1,))[1]
    assert "is a part of a checkpoint, expected all of it; name its folder" in told


def test_a_missing_file_costs_its_tensors(checkpoint):
    (checkpoint / "__0_0.distcp").unlink()
    found, told = analyze(checkpoint)
    assert "weight_grad.w" not in found and found
    assert "tensor 'weight_grad.w' skipped: its chunk at [0, 0] cannot be read: " in told
    assert "__0_0.distcp: cannot be read (No such file or directory)" in told


@pytest.mark.parametrize("kept", [0, 1, 700, 5000])
def test_a_cut_file_costs_its_tensors(checkpoint, kept):
    file = checkpoint / "__1_0.distcp"
    data = file.read_bytes()
    file.write_bytes(data[:kept])
    told = analyze(checkpoint, expect=(0, 1))[1]
    assert "cannot be read: " in told and "__1_0.distcp" in told


def test_every_cut_of_the_metadata_is_refused(checkpoint):
    data = (checkpoint / ".metadata").read_bytes()
    for kept in range(60, len(data), 97):
        (checkpoint / ".metadata").write_bytes(data[:kept])
        done = subprocess.run([PROGRAM, "analyze", checkpoint], capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr


def test_no_wrong_byte_crashes(checkpoint):
    data = (checkpoint / ".metadata").read_bytes()
    for at in range(0, len(data), 23):
        (checkpoint / ".metadata").write_bytes(data[:at] + bytes([data[at] ^ 0x15]) + data[at + 1:])
        done = subprocess.run([PROGRAM, "analyze", checkpoint], capture_output=True, text=True,
                              timeout=60)
        assert done.returncode in (0, 1), (at, done.stderr)


@contextlib.contextmanager
def classes():
    """Those that the pickle names, without PyTorch."""
    names = {"torch": ["Size"], "torch.distributed.checkpoint.metadata": [
        "Metadata", "MetadataIndex", "TensorStorageMetadata", "TensorProperties",
        "ChunkStorageMetadata"], "torch.distributed.checkpoint.filesystem": ["_StorageInfo"]}
    made = types.SimpleNamespace()
    with pytest.MonkeyPatch.context() as patch:
        for module, here in names.items():
            patch.setitem(sys.modules, module, types.ModuleType(module))
            for name in here:
                base = tuple if name == "Size" else object
                one = type(name, (base,), {"__module__": module})
                setattr(sys.modules[module], name, one)
                setattr(made, name, one)
        made.Size.__reduce__ = lambda self: (made.Size, (tuple(self),))
        yield made


class Dtype:
    """torch.float32, which is pickled by its name."""
    def __reduce__(self):
        return "float32"


def write_metadata(folder, chunks, size, place=None, file="__0_0.distcp"):
    """Of a tensor 'w' with chunks: (offsets, sizes)."""
    with classes() as made:
        float32 = Dtype()
        Dtype.__module__ = "torch"
        sys.modules["torch"].float32 = float32

        def new(name, **fields):
            one = getattr(made, name)()
            one.__dict__.update(fields)
            return one
        properties = new("TensorProperties")
        type(properties).__getstate__ = lambda self: (float32, None, False, None, False)
        type(properties).__setstate__ = lambda self, state: None
        tensor = new("TensorStorageMetadata", properties=properties, size=made.Size(size), chunks=[
            new("ChunkStorageMetadata", offsets=made.Size(at), sizes=made.Size(sizes))
            for at, sizes in chunks])
        storage = {new("MetadataIndex", fqn="w", offset=made.Size(at), index=0): new(
            "_StorageInfo", relative_path=file, offset=(place or (0, 100))[0],
            length=(place or (0, 100))[1]) for at, _ in chunks}
        data = io.BytesIO()
        pickle.Pickler(data, 4).dump(new("Metadata", state_dict_metadata={"w": tensor},
                                         planner_data=None, storage_data=storage))
    (folder / ".metadata").write_bytes(data.getvalue())


@pytest.mark.parametrize("chunks, size, told", [
    ([((0, 0), (2, 3)), ((1, 0), (2, 3))], (4, 3), "has chunks that overlap at [1, 0]"),
    ([((0, 0), (2, 3))], (4, 3), "has chunks of 6 elements together, expected 12"),
    ([((0, 0), (9, 3))], (4, 3), "has a chunk of shape [9, 3] at [0, 0], outside its shape [4, 3]"),
    ([((0,), (3,))], (4, 3), "has a chunk of shape [3] at [0], outside its shape [4, 3]"),
    ([((0, 0), (4, 3))], (2**62, 2**62), "has a shape that no file can hold"),
    ([((0, 0), (4, 3))], (4, 3), "cannot be read: "),
])
def test_chunks_that_are_no_tensor_are_named(checkpoint, chunks, size, told):
    write_metadata(checkpoint, chunks, size)
    assert f"tensor 'w' skipped: {told}" in analyze(checkpoint, expect=(1,))[1].replace(
        "its chunk at [0, 0] cannot", "cannot")


def test_a_chunk_of_another_shape_is_named(checkpoint):
    data = (checkpoint / "__0_0.distcp").read_bytes()
    end = data.index(b"PK\x05\x06") + 22
    write_metadata(checkpoint, [((0, 0), (4, 3))], (4, 3), place=(0, end))
    assert "expected a tensor of shape [4, 3] and dtype float32" in analyze(checkpoint, expect=(1,))[1]


@pytest.mark.parametrize("file", ["../outside.distcp", "/etc/passwd", ""])
def test_no_file_outside_the_folder_is_opened(checkpoint, file):
    write_metadata(checkpoint, [((0, 0), (4, 3))], (4, 3), file=file)
    assert f"lies in '{file}', expected a file of the folder" in analyze(checkpoint, expect=(1,))[1]


class Hostile:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        import os

        return os.system, (self.command,)


def test_a_hostile_pickle_is_not_run(checkpoint, tmp_path):
    mark = tmp_path / "ran"
    with classes() as made:
        one = made.Metadata()
        one.__dict__.update(state_dict_metadata=Hostile(f"touch {mark}"), storage_data={})
        (checkpoint / ".metadata").write_bytes(pickle.dumps(one, 4))
    told = analyze(checkpoint, expect=(1,))[1]
    assert "holds no state_dict_metadata and storage_data" in told and not mark.exists()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_what_pytorch_writes_is_read(tmp_path, ranks):
    """Of `./run frameworks torch`; Debian's PyTorch has another module."""
    torch = need("torch")
    if not hasattr(torch, "compiler"):
        pytest.skip("needs PyTorch 2")
    subprocess.run([sys.executable, DATA / "make.py", tmp_path / "checkpoint", str(ranks)], check=True)
    same(tmp_path / "checkpoint", tmp_path / "tensors.pt")
