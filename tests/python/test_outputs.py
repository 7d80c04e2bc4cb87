# SPDX-License-Identifier: Apache-2.0
"""What is written, and what is said where it cannot be: pipes, errors of close(), crashes."""

import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import PROGRAM

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL, **options)


@pytest.fixture
def log(tmp_path):
    save_file({"weight_grad/a": np.ones(8, np.float32)}, tmp_path / "g.safetensors")
    return tmp_path / "g.safetensors"


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """The library that lets close() fail and notes fsync() and rename()."""
    if COMPILER is None:
        pytest.skip("a C compiler is missing: close() cannot be made to fail")
    library = tmp_path_factory.mktemp("calls") / "file_calls.so"
    subprocess.run([COMPILER, "-O2", "-shared", "-fPIC", "-o", library,
                    pathlib.Path(__file__).with_name("file_calls.c"), "-ldl"], check=True)
    return library


def test_records_are_not_written_into_pipes(log, tmp_path):
    record, pipe = tmp_path / "a.hst", tmp_path / "pipe"
    assert run("count", log, "--out", record).returncode == 0
    os.mkfifo(pipe)
    for arguments in (["merge", record], ["count", log]):
        done = run(*arguments, "--out", pipe)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr == (f"halfscope: {pipe}: is a folder, pipe or device, expected a file to "
                               "write; name a file\n")
    for command in (["analyze", log, "--json"], ["analyze", log, "--csv"], ["report", log, "--out"]):
        assert run(*command, pipe).returncode == 1


def test_magnitudes_may_come_through_a_pipe(tmp_path):
    pipe, lines = tmp_path / "amax", "0.5\n" * 30
    os.mkfifo(pipe)
    with subprocess.Popen([PROGRAM, "policies", "--amax", pipe, "--policy", "torch"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        said = waiting.stderr.readline()
        assert said == f"halfscope: {pipe}: is a pipe; waiting until its writer ends\n"
        pipe.write_text(lines)
        out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0 and err == "" and "torch" in out


@pytest.mark.parametrize("command", ["count", "merge", "analyze", "stdout"])
def test_an_error_of_close_is_an_error(command, log, tmp_path, calls):
    record, folder = tmp_path / "a.hst", tmp_path.resolve() / "folder"
    folder.mkdir()
    out = folder / "out"
    assert run("count", log, "--out", record).returncode == 0
    arguments = {"count": ["count", log, "--out", out], "merge": ["merge", record, "--out", out],
                 "analyze": ["analyze", log, "--json", out], "stdout": ["analyze", log]}[command]
    environment = os.environ | {"LD_PRELOAD": str(calls),
                                "CLOSE_FAILS": "stdout" if command == "stdout" else str(folder)}
    done = run(*arguments, env=environment)
    assert done.returncode == 1, done.stderr
    assert "cannot be written (Input/output error)" in done.stderr.splitlines()[-1]


def test_what_replaces_a_file_is_on_the_disk_first(log, tmp_path, calls):
    for command in (["analyze", log, "--json"], ["count", log, "--out"]):
        if command[0] == "count":
            assert run(*command, tmp_path / "a.hst").returncode == 0
            command = ["merge", tmp_path / "a.hst", "--out"]
        out, noted = tmp_path / f"{command[0]}.out", tmp_path / f"{command[0]}.calls"
        for wanted in (["rename"], ["fsync", "rename"]):
            noted.unlink(missing_ok=True)
            done = run(*command, out, env=os.environ | {"LD_PRELOAD": str(calls), "CALLS": str(noted)})
            assert done.returncode == 0, done.stderr
            assert noted.read_text().split() == wanted
