# SPDX-License-Identifier: Apache-2.0
"""FP8 with delayed scaling, replayed over a simulated run: the counts are those of its full tensors,
by scales that this test keeps itself. E4M3 against E5M2 in MX blocks: medians of the tensors' own."""
import statistics

import numpy as np
import pytest
from safetensors.numpy import load_file

from program import json_of, stdout_of

STEPS = 24
# Largest number, from where values are clipped (E4M3: above), up to where they become zero.
E4M3 = (448, np.nextafter(464, 1000), 2.0**-10)
E5M2 = (57344, 61440, 2.0**-17)
FORMATS = {"weight": E4M3, "weight_grad": E5M2}  # those of which full tensors are saved


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    out = tmp_path_factory.mktemp("delayed_scaling") / "run"
    stdout_of("simulate", "mlp", "--out", out, "--precision", "fp32", "--steps", STEPS,
              "--record-every", "1", "--sample-every", "1")
    return out


@pytest.fixture(scope="module")
def found(log):
    return json_of("analyze", log, "--formats", "--tensor", "weight*")


def tensors_of(log):
    """Full tensors of two dimensions or more, by name, one a step."""
    tensors = {}
    for step in sorted((log / "tensors").glob("*.safetensors")):
        for name, values in load_file(step).items():
            if values.ndim > 1 and name.split("/")[0] in FORMATS:
                tensors.setdefault(name, []).append(np.abs(values.astype(np.float64)))
    return tensors


def replayed(log, length, margin=0):
    clipped = flushed = clipped_steps = 0
    for name, steps in tensors_of(log).items():
        largest_number, clips_from, zero_to = FORMATS[name.split("/")[0]]
        amax = [np.float32(values.max()) for values in steps]
        for i, values in enumerate(steps[1:], start=1):
            scale = np.float32(largest_number) / max(amax[max(0, i - length):i])
            scaled = values * float(scale) * 0.5**margin
            clipped += int((scaled >= clips_from).sum())
            clipped_steps += bool((scaled >= clips_from).any())
            flushed += int(((scaled <= zero_to) & (values != 0)).sum())
    return clipped, flushed, clipped_steps


def holds(interval, count):
    low, high = interval if isinstance(interval, list) else (interval, interval)
    return low <= count <= high


def test_counts_are_those_of_the_full_tensors(log, found):
    (replay,) = found["delayed_scaling"]
    tensors = tensors_of(log)
    assert replay["tensors"] == len(tensors) > 0
    assert replay["steps"] == len(tensors) * (STEPS - 1)
    assert replay["values"] == sum(int((v != 0).sum()) for t in tensors.values() for v in t[1:])
    assert [choice["amax_history_len"] for choice in replay["by_length"]] == [1, 4, 16, 1024]
    choices = [(choice, choice["amax_history_len"], 0) for choice in replay["by_length"]]
    for choice, length, margin in [*choices, (replay["with_margin_1"], 1024, 1)]:
        clipped, flushed, clipped_steps = replayed(log, length, margin)
        assert choice["clipped_steps"] == clipped_steps
        assert holds(choice["clipped"], clipped)
        assert holds(choice["flushed_to_zero"], flushed)
    by_length = [choice["clipped_steps"] for choice in replay["by_length"]]
    assert by_length == sorted(by_length, reverse=True)
    assert by_length[0] > 0


def test_a_healthy_run_keeps_the_default(log):
    found = json_of("analyze", log, "--formats")
    (replay,) = found["delayed_scaling"]
    assert replay["tensors"] == 3 + 5 + 5  # weights, activations, and their gradients
    assert not replay["default_clips"]
    assert "better" not in replay
    said = stdout_of("analyze", log, "--formats")
    assert "FP8 with delayed scaling can keep the default amax_history_len=1024" in said
    assert "delayed_scaling" not in json_of("analyze", log)


def test_medians_are_those_of_the_tensors(found):
    ratios = {"e4m3": [], "e5m2": []}
    for tensor in found["tensors"]:
        if tensor["role"] != "weight_grad":
            continue
        for fit in tensor["mx_formats"]:
            if fit["element"] in ratios:
                ratios[fit["element"]].append(fit["snr_db"])
    mx = found["mx_gradients"]
    assert mx["tensors"] == len(ratios["e4m3"]) > 0
    for element, values in ratios.items():
        assert mx[f"{element}_median_db"] == pytest.approx(statistics.median(values))
    better = [a > b for a, b in zip(ratios["e4m3"], ratios["e5m2"])]
    assert mx["e4m3_better"] == sum(better)
