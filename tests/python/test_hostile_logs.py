# SPDX-License-Identifier: Apache-2.0
"""Logs that are made to harm: whatever is given as LOG, the program answers or refuses it by one
line that begins with its path, in bounded memory and time. What random bytes do: tests/fuzz."""

import json
import os
import pathlib
import resource
import socket
import struct
import subprocess
import zlib

import numpy as np
import pytest

import hostile_bytes as made
from program import PROGRAM

MEBIBYTE = 1 << 20
DEEP = 100_000
SCALAR = made.field(1, b"train/loss") + b"\x15\x00\x00\x80\x3f"


def limit(most):
    """Of what a process may allocate; mapped files are not in it."""
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(log, *options, memory=512 * MEBIBYTE, seconds=60):
    return subprocess.run([PROGRAM, "analyze", str(log), *options], capture_output=True,
                          timeout=seconds, stdin=subprocess.DEVNULL,
                          preexec_fn=lambda: limit(memory))


def refused(log, *words, **limits):
    """The message, one line that begins with the log's path and has these words in it."""
    done = run(log, **limits)
    error = done.stderr.decode()
    assert done.returncode == 1, (done.returncode, error[-2000:])
    lines = [line for line in error.splitlines() if line.startswith("halfscope: ")]
    assert len(lines) == 1 and len(lines[0]) < 4096, error[-2000:]
    assert str(log) in lines[0], lines[0]
    for word in words:
        assert word in lines[0], (word, lines[0])
    return lines[0]


def answered(log, **limits):
    done = run(log, **limits)
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
    return done.stdout.decode()


def settled(log, **limits):
    """Answered or refused, and never in another way."""
    done = run(log, **limits)
    if done.returncode == 0:
        return
    error = done.stderr.decode()
    assert done.returncode == 1, (done.returncode, error[-2000:])
    assert error.count("halfscope: ") == 1 and len(error.splitlines()[-1]) < 4096, error[-2000:]


# Archives


def test_members_that_claim_more_than_they_hold(tmp_path):
    packed = zlib.compress(bytes(1000), 9)[2:-4]
    for claimed, word in ((1 << 40, "unpack"), (1 << 20, "unpack"), (2**64 - 1, "unpack")):
        for name in ("w.npy", "archive/data.pkl"):
            path = tmp_path / "claims.npz"
            path.write_bytes(made.archive([made.zip_entry(name, packed, claimed, method=8)]))
            refused(path, word, memory=128 * MEBIBYTE)


