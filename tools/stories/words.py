# SPDX-License-Identifier: Apache-2.0
"""Prints the numbers of the stories' JSON as lines of text."""

import math
import textwrap

from charts import lost_share

WIDTH = 96  # columns that a notebook shows without scrolling


def span(values, form="{:.3g}"):
    """Returns "smallest to largest", or a single value; adds "or none" if a value is None."""
    values = list(values)
    known = [value for value in values if value is not None]
    ends = [form.format(end) for end in (min(known), max(known))] if known else []
    words = [" to ".join(dict.fromkeys(ends))] if known else []
    return " or ".join(words + ["none"] * (len(known) < len(values)))


def share(values, digits=0):
    """Returns span() in percent."""
    return span([None if value is None else 100 * value for value in values],
                f"{{:.{digits}f}}") + ("" if all(value is None for value in values) else " %")


def table(head, *rows):
    """Returns a table as text; the first column is left-aligned."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join("  ".join(cell.rjust(width) if i else cell.ljust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
                     for row in cells)


def groups(runs, key):
    """Returns {key(run): list of runs}, in the order of the runs."""
    found = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return found


def power(scale):
    """Returns a loss scale as 2^x; x has a fraction if the scale is not a power of two."""
    return f"2^{math.log2(scale):.4g}"


def named(found):
    """Returns {name: run} for all runs of a story."""
    parts = [found] if "command" in found and "settings" in found else []
    for part in found.values():
        if isinstance(part, list):
            parts += [run for entry in part if isinstance(entry, dict)
                      for run in named(entry).values()]
    return {run["name"]: run for run in parts}


def beside(here, told):
    """Compares new runs with the file's runs of the same names, by their first losses."""
    runs, known = named(here), named(told)
    both = [name for name in runs if name in known]
    same = sum(runs[name]["first_loss"] == known[name]["first_loss"] for name in both)
    steps = span([run["steps"] for run in runs.values()], "{}")
    return (f"Trained here: {len(runs)} runs of {steps} steps. In the file, longer: {len(both)}; "
            f"with the same first loss: {same}.")


def lost_update(found):
    return "\n".join(
        f"{run['name']}: the copy moves at update {run['copy_first_changes']}; binary16 alone is "
        f"still {found['settings']['weight']:g} after {run['alone_unchanged']} of {run['steps']}"
        for run in found["runs"])


def detector(found):
    """FP32, no scale, the recommended scale: loss, accuracy, and lost gradients."""
    head = ("", "run", "loss", "right", "underflowed", "in norm", "became zero", "error")
    rows = []
    for entry in found["main"]:
        ways = ("FP32", "no scale", power(entry["advice"]["static_scale"]))
        for way, run in zip(ways, entry["runs"]):
            row = [f"{entry['variant']}, seed {entry['seed']}", way, f"{run['end_loss']:.4g}",
                   share([run["accuracy"]])]
            if "true_error" in run:
                error = run["true_error"]["activation_grad"]
                row += [share([error["underflowed"] / error["true_nonzero"]], 2),
                        share([error["underflowed_norm"]], 3),
                        share([error["lost"] / error["true_nonzero"]], 2),
                        share([error["relative_error"]], 1)]
            rows.append(row + [""] * (len(head) - len(row)))
    return table(head, *rows)


def sweep(found):
    """By loss scale: the final losses of the runs, and their worst twentieth."""
    exact = {entry["seed"]: entry["runs"][0] for entry in found["main"]
             if entry["variant"] == "all-anchors"}
    rows = []
    for exponent, runs in groups(found["sweep"], lambda run: run["log2_scale"]).items():
        gradients = [run["activation_grad"] for run in runs]
        rows.append((f"2^{exponent}", span([run["end_loss"] for run in runs]),
                     span([run["end_loss"] / exact[run["seed"]]["end_loss"] for run in runs],
                          "{:.2f}"),
                     span([max(run["curve"]) for run in runs]),
                     share([run["accuracy"] for run in runs]),
                     share([part["zero"] / part["total"] for part in gradients], 1)))
    return table(("scale", "loss at the end", "over FP32's", "worst twentieth", "right",
                  "zeros"), *rows)


def first_scale(run):
    return round(math.log2(run["scales"][0][1]))


def starts(found):
    """By initial scale of policies: skipped steps and final results."""
    rows = []
    for (variant, _), runs in groups(
            sorted(found["policies"], key=lambda run: run["scales"][0][1]),
            lambda run: (run["variant"], max(first_scale(run), 16))).items():
        rows.append((f"{variant}, from {span(map(first_scale, runs), '2^{}')}",
                     len({run["policy"] for run in runs}),
                     span([len(run["skipped"]) for run in runs], "{}"),
                     span([run["end_loss"] for run in runs]),
                     share([run["accuracy"] for run in runs])))
    return table(("", "policies", "skipped steps", "loss at the end", "right"), *rows)


def first_applied(run):
    skipped = set(run["skipped"])
    return next((step for step in range(run["steps"]) if step not in skipped), None)


def first_near(run, recommended):
    """Returns the first step with a scale at most two binades above the recommended one."""
    return next((step for step, scale in run["scales"] if scale <= 4 * recommended), None)


