# SPDX-License-Identifier: Apache-2.0
"""weights(): which weights move."""

import os
from numbers import Integral

from halfscope import _halfscope
from halfscope._arguments import described
from halfscope._logs import _found, _to_read

_COPIES = {"bf16": "BF16", "f16": "F16", "e4m3": "F8_E4M3", "e5m2": "F8_E5M2"}


def weights(a, b=None, *, format="bf16", between=None, set=None, bytes=False, steps=None, tensor=None,
            roles=None, read_as=None):
    """Finds the weights whose 16- or 8-bit copies change between two checkpoints, or over the
    sampled steps of one run log, and when the others would.

    format: "bf16", "f16", "e4m3" or "e5m2", for copies of FP32 weights; narrower weights keep their
    own. between: two sampled steps to compare alone. set: a file for the moved weights as
    safetensors. bytes: also the sizes of sparse updates. Other arguments as for analyze. Returns a
    Movement, with the fields of `halfscope weights --json`. Raises BadInput, and ValueError or
    TypeError for an argument out of its range.
    """
    from halfscope._fields import Movement

    if not isinstance(format, str) or format not in _COPIES:
        raise ValueError(f"format is {described(format)}, expected one of {', '.join(_COPIES)}")
    if between is not None and not (isinstance(between, (tuple, list)) and len(between) == 2 and all(
            isinstance(step, Integral) and -2**63 <= step < 2**63 for step in between)):
        raise TypeError(f"between is {described(between)}, expected two sampled steps")
    logs, selection = _to_read([a] if b is None else [a, b], steps, tensor, roles, None,
                               read_as=read_as)
    return _found(_halfscope.weights, logs, selection, _COPIES[format], os.fsdecode("" if set is None else set),
                  bytes is True, between and tuple(map(int, between)), Movement)
