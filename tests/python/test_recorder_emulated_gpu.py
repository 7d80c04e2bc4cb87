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
SCRIPT = ROOT / "tests/python/scripts/emulated_gpu_runs.py"
pytestmark = pytest.mark.skipif(not list(PACKAGE.glob("halfscope/_halfscope*")),
                                reason="no package on the emulated device: built without CUDA")

# Kernels of a recorded step: one for each output of a module, when it is made; after each pass one for the
# gradients of outputs and one for those of weights; one for the weights, one for the updates. And of a step
# that is not recorded: two for each pass. Later microbatches are also looked at before they are added to
# .grad; zeros in .grad are one look at whether the loop has cleared it.
STARTED = {"gpt": [18 + 2 + 2, 2], "gpt, microbatches": [3 * (18 + 2) + 2 + 3, 3 * 2 + 3],
           "gpt, BF16": [18 + 2 + 2, 2], "small": [5 + 2 + 2, 2]}


def recorded(name, folder):
    done = subprocess.run([sys.executable, SCRIPT, name, folder], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": os.fspath(PACKAGE), "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", STARTED)
def test_the_log_is_that_of_the_cpu(tmp_path, read_log, name):
    told = recorded(name, tmp_path)
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
