# SPDX-License-Identifier: Apache-2.0
"""Charts of the stories, from their JSON, with altair."""

import math

import altair as alt

WIDTH, HEIGHT = 560, 200
LOWEST = -44  # lowest binade of histograms; smaller values are drawn in it
BINARY16 = {"becomes zero": "#d55e00", "subnormal": "#e69f00", "normal": "#7f93a8"}
PRECISIONS = ("fp32", "mixed", "bf16", "fp16")


def data(rows):
    return alt.Data(values=rows)


def heading(text, subtitle=""):
    return alt.Title(text, subtitle=subtitle, anchor="start", frame="group", subtitlePadding=4)


def chart(rows, text="", subtitle="", **size):
    return alt.Chart(data(rows), title=heading(text, subtitle), **({"width": WIDTH,
                                                                    "height": HEIGHT} | size))


def picture(drawn):
    """Adds margins for text, because readers' fonts can be wider than the one in vl-convert."""
    return drawn.configure(
        padding={"left": 40, "right": 60, "top": 5, "bottom": 10},
        axis={"labelFlush": False, "labelLimit": 300}, axisLeft={"titlePadding": 20},
        legend={"orient": "bottom", "labelLimit": 300, "titleLimit": 500, "columnPadding": 40,
                "titlePadding": 8, "padding": 12, "offset": 4})


def lost_update(found):
    """The three weights over the first steps, upward and downward."""
    words = {"alone": "binary16 alone", "master": "master (binary32)", "copy": "copy (binary16)"}
    rows = [{"step": row["step"], "weight": row[key], "kept as": word, "run": run["name"]}
            for run in found["runs"] for row in run["track"][:12] for key, word in words.items()]
    settings = found["settings"]
    return picture(chart(rows, f"A weight of {settings['weight']:g}, "
                               f"updates of ±{settings['update']:g}").mark_line(
        interpolate="step-after").encode(
        x=alt.X("step:Q", title="updates"),
        y=alt.Y("weight:Q", scale=alt.Scale(zero=False), axis=alt.Axis(format=".4f")),
        color=alt.Color("kept as:N", title=None), detail="run:N",
        strokeDash=alt.StrokeDash("kept as:N", title=None)))


def waits(found):
    """Number of updates until a binary16 copy changes."""
    rows = [{"weight": round(math.log2(abs(row["weight"]))), "updates": row["copy_changes"],
             "alone": "moves at the first" if row["alone_changes"] else "never moves",
             "update": "away from 0" if row["weight"] * row["update"] > 0 else "towards 0"}
            for row in found["waits"]]
    ticks = sorted({row["weight"] for row in rows})
    return picture(chart(rows, "Updates until the binary16 copy of the master weight moves")
                   .mark_point(filled=True, size=70).encode(
        x=alt.X("weight:Q", title="log2 of the weight's magnitude",
                axis=alt.Axis(values=ticks, format="d"),
                scale=alt.Scale(domain=[ticks[0] - 0.5, ticks[-1] + 0.5], nice=False)),
        y=alt.Y("updates:Q", scale=alt.Scale(type="log", base=2)),
        color=alt.Color("alone:N", title="a weight in binary16 alone"),
        shape=alt.Shape("update:N", title="the update moves the weight")))


def binades(counts):
    """Returns the bars for a role's values that are not zero."""
    bars = {}
    for exponent, count in counts["binades"]:
        at = max(exponent, LOWEST)
        bars[at] = bars.get(at, 0) + count
    return [{"e": e, "end": e + 1, "values": count,
             "in binary16": "becomes zero" if e < -25 else "subnormal" if e < -14 else "normal"}
            for e, count in bars.items()]


