# SPDX-License-Identifier: Apache-2.0
"""A run whose Adam keeps its state in FP16 with PyTorch's eps: the answer begins with the division by
zero, and the counts are those of the recorded state."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from program import json_of, stdout_of


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    out = tmp_path_factory.mktemp("adam_state") / "run"
    stdout_of("simulate", "mlp", "--out", out, "--precision", "fp16", "--optimizer", "adam",
              "--steps", "4", "--record-every", "1", "--sample-every", "1")
    return out


@pytest.mark.parametrize("command", ["analyze", "recommend"])
def test_the_division_by_zero_comes_first(log, command):
    assert stdout_of(command, log).startswith("Adam divides by 0: its eps of 1e-08 is 0 in FP16")


@pytest.mark.parametrize("command", ["analyze", "recommend"])
def test_counts_are_those_of_the_recorded_state(log, command):
    (state,) = json_of(command, log)["adam_state"]
    zero = lost = moments = 0
    for step in sorted((log / "tensors").glob("*.safetensors")):
        tensors = load_file(step)
        for name, second in tensors.items():
            if name.startswith("optimizer_state/exp_avg_sq/"):
                first = tensors[name.replace("exp_avg_sq", "exp_avg")]
                assert second.dtype == np.float16
                zero += int((second == 0).sum())
                lost += int(((second == 0) & (first != 0)).sum())
                moments += second.size
    assert (state["zero"], state["second_moments"]) == (zero, moments)
    low, high = state["lost"] if isinstance(state["lost"], list) else (state["lost"],) * 2
    assert 0 < low <= lost <= high
    assert state["eps_is_zero"] and not state["held_in_assumed"] and not state["settings_assumed"]
    assert state["held_in"] == "F16"


def test_gradients_are_counted_by_the_limits(log):
    (state,) = json_of("analyze", log)["adam_state"]
    adds_nothing = square_is_zero = gradients = 0
    for step in sorted((log / "tensors").glob("*.safetensors")):
        for name, values in load_file(step).items():
            if name.startswith("weight_grad/"):
                g = values.astype(np.float64)
                g = g[np.isfinite(g) & (g != 0)]
                adds_nothing += int((0.001 * g * g <= 2.0**-25).sum())
                square_is_zero += int((g * g <= 2.0**-25).sum())
                gradients += g.size
    assert state["gradients"] == gradients
    for key, count in (("adds_nothing", adds_nothing), ("square_is_zero", square_is_zero)):
        low, high = state[key] if isinstance(state[key], list) else (state[key],) * 2
        assert low <= count <= high
