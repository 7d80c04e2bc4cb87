# SPDX-License-Identifier: Apache-2.0
"""Small files that would cost much: each is read in bounded memory, or refused with the limit."""

import gzip
import json
import os
import re
import resource
import subprocess
import sys

import numpy as np
import pytest
from hostile_bytes import safetensors
from program import PROGRAM
from test_hostile_logs import MEBIBYTE, answered, limit, refused, run

# Lines of which each is a step of its own, or is long to read; repeated, deflate packs 300 to 1.
LINES = ["{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.01}\n",
         "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n",
         '{"_step": 1, "loss": 1.0, "loss_scale": 1024}\n']


@pytest.mark.parametrize("line", LINES)
def test_a_small_file_of_very_many_lines_is_refused(line, tmp_path):
    log = tmp_path / "train.log.gz"
    log.write_bytes(gzip.compress(line.encode() * (100 * MEBIBYTE // len(line)), 9))
    assert log.stat().st_size < MEBIBYTE
    refused(log, "unpacks to more than 67108864 bytes", "HALFSCOPE_UNPACK_LIMIT")


def test_lines_up_to_the_limit_are_read_in_bounded_memory(tmp_path):
    log = tmp_path / "train.log.gz"
    log.write_bytes(gzip.compress(LINES[0].encode() * (60 * MEBIBYTE // len(LINES[0])), 9))
    answered(log)


def test_the_limit_of_what_is_unpacked_can_be_raised(tmp_path, monkeypatch):
    log = tmp_path / "train.log.gz"
    log.write_bytes(gzip.compress(LINES[1].encode() * (70 * MEBIBYTE // len(LINES[1])), 9))
    refused(log, "HALFSCOPE_UNPACK_LIMIT")
    monkeypatch.setenv("HALFSCOPE_UNPACK_LIMIT", str(80 * MEBIBYTE))
    answered(log)


def test_a_gibibyte_of_zeros_is_read(tmp_path):
    """As numpy.savez_compressed writes it: 1000 to 1. It is mapped, not held."""
    log = tmp_path / "zeros.npz"
    np.savez_compressed(log, w=np.zeros(1 << 28, np.float32))
    done = run(log, "--json", "-", memory=500 * MEBIBYTE, seconds=300)
    assert done.returncode == 0, done.stderr
    tensor, = json.loads(done.stdout)["tensors"]
    assert tensor["total"] == tensor["zero"] == 1 << 28


def reported(command, log, memory, *options):
    """Runs a command in so much memory beyond mapped pages. Returns its user and system time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([PROGRAM, command, str(log), *map(str, options)], capture_output=True,
                          timeout=300, preexec_fn=lambda: limit(memory))
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("value, type", [(0, np.float32), (0, np.float16), (1, np.float16)])
def test_a_report_on_equal_values_holds_no_copy_of_them(value, type, tmp_path):
    """Their sums are found piece by piece; a binary64 copy alone would take 512 MiB or more."""
    log = tmp_path / "equal.npz"
    np.savez_compressed(log, w=np.full((1 << 28) // np.dtype(type).itemsize, value, type))
    seconds = reported("report", log, 400 * MEBIBYTE, "--out", tmp_path / "page.html")
    assert seconds < 15  # 2 s on a quiet machine
    reported("recommend", log, 400 * MEBIBYTE)
    if value == 0:
        reported("reduce", log, 400 * MEBIBYTE)


def test_an_array_of_zeros_is_not_searched_for_lines(tmp_path):
    """A plain .npy file: it is mapped, and nothing of it is held."""
    log = tmp_path / "zeros.npy"
    np.lib.format.open_memmap(log, "w+", np.float32, (1 << 27,)).flush()
    for command in ("analyze", "recommend"):
        reported(command, log, 200 * MEBIBYTE)
    reported("report", log, 200 * MEBIBYTE, "--out", tmp_path / "page.html")


def test_a_limit_that_is_no_number_is_refused(tmp_path, monkeypatch):
    log = tmp_path / "w.npy"
    np.save(log, np.ones(3, np.float32))
    for variable in ("HALFSCOPE_UNPACK_LIMIT", "HALFSCOPE_NAME_LIMIT"):
        for value in ("1G", "-1", "1e9", " 5", "x" * 1000):
            monkeypatch.setenv(variable, value)
            done = run(log)
            wanted = (f"{variable}: found '{value[:60]}', expected a whole number of bytes such as "
                      "1073741824; correct the environment variable or unset it")
            assert done.returncode == 2 and done.stderr.decode() == f"halfscope: {wanted}\n"
        monkeypatch.setenv(variable, "")
        answered(log)
        monkeypatch.delenv(variable)


def test_python_refuses_such_a_limit(tmp_path):
    log = tmp_path / "w.npy"
    np.save(log, np.ones(3, np.float32))
    for call in ("analyze", "recommend", "report", "count", "reduce"):
        done = subprocess.run(
            [sys.executable, "-c", f"import halfscope; halfscope.{call}({str(log)!r})"],
            env={**os.environ, "HALFSCOPE_UNPACK_LIMIT": "1G"}, capture_output=True, text=True)
        assert done.stderr.splitlines()[-1].startswith(
            "ValueError: HALFSCOPE_UNPACK_LIMIT: found '1G', expected a whole number of bytes"), call


def test_a_line_without_an_end_is_bounded(tmp_path):
    """200 MiB without a newline, between lines that are read."""
    log = tmp_path / "train.log"
    line = "{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': %s}\n"
    with open(log, "w") as file:
        file.writelines(line % (i / 100) for i in range(50))
        file.write("x" * (200 * MEBIBYTE) + "\n")
        file.writelines(line % (i / 100) for i in range(50, 60))
    done = run(log, memory=256 * MEBIBYTE)
    assert done.returncode == 0, done.stderr
    assert f"{log}: line 51 has 16777216 bytes or more" in done.stderr.decode()
    log.write_bytes(b"x" * (200 * MEBIBYTE))
    assert run(log, memory=256 * MEBIBYTE).returncode == 1


def test_zeros_beyond_the_limit_are_refused(tmp_path, monkeypatch):
    """Two members, each within what one may be."""
    log = tmp_path / "zeros.npz"
    zeros = np.zeros(200 << 20, np.float32)
    np.savez_compressed(log, a=zeros, b=zeros)
    message = refused(log, "ZIP bomb", "HALFSCOPE_UNPACK_LIMIT=", memory=128 * MEBIBYTE)
    needed = re.search(r"HALFSCOPE_UNPACK_LIMIT=(\d+)", message)[1]
    assert int(needed) == 2 * (zeros.nbytes + 128)


def long_names(path, length, count=100):
    header = {f"{i:04d}" + "a" * (length - 4): {"dtype": "F32", "shape": [1],
              "data_offsets": [4 * i, 4 * i + 4]} for i in range(count)}
    path.write_bytes(safetensors(header, np.ones(count, np.float32).tobytes()))
    return path


def test_very_long_names_are_refused(tmp_path, monkeypatch):
    answered(long_names(tmp_path / "long.safetensors", 4096))
    log = long_names(tmp_path / "longer.safetensors", 4097)
    refused(log, "has a name of 4097 bytes, expected at most 4096", "HALFSCOPE_NAME_LIMIT=4097")
    monkeypatch.setenv("HALFSCOPE_NAME_LIMIT", "4097")
    answered(log)


def test_tensors_without_elements_have_no_formats(tmp_path):
    """100,000 of them: the report holds little of each."""
    header = {f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
              for i in range(100_000)}
    log = tmp_path / "many.safetensors"
    log.write_bytes(safetensors(header))
    done = run(log, "--formats", "--tensor", "t1", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert "formats" not in json.loads(done.stdout)["tensors"][0]

