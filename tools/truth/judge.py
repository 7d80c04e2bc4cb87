# SPDX-License-Identifier: Apache-2.0
"""judge.py OUT [--all]: compares halfscope's results with the true ones, for each folder that
train.py made in OUT. Prints a table and the discrepancies by group, with --all each; writes
OUT/judge.txt and OUT/judge.json. Exit code 1 if there is a discrepancy.
"""

import fnmatch
import json
import math
import pathlib
import sys

POINT = 0.01  # a share that differs by more than this is a discrepancy
TARGET = 0.001  # the share that may be flushed: the program's own default

# {task: weight gradients that would be zero without rounding, since a later layer cancels the
# shift}
NOISE = {"cnn": ["0.bias", "3.bias"], "clip": ["0.bias", "3.bias"],
         "detector": ["body.0.bias", "body.3.bias"], "lm": ["*.attention.qkv.bias"]}
GROUPS = {
    "overflow": "steps overflow at the recommended scale",
    "cascade": "more becomes zero than the FP32 gradients say, at scales where activation gradients "
               "nearer the loss lose values too",
    "noise": "the FP32 gradient is zero but for rounding: a bias before batch normalization, the keys' "
             "part of qkv.bias",
    "other": "none of these",
}


def ends(count):
    """Returns a count as [low, high]."""
    return count if isinstance(count, list) else [count, count]


def holds(said, counted):
    low, high = ends(said)
    return low <= counted <= high


def by_scale(tensor):
    return {row["log2_scale"]: row for row in tensor["by_scale"]}


