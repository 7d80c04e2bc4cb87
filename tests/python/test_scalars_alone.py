# SPDX-License-Identifier: Apache-2.0
"""What the command line makes of a log without tables, and of one whose model makes NaN."""
import json

import numpy as np
import pytest

from halfscope import _halfscope
from program import json_of, run, words_of


def writer_of(folder):
    return _halfscope.RunLogWriter(folder, json.dumps(
        {"scaled": False, "rank": 0, "world_size": 1, "sharded": [], "about": {}}))


def write_scalars(writer, step, **given):
    told = {"loss": 1.0, "learning_rate": 0.1, "loss_scale": 1024.0, "found_inf": False,
            "max_abs_weight_grad": 0.5, "max_abs_activation_grad": 0.5, "more": {}}
    writer.write_scalars(step=step, **{**told, **given})


@pytest.fixture
def scalars_alone(tmp_path):
    writer = writer_of(tmp_path / "run")
    for step in range(6):
        overflow = step == 3
        write_scalars(writer, step, found_inf=overflow,
                      max_abs_weight_grad=float("inf") if overflow else 0.5)
    return tmp_path / "run"


def test_policies_need_no_tables(scalars_alone):
    [found] = json_of("policies", scalars_alone, "--policy", "static,scale=1024")
    assert found["skipped"] == [3]
    words = words_of("policies", scalars_alone)  # lines may break anywhere
    assert "No step has histograms: what is flushed is unknown." in words


@pytest.mark.parametrize("command", ["report", "recommend", "analyze"])
def test_what_needs_tables_says_what_scalars_tell(scalars_alone, tmp_path, command):
    given = ["--out", tmp_path / "page.html"] if command == "report" else []
    message = run(command, scalars_alone, *given, expect=1).stderr
    assert "holds the scalars of 6 steps and no histograms of tensors" in message
    assert "halfscope policies LOG" in message


def test_a_model_that_makes_nan_is_not_told_that_all_is_well(tmp_path):
    def answer(activation):
        path = tmp_path / "step.npz"
        np.savez(path, **{"weight_grad/a": np.float32([0.5, 0.25]),
                          "activation/a": np.float32([1, activation])})
        return run("recommend", path).stdout

    broken = answer(np.nan)
    assert "NaN in the model from step 0, first in activation/a. No loss scale and no wider" in broken
    assert "No loss scale is needed" not in broken
    assert "The finite gradients of this log need no loss scale. If you use one, it can be up to" in broken
    assert "No loss scale is needed. If you use one, it can be up to" in answer(1)
