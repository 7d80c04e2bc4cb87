# SPDX-License-Identifier: Apache-2.0
"""Logs that are cut short while they are read, as by `train.py > train.log` started again: the
program says so in one line, and Python raises. Nothing ends by a signal."""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from program import PROGRAM

CUT = "was cut short while it was read; read it again when no program rewrites it"
IN_PYTHON = """
import sys, halfscope
try:
    halfscope.analyze(sys.argv[1])
except halfscope.BadInput as error:
    print(error)
print("alive")
"""
TRIES = 20


def tensors(path):
    """A sparse file: one tensor of zeros, which takes a while to count."""
    count = 1 << 27
    header = json.dumps({"weight_grad/w": {"dtype": "F32", "shape": [count],
                                           "data_offsets": [0, 4 * count]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + 4 * count)


def archive(path):
    """The same as NPY, whose whole file is mapped too."""
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (134217728,), }"
    head += b" " * (128 - 10 - len(head) - 1) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    os.truncate(path, 128 + (4 << 27))


def text(path):
    line = " iteration {:9}/ 1000000 | consumed samples: 12 | lm loss: 2.5E+00 | loss scale: 1024.0 |\n"
    path.write_text("".join(line.format(i) for i in range(1, 400_001)))


LOGS = {"w.safetensors": tensors, "w.npy": archive, "train.log": text}


def reads(process, path):
    """Whether a process has the file open, or mapped."""
    try:
        links = [os.readlink(link) for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()]
        return str(path) in links or str(path) in pathlib.Path(f"/proc/{process.pid}/maps").read_text()
    except OSError:  # a descriptor that went, or the process
        return False


def cut_while_read(arguments, path, delay):
    """Ends with what a process says whose file is emptied so many seconds after it was opened."""
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=os.environ) as process:
        while process.poll() is None and not reads(process, path):
            time.sleep(0.0005)
        time.sleep(delay)
        os.truncate(path, 0)
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("where", ["program", "Python"])
def test_a_log_that_is_cut_short(name, where, tmp_path):
    path = tmp_path.resolve() / name
    arguments = {"program": [PROGRAM, "analyze", str(path)],
                 "Python": [sys.executable, "-c", IN_PYTHON, str(path)]}[where]
    said = []
    for attempt in range(TRIES):  # sooner or later it is cut while it is read
        LOGS[name](path)
        code, out, err = cut_while_read(arguments, path, 0.005 * attempt)
        assert code in (0, 1), (code, err)
        assert where == "program" or (code == 0 and out.endswith("alive\n"))
        said.append(err if where == "program" else out)
        if CUT in said[-1]:
            break
    last = said[-1].splitlines()
    if where == "program":
        assert (code, last[-1]) == (1, f"halfscope: {path}: {CUT}"), said
    else:
        assert last == [f"{path}: {CUT}", "alive"], said