class Judge:
    """Judges one recorded run of one task."""

    def __init__(self, folder, truth, mode):
        self.truth, self.mode = truth, mode
        self.run = truth["runs"][mode]
        self.real = self.run["real"]
        self.advice = json.loads((folder / f"recommend-{mode}.json").read_text())
        analysis = json.loads((folder / f"analyze-{mode}.json").read_text())
        self.said = {tensor["name"]: tensor for tensor in analysis["tensors"]}
        self.found = []  # discrepancies

    def differs(self, kind, text, group="other", size=0.0):
        """Adds a discrepancy. size: its severity within its group."""
        self.found.append({"task": self.truth["task"], "run": self.mode, "kind": kind, "text": text,
                           "group": group, "size": size})

    def is_noise(self, name):
        return any(fnmatch.fnmatch(name, f"weight_grad/{pattern}")
                   for pattern in NOISE.get(self.truth["task"], []))

    def _nearer_the_loss(self, name):
        """Returns the activation gradients from which this gradient is computed. Names are in the
        order of the forward pass."""
        names = [each for each in self.real["tensors"] if each.startswith("activation_grad/")]
        role, path = name.split("/", 1)
        if role == "weight_grad":
            path = path.rpartition(".")[0]
        own = [i for i, each in enumerate(names) if f"{each}.".startswith(f"activation_grad/{path}.")]
        return names[own[0] + (role == "activation_grad"):] if own else names

    def _cascades(self, name, k):
        """Returns True if one of these loses values at scale 2^k that a larger scale keeps."""
        for each in self._nearer_the_loss(name):
            real = self.real["tensors"][each]
            lost = real["lost"][self.real["scales"].index(k)] - min(real["lost"])
            if real["nonzero"] and lost / real["nonzero"] > TARGET:
                return True
        return False

    def _group(self, row):
        if self.is_noise(row["name"]):
            return "noise"
        more = row["real"] > row["said"][1]
        return "cascade" if more and self._cascades(row["name"], row["k"]) else "other"

    def result(self):
        return {"task": self.truth["task"], "run": self.mode, "same": self.same_pass(),
                "scale": self.scale(), "underflow": self.underflow(), "lowest": self.lowest(),
                "swamped": self.swamped(), "discrepancies": self.found}

    def same_pass(self):
        """Compares the recorder's counts with those of plain PyTorch for the same gradients."""
        compared = exact = 0
        for name, counted in self.run["same"].items():
            said = self.said.get(name)
            if said is None:
                self.differs("recorder", f"{name} is not in the log")
                continue
            for field, count, value in self._counts(counted, said):
                compared += 1
                exact += value == count
                if not holds(value, count):
                    self.differs("recorder", f"{name}: {field} is {count}, halfscope says {value}")
        return {"compared": compared, "exact": exact}

    def _counts(self, counted, said):
        for field in ("total", "zero", "nan", "inf"):
            yield field, counted[field], said.get(field, 0)
        rows = by_scale(said)
        for i, k in enumerate(self.real["scales"]):
            yield f"flushed at 2^{k}", counted["flushed"][i], rows[k]["flushed_to_zero"]
            yield f"overflow at 2^{k}", counted["overflow"][i], rows[k]["overflow"]

    def true_highest(self, kind="weights"):
        """Returns the largest exponent up to which no examined step overflowed, or None."""
        clean = [not any(column) for column in zip(*self.real["overflow"][kind])]
        first_bad = clean.index(False) if False in clean else len(clean)
        return self.real["scales"][first_bad - 1] if first_bad else None

    def scale(self):
        rows = [row for row in self.truth["fixed"] if row["log"] == self.mode]
        advised = self.advice.get("static_scale")
        found = {"advised": advised, "lowest": self.advice.get("lowest"),
                 "reason": self.advice.get("reason"), "true_highest_log2": self.true_highest(),
                 "true_highest_log2_any": self.true_highest("any"),
                 "limited_by": self.advice.get("limited_by"), "skip": self.advice.get("skip"),
                 "runs": [{**row, "overflowing": len(row["overflowing"])} for row in rows]}
        if not advised:
            self.differs("scale", f"no scale is advised: {self.advice.get('reason')}")
            return found
        if found["true_highest_log2"] is not None:
            found["unused_bits"] = found["true_highest_log2"] - math.log2(advised)
        risk = self.advice.get("skip", {}).get("interval", [0, 0])[1]
        for row in found["runs"]:
            if row["why"].startswith("advised") and " x " not in row["why"]:
                self._judge_overflow(row, risk)
        return found

    def _judge_overflow(self, row, risk):
        allowed = 0 if row["why"] == "advised" else risk * row["steps"]
        if row["overflowing"] > allowed:
            self.differs("scale", f"{row['why']} ({row['scale']:g}): {row['overflowing']} of "
                                  f"{row['steps']} steps overflow; at most {allowed:.1f} expected",
                         "overflow", row["overflowing"] / row["steps"])

    def _shares(self, name):
        """Yields (k, counted zeros, halfscope's zeros, nonzero values) up to the overflow."""
        real, rows = self.real["tensors"][name], by_scale(self.said[name])
        top = self.true_highest("any")
        for i, k in enumerate(self.real["scales"]):
            if top is not None and k <= top and real["nonzero"]:
                yield k, real["lost"][i], rows[k]["flushed_to_zero"], real["nonzero"]

    def _names(self, half):
        """Returns the tensors whose real gradients are FP16 results if `half`, else the others,
        which autocast keeps in FP32."""
        return [name for name, real in self.real["tensors"].items()
                if name in self.said and (real["not_half_values"] == 0) == half]

    def underflow(self):
        """Compares the true zeros in FP16 with those predicted from the log."""
        rows = [row for name in self._names(True) for row in self._rows(name)]
        off = [row for row in rows if row["off_less_floor"] > POINT]
        groups = {}
        for row in off:
            groups.setdefault((row["name"], self._group(row)), []).append(row)
        for (_, group), some in groups.items():
            self._differing_shares(some, group)
        return {"compared": len(rows), "inside": sum(row["off"] == 0 for row in rows),
                "within_0.1_point": sum(row["off"] <= 0.001 for row in rows),
                "more_than_1_point": sum(row["off"] > POINT for row in rows),
                "more_than_1_point_less_floor": len(off), "worst": max((row["off"] for row in rows), default=0),
                "mean_width": sum(row["said"][1] - row["said"][0] for row in rows) / max(len(rows), 1),
                "kept_in_fp32": self._kept_in_fp32(),
                "rows": sorted(rows, key=lambda row: -row["off"])[:200]}

    def _differing_shares(self, rows, group):
        """Adds one discrepancy for a tensor and group, with its worst scale."""
        worst = max(rows, key=lambda row: row["off_less_floor"])
        low, high = worst["said"]
        self.differs("underflow", f"{worst['name']} at {len(rows)} scales, most at 2^{worst['k']}: "
                                  f"{worst['real']:.3%} become zero ({worst['floor']:.3%} at any scale), "
                                  f"halfscope says {low:.3%}" + (f" to {high:.3%}" if high > low else ""),
                     group, worst["off_less_floor"])

    def _rows(self, name):
        """Yields a row for each scale. `floor` is the share that becomes zero at any scale, such as
        values that change sign before a ReLU."""
        shares = list(self._shares(name))
        floor = min((lost / nonzero for _, lost, _, nonzero in shares), default=0)
        for k, lost, said, nonzero in shares:
            low, high = (end / nonzero for end in ends(said))
            real = lost / nonzero
            yield {"name": name, "k": k, "real": real, "floor": floor, "said": [low, high],
                   "off": max(low - real, real - high, 0),
                   "off_less_floor": max(low - real, real - floor - high, 0)}

    def _kept_in_fp32(self):
        """Returns [name, values said to be flushed at scale 1, values that became zero]."""
        return [[name, said, lost] for name in self._names(False)
                for k, lost, said, _ in self._shares(name) if k == 0]

    def lowest(self):
        """Compares halfscope's lowest scale that flushes at most 0.1 % of any tensor with the true
        one. Zeros that occur at any scale (the floor) do not count."""
        rows = [row for name in self._names(True) for row in self._rows(name)]
        above = {}  # {exponent: (largest share of zeros above the floor, its tensor)}
        for row in rows:
            pair = (row["real"] - row["floor"], row["name"])
            above[row["k"]] = max(above.get(row["k"], pair), pair)
        held = [k for k, (share, _) in sorted(above.items()) if share <= TARGET]
        said = self.advice.get("lowest")
        found = {"said": said, "set_by": self._sets_lowest(rows),
                 "real_log2": held[0] if held else None}
        worst = above.get(math.log2(said)) if said else None
        if worst and worst[0] > TARGET:
            group = "cascade" if self._cascades(worst[1], round(math.log2(said))) else "other"
            self.differs("lowest", f"at {_power(said)} {worst[0]:.3%} of {worst[1]} become zero, above "
                                   f"what becomes zero at any scale; at most {TARGET:.1%} expected",
                         group, worst[0])
        elif said and held and math.log2(said) - held[0] > 1:
            self.differs("lowest", f"{_power(said)} is said, for {found['set_by']}; 2^{held[0]} serves",
                         "noise" if self.is_noise(found["set_by"] or "") else "other")
        return {**found, "worst": worst}

    @staticmethod
    def _sets_lowest(rows):
        """Returns the tensor whose predicted share exceeds the target up to the largest scale."""
        above = [(row["k"], row["said"][0], row["name"]) for row in rows if row["said"][0] > TARGET]
        return max(above)[2] if above else None

    def swamped(self):
        sums = {"updates": [0, 0], "update_underflow": [0, 0], "swamped": [0, 0]}
        for name, counted in self.run["swamped"].items():
            said = self.said.get(f"weight/{name}", {})
            for field, count in counted.items():
                value = said.get(field, -1)
                sums[field][0] += count
                sums[field][1] += max(value, 0)
                # Adam's updates are computed here in another order, so their last bits differ.
                may = 0 if self.truth["optimizer"] == "SGD" else max(2, 1e-4 * counted["updates"])
                if abs(value - count) > may:
                    self.differs("updates", f"{name}: {field} is {count}, halfscope says {value}")
        return sums