def histograms(runs, role):
    """Binades of gradients by class in binary16, a chart for each run. runs: {name: run}."""
    drawn = []
    for name, run in runs.items():
        counts = run[role]
        drawn.append(chart(binades(counts), name, f"{counts['zero'] / counts['total']:.1%} of the "
                           f"{counts['total']:,} values are zero and not drawn", height=140)
                     .mark_rect().encode(
            x=alt.X("e:Q", title=f"log2 of the magnitude (leftmost: all below {LOWEST + 1})",
                    scale=alt.Scale(domain=[LOWEST, 0]), axis=alt.Axis(tickCount=11)),
            x2="end:Q", y=alt.Y("values:Q", axis=alt.Axis(format="~s", tickCount=4)),
            y2=alt.datum(0),
            color=alt.Color("in binary16:N", scale=alt.Scale(
                domain=list(BINARY16), range=list(BINARY16.values())))))
    return picture(alt.vconcat(*drawn))


def loss_by_scale(found):
    """Final loss of every run of the sweep. Lines show FP32."""
    rows = [{"scale": run["log2_scale"], "loss": run["end_loss"], "seed": f"seed {run['seed']}"}
            for run in found["sweep"]]
    exact = [{"loss": entry["runs"][0]["end_loss"], "seed": f"seed {entry['seed']}"}
             for entry in found["main"] if entry["variant"] == "all-anchors"]
    points = chart(rows, "tinyssd-all-anchors: loss at the end, by loss scale",
                   "mean of the last twentieth of the run; dashed: FP32").mark_line(
        point=True).encode(
        x=alt.X("scale:Q", title="log2 of the loss scale",
                axis=alt.Axis(values=sorted({row["scale"] for row in rows}), format="d")),
        y=alt.Y("loss:Q", title="loss", scale=alt.Scale(zero=False)),
        color=alt.Color("seed:N", title=None))
    lines = alt.Chart(data(exact)).mark_rule(strokeDash=[4, 3]).encode(y="loss:Q", color="seed:N")
    return picture(points + lines)


def loss_by_policy(found):
    """Final loss of each policy's runs, one column for each variant."""
    columns = []
    for variant in dict.fromkeys(run["variant"] for run in found["policies"]):
        rows = [{"policy": run["policy"], "loss": run["end_loss"], "seed": f"seed {run['seed']}",
                 "skipped": len(run["skipped"])}
                for run in found["policies"] if run["variant"] == variant]
        columns.append(chart(rows, variant, width=230, height=alt.Step(15)).mark_point(
            filled=True, size=60).encode(
            x=alt.X("loss:Q", title="loss at the end", axis=alt.Axis(tickCount=4),
                    scale=alt.Scale(zero=False)),
            y=alt.Y("policy:N", sort=None, title=None,
                    axis=alt.Axis(labels=not columns, ticks=not columns, grid=True)),
            shape=alt.Shape("seed:N", title=None),
            color=alt.Color("skipped:Q", title="skipped steps",
                            scale=alt.Scale(range=["#9db4c8", "#a02c00"]))))
    return picture(alt.hconcat(*columns))


def steps_of(run):
    """Returns [step, log2 scale], with a point at the last step so that the line reaches it."""
    points = [[step, math.log2(scale)] for step, scale in run["scales"]]
    return points + [[run["steps"] - 1, points[-1][1]]]


def scales(runs, name, text):
    """Loss scales over the steps."""
    rows = [{"step": step, "scale": scale, name: run[name]}
            for run in runs for step, scale in steps_of(run)]
    return picture(chart(rows, text).mark_line(interpolate="step-after").encode(
        x="step:Q", y=alt.Y("scale:Q", title="log2 of the loss scale", scale=alt.Scale(zero=False)),
        color=alt.Color(f"{name}:N", title=None, sort=None)))


def bars(runs, name, levels, text):
    """Steps of each run's second half, by the distance from the recommended scale."""
    rows = [{name: str(run[name]), "binades": above, "steps": steps}
            for run in runs for above, steps in run["second_half"]]
    return chart(rows, text, height=alt.Step(17)).mark_bar().encode(
        y=alt.Y(f"{name}:N", sort=None, title=None),
        x=alt.X("sum(steps):Q", stack="normalize", title="share of the second half's steps",
                axis=alt.Axis(format="%")),
        order="binades:Q",
        color=alt.Color("binades:O", scale=alt.Scale(scheme="viridis", domain=levels),
                        title="binades above the recommended scale"))


