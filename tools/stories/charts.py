# SPDX-License-Identifier: Apache-2.0
"""The stories' pictures, from their JSON: altair charts."""

import math

import altair as alt

WIDTH, HEIGHT = 560, 200
BAND = alt.Legend(orient="bottom", title=None)
LOWEST = -44  # binade at which the few smaller values are drawn


def data(rows):
    return alt.Data(values=rows)


def chart(rows, title=""):
    return alt.Chart(data(rows), title=title, width=WIDTH, height=HEIGHT)


def lost_update(found):
    """The three weights over the first steps, upward and downward."""
    words = {"alone": "binary16 alone", "master": "master (binary32)", "copy": "copy (binary16)"}
    rows = [{"step": row["step"], "weight": row[key], "kept as": word, "run": run["name"]}
            for run in found["runs"] for row in run["track"][:12] for key, word in words.items()]
    return chart(rows, "A weight of 1, updates of ±1e-4").mark_line(
        interpolate="step-after").encode(
        x=alt.X("step:Q", title="updates"),
        y=alt.Y("weight:Q", scale=alt.Scale(zero=False), axis=alt.Axis(format=".4f")),
        color=alt.Color("kept as:N", legend=BAND), detail="run:N",
        strokeDash=alt.StrokeDash("kept as:N", legend=None))


def waits(found):
    """How many updates a copy waits for the next number it can show."""
    rows = [{"weight": math.log2(abs(row["weight"])), "updates": row["copy_changes"],
             "in binary16 alone": "moves" if row["alone_changes"] else "never moves",
             "weight and update": "same sign" if row["weight"] * row["update"] > 0
             else "opposite sign"} for row in found["waits"]]
    return chart(rows, "Updates of 1e-4 until the binary16 copy moves").mark_point(
        filled=True, size=70).encode(
        x=alt.X("weight:Q", title="log2 of the weight"),
        y=alt.Y("updates:Q", scale=alt.Scale(type="log", base=2)),
        color=alt.Color("in binary16 alone:N", legend=BAND),
        shape=alt.Shape("weight and update:N", legend=BAND))


def histogram(run, role, title):
    """Binades of one run's gradients, as binary16 sees them; zeros are a bar of their own."""
    counts = {LOWEST - 4: run[role]["zero"]}
    for exponent, count in run[role]["binades"]:
        at = max(exponent, LOWEST)
        counts[at] = counts.get(at, 0) + count
    rows = [{"e": e, "end": e + 1, "values": count,
             "in binary16": "zero already" if e < LOWEST else "becomes zero" if e < -25
             else "subnormal" if e < -14 else "normal"} for e, count in counts.items()]
    return chart(rows, title).mark_rect().encode(
        x=alt.X("e:Q", title=f"log2 of the magnitude (leftmost bar: zeros; {LOWEST}: all smaller)"),
        x2="end:Q", y=alt.Y("values:Q", axis=alt.Axis(format="~s")), y2=alt.datum(0),
        color=alt.Color("in binary16:N", legend=BAND))


def loss_by_scale(found):
    """End loss of every run of the sweep; FP32's as lines."""
    rows = [{"scale": run["log2_scale"], "loss": run["end_loss"], "seed": str(run["seed"])}
            for run in found["sweep"]]
    exact = [{"loss": entry["runs"][0]["end_loss"], "seed": str(entry["seed"])}
             for entry in found["main"] if entry["variant"] == "all-anchors"]
    points = chart(rows, "tinyssd-all-anchors: loss at the end, by loss scale").mark_line(
        point=True).encode(x=alt.X("scale:Q", title="log2 of the loss scale"),
                           y=alt.Y("loss:Q", title="loss, last twentieth",
                                   scale=alt.Scale(zero=False)),
                           color=alt.Color("seed:N", legend=BAND))
    lines = alt.Chart(data(exact)).mark_rule(strokeDash=[4, 3]).encode(y="loss:Q", color="seed:N")
    return points + lines


