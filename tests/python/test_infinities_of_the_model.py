# SPDX-License-Identifier: Apache-2.0
"""Infinite gradients bound the loss scale only where weights and activations are finite (docs/json.md)."""

import numpy as np
import pytest

from program import json_of
from sum_runs import write_rank


@pytest.mark.parametrize("broken, value, highest", [
    (None, None, 2.0 ** 8), ("weight/fc.weight", np.inf, 2.0 ** 24), ("weight/fc.weight", np.nan, 2.0 ** 24),
    ("activation/fc", np.inf, 2.0 ** 24), ("activation/fc", np.nan, 2.0 ** 24)])
def test_a_broken_weight_or_activation_frees_the_scale(tmp_path, broken, value, highest):
    """Gradients of 0.001 carry the scale 1024 and are infinite at step 1. As magnitudes of FP16 these
    are 65520 / 1024 or more, so 2^9 might overflow; without them 2^25 does, and 2^24 has headroom."""
    for step in range(3):
        tensors = {"weight_grad/fc.weight": np.full((4, 4), 0.001 * 1024, np.float16),
                   "weight/fc.weight": np.ones((4, 4), np.float16), "activation/fc": np.ones((4, 4), np.float16)}
        if step == 1:
            tensors["weight_grad/fc.weight"][0, 0] = np.inf
            if broken:
                tensors[broken][0, 0] = value
        write_rank(tmp_path / "run", tensors, step=step, scale=1024.0)
    assert json_of("recommend", tmp_path / "run")["highest"] == highest
