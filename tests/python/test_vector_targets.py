# SPDX-License-Identifier: Apache-2.0
"""The same bits on every processor: with each set of vector instructions that this one has, and
with the C library's functions for processors without FMA."""

import os
import platform
import re
import subprocess
import sys

import pytest

from program import DIGITS, PROGRAM

RUNS = {
    "lenet": ["--steps", "12", "--precision", "mixed", "--optimizer", "adam", "--loss-scale", "2^10"],
    "mlp": ["--steps", "12"],  # in FP32
}


def start(*arguments, expect=0, **environment):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=120,
                          env={**os.environ, **environment})
    assert done.returncode == expect, done.stderr
    return done


def targets():
    """The best first."""
    line = re.search(r"CPU vectors +(\w+) of ([^(]+) \(", start("info").stdout.decode())
    return line[2].strip().split(", ")


def machines():
    """Environments, by name: the first one is this processor."""
    every = {target: {"HALFSCOPE_TARGET": target} for target in targets()}
    if platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc":
        every["glibc without FMA"] = {
            "HALFSCOPE_TARGET": targets()[-1],
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX,-AVX512F"}
    return every


def contents(folder, log):
    """Its files, but for the events, which know what time it is: these as they are read."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes()
             for path in sorted(folder.rglob("*"))
             if path.is_file() and "tfevents" not in path.name}
    return files | {"scalars": repr(log.scalars)} | log.tables


@pytest.mark.parametrize("network", RUNS)
def test_a_simulated_training_has_the_same_bits(tmp_path, read_log, network):
    found = {}
    for name, environment in machines().items():
        start("simulate", network, "--out", tmp_path / name, "--record-every", "2",
              *RUNS[network], **environment)
        found[name] = contents(tmp_path / name, read_log(tmp_path / name))
    first, *others = found
    assert {"run.json", "tensors/step-000000.safetensors"} < found[first].keys()
    assert any(name.startswith("checkpoint/step-00000") for name in found[first])
    for other in others:
        assert found[other].keys() == found[first].keys()
        assert not [name for name in found[first] if found[first][name] != found[other][name]], other


def test_an_analysis_has_the_same_bits():
    found = {name: start("analyze", DIGITS, "--json", "-", **environment).stdout
             for name, environment in machines().items()}
    for name, text in found.items():
        assert text == next(iter(found.values())), name


def test_info_says_what_there_is_and_what_is_used():
    best, *_, plain = targets()
    assert f"{best} of {best}, " in start("info").stdout.decode()
    for spelled in (plain, plain.lower()):
        text = start("info", HALFSCOPE_TARGET=spelled).stdout.decode()
        assert f"{plain} of {best}, " in text and "HALFSCOPE_TARGET" in text


def test_a_target_that_is_none_is_refused():
    err = start("info", expect=2, HALFSCOPE_TARGET="SSE9").stderr.decode()
    assert "HALFSCOPE_TARGET" in err and "'SSE9'" in err and targets()[0] in err
    assert err.count("\n") == 1
    module = subprocess.run([sys.executable, "-c", "import halfscope"], capture_output=True,
                            text=True, env={**os.environ, "HALFSCOPE_TARGET": "SSE9"})
    assert module.returncode != 0 and "HALFSCOPE_TARGET" in module.stderr
