# SPDX-License-Identifier: Apache-2.0
"""PyTorch built with MKL takes square roots that are not correctly rounded: what recomputed Adam
updates then may differ by."""

import numpy as np
import pytest
from safetensors.numpy import load_file


def roots_are_rounded(samples):
    """Whether this PyTorch's square roots of Adam's state are the nearest numbers. MKL's are within
    1 ulp: docs/recording.md has the shares."""
    torch = pytest.importorskip("torch")
    for path in samples.values():
        for name, values in load_file(path).items():
            if name.startswith("optimizer_state/") and "_sq/" in name:
                if not np.array_equal(torch.from_numpy(values).sqrt().numpy(), np.sqrt(values)):
                    return False
    return True


def same_but_for_roots(found, wanted):
    """Updates at most 4 ulps apart, and most of them equal: counts move by some elements, sums by no
    larger share than the updates."""
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], list):  # keys and counts
        keys = len(wanted[0]) // 2
        found, wanted = ({tuple(row[:keys]): row[keys:] for row in rows} for rows in (found, wanted))
        none = [0] * len(next(iter(wanted.values())))
        found, wanted = ({key: rows.get(key, none) for key in found.keys() | wanted.keys()}
                         for rows in (found, wanted))
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            same_but_for_roots(found[key], value)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted):
            same_but_for_roots(one, other)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=2.0**-21)
    elif isinstance(wanted, int):
        assert abs(found - wanted) <= 3
    else:
        assert found == wanted
