# SPDX-License-Identifier: Apache-2.0
"""The stories of harm and advice: their bookkeeping. How well a network trained is not tested."""

import json
import math
import sys

import numpy
import pytest
from program import ROOT, run
from test_stories import tell_all, told

sys.path.insert(0, str(ROOT / "tools/stories"))
try:
    import rounding
    import tables
finally:
    sys.path.pop(0)

VERDICTS = ("same", "small", "unclear", "differs")


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return tell_all(tmp_path_factory.mktemp("harm"), "harm", "advice")


def conditions_of(folder):
    return [row for row in told(folder, "harm")["conditions"] if row["way"] != "fp32"]


def exact_of(folder):
    return {row["setting"]: row for row in told(folder, "harm")["conditions"]
            if row["way"] == "fp32"}


def check_shares(measures):
    """The smallest values go first: less of the sum than of the count, and of squares still less.
    A value that is lost is noise, too."""
    assert 0 <= measures["l2"] <= measures["l1"] <= measures["flushed"] <= 1
    assert measures["l2"] <= measures["worst_l2"] <= 1
    ends = sorted(measures[f"{role}_l2"] for role in ("weight_grad", "activation_grad"))
    assert ends[0] * 0.999 <= measures["l2"] <= ends[1] * 1.001
    assert measures["worst_snr_db"] <= measures["snr_db"]


@pytest.mark.parametrize("size", ["short", "full"])
def test_what_is_lost_adds_up(short, size):
    for row in conditions_of(short if size == "short" else ROOT):
        check_shares(row["predicted"])
        for counts in row["seen"].values():
            assert counts["underflowed"] <= counts["lost"] <= counts["true_nonzero"]
            assert counts["true_nonzero"] <= counts["total"]
            if row["way"] == "bfloat16":
                assert counts["underflowed"] == 0


@pytest.mark.parametrize("size", ["short", "full"])
def test_a_smaller_scale_loses_more(short, size):
    folder = short if size == "short" else ROOT
    for setting in exact_of(folder):
        rows = [row for row in conditions_of(folder)
                if row["setting"] == setting and row["way"].startswith("2^")]
        rows.sort(key=lambda row: -int(row["way"][2:]))
        for one, other in zip(rows, rows[1:]):
            for key in ("flushed", "l1", "l2", "worst_l2"):
                assert one["predicted"][key] <= other["predicted"][key]
            assert one["predicted"]["snr_db"] >= other["predicted"]["snr_db"]


@pytest.mark.parametrize("size", ["short", "full"])
def test_verdicts_follow_from_the_losses(short, size):
    folder = short if size == "short" else ROOT
    exact = exact_of(folder)
    for row in conditions_of(folder):
        assert row["verdict"] in VERDICTS
        assert len(row["end_loss"]) == row["seeds"] == len(exact[row["setting"]]["end_loss"])
        beside = numpy.log(exact[row["setting"]]["end_loss"])
        assert row["spread"] == pytest.approx(beside.std(ddof=1), rel=1e-4)
        if row.get("log_ratio") is None:
            assert row["verdict"] == "differs"
            continue
        logs = numpy.log(row["end_loss"]) - beside
        assert row["log_ratio"] == pytest.approx(logs.mean(), rel=1e-4, abs=1e-9)
        certain = abs(row["log_ratio"]) > row["half_width"]
        large = abs(row["log_ratio"]) > row["spread"]
        assert row["verdict"] == VERDICTS[2 * large + certain]


@pytest.mark.parametrize("size", ["short", "full"])
def test_limits_are_those_of_the_conditions(short, size):
    folder = short if size == "short" else ROOT
    for limit in told(folder, "harm")["limits"]:
        measure = limit["measure"]
        more = (lambda a, b: a <= b) if measure.endswith("_db") else (lambda a, b: a >= b)
        for row in conditions_of(folder):
            value = row["predicted"][measure]
            if row["verdict"] == "differs":
                assert more(value, limit["with_harm"][0])
            elif row["verdict"] != "unclear":
                assert more(limit["without"][0], value)


def test_predictions_are_within_the_bounds_of_analyze(short):
    """What the stories estimate of binades, and the program's own bounds of the same log."""
    log = short / "runs/harm/lenet-fp32-0"
    for exponent in (0, -10, -16):
        done = run("analyze", log, "--loss-scale", 2.0 ** exponent, "--formats", "--json", "-")
        for tensor in json.loads(done.stdout)["tensors"]:
            if tensor["role"] not in rounding.GRADIENTS:
                continue
            sums = rounding.Sums("binary16", exponent).add_all([tensor])
            # Half the smallest number, exactly, is the one case that binades do not tell.
            assert 0 <= tensor["flushed_to_zero"] - sums.lost <= 2
            for kind in ("l1", "l2"):
                bounds = tensor["lost_mass"]["at_loss_scale"][kind]
                low, high = bounds if isinstance(bounds, list) else (bounds, bounds)
                share = getattr(sums, f"lost_{kind}") / (getattr(sums, kind) or 1)
                # A square is 1 to 4 times the binade's, and 7/3 in the estimate.
                assert low * 0.4 <= share <= high * 2.5


