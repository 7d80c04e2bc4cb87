# SPDX-License-Identifier: Apache-2.0
"""The figures of a log that `halfscope watch` shows, from the results of the library."""

import array
import os
from types import SimpleNamespace

from halfscope import _halfscope, _logs
from halfscope._display import plain


def read(follower, **reading):
    """Returns the figures of a log as a namespace. A field is None if the log cannot answer it.
    reading: lines and recorded_scale, as of halfscope.recommend(). Raises BadInput if the log cannot
    be read, as before its first step."""
    log, run = follower.log, follower.run
    if not os.path.exists(log):
        raise _halfscope.BadInput(f"{run}: holds no event file and no log of text yet")
    try:
        reader = _halfscope.PartReader([log], _logs._selection(None, None, None, **reading))
        parts = [reader.read(part) for part in range(len(reader))]
        scalars = [series for part in parts if (series := _series(part["scalars"]))]
        recorded = {step for part in parts for step in array.array("q", part["tensors"]["step"])}
        if follower.is_run_log and not scalars:
            raise _halfscope.BadInput(f"{run}: has no complete step yet")
        reading["steps"] = _complete(follower, scalars, recorded)
        advice = _logs.recommend(log, **reading)
        found = _scalars(follower, scalars, recorded, (advice.timeline or [None])[0])
        counted = _logs.analyze(log, format=advice.format, loss_scale=found.scale or 1.0, **reading)
    except _halfscope.BadInput as error:
        text = str(error).replace(log, run).replace("lines='", "--lines '")  # the option of this command
        raise _halfscope.BadInput(text) from None
    notes = [] if follower.cut else advice.notes or []
    found.headline, found.action, found.note = (plain(text).replace(log, run) for text in (
        advice.answer.headline, advice.answer.action or "", "".join(notes[:1])))
    found.severity = advice.answer.severity or "note"
    found.flushed, found.lost = counted._judged().flushed_text() or None, _lost(counted)
    found.sentence, found.headings, found.tensors = _tensors(counted)
    found.histogram, found.bands = _histogram(counted, advice)
    return found


def facts(found):
    """Returns the short figures: pairs of a name and a text, or None if it is unknown."""
    texts = (value if value is None or isinstance(value, str) else
             f"{value:.0f}" if 1 <= abs(value) < 2**53 and value == int(value) else f"{value:.4g}"
             for value in (found.step, found.loss, found.scale, found.skipped, found.flushed, found.lost))
    return zip(("step", "loss", "scale", "skipped", "flushed", "lost"), texts)


def line(found):
    """Returns the figures as one line."""
    return "  ".join([*(f"{name} {'-' if fact is None else fact}" for name, fact in facts(found)),
                      found.headline])


def _complete(follower, parts, recorded):
    """Returns the steps that are complete: the first one of a log that is cut is not, nor one of a run
    log without its scalars, which are written last. None: all, as none is complete. parts: scalars.
    recorded: the steps with tensors."""
    steps = {step for part in parts for values in part.values() for step in values}
    begin = min(steps | recorded, default=0) + 1 if follower.cut else 0
    end = max(steps, default=-1) + 1 if follower.is_run_log else None
    known = any(begin <= step and (end is None or step < end) for step in recorded or steps)
    return slice(begin or None, end) if known else None


def _scalars(follower, parts, recorded, timeline):
    """Returns the figures of scalars, from the part with the last step. Without scalars, the steps are
    those with tensors. timeline: that of recommend(), or None."""
    series = max(parts, key=lambda part: max(map(max, part.values())), default={})
    steps = [step for values in series.values() for step in values] or recorded
    last = {name: values[max(values)] for name, values in series.items()}
    found = SimpleNamespace(first=min(steps, default=None), step=max(steps, default=None),
                            loss=last.get("loss"))
    scale, found.skipped = last.get("loss_scale"), None
    if timeline:
        scale, found.skipped = timeline.last_scale, timeline.skipped
        if isinstance(found.skipped, (list, tuple)):
            found.skipped = " to ".join("?" if end is None else str(end) for end in found.skipped)
    elif "found_inf" in series:
        earlier = {step for step in follower.skipped if step < found.first}
        follower.skipped = earlier.union(step for step, value in series["found_inf"].items() if value)
        found.skipped = len(follower.skipped)
    found.scale = scale if scale and _halfscope.usable_scale(scale) else None
    return found


def _series(scalars):
    found = {}
    for step, name, value in zip(array.array("q", scalars["step"]), scalars["scalar"],
                                 array.array("d", scalars["value"])):
        found.setdefault(name, {})[step] = value
    return found


def _lost(counted):
    """Returns the share of the updates that weights in 16 bits lose, as text."""
    weights = [tensor for tensor in counted.tensors if tensor.updates]
    lost = sum(tensor.update_underflow + tensor.swamped for tensor in weights)
    return _halfscope.share_text(lost, sum(tensor.updates for tensor in weights)) if weights else None


def _tensors(counted):
    """Returns (sentence on all gradients, headings, the five worst rows), as of `halfscope analyze`.
    The sentence is None and the lists are empty if the log has no tensors."""
    first = counted._shown()["sections"][:1] if counted.tensors else []
    if not first or not first[0]["tables"]:
        return None, [], []
    table = first[0]["tables"][0]
    return (plain(" ".join(first[0]["sentences"])), table["headings"],
            [list(map(plain, row)) for row in table["rows"][:5]])


def _histogram(counted, advice):
    """Returns ({binade: count of gradient values}, {name of a loss scale: its bands}): the run's
    scale, then the recommended one. A band is (class, from, to) in binades of unscaled values."""
    charts = [found.charts["gradients"] for found in (counted, advice) if "gradients" in found.charts]
    bands = {}
    for chart, places in zip(charts, (("alone", "now"), ("advised",))):
        for scale in chart._parameters["scales"]:
            if scale["place"] in places:
                bands[scale["label"]] = [(band["class"], band["from"], band["to"])
                                         for band in chart._parameters["bands"]
                                         if band["place"] == scale["place"]]
    return {row["e"]: row["high"] for chart in charts[:1] for row in chart.rows}, bands