def test_a_bomb_that_is_true_takes_no_more_memory_than_it_may(tmp_path):
    """3 GiB of zeros in 3 MiB: deflate's best."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    zeros = bytes(16 * MEBIBYTE)
    block = pack.compress(zeros) + pack.flush(zlib.Z_FULL_FLUSH)  # can be repeated
    packed = 192 * block + pack.flush()
    path = tmp_path / "bomb.npz"
    path.write_bytes(made.archive([made.zip_entry("w.npy", packed, 192 * len(zeros), 0, method=8)]))
    assert path.stat().st_size < 4 * MEBIBYTE
    refused(path, "bomb", "HALFSCOPE_UNPACK_LIMIT=3221225472", memory=128 * MEBIBYTE)


def test_members_that_overlap(tmp_path):
    inner = made.npy((1,), bytes(4)) * 64
    entries = [made.zip_entry("w0.npy", inner)]
    entries += [made.zip_entry(f"w{i}.npy", inner, offset=0) for i in range(1, 1000)]
    path = tmp_path / "overlap.npz"
    path.write_bytes(made.archive(entries))
    refused(path, "overlap")


def test_an_archive_in_an_archive_is_not_opened(tmp_path):
    inner = made.archive([made.zip_entry("w.npy", made.npy((1,), bytes(4)))])
    path = tmp_path / "nested.npz"
    path.write_bytes(made.archive([made.zip_entry("inner.npz", inner)]))
    refused(path)


def test_names_in_an_archive_are_names_alone(tmp_path):
    """Nothing is unpacked to disk, wherever a name points."""
    data = made.npy((1,), struct.pack("<f", 1.0))
    names = ["/etc/halfscope.npy", "../../halfscope-escaped.npy", "C:\\w.npy", "weights/./w.npy"]
    path = tmp_path / "names.npz"
    path.write_bytes(made.archive([made.zip_entry(name, data) for name in names]))
    out = answered(path)
    assert "halfscope-escaped" in out
    assert not (tmp_path.parent.parent / "halfscope-escaped.npy").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["names.npz"]


def test_a_name_twice_in_an_archive(tmp_path):
    entry = made.zip_entry("w.npy", made.npy((1,), bytes(4)))
    path = tmp_path / "twice.npz"
    path.write_bytes(made.archive([entry, entry]))
    refused(path, "twice")


# Nesting


PICKLES = {
    "lists": b"\x80\2" + b"]" * DEEP + b"a" * (DEEP - 1) + b".",
    "tuples": b"\x80\2K\1" + b"\x85" * DEEP + b".",
    "dicts": b"\x80\2" + b"}X\1\0\0\0k" * DEEP + b"K\1s" + b"s" * (DEEP - 1) + b".",
    "marks": b"\x80\2" + b"(" * DEEP + b".",
    "memo": b"\x80\2]q\0" + b"h\0a" * DEEP + b".",  # a list that holds itself
}


@pytest.mark.parametrize("kind", PICKLES)
def test_deep_pickles(kind, tmp_path):
    path = tmp_path / f"{kind}.pt"
    path.write_bytes(made.torch_archive(PICKLES[kind]))
    refused(path, seconds=20)


NESTED = {
    "arrays": b"[" * DEEP + b"]" * DEEP,
    "open": b"[" * DEEP,
    "objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
}


@pytest.mark.parametrize("kind", NESTED)
def test_deep_json(kind, tmp_path):
    nested = NESTED[kind]
    header = tmp_path / "header.safetensors"
    header.write_bytes(made.safetensors(b'{"w":' + nested + b"}"))
    refused(header)
    run_log = tmp_path / "run"
    run_log.mkdir()
    (run_log / "run.json").write_bytes(b'{"schema": 1, "gradients": "scaled", "x":' + nested + b"}")
    refused(run_log)
    shards = tmp_path / "shards"
    shards.mkdir()
    (shards / "model.safetensors.index.json").write_bytes(b'{"weight_map":' + nested + b"}")
    settled(shards)
    history = tmp_path / "history.jsonl"
    history.write_bytes(b'{"_step": 0, "loss": 1.0, "x": ' + nested + b"}\n"
                        b'{"_step": 1, "loss": 1.0}\n')
    settled(history)


def test_deep_statistics(tmp_path):
    """JSON within an event."""
    deep = b'{"shape":' + b"[" * DEEP + b"]" * DEEP + b"}"
    tensors = [(b"binades", b"\x08\x09" + made.field(4, b"")),
               (b"statistics", b"\x08\x07" + made.field(8, deep))]
    binades, text = [made.field(1, what + b"/weight_grad/w") + made.field(8, tensor)
                     for what, tensor in tensors]
    (tmp_path / "run.json").write_text('{"schema": 1, "gradients": "unscaled"}')
    message = b"\x10\1" + made.field(5, made.field(1, binades) + made.field(1, text))
    (tmp_path / "events.out.tfevents.1").write_bytes(made.VERSION + made.record(message))
    settled(tmp_path)


# Paths in an index


@pytest.mark.parametrize("shard", ["/etc/passwd", "../outside.safetensors",
                                   "a/../../outside.safetensors", "", ".",
                                   "model.safetensors.index.json", "x\n\u001b[31m"])
def test_an_index_names_files_of_its_folder_alone(shard, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    tensor = {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    (tmp_path / "outside.safetensors").write_bytes(made.safetensors(tensor, bytes(4)))
    (folder / "model-00001-of-00001.safetensors").write_bytes(made.safetensors(tensor, bytes(4)))
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 4}, "weight_map": {"w": shard}}))
    refused(folder)


# Many and long


def test_a_million_tags_in_an_event_file(tmp_path):
    """Each a scalar of its own; the table of a run is bounded by what it holds, not by 2^n."""
    count = 1_000_000
    digits = np.char.zfill(np.arange(count).astype("S7"), 7)
    message = made.event(1, made.field(1, b"tag0000000") + b"\x15\x00\x00\x80\x3f")
    rows = np.broadcast_to(np.frombuffer(message, np.uint8), (count, len(message))).copy()
    at = message.index(b"0000000")
    rows[:, at:at + 7] = digits.view(np.uint8).reshape(count, 7)
    (tmp_path / "events.out.tfevents.1").write_bytes(made.VERSION + made.records(rows))
    settled(tmp_path, memory=1024 * MEBIBYTE, seconds=120)


def test_very_many_tensors_in_a_header(tmp_path):
    """Of no elements: names alone."""
    names = ",".join(f'"t{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
                     for i in range(200_000))
    path = tmp_path / "many.safetensors"
    path.write_bytes(made.safetensors(f"{{{names}}}".encode()))
    settled(path, memory=2048 * MEBIBYTE, seconds=120)


LINES = {
    "wandb": b'{"_step": 0, "loss": 1.0}\n{"_step": 1, "text": "',
    "deepspeed": b"step,Train/Samples/loss_scale\n1,65536\n2,",
    "console": b"OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n",
    "te": b"INFO - layer_gradient_max \t\t\t\t iteration=000002 \t\t\t\t value=0.0100\n",
    "paddle": b"[PRECISION] [ERROR] in [device=gpu:0, op=divide, tensor=, dtype=fp32], numel=40,",
    "nothing": b"",
}


@pytest.mark.parametrize("kind", LINES)
def test_a_line_of_a_gibibyte(kind, tmp_path):
    path = tmp_path / "Train_Samples_loss_scale.csv"
    path.write_bytes(LINES[kind])
    with open(path, "r+b") as file:
        file.truncate(1 << 30)  # zeros, which take no room on disk
    settled(path, memory=256 * MEBIBYTE)


def test_a_folder_of_a_hundred_thousand_files(tmp_path):
    for i in range(100_000):
        os.close(os.open(tmp_path / f"file{i}.csv", os.O_CREAT | os.O_WRONLY))
    refused(tmp_path, memory=256 * MEBIBYTE)


# What is no file


@pytest.mark.parametrize("name", ["log", "log.npy", "log.npz", "log.safetensors", "log.pt",
                                  "log.jsonl", "log.csv", "events.out.tfevents.1"])
def test_pipes_and_sockets_are_not_waited_for(name, tmp_path):
    os.mkfifo(tmp_path / name)
    refused(tmp_path / name, seconds=20)
    refused(tmp_path, seconds=20)  # a folder with nothing else in it
    os.unlink(tmp_path / name)
    with socket.socket(socket.AF_UNIX) as made_here:
        here = os.getcwd()
        os.chdir(tmp_path)  # a socket's path is short
        try:
            made_here.bind(name)
        finally:
            os.chdir(here)
        refused(tmp_path / name, seconds=20)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/dev/null", "/dev/random",
                                  "/proc/self/mem"])
def test_devices(path):
    refused(pathlib.Path(path), seconds=20)


@pytest.mark.parametrize("path", ["/proc", "/proc/self", "/proc/self/task", "/sys", "/proc/version"])
def test_what_the_kernel_makes_up(path, tmp_path):
    """Its files count as regular ones, and reading some of them waits for ever."""
    refused(pathlib.Path(path), seconds=20)
    (tmp_path / "link").symlink_to(path)
    refused(tmp_path, seconds=20)


def test_links_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    refused(tmp_path / "a")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "within").symlink_to(folder)
    for name in ("x.npz", "events.out.tfevents.1", "run.csv"):
        (folder / name).symlink_to(folder / name)
    refused(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(tmp_path):
    path = tmp_path / "w.npy"
    path.write_bytes(made.npy((1,), bytes(4)))
    path.chmod(0)
    refused(path)
    tmp_path.chmod(0)
    try:
        refused(tmp_path)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("extension", [".npy", ".npz", ".safetensors", ".pt", ".jsonl", ".csv",
                                       ".log"])
def test_an_empty_file_and_a_folder_with_a_file_name(extension, tmp_path):
    path = tmp_path / f"empty{extension}"
    path.touch()
    refused(path)
    folder = tmp_path / f"folder{extension}"
    folder.mkdir()
    refused(folder)


def test_a_line_of_backslashes_costs_no_more_than_its_length(tmp_path):
    log = tmp_path / "out.log"
    step = " iteration        {}/ 20 | loss scale: 1024.0 | number of skipped iterations:   0 |\n"
    log.write_text(step.format(1) + "[" + "\\" * (8 << 20) + "\n" + step.format(2))
    answered(log, seconds=20)


def test_a_line_of_many_parts_is_not_held_whole(tmp_path):
    """A progress bar writes its run as one line whose parts end in carriage returns."""
    log = tmp_path / "out.log"
    part = "step {}/300000 loss_scale=1024.0 loss=2.5"
    log.write_text("\r".join(part.format(i) for i in range(300_000)) + "\n")
    settled(log, memory=192 * MEBIBYTE)
