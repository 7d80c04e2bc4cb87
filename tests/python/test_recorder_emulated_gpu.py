# SPDX-License-Identifier: Apache-2.0
"""The recorder's way on a GPU, on the emulated device: its log is that of the CPU. Kernels a step."""

import json
import os
import subprocess
import sys

import pytest
from program import BUILD, ROOT

pytest.importorskip("torch")

PACKAGE = BUILD / "tests/cuda/emulated/python"
SCRIPTS = ROOT / "tests/python/scripts"
pytestmark = pytest.mark.skipif(not list(PACKAGE.glob("halfscope/_halfscope*")),
                                reason="no package on the emulated device: built without CUDA")

# Kernels of a recorded step: one for each output of a module, when it is made; after each pass one for the
# gradients of outputs and one for those of weights; one for the weights, one for the updates. And of a step
# that is not recorded: two for each pass. Later microbatches are also looked at before they are added to
# .grad; zeros in .grad are one look at whether the loop has cleared it. "groups": the gradients of outputs are
# more than may wait together.
STARTED = {"gpt": [18 + 2 + 2, 2], "gpt, microbatches": [3 * (18 + 2) + 2 + 3, 3 * 2 + 3],
           "gpt, BF16": [18 + 2 + 2, 2], "small": [5 + 2 + 2, 2], "images": [2 + 2 + 2, 2], "small, groups": [5 + 3 + 2, 3]}


def ran(script, *arguments):
    done = subprocess.run([sys.executable, SCRIPTS / script, *arguments], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": os.fspath(PACKAGE), "OMP_NUM_THREADS": "1"})
    assert done.stdout, done.stderr
    return done


@pytest.mark.parametrize("name", STARTED)
def test_the_log_is_that_of_the_cpu(tmp_path, read_log, name):
    told = json.loads(ran("emulated_gpu_runs.py", name, tmp_path).stdout)
    assert told["problems"] == ""
    assert told["started"][2:] == STARTED[name], "kernels of a recorded step, and of one that is not"
    cpu, gpu = read_log(tmp_path / "cpu"), read_log(tmp_path / "gpu")
    assert gpu.scalars == cpu.scalars
    assert list(gpu.tables) == list(cpu.tables)
    for key, expected in cpu.tables.items():
        found = gpu.tables[key]
        for sums in ("mean", "sum_squares"):
            # The order of the sums differs, and a mean may be small beside its terms.
            size = (expected["sum_squares"] / max(1, expected["table"].total)) ** 0.5
            assert found.pop(sums) == pytest.approx(expected.pop(sums), rel=1e-12, abs=1e-12 * size), key
        assert found == expected, key


def ended(way, folder):
    return json.loads(ran("emulated_gpu_ends.py", way, folder).stdout)


@pytest.mark.parametrize("way", ["stop", "exit", "error", "fork"])
def test_a_step_is_written_after_the_next_one_and_none_is_lost(tmp_path, read_log, way):
    """Without stop(), too: when Python exits. An exception, and a fork that trains, lose no earlier step."""
    written = ended(way, tmp_path / "run")
    assert len(written) == (3 if way == "error" else 4)
    assert all(found <= step for step, found in enumerate(written)), "steps in the log, written by a thread"
    steps = range(len(written))
    log = read_log(tmp_path / "run")
    assert list(log.scalars) == list(steps) and len(log.names(0)) == len({name for name, _ in log.tables})
    assert all(log.names(step) == log.names(0) for step in steps)


def test_a_full_disk_is_told_with_a_later_step(tmp_path):
    """Not only by stop()."""
    warnings = ended("full", tmp_path / "run")
    assert warnings[:2] == [0, 0] and warnings[-3:] == [1, 1, 1]


@pytest.mark.parametrize("way", ["alert", "summary"])
def test_who_needs_a_step_at_once_has_it(tmp_path, way):
    assert ended(way, tmp_path / "run") == [1, 2, 3, 4]
