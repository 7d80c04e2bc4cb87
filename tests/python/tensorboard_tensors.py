# SPDX-License-Identifier: Apache-2.0
"""Tensors that histograms are made of, the same on every machine, and what is true of them."""

import math

import numpy as np

LOG2_SCALES = range(-24, 41)
CLASSES = ("flushed_to_zero", "subnormal", "normal", "overflow")
# Where binary16 changes class under round to nearest, ties to even: 2^-25 itself goes to zero,
# 2^-14 less half a step to 2^-14, and 65520 to infinity.
FLUSHED, NORMAL, OVERFLOW = 2.0**-25, 2.0**-14 - 2.0**-25, 65520.0


def random(seed, size=120):
    return np.random.RandomState(seed).standard_normal(size).astype(np.float32)


def log_normal(seed, mean, deviation, size=120):
    draw = np.random.RandomState(seed)
    magnitude = np.exp2(draw.normal(mean, deviation, size))
    values = magnitude * draw.choice([-1.0, 1.0], size)
    values[::7] = 0
    return values.astype(np.float32)


def adversarial():
    """Float32 values at the classes' ends and beside them, both zeros, the very small and large."""
    ends = np.array([2.0**-25, 2.0**-24, 2.0**-14, NORMAL, 65504, 65520, 1, 1e-12, 1e-13],
                    np.float32)
    around = np.concatenate([ends, np.nextafter(ends, np.float32(0)),
                             np.nextafter(ends, np.float32(np.inf))])
    return np.concatenate([around, -around, np.array([0.0, -0.0, 1e-40, -1e-45], np.float32)])


def finite_tensors():
    """{name: values}"""
    return {
        "random": random(1),
        "log_normal_low": log_normal(2, -24, 3),
        "log_normal_wide": log_normal(3, -10, 9),
        "log_normal_high": log_normal(4, 14, 2),
        "adversarial": adversarial(),
        "equal": np.full(9, -0.375, np.float32),
        "zeros": np.array([0.0, -0.0, 0.0], np.float32),
        "positive": np.abs(random(5)),
        "one": np.array([2.0**-25], np.float32),
    }


def nonfinite_tensors():
    base = log_normal(6, -12, 4)
    more = {"nan": [np.nan], "inf": [np.inf], "both": [np.nan, np.inf, -np.inf],
            "infinities": [np.inf, -np.inf, -np.inf], "beyond": [1e21, -1e22],
            "nan_and_beyond": [np.nan, 1e21], "inf_and_beyond": [-np.inf, 1e21]}
    return {name: np.concatenate([base, np.array(values, np.float32)])
            for name, values in more.items()}


def class_of(magnitudes, log2_scale):
    scaled = np.ldexp(magnitudes, log2_scale)
    return ((scaled > FLUSHED).astype(int) + (scaled >= NORMAL) + (scaled >= OVERFLOW))


def truth(values, log2_scale):
    """How many finite nonzero values are of each class."""
    values = values.astype(np.float64)
    magnitudes = np.abs(values[np.isfinite(values) & (values != 0)])
    return np.bincount(class_of(magnitudes, log2_scale), minlength=4)


def cut(rows, log2_scale):
    """Of each class: how many values lie in buckets (left, right, count) that hold numbers of it
    and others, or zero."""
    counts = np.zeros(4)
    for left, right, count in rows:
        if count == 0:
            continue
        has_zero = left <= 0 <= right
        least = 0.0 if has_zero else min(abs(left), abs(right))
        first, last = class_of(np.array([least, max(abs(left), abs(right))]), log2_scale)
        if first != last or has_zero:
            counts[first:last + 1] += count
    return counts


def bounds(count):
    low, high = count if isinstance(count, list) else (count, count)
    assert 0 <= low <= high
    return low, high


def check(tensor, values, rows, left_out=0):
    """One entry of `analyze --json` against its values, and the buckets it was made of.

    left_out: values in no bucket of which the log does not say what they are.
    """
    name = tensor["name"]
    special = {"total": values.size, "zero": np.count_nonzero(values == 0),
               "nan": np.count_nonzero(np.isnan(values)),
               "inf": np.count_nonzero(np.isinf(values))}
    for key, count in special.items():
        if key in tensor:
            low, high = bounds(tensor[key])
            assert low <= count <= high, (name, key, tensor[key], count)
    assert [entry["log2_scale"] for entry in tensor["by_scale"]] == list(LOG2_SCALES)
    for entry in tensor["by_scale"]:
        k = entry["log2_scale"]
        for found, true, most in zip(CLASSES, truth(values, k), cut(rows, k)):
            low, high = bounds(entry[found])
            assert low <= true <= high, (name, k, found, entry[found], true)
            assert high - low <= most + left_out, (name, k, found, entry[found], most)


def check_extremes(tensor, values):
    """The largest magnitude is exact; the smallest is bounded."""
    values = np.abs(values.astype(np.float64))
    values = values[values != 0]
    if values.size == 0:
        assert tensor["max_abs"] is None
        return
    assert tensor["max_abs"] == values.max(), tensor["name"]
    smallest = tensor["min_abs_nonzero"]
    if isinstance(smallest, list):
        low, high = smallest
        assert (low or 0) <= values.min() <= (math.inf if high is None else high), tensor["name"]