def descents(found, policies, growth):
    """How policies lower their initial scale, over the seeds."""
    recommended = {run["seed"]: run["static_scale"] for run in found["references"]}
    chosen = [run for run in found["runs"] if run["policy"] in policies and (
        run["growth_interval"] == growth or run["policy"] == "torch")]
    rows = [(f"{policy}, {interval}",
             share([len(run["skipped"]) / run["steps"] for run in runs], 1),
             span([first_applied(run) for run in runs], "{}"),
             span([first_near(run, recommended[run["seed"]]) for run in runs], "{}"),
             span([run["end_loss"] for run in runs], "{:.3f}"),
             share([run["accuracy"] for run in runs]))
            for (policy, interval), runs in sorted(
                groups(chosen, lambda run: (run["policy"], run["growth_interval"])).items())]
    alike = [run for run in found["runs"] if run["growth_interval"] == growth]
    torch = {run["seed"]: run["scales"] for run in alike if run["policy"] == "torch"}
    others = {run["policy"] for run in alike} - {"static", "torch"}
    same = others - {run["policy"] for run in alike if run["scales"] != torch[run["seed"]]}
    scales = span(recommended.values(), "{:.0f}")
    return "\n".join([
        f"FP32 runs: the recommended scale is {scales}.",
        table(("policy, grows after", "skipped", "first applied", "at 2 binades", "loss", "right"),
              *rows),
        f"{len(same)} of the {len(others)} other policies have torch's scale at every step of "
        "every seed."])


def stalls(found):
    return "\n".join(
        f"{run['term']:>5} in {run['format']}: " + (
            "no stall" if run["stalled_after"] is None else f"stalls after {run['stalled_after']}")
        + f" in {run['terms']} terms" for run in found["sums"])


def sum_errors(found):
    """Sums in FP32 and in FP16: errors of the gradients, and final losses."""
    rows = []
    for batch, runs in groups(found["runs"], lambda run: run["batch"]).items():
        ways = groups(runs, lambda run: run["accumulate"])
        for role, word in (("weight_grad", "weight"), ("activation_grad", "activation")):
            errors = {way: [run["true_error"][role]["relative_error"] for run in part]
                      for way, part in ways.items()}
            rows.append((f"{word} gradients, batch {batch}", share(errors["fp32"], 1),
                         share(errors["fp16"], 1),
                         span([b / a for a, b in zip(errors["fp32"], errors["fp16"])], "{:.1f}")))
        rows.append((f"loss at the end, batch {batch}", *(
            span([run["end_loss"] for run in ways[way]], "{:.2f}") for way in ("fp32", "fp16")),
            span([b["end_loss"] / a["end_loss"] for a, b in zip(ways["fp32"], ways["fp16"])],
                 "{:.2f}")))
    return table(("", "sums in FP32", "in FP16", "FP16 over FP32, seed by seed"), *rows)


def causes(runs):
    """The causes that recommend and policies report for skipped steps."""
    lines = []
    for run in runs:
        ends = [power(scale) for _, scale in (run["scales"][0], run["scales"][-1])]
        lines.append(f"{run['kind']}, {run['steps']} steps: scale from {ends[0]} to {ends[1]}; "
                     f"{len(run['skipped'])} skipped, of them {run['skipped_in_model']} for the "
                     "model")
        lines += [textwrap.fill(f"{event['cause']}: {event['why']}", WIDTH, initial_indent="    ",
                                subsequent_indent="      ") for event in run["events"]]
    return "\n".join(lines)


def half_weights(found):
    """By optimizer, learning rate and precision, over the seeds, compared with FP32."""
    exact = {(run["optimizer"], run["rate"], run["seed"]): run for run in found["runs"]
             if run["precision"] == "fp32"}
    rows = []
    for (optimizer, rate, precision), runs in groups(
            found["runs"], lambda run: (run["optimizer"], run["rate"], run["precision"])).items():
        over = [run["end_loss"] / exact[optimizer, rate, run["seed"]]["end_loss"]
                if run["end_loss"] else None for run in runs]
        lost = [lost_share(run) if run["end_loss"] else None for run in runs]
        errors = [run["true_error"]["weight_grad"]["relative_error"] for run in runs
                  if "true_error" in run]
        rows.append((f"{optimizer} {rate} {precision}",
                     " ".join("none" if run["accuracy"] is None else f"{100 * run['accuracy']:.0f}"
                              for run in runs), span(over, "{:.2f}"),
                     share(lost, 1),
                     span(errors, "{:.0e}") if errors else ""))
    return table(("", "right, %, each seed", "loss over FP32's", "updates lost",
                  "gradients' error"), *rows)


def broken(found):
    """The runs with a loss that was not finite."""
    rows = groups([run for run in found["runs"] if run["nonfinite_losses"]],
                  lambda run: (run["optimizer"], run["rate"], run["precision"]))
    return "\n".join(
        f"{optimizer} {rate} {precision}, {len(runs)} seeds: loss infinite or NaN in "
        f"{span([run['nonfinite_losses'] for run in runs], '{}')} of "
        f"{span([run['steps'] for run in runs], '{}')} steps, from step "
        f"{span([run['steps'] - run['nonfinite_losses'] for run in runs], '{}')} on"
        for (optimizer, rate, precision), runs in rows.items())
