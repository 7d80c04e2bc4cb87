# SPDX-License-Identifier: Apache-2.0
"""Puts results into a run of Weights & Biases."""

from halfscope._arguments import check_text, described
from halfscope._halfscope import BadInput
from halfscope._parts import part
from halfscope._result import Result

_OF_ADVICE = ("static_scale", "highest", "lowest", "headroom_bits")
_SHARES = ("flushed_at_1", "flushed_at_recommended")
_COUNTS = ("total", "nan", "inf", "flushed_to_zero", "overflow", "updates", "update_underflow", "swamped")


def log(result, *, run=None, name="halfscope"):
    """Puts the headline, the key numbers and the page of a result into a run.

    result: a Recommendation, Findings or Report of halfscope.recommend(), analyze() or report().
    run: a run of wandb; by default the current one. name: the first part of the keys, NAME/headline
    and so on. The headline and the numbers go into the run's summary, the page, NAME/page, into its
    present step of the history. A number with bounds has the keys KEY_low and KEY_high. Raises
    TypeError, and BadInput if there is no run. Needs wandb.
    """
    advice = getattr(result, "recommendation", result)
    if not isinstance(advice, Result) or not hasattr(advice, "keys"):
        raise TypeError(f"result is {described(result)}, expected that of halfscope.recommend(), "
                        "analyze() or report()")
    check_text("name", name, "a text such as 'halfscope'")
    wandb = part("wandb", "halfscope.wandb.log()", "wandb")
    run = run or wandb.run
    if run is None:
        raise BadInput("halfscope.wandb.log(): wandb has no run to log to: call wandb.init() first, or give run=")
    page = wandb.Html(result.html(), inject=False)  # before anything is written: it may fail
    answer = advice.get("answer")
    headline = answer["headline"] if answer else str(advice).partition("\n")[0]
    run.summary.update({f"{name}/{key}": value
                        for key, value in {"headline": headline, **_numbers(advice)}.items()})
    run.log({f"{name}/page": page}, commit=False)


def _numbers(advice):
    """Returns the key numbers that the log can answer: those of a recommendation by field, those of
    an analysis by ROLE/FIELD, added over the tensors of a role."""
    found = {field: _bounds(advice.get(field)) for field in _OF_ADVICE}
    found.update({field: _bounds((advice.get(field) or {}).get("share")) for field in _SHARES})
    if "nonfinite_steps" in advice:
        found["nonfinite_steps"] = _bounds(len(advice["nonfinite_steps"]))
    for tensor in advice.get("tensors", []):
        for field in _COUNTS:
            key, count = f"{tensor['role']}/{field}", _bounds(tensor.get(field))
            if count:
                found[key] = tuple(map(sum, zip(found.get(key, (0, 0)), count)))
    return {name: number for key, bounds in found.items() if bounds for name, number in (
        {key: bounds[0]} if bounds[0] == bounds[1] else dict(zip((f"{key}_low", f"{key}_high"), bounds))).items()}


def _bounds(value):
    """Returns (low, high) of a number or a list of two; None of None."""
    return None if value is None else tuple(value) if isinstance(value, list) else (value, value)
