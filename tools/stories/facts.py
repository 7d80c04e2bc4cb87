# SPDX-License-Identifier: Apache-2.0
"""Reads the facts and counts for the stories from the log of a run."""

import json
import math

from halfscope import _halfscope

GRADIENTS = ("weight_grad", "activation_grad")
CLASSES = ("zero", "nan", "inf", "flushed_to_zero", "subnormal", "normal", "overflow")
LOST = ("updates", "update_underflow", "swamped")
CURVE = 20  # points of a loss curve


def short(number):
    """Returns a float rounded to six digits for JSON. None if it is not finite."""
    return float(f"{number:.6g}") if math.isfinite(number) else None


def mean(numbers):
    return short(math.fsum(numbers) / len(numbers)) if numbers else None


def curve_of(losses):
    """Returns the mean losses of up to 20 equal parts of the run."""
    parts = min(CURVE, len(losses))
    edges = [len(losses) * i // parts for i in range(parts + 1)]
    return [mean(losses[a:b]) for a, b in zip(edges, edges[1:])]


def changes_of(scales):
    """Returns [step, scale] for each step at which the scale changes."""
    return [[step, scale] for i, (step, scale) in enumerate(scales)
            if i == 0 or scale != scales[i - 1][1]]


def scalars_of(folder):
    """Returns loss, scale and accuracy, from the scalars of all steps."""
    by_step, _, _ = _halfscope.read_run_log(str(folder))
    steps = sorted(by_step)
    losses = [by_step[step]["loss"] for step in steps]
    last = by_step[steps[-1]]
    return {
        "steps": len(steps),
        "skipped": [step for step in steps if by_step[step]["found_inf"]],
        "nonfinite_losses": sum(not math.isfinite(loss) for loss in losses),
        "first_loss": short(losses[0]),
        "end_loss": curve_of(losses)[-1],
        "curve": curve_of(losses),
        "accuracy": last["more"].get("held_out/accuracy"),
        "scales": changes_of([(step, by_step[step]["loss_scale"]) for step in steps]),
    }


def settings_of(folder):
    """Returns the settings with which the run can be repeated, and its backend."""
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return {"backend": run["backend"], "settings": run["simulation"] | {"steps": run["steps"]}}


def added(tensors, fields):
    return {field: sum(tensor[field] for tensor in tensors) for field in fields}


def binades_of(tensors):
    counts = {}
    for tensor in tensors:
        for exponent, count in tensor["binades"]:
            counts[exponent] = counts.get(exponent, 0) + count
    return sorted(counts.items())


def tables_of(analysis):
    """Returns counts of `analyze --json` at loss scale 1, summed over the tensors of each role."""
    found = {}
    for role in (*GRADIENTS, "update"):
        tensors = [tensor for tensor in analysis["tensors"] if tensor["role"] == role]
        if tensors:
            found[role] = added(tensors, ("total", *CLASSES)) | {"binades": binades_of(tensors)}
    return found


def zeros_of(analysis):
    """Returns the counts that do not depend on the loss scale, for both roles of gradients."""
    return {role: added([tensor for tensor in analysis["tensors"] if tensor["role"] == role],
                        ("total", "zero", "nan", "inf")) for role in GRADIENTS}


def lost_updates_of(analysis):
    """Returns counts of nonzero updates, and of those lost in weights of the format."""
    weights = [tensor for tensor in analysis["tensors"] if "updates" in tensor]
    return added(weights, LOST)


def ratio(entries, name):
    """Returns the norm over all tensors and steps, relative to the true one; None if unknown."""
    known = [entry for entry in entries if None not in (entry[name], entry["true_norm"])]
    whole = math.fsum(entry["true_norm"] ** 2 for entry in known)
    part = math.fsum(entry[name] ** 2 for entry in known)
    return short(math.sqrt(part / whole)) if whole else None


def true_error_of(folder):
    """Returns the errors of the run's gradients compared with binary64, by role over all steps."""
    steps = [json.loads(line) for line in
             (folder / "true_error.jsonl").read_text(encoding="utf-8").splitlines()]
    found = {}
    for role in GRADIENTS:
        entries = [entry for step in steps for entry in step["tensors"] if entry["role"] == role]
        errors = sorted(entry["relative_error"] for entry in entries
                        if entry["relative_error"] is not None)
        found[role] = added(entries, ("total", "nonfinite", "true_nonzero", "lost",
                                      "underflowed")) | {
            "median_relative_error": short(errors[len(errors) // 2]) if errors else None,
            "relative_error": ratio(entries, "error_norm"),
            "lost_norm": ratio(entries, "lost_norm"),
            "underflowed_norm": ratio(entries, "underflowed_norm")}
    return found


def facts(program, name, command, *, tables=None, weights=(), true_error=False):
    """Returns one run in the form of the stories' JSON.

    tables: tables_of or zeros_of; weights: formats for which lost updates are counted.
    """
    folder = program.folder / name
    found = {"name": name, "command": command, **settings_of(folder),
             **scalars_of(folder)}
    if tables:
        found |= tables(program.ask("analyze", name))
    if weights:
        found["lost_updates"] = {
            form: lost_updates_of(program.ask("analyze", name, "--format", form, "--tensor",
                                              "[wu]*")) for form in weights}
    if true_error:
        found["true_error"] = true_error_of(folder)
    return found
