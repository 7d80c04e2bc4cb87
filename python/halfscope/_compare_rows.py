# SPDX-License-Identifier: Apache-2.0
"""Rows for the charts of two runs, computed as in reports/assets/compare.js."""

import math

MOST_POINTS = 2000
RUNS = ("a", "b")


def _thinned(rows):
    every = max(1, math.ceil(len(rows) / MOST_POINTS))
    return [row for at, row in enumerate(rows) if at % every == 0 or at == len(rows) - 1]


def _loss_rows(found):
    return [{"run": run.upper(), "step": step, "loss": loss} for run in RUNS
            for step, loss in _thinned((found.get("loss") or {}).get(run) or [])]


def _scale_rows(found):
    """Returns rows for the loss scale of both runs: the first and the last step of each stretch in
    which the scale and `skipped` do not change."""
    rows = []
    for run in RUNS:
        skipped = set(found["summary"][run]["skipped"])
        steps = [{"run": run.upper(), "step": step, "scale": scale, "log2": math.log2(scale),
                  "skipped": step in skipped}
                 for step, scale in (found.get("scales") or {}).get(run) or [] if scale and scale > 0]

        def same(x, y):
            return (x["scale"], x["skipped"]) == (y["scale"], y["skipped"])

        rows += _thinned([row for at, row in enumerate(steps)
                          if not 0 < at < len(steps) - 1
                          or not (same(row, steps[at - 1]) and same(row, steps[at + 1]))])
    return rows


def _outlines(tensor):
    rows = []
    for run in RUNS:
        counts = {e: count[1] if isinstance(count, list) else count
                  for e, count in tensor[run]["binades"]}
        if not counts:
            continue
        for e in range(min(counts) - 1, max(counts) + 2):  # empty binades get a count of 0
            values = counts.get(e, 0)
            rows.append({"run": run.upper(), "e": e, "values": values,
                         "share": values / tensor[run]["total"]})
    return rows


def charts_of(found):
    """Returns charts in the form of Judged.charts(), without those that have no rows."""
    loss, scales = _loss_rows(found), _scale_rows(found)
    runs = "{} (dashed) and {} (line)".format(*found["logs"])
    told = []
    if any(row["loss"] is not None for row in loss):
        told.append({"name": "loss", "chart": "loss", "page": "compare", "rows": loss,
                     "title": f"Loss of {runs}"})
    if any(row["scale"] != 1 for row in scales):
        told.append({"name": "scales", "chart": "scales", "page": "compare", "rows": scales,
                     "title": f"Loss scale of {runs}"})
    return told


def tensor_chart(found, tensor):
    """Returns a list with the chart of one tensor in both runs; empty if there is none."""
    for each in found["tensors"]:
        if each["name"] == tensor:
            rows = _outlines(each)
            name = f"binades/{tensor}"
            return [{"name": name, "chart": "binades", "page": "compare", "rows": rows}] if rows else []
    return []
