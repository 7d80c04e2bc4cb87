# SPDX-License-Identifier: Apache-2.0
"""Logs of several parts, and their records."""

import json
import subprocess

import numpy as np
import pytest

from program import PROGRAM, run


RANKS = 4
WHOLE_ONLY = ("weights_moved", "fp32_state")  # fields that only whole tensors tell


def count(log, record, *options, **how):
    return run("count", log, *options, "--out", record, **how)


def of_counts(text):
    """Returns a JSON answer without what only whole tensors tell, which a record does not have."""
    try:
        told = json.loads(text)
    except ValueError:
        return text
    if isinstance(told, dict):
        for field in WHOLE_ONLY:
            told.pop(field, None)
    return json.dumps(told)


def answers(log):
    """What commands say of a log, as JSON, where they say something."""
    done = [subprocess.run([PROGRAM, *command, log, "--json", "-"], capture_output=True, text=True)
            for command in (["analyze"], ["recommend"], ["analyze", "--format", "bfloat16"],
                            ["policies", "--assume-constant-between"])]
    assert done[0].returncode == 0, done[0].stderr
    return [(one.returncode, of_counts(one.stdout)) for one in done]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """A run of four ranks whose weight gradients are parts of a sum, with whole tensors."""
    folder = tmp_path_factory.mktemp("ranks") / "run"
    for rank in range(RANKS):
        own = folder / f"rank-{rank:04}"
        run("simulate", "mlp", "--steps", 6, "--batch", 4, "--record-every", 2, "--seed", rank,
            "--out", own)
        manifest = json.loads((own / "run.json").read_text())
        manifest.update(rank=rank, world_size=RANKS, sharded=["weight_grad"])
        (own / "run.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """A folder of tensor files, of five steps."""
    folder = tmp_path_factory.mktemp("steps") / "dumps"
    folder.mkdir()
    numbers = np.random.default_rng(5)
    for step in range(5):
        values = numbers.standard_normal(300).astype(np.float32) * np.float32(2.0 ** -(15 + step))
        np.savez(folder / f"step-{step:04}.npz", **{"weight_grad/a": values})
    return folder
