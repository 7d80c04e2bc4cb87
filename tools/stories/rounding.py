# SPDX-License-Identifier: Apache-2.0
"""Predicts the effect of a format on gradients at a loss scale, from the binades of an FP32 run.

Assumes that values are uniform in their binade, so the squared error of rounding is ulp^2 / 12. A
value of exactly half the smallest number of a format counts as kept, although it becomes zero."""

import math

from facts import GRADIENTS, short

FORMATS = {"binary16": (11, -14), "bfloat16": (8, -126)}  # (precision, least normal exponent)


class Sums:
    """Sums of values' magnitudes, of their squares, and of the squared errors of rounding."""

    def __init__(self, form, log2_scale):
        self.precision, self.least = FORMATS[form]
        self.log2_scale = log2_scale
        self.lost, self.values = 0, 0
        self.lost_l1 = self.l1 = self.lost_l2 = self.l2 = self.noise = 0.0

    def add(self, exponent, count):
        magnitude, square = count * 1.5 * 2.0 ** exponent, count * 7 / 3 * 4.0 ** exponent
        scaled = exponent + self.log2_scale
        flushed = scaled < self.least - self.precision
        ulp = 2.0 ** (max(scaled, self.least) - self.precision + 1 - self.log2_scale)
        self.values += count
        self.l1 += magnitude
        self.l2 += square
        self.noise += square if flushed else count * ulp ** 2 / 12
        if flushed:
            self.lost += count
            self.lost_l1 += magnitude
            self.lost_l2 += square

    def add_all(self, tensors):
        for tensor in tensors:
            for exponent, count in tensor["binades"]:
                self.add(exponent, count)
        return self


def share(part, whole):
    return short(part / whole) if whole else 0.0


def predicted(tensors, form, log2_scale):
    """Predicts, for the gradients in `analyze --json`, shares that become zero and the SNR."""
    gradients = [tensor for tensor in tensors if tensor["role"] in GRADIENTS]
    sums = Sums(form, log2_scale).add_all(gradients)
    each = [Sums(form, log2_scale).add_all([tensor]) for tensor in gradients]
    roles = {role: Sums(form, log2_scale).add_all(tensor for tensor in gradients
                                                  if tensor["role"] == role) for role in GRADIENTS}
    return {"flushed": share(sums.lost, sums.values), "l1": share(sums.lost_l1, sums.l1),
            "l2": share(sums.lost_l2, sums.l2),
            "snr_db": short(10 * math.log10(sums.l2 / sums.noise)),
            **{f"{role}_l2": share(found.lost_l2, found.l2) for role, found in roles.items()},
            "worst_l2": max(share(found.lost_l2, found.l2) for found in each),
            "worst_snr_db": min(short(10 * math.log10(found.l2 / found.noise))
                                for found in each if found.l2)}


def seen(true_error):
    """Returns the measured values for a run with --true-error, which compares gradients with
    binary64: underflow, and the total error of the gradients."""
    found = {}
    for role in GRADIENTS:
        error = true_error[role]
        norm, whole = error["underflowed_norm"], error["relative_error"]
        found[role] = {"total": error["total"], "true_nonzero": error["true_nonzero"],
                       "lost": error["lost"], "underflowed": error["underflowed"],
                       "l2": short(norm ** 2) if norm is not None else None,
                       "snr_db": short(-20 * math.log10(whole)) if whole else None}
    return found
