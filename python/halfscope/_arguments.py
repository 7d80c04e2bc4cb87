# SPDX-License-Identifier: Apache-2.0
"""Checks of the functions' arguments, and descriptions of arguments in errors."""

import contextlib
import operator
import os
from numbers import Real

from halfscope import _halfscope

_MOST_CHARACTERS = 80
_MOST_STEP = 2**63 - 1
_PLAIN = (str, bytes, int, bool, float, complex, type(None), range)


def require_ending(path, *known):
    """Raises ValueError if a file's name has another ending than `known`, as --out of the program
    does. A name without an ending is accepted."""
    _halfscope.require_ending(os.fspath(path), list(known))


def described(value):
    """Returns a value for an error: short texts and numbers as they are, others by type and
    shape."""
    if type(value) in _PLAIN:
        if isinstance(value, str) and "://" in value:
            from halfscope._urls import hidden

            value = hidden(value)
        try:
            text = repr(value)
        except ValueError:  # an integer with more digits than Python prints
            return f"{type(value).__name__} of {value.bit_length()} bits"
        return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
    if type(value) is slice:
        return f"slice({', '.join(map(described, (value.start, value.stop, value.step)))})"
    if not isinstance(value, (list, tuple, set, frozenset, dict)):
        return _kind_of(value)
    entries = value.items() if isinstance(value, dict) else value
    if len(value) <= _MOST_CHARACTERS and all(type(entry) in _PLAIN for entry in entries):
        text = repr(value)
        if len(text) <= _MOST_CHARACTERS:
            return "[...]" if "://" in text else text
    size = f"{type(value).__name__} of {len(value)} entr{'y' if len(value) == 1 else 'ies'}"
    first = next(iter(value.values() if isinstance(value, dict) else value), None)
    return size if first is None or type(first) in _PLAIN else f"{size}, {_kind_of(first)}"


def _kind_of(value):
    """Returns type and shape of a value, without its entries, which may be recursive."""
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    return f"{kind} of shape {tuple(shape)}" if isinstance(shape, tuple) else kind


def check_text(name, value, expected, most=_MOST_CHARACTERS, parts=1):
    """Raises TypeError if a value is not a str, and ValueError if it is longer than `most`
    characters: errors of the extension would print all of it. A longer value is accepted if it has
    at most `parts` parts between commas, each with at most `most` characters."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {described(value)}, expected {expected}")
    if len(value) > most and (len(value) > parts * most or max(map(len, value.split(","))) > most):
        raise ValueError(f"{name} is {described(value)} ({len(value)} characters), expected {expected}")


def check_number(name, value, expected="a number", kind=Real, most=None):
    """Raises TypeError if a value is not a number of type `kind`, and ValueError if it is outside
    of [0, most] or too large for a float."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {described(value)}, expected {expected}")
    try:
        if most is not None and not 0 <= value <= most:
            raise OverflowError
        float(value)
    except OverflowError:
        raise ValueError(f"{name} is {described(value)}, expected {expected}") from None


def interval(name, value, others="or None"):
    """Returns a number of steps as an int, or None. Integers may be of NumPy or PyTorch. others: what
    else the argument accepts. Raises TypeError."""
    with contextlib.suppress(TypeError):
        if value is None or not isinstance(value, bool) and operator.index(value) > 0:
            return value if value is None else operator.index(value)
    raise TypeError(f"{name} is {described(value)}, expected a number of steps above 0, {others}")


def _step(text):
    if not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise ValueError
    return int(text)


def _first_and_end(steps):
    if isinstance(steps, str):
        first, colon, end = steps.partition(":")
        if not colon:
            return _step(first), _step(first) + 1
        return _step(first) if first else None, _step(end) if end else None
    if isinstance(steps, (slice, range)) and steps.step in (None, 1):
        return tuple(None if step is None else operator.index(step)
                     for step in (steps.start, steps.stop))
    step = operator.index(steps)
    return step, step + 1


def first_and_end(steps):
    """Returns (first, end) for a step, a slice, a range, a text as for --step, or None (all steps);
    each is None if open. Raises TypeError or ValueError."""
    if steps is None:
        return None, None
    try:
        first, end = _first_and_end(steps)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"steps is {described(steps)}, expected a step, 'A:B', slice(first, end) or "
            "range(first, end)") from None
    if any(step is not None and abs(step) > _MOST_STEP for step in (first, end)):
        raise ValueError(f"steps is {described(steps)}, expected steps from 0 to 2^63 - 1")
    if None not in (first, end) and first >= end:
        raise ValueError(f"steps is {described(steps)}, which selects no step: 'A:B' goes from A to "
                         "the step before B")
    return first, end