@pytest.mark.parametrize("exponent", [4, 0, -8, -14])
def test_noise_is_that_of_rounding(exponent):
    """Random values, rounded by NumPy, against the estimate from their binades."""
    values = numpy.random.default_rng(7).lognormal(-8, 2, 200000)
    scale = 2.0 ** exponent
    rounded = (values * scale).astype(numpy.float16).astype(float) / scale
    noise = 10 * math.log10((values ** 2).sum() / ((rounded - values) ** 2).sum())
    binades, counts = numpy.unique(numpy.frexp(values)[1] - 1, return_counts=True)
    sums = rounding.Sums("binary16", exponent).add_all(
        [{"binades": [[int(e), int(n)] for e, n in zip(binades, counts)]}])
    assert 10 * math.log10(sums.l2 / sums.noise) == pytest.approx(noise, abs=1)
    assert sums.lost == (rounded == 0).sum()
    assert sums.lost_l2 / sums.l2 == pytest.approx(
        (values[rounded == 0] ** 2).sum() / (values ** 2).sum(), rel=0.2, abs=1e-9)


@pytest.mark.parametrize("size", ["short", "full"])
def test_the_advice_is_what_the_runs_were_given(short, size):
    for entry in told(short if size == "short" else ROOT, "advice")["advised"]:
        best = entry["advice"]["static_scale"]
        runs = {run["way"]: run for run in entry["runs"]}
        scales = {way: run["scales"][0][1] for way, run in runs.items()}
        assert scales == {"fp32": 1, "no scale": 1, "advised": best, "four times": 4 * best,
                          "dynamic": entry["advice"]["dynamic"]["init"]}
        for way in ("no scale", "advised", "four times"):
            assert 0 <= runs[way]["promised"]["flushed"] <= 1
            for counts in runs[way]["seen"].values():
                assert counts["underflowed"] <= counts["lost"] <= counts["true_nonzero"]
        shares = [runs[way]["promised"]["flushed"] for way in ("no scale", "advised", "four times")]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] == pytest.approx(entry["advice"]["flushed_at_1"]["share"], abs=1e-4)
        assert shares[1] == pytest.approx(entry["advice"]["flushed_at_recommended"]["share"],
                                          abs=1e-4)
        assert runs["advised"]["promised"]["overflow_steps"] in (0, None)


@pytest.mark.parametrize("story", ["harm", "advice"])
def test_the_tables_in_the_docs_are_those_of_the_files(story):
    text = (ROOT / "docs/stories.md").read_text(encoding="utf-8")
    for make in tables.TABLES[story]:
        assert make(told(ROOT, story)) in text


def test_prose_about_harm_is_borne_out():
    """The limits that docs/stories.md names, against the conditions."""
    rows = conditions_of(ROOT)
    harmful = [row for row in rows if row["verdict"] == "differs"]
    harmless = [row for row in rows if row["verdict"] in ("same", "small")]
    assert all(row["predicted"]["l2"] > 5e-5 for row in harmful)
    much = [row for row in rows if row["predicted"]["l2"] > 1e-3]
    assert [(row["setting"], row["way"]) for row in much if row["verdict"] != "differs"] == [
        ("mlp-adam", "2^-16")]
    assert all(row["predicted"]["worst_snr_db"] < 20 for row in harmful)
    learnt = [row for row in harmful if math.exp(row["log_ratio"]) < 10]
    assert max(row["seen"]["weight_grad"]["snr_db"] for row in learnt) < 19
    assert min(row["seen"]["weight_grad"]["snr_db"] for row in rows
               if row["way"] == "bfloat16") > 30
    assert max(row["predicted"]["flushed"] for row in harmless) > 0.5
    assert all(row["verdict"] == "same" for row in rows if row["predicted"]["l2"] < 1e-6)
    assert all(row["verdict"] == "same" for row in rows if row["way"] == "bfloat16")


def test_prose_about_the_advice_is_borne_out():
    for entry in told(ROOT, "advice")["advised"]:
        runs = {run["way"]: run for run in entry["runs"]}
        exact = runs["fp32"]["end_loss"]
        assert runs["advised"]["skipped"] == [] and len(runs["dynamic"]["skipped"]) <= 2
        for way in ("advised", "dynamic"):
            assert abs(runs[way]["end_loss"] / exact - 1) < 0.05
        above = runs["four times"]
        predicted = above["promised"]["overflow_steps"]
        assert 1 <= predicted <= 15 and predicted <= len(above["skipped"])
        if entry["network"] == "tinyssd":
            assert len(above["skipped"]) == above["steps"]
