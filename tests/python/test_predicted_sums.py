# SPDX-License-Identifier: Apache-2.0
"""Predicted intervals hold the truth at every size of tensor. `predicted_sums.py` by itself judges many more."""
import pytest

from predicted_sums import CLASSES, held, judged


@pytest.mark.parametrize("name, tensors, seed", [("10 to 100", 52, 100), ("101 to 1,000", 26, 101)])
def test_intervals_of_small_tensors_hold_the_truth(name, tensors, seed):
    """A small tensor differs from the average tensor: without that 65 % of the first hold it."""
    assert held(judged(CLASSES[name], tensors, seed)) >= 0.93
