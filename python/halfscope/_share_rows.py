# SPDX-License-Identifier: Apache-2.0
"""Rows for the charts of shares: the share of a role's values in each binade, and a bar of
zeros."""

ROLES = {"activation_grad": "Activation gradients", "weight_grad": "Weight gradients"}
CLASSES = ("zero", "subnormal", "normal", "overflow")
WORDS = {"zero": "becomes zero", "subnormal": "subnormal", "normal": "normal", "overflow": "overflow"}
NAMED = 6  # smallest width of a class, in binades, that has space for its name
GAP = 2  # binades between the bar of the zeros and the smallest magnitude


def _counted(tensors):
    """Returns ({binade: number of values}, zeros, all finite values). None if some count is known
    only between bounds, or if there are no values."""
    binades, zeros = {}, 0
    for tensor in tensors:
        if not all(isinstance(count, int) for count in (tensor["zero"], *dict(tensor["binades"]).values())):
            return None
        zeros += tensor["zero"]
        for e, count in tensor["binades"]:
            binades[e] = binades.get(e, 0) + count
    total = zeros + sum(binades.values())
    return (dict(sorted(binades.items())), zeros, total) if binades else None


def _rows(binades, zeros, total, limits):
    first = min(binades)
    rows = [{"from": e, "to": e + 1, "share": count / total, "magnitude": f"2^{e} to 2^{e + 1}",
             "class": CLASSES[sum(limit <= e + 0.5 for limit in limits)]}
            for e, count in binades.items()]
    width = max(2, (max(binades) - first) // 16)
    left = first - GAP - width
    return [{"from": left, "to": left + width, "share": zeros / total, "magnitude": "0",
             "class": "kept"}, *rows]


def _bands(limits, first, last):
    """Returns the name of each class, with the middle of its visible part."""
    ends = [first, *limits, last]
    return [{"middle": (low + high) / 2, "words": WORDS[name]}
            for name, low, high in zip(CLASSES, ends, ends[1:]) if high - low >= NAMED]


def _parameters(rows, limits):
    zeros, first, last = rows[0], rows[1]["from"], rows[-1]["to"]
    drawn = [zeros["from"] - 1, max(last, limits[-1]) + NAMED]
    step = 4 if drawn[1] - first <= 48 else 8
    ticks = [(zeros["from"] + zeros["to"]) / 2, *range(-(-first // step) * step, int(drawn[1]) + 1, step)]
    return {"drawn": drawn, "ticks": ticks, "bands": _bands(limits, first, drawn[1]),
            "tick-label": f"datum.value < {first - GAP} ? 'zero' : '2^' + datum.value",
            "limits": [{"at": limit} for limit in limits if limit > first]}


def charts_of(found, page):
    """Returns a chart for each log and role of gradients, in the form of Judged.charts(). page: the
    page's charts, which have the format's limits."""
    told = []
    for drawn in page.values():
        role = drawn.name.removeprefix("histogram/")
        counted = role in ROLES and _counted([tensor for tensor in found["tensors"]
                                              if (tensor["log"], tensor["role"]) == (drawn.log, role)])
        if not counted:
            continue
        limits = [limit["at"] for limit in drawn._parameters["limits"] if limit["place"] != "advised"]
        rows = _rows(*counted, limits)
        told.append({"name": f"shares/{role}", "chart": "shares", "page": "results", "rows": rows,
                     "parameters": _parameters(rows, limits), "log": drawn.log,
                     "title": f"{ROLES[role]}: share of all values"})
    return told
