# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/stories.md, from data/stories: python3 tools/stories/tables.py."""

import json
import math
import pathlib
from decimal import Decimal

ROOT = pathlib.Path(__file__).resolve().parents[2]
LITTLE = 1e-6  # conditions that lose a smaller share of the sum of squares are left out
MEASURES = {
    "flushed": "gradient values that become zero", "l1": "their share of L1",
    "l2": "their share of L2", "weight_grad_l2": "the same, weight gradients alone",
    "activation_grad_l2": "the same, activation gradients alone",
    "worst_l2": "the same, the worst tensor", "snr_db": "SNR of all gradients",
    "worst_snr_db": "SNR of the worst tensor"}


def table(head, rows):
    """Returns a Markdown table; the first two columns are left-aligned."""
    lines = [head, ["---"] * 2 + ["--:"] * (len(head) - 2), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def percent(share):
    """Returns a percentage with two digits, or as a power of ten if it is tiny."""
    if share == 0 or share > 0.995:
        return f"{100 * share:.0f} %"
    if share < 1e-6:
        return f"10^{math.floor(math.log10(share)) + 2} %"
    return f"{Decimal(f'{100 * share:.2g}'):f} %"


def ratio_of(row):
    """Returns the loss divided by FP32's: the mean over seeds, and its interval."""
    if row.get("log_ratio") is None:
        return "infinite or NaN"
    ends = [math.exp(row["log_ratio"] + sign * row["half_width"]) for sign in (-1, 1)]
    low, high = (f"{end:.2f}" if end < 100 else "large" for end in ends)
    return f"{math.exp(row['log_ratio']):.2f} ({low} to {high})"


def accuracy_change(row, exact):
    changes = [100 * (a - b) for a, b in zip(row["accuracy"], exact["accuracy"])
               if None not in (a, b)]
    return f"{math.fsum(changes) / len(changes):+.1f}" if changes else "none"


def exact_runs(found):
    return {row["setting"]: row for row in found["conditions"] if row["way"] == "fp32"}


def harm_rows(found):
    """Returns the conditions that lose at least LITTLE."""
    return [row for row in found["conditions"]
            if row["way"] != "fp32" and row["predicted"]["l2"] >= LITTLE]


def harm(found):
    exact, rows = exact_runs(found), []
    for row in harm_rows(found):
        lost = row["predicted"]
        rows.append((row["setting"], row["way"], percent(lost["flushed"]), percent(lost["l1"]),
                     percent(lost["l2"]),
                     percent(lost["activation_grad_l2"]), percent(lost["worst_l2"]),
                     f"{lost['snr_db']:.0f}", f"{lost['worst_snr_db']:.0f}",
                     f"{row['seen']['weight_grad']['snr_db']:.0f}", ratio_of(row),
                     accuracy_change(row, exact[row["setting"]]), row["verdict"]))
    return table(("setting", "loss scale", "values lost", "L1 lost", "L2 lost",
                  "L2 lost, activation gradients",
                  "L2 lost, worst tensor", "SNR, dB", "SNR, worst tensor",
                  "true SNR, weight gradients", "loss over FP32's",
                  "accuracy, points", "verdict"), rows)


def end(limit, measure):
    if limit is None:
        return "none"
    number = f"{limit[0]:.0f} dB" if measure.endswith("_db") else percent(limit[0])
    return f"{number} ({limit[1]}, {limit[2]})"


def limits(found):
    return table(("measure, predicted from the FP32 log", "least loss that did harm",
                  "most loss that did none", "conditions between"),
                 [(MEASURES[limit["measure"]], end(limit["with_harm"], limit["measure"]),
                   end(limit["without"], limit["measure"]), limit["between"])
                  for limit in found["limits"]])


def span(values, form):
    ends = [form(value) for value in (min(values), max(values))]
    return " to ".join(dict.fromkeys(ends))


def spread(found):
    """Returns the table of FP32's results over the seeds, the reference for all others."""
    rows = []
    for setting, row in exact_runs(found).items():
        beside = next(other for other in found["conditions"]
                      if other["setting"] == setting and other["way"] != "fp32")
        rows.append((setting, row["seeds"], span(row["end_loss"], lambda x: f"{x:.3g}"),
                     f"{100 * beside['spread']:.0f} %",
                     span(row["accuracy"], lambda x: f"{100 * x:.0f}") + " %"))
    return table(("setting", "seeds", "FP32's loss at the end", "standard deviation of its log",
                  "accuracy"), rows)


def seen_share(runs):
    """Returns the underflowed share of the truly nonzero gradients, over roles and seeds."""
    counts = [counts for run in runs for counts in run["seen"].values()]
    return sum(part["underflowed"] for part in counts) / sum(part["true_nonzero"]
                                                             for part in counts)


def overflows(runs):
    known = [run["promised"]["overflow_steps"] for run in runs if "promised" in run]
    return "" if not known or None in known else span(known, str)


def advice(found):
    rows = []
    for network in dict.fromkeys(entry["network"] for entry in found["advised"]):
        entries = [entry for entry in found["advised"] if entry["network"] == network]
        exact = [entry["runs"][0] for entry in entries]
        for i, first in enumerate(entries[0]["runs"]):
            runs = [entry["runs"][i] for entry in entries]
            known = [run for run in runs if "promised" in run]
            rows.append((
                network, first["way"],
                span([math.log2(run["scales"][0][1]) for run in runs], lambda x: f"2^{x:.0f}"),
                span([run["promised"]["flushed"] for run in known], percent) if known else "",
                percent(seen_share(runs)) if "seen" in first else "",
                overflows(runs), span([len(run["skipped"]) for run in runs], str),
                span([run["end_loss"] for run in runs], lambda x: f"{x:.3g}"),
                span([run["end_loss"] / beside["end_loss"] for run, beside in zip(runs, exact)],
                     lambda x: f"{x:.3f}")))
    return table(("network", "run", "loss scale", "lost, predicted", "lost, seen",
                  "overflowing steps, predicted", "skipped, seen", "loss at the end",
                  "loss over FP32's"), rows)


TABLES = {"harm": (spread, harm, limits), "advice": (advice,)}


def told(story):
    return json.loads((ROOT / "data/stories" / f"{story}.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    for name, tables in TABLES.items():
        print("\n\n".join(make(told(name)) for make in tables), end="\n\n")