def settled(found, growth):
    """Final scales of all policies, and of torch for each growth interval."""
    moving = [run for run in found["runs"] if run["policy"] != "static"]
    levels = sorted({above for run in moving for above, _ in run["second_half"]})
    torch = sorted((run for run in moving if run["policy"] == "torch"),
                   key=lambda run: run["growth_interval"])
    return picture(alt.vconcat(
        bars([run for run in moving if run["growth_interval"] == growth], "policy", levels,
             f"Growth tried after {growth} clean steps"),
        bars(torch, "growth_interval", levels, "torch, by the clean steps after which it grows")))


def sums(found):
    """Sums by the number of their terms."""
    rows = [{"terms": n, "sum": total, "term": run["term"], "format": run["format"]}
            for run in found["sums"] for n, total in run["track"]]
    most = max(row["terms"] for row in rows)
    return picture(chart(rows, "The same term, added over and over").mark_line().encode(
        x=alt.X("terms:Q", scale=alt.Scale(type="log", base=2),
                axis=alt.Axis(values=[4 ** k for k in range(20) if 4 ** k <= most])),
        y=alt.Y("sum:Q", scale=alt.Scale(type="log", base=10),
                axis=alt.Axis(values=[10.0 ** k for k in range(-6, 7)], format="~g")),
        color=alt.Color("term:N", title="the term", sort=None),
        strokeDash=alt.StrokeDash("format:N", title="sum in", sort=["fp32", "fp16"])))


def gradient_errors(found):
    """Relative error of gradients compared with binary64, by the format of sums."""
    words = {"weight_grad": "weight gradients", "activation_grad": "activation gradients"}
    rows = [{"sums in": run["accumulate"], "error": run["true_error"][role]["relative_error"],
             "of": f"{word}, batch {run['batch']}"}
            for role, word in words.items() for run in found["runs"]]
    return picture(chart(rows, "Gradients against binary64, at the same weights",
                         "one point a seed; all recorded steps as one vector", height=140)
                   .mark_point(filled=True, size=60).encode(
        x=alt.X("error:Q", title="relative error",
                scale=alt.Scale(type="log", nice=False, padding=10),
                axis=alt.Axis(values=[m * 10.0 ** e for e in range(-7, 1) for m in (1, 2, 5)],
                              format="~g")),
        y=alt.Y("of:N", title=None, sort=None), color=alt.Color("sums in:N", title="sums in")))


def lost_share(run):
    """Returns the share of a run's nonzero updates that do not change a 16-bit weight."""
    counts = run["lost_updates"]["bfloat16" if "bf16" in run["precision"] else "binary16"]
    return (counts["update_underflow"] + counts["swamped"]) / max(counts["updates"], 1)


def by_precision(found, value, title, text, subtitle=""):
    """value(run) for every run with SGD, by learning rate and precision."""
    runs = [run for run in found["runs"] if run["optimizer"] == "sgd"]
    rows = [{"rate": run["rate"], "value": value(run), "precision": run["precision"]}
            for run in runs]
    columns = [chart([row for row in rows if row["rate"] == rate], f"learning rate {rate}",
                     width=160).mark_point(filled=True, size=50).encode(
        x=alt.X("precision:N", title=None, sort=PRECISIONS, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title=title if column == 0 else None,
                scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        color=alt.Color("precision:N", legend=None, sort=PRECISIONS))
        for column, rate in enumerate(sorted({run["rate"] for run in runs}, reverse=True))]
    return picture(alt.hconcat(*columns, title=alt.Title(text, subtitle=subtitle, anchor="start")))