def loss_by_policy(found, variant):
    """End loss of each policy's runs."""
    rows = [{"policy": run["policy"], "loss": run["end_loss"], "skipped": len(run["skipped"])}
            for run in found["policies"] if run["variant"] == variant]
    return chart(rows, f"{variant}: loss at the end, by policy").mark_point(
        filled=True, size=60).encode(
        x=alt.X("policy:N", sort=None, title=None), y=alt.Y("loss:Q", scale=alt.Scale(zero=False)),
        color=alt.Color("skipped:Q", scale=alt.Scale(scheme="viridis", reverse=True)))


def steps_of(run):
    """[step, log2 scale] with an end, so that a line reaches the last step."""
    points = [[step, math.log2(scale)] for step, scale in run["scales"]]
    return points + [[run["steps"] - 1, points[-1][1]]]


def scales(runs, name, title):
    """Loss scales over the steps."""
    rows = [{"step": step, "scale": scale, name: run[name]}
            for run in runs for step, scale in steps_of(run)]
    return chart(rows, title).mark_line(interpolate="step-after").encode(
        x="step:Q", y=alt.Y("scale:Q", title="log2 of the loss scale", scale=alt.Scale(zero=False)),
        color=alt.Color(f"{name}:N", legend=BAND))


def settled(runs, name, title):
    """Steps of the second half by how far the scale is from the recommended one."""
    ordered = runs if name == "policy" else sorted(runs, key=lambda run: run[name])
    rows = [{name: str(run[name]), "binades": above, "steps": steps}
            for run in ordered for above, steps in run["second_half"]]
    return chart(rows, title).mark_bar().encode(
        x=alt.X(f"{name}:N", sort=None, title=name.replace("_", " ")),
        y=alt.Y("sum(steps):Q", stack="normalize", title="share of steps",
                axis=alt.Axis(format="%")),
        color=alt.Color("binades:O", scale=alt.Scale(scheme="viridis"),
                        title="binades above the recommended scale",
                        legend=alt.Legend(orient="bottom", titleLimit=400)))


def sums(found):
    """Plain sums over the number of their terms."""
    rows = [{"terms": n, "sum": total, "of": f"{run['term']} in {run['format']}"}
            for run in found["sums"] for n, total in run["track"]]
    return chart(rows, "The same term, added over and over").mark_line().encode(
        x=alt.X("terms:Q", scale=alt.Scale(type="log", base=2)),
        y=alt.Y("sum:Q", scale=alt.Scale(type="log", base=10)),
        color=alt.Color("of:N", legend=BAND))


def gradient_errors(found):
    """Relative error of gradients against binary64, by how sums are kept."""
    rows = [{"sums in": run["accumulate"], "error": run["true_error"][role]["relative_error"],
             "of": f"{role}, batch {run['batch']}"}
            for run in found["runs"] for role in ("weight_grad", "activation_grad")]
    return chart(rows, "Gradients against binary64, at the same weights").mark_point(
        filled=True, size=60).encode(
        x=alt.X("error:Q", title="relative error", scale=alt.Scale(type="log")),
        y=alt.Y("of:N", title=None), color=alt.Color("sums in:N", legend=BAND))


def lost_share(counts):
    """Of the updates that are not zero, those that do not change a weight of that format."""
    return (counts["update_underflow"] + counts["swamped"]) / max(counts["updates"], 1)


def by_precision(found, field, title, optimizer="sgd"):
    """A number of every run of the digits, by learning rate and precision."""
    rows = []
    for run in found["runs"]:
        own = run["lost_updates"]["bfloat16" if "bf16" in run["precision"] else "binary16"]
        value = run["accuracy"] if field == "accuracy" else lost_share(own)
        rows.append({"rate": f"learning rate {run['rate']}", field: value,
                     "precision": run["precision"], "optimizer": run["optimizer"]})
    rows = [row for row in rows if row["optimizer"] == optimizer]
    return alt.Chart(data(rows), title=title, width=160, height=HEIGHT).mark_point(
        filled=True, size=50).encode(
        x=alt.X("precision:N", title=None, sort=None),
        y=alt.Y(f"{field}:Q", title=field, axis=alt.Axis(format="%")),
        color=alt.Color("precision:N", legend=None),
        column=alt.Column("rate:N", title=None, sort=None))
