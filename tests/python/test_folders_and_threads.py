# SPDX-License-Identifier: Apache-2.0
"""Folders of shards and steps; the same bytes for any number of threads; memory that tables bound;
the bar on a terminal."""
import json
import os
import pathlib
import pty
import select
import subprocess
import time

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import DIGITS, PROGRAM


def halfscope(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """7 steps of 3 shards, one of them NPZ, with a damaged dtype here and there."""
    folder = tmp_path_factory.mktemp("shards")
    random = np.random.default_rng(8)
    for step in range(7):
        for shard in range(3):
            tensors = {f"weight_grad/layer{i}": np.exp2(random.normal(-18, 5, 999 + i))
                       .astype(np.float32) for i in range(4)}
            tensors["counter"] = np.arange(3)
            if shard == 2:
                np.savez_compressed(folder / f"step_{step}-{shard}.npz", **tensors)
            else:
                save_file(tensors, folder / f"step_{step}-{shard}.safetensors")
    return folder


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.safetensors"
    random = np.random.default_rng(9)
    values = np.exp2(random.normal(-18, 5, 5_000_001).astype(np.float32))
    save_file({"weight_grad/w": values, "weight_grad/h": values.astype(np.float16)}, path)
    return path


@pytest.mark.parametrize("log", ["run", "shards", "large"])
def test_any_number_of_threads_gives_the_same_bytes(log, request):
    path = DIGITS if log == "run" else request.getfixturevalue(log)
    for command in (["analyze", path, "--json", "-"], ["recommend", path, "--json", "-"],
                    ["compare", path, path, "--json", "-"]):
        want = halfscope(*command)
        for threads in (1, 2, 3, 8):
            assert halfscope(*command, "--threads", threads) == want, (command[0], threads)


def test_threads_are_a_whole_number():
    for wrong in ("0", "-1", "x", "1.5"):
        done = subprocess.run([PROGRAM, "analyze", DIGITS, "--threads",
                               wrong], capture_output=True, text=True)
        assert done.returncode == 2 and "--threads" in done.stderr


def test_shards_add_up(shards):
    found = json.loads(halfscope("analyze", shards, "--json", "-")[0])
    assert [t["name"] for t in found["tensors"]] == [f"weight_grad/layer{i}" for i in range(4)]
    for i, tensor in enumerate(found["tensors"]):
        assert tensor["steps"] == list(range(7))
        assert tensor["total"] == 7 * 3 * (999 + i)
        assert tensor["shape"] == [3 * (999 + i)]


def most_anonymous_kib(arguments):
    """The largest RssAnon seen while the program runs: mapped files are not in it."""
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            break
        lines = [line for line in status.splitlines() if line.startswith("RssAnon")]
        most = max([most] + [int(line.split()[1]) for line in lines])
        time.sleep(0.002)
    assert process.wait() == 0
    return most


def test_memory_is_bounded_by_the_tables(tmp_path):
    """200 files of 4 MiB, 800 MiB in all: the same data under 200 names takes no more disk."""
    first = tmp_path / "step-0.safetensors"
    values = np.exp2(np.random.default_rng(1).normal(-18, 5, 1 << 20)).astype(np.float32)
    save_file({"weight_grad/w": values}, first)
    for step in range(1, 200):
        os.link(first, tmp_path / f"step-{step}.safetensors")
    assert most_anonymous_kib(["analyze", tmp_path]) < 64 * 1024


def shown_on_a_terminal(arguments, stop):
    """What the program writes to a terminal on stderr, until `stop` is in it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL,
                               stderr=theirs)
    os.close(theirs)
    text = b""
    while stop not in text:
        ready, _, _ = select.select([ours], [], [], 60)
        try:
            piece = os.read(ours, 4096) if ready else b""
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
    process.kill()
    process.wait()
    os.close(ours)
    return text.decode()


def test_the_bar_tells_rate_and_time_left(tmp_path):
    """200 files that are slow to read: float16 scaled by 1000 is counted one element at a time."""
    values = np.exp2(np.random.default_rng(1).normal(-18, 5, 1 << 20)).astype(np.float32)
    first = tmp_path / "step-0.safetensors"
    save_file({"weight_grad/w": values}, first)
    for step in range(1, 200):
        os.link(first, tmp_path / f"step-{step}.safetensors")
    arguments = ["analyze", tmp_path, "--recorded-scale", "1000.5", "--threads", "1"]
    shown = shown_on_a_terminal(arguments, b"left")
    assert "%" in shown and "B/s" in shown and " s left" in shown