HEAD = ("task", "run", "exact counts", "advised", "highest", "overflow", "fresh", "x2", "x4", "x32",
        "lowest", "real", "shares", "inside", ">1 point", "less floor", "worst", "width", "lost updates", "said")


def _power(value):
    return f"2^{math.log2(value):g}" if value else "-"


def _real_lowest(result):
    exponent = result["lowest"]["real_log2"]
    return "-" if exponent is None else f"2^{exponent}"


def line(result):
    scale, under, lost = result["scale"], result["underflow"], result["swamped"]
    runs = {row["why"]: f"{row['overflowing']}/{row['steps']}" for row in scale["runs"]}
    highest = scale["true_highest_log2"]
    return (result["task"], result["run"], f"{result['same']['exact']}/{result['same']['compared']}",
            _power(scale["advised"]), "-" if highest is None else f"2^{highest}",
            runs.get("advised", "-"), runs.get("advised, other data", "-"),
            *(runs.get(f"advised x {n}", "-") for n in (2, 4, 32)), _power(scale["lowest"]),
            _real_lowest(result),
            under["compared"], under["inside"], under["more_than_1_point"],
            under["more_than_1_point_less_floor"], f"{under['worst']:.3%}",
            f"{under['mean_width']:.1%}",
            *(lost["update_underflow"][i] + lost["swamped"][i] for i in (0, 1)))


def told(each):
    return f"{each['task']} {each['run']}: {each['kind']}: {each['text']}"


def grouped(found):
    """Yields two lines for each group: a summary and its worst discrepancy."""
    for group, meaning in GROUPS.items():
        some = [each for each in found if each["group"] == group]
        if some:
            runs = len({(each["task"], each["run"]) for each in some})
            yield f"{group}: {len(some)} in {runs} runs: {meaning}"
            yield f"  worst: {told(max(some, key=lambda each: each['size']))}"


def text(results, everything=False):
    rows = [HEAD, *(tuple(str(cell) for cell in line(result)) for result in results)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
    found = [each for result in results for each in result["discrepancies"]]
    lines += ["", f"{len(found)} discrepancies", *grouped(found)]
    if everything:
        lines += ["", *map(told, found)]
    return "\n".join(lines) + "\n"


def judged(out):
    for file in sorted(out.glob("*/truth.json")):
        truth = json.loads(file.read_text())
        for mode in truth["runs"]:
            if (file.parent / f"recommend-{mode}.json").exists():
                yield Judge(file.parent, truth, mode).result()


def main():
    out = pathlib.Path(sys.argv[1])
    results = list(judged(out))
    lines = text(results, "--all" in sys.argv[2:])
    (out / "judge.json").write_text(json.dumps(results, indent=1))
    (out / "judge.txt").write_text(lines)
    print(lines, end="")
    return int(not results or any(result["discrepancies"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
