# SPDX-License-Identifier: Apache-2.0
"""NaN of gradients computed in FP16 is taken as overflow, and the answer says that this is inferred."""
import functools
import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import stdout_of, valid_json_of

INF, NAN = float("inf"), float("nan")
recommend = functools.partial(stdout_of, "recommend")
found = functools.partial(valid_json_of, "recommend")


def write(folder, bad, at=(3,)):
    """Six steps in FP16 that carry a loss scale; at some of them one value is bad."""
    folder.mkdir(parents=True)
    for step in range(6):
        values = np.random.default_rng(step).uniform(8, 16, 64).astype(np.float16)
        if step in at:
            values[7] = bad
        save_file({"weight_grad/a": values}, folder / f"step-{step:06d}.safetensors")
    return folder


@pytest.mark.parametrize("scale", [1, 2, 1024, 65536])
def test_nan_bounds_the_scale_as_an_infinity_does(tmp_path, scale):
    infinite = found(write(tmp_path / "inf", INF), "--recorded-scale", scale)
    answer = found(write(tmp_path / "nan", NAN), "--recorded-scale", scale)
    assert answer["static_scale"] == infinite["static_scale"] == scale / 4
    for field in ("overflow_not_identifiable", "skip", "nonfinite_steps", "highest"):
        assert answer[field] == infinite[field]
    assert "steps_left_out" not in answer and answer["none_needed"] is False
    assert answer["limited_by"] == {**infinite["limited_by"], "nan_at": scale}


def test_the_answer_says_that_the_cause_is_inferred(tmp_path):
    log = write(tmp_path / "log", NAN)
    first = recommend(log, "--recorded-scale", 1024).splitlines()[0]
    assert first == ("Use a loss scale of at most 256 (2^8): NaN at loss scale 1024 (2^10) is taken as overflow "
                     "because nothing else explains it (step 3).")
    details = " ".join(recommend(log, "--recorded-scale", 1024, "--details").split())
    assert ("Limited by weight_grad/a at step 3: NaN at loss scale 1024 (2^10) is taken as overflow, so by a "
            "magnitude of at least 64 (2^6.0).") in details


def test_a_run_log_says_the_same(tmp_path):
    folder = write(tmp_path / "run" / "tensors", NAN).parent
    (folder / "run.json").write_text(json.dumps({"schema": 1, "gradients": "scaled"}))
    answer = found(folder, "--recorded-scale", 1024)
    assert answer["static_scale"] == 256 and answer["limited_by"]["nan_at"] == 1024
    save_file({"weight_grad/a": np.ones(64, np.float16), "activation/a": np.full(3, NAN, np.float32)},
              folder / "tensors" / "step-000003.safetensors")
    assert found(folder, "--recorded-scale", 1024)["static_scale"] > 256


def test_no_finite_step(tmp_path):
    log = write(tmp_path / "log", NAN, range(6))
    said = " ".join(recommend(log, "--recorded-scale", 1024).split())
    assert said.startswith("No static loss scale can be recommended: NaN at loss scale 1024 (2^10) is taken as overflow "
                           "because nothing else explains it (step 0), and no recorded step is finite, so 256 (2^8) is "
                           "only an upper bound.")


def test_nan_that_ends_a_log_is_still_said_first(tmp_path):
    lines = recommend(write(tmp_path / "log", NAN, (5,))).splitlines()
    assert lines[0].startswith("weight_grad/a holds NaN at the last recorded step, 5.")
    assert lines[1] == "If an overflow made the NaN, use a loss scale of at most 2^-2."
