# SPDX-License-Identifier: Apache-2.0
"""The simulator's stories: their bookkeeping, in short runs and in what data/stories has. What
training came to is told, not tested."""

import json
import shlex
import subprocess
import sys

import numpy
import pytest

from program import PROGRAM, ROOT, run

STORIES = ("lost-update", "small-gradients", "large-scale", "long-sums", "nan-or-scale",
           "half-weights", "harm", "advice")
PAGES = STORIES[:6]
CAUSES = {"scale": {"by_scale"}, "range": {"at_scale_1"}, "model": {"nan_in_model"},
          "both": {"by_scale", "at_scale_1"}}
CLASSES = ("zero", "nan", "inf", "flushed_to_zero", "subnormal", "normal", "overflow")


def tell_all(folder, *arguments):
    done = subprocess.run([sys.executable, "-B", ROOT / "tools/stories/run.py", "--short",
                           "--program", PROGRAM, "--runs", folder / "runs", "--out", folder,
                           *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return tell_all(tmp_path_factory.mktemp("stories"))


def told(folder, story):
    return json.loads((folder / "data/stories" / f"{story}.json").read_text(encoding="utf-8"))


def objects_of(value):
    """Every object in it, however deep."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, (dict, list)):
            yield from objects_of(part)


def check_counts(entry):
    if "binades" in entry:
        assert sum(entry[name] for name in CLASSES) == entry["total"]
        counted = entry["total"] - entry["zero"] - entry["nan"] - entry["inf"]
        assert sum(count for _, count in entry["binades"]) == counted
    if "update_underflow" in entry:
        assert 0 <= entry["update_underflow"] + entry["swamped"] <= entry["updates"]
    if "true_nonzero" in entry:
        assert 0 <= entry["underflowed"] <= entry["lost"] <= entry["true_nonzero"] <= entry["total"]
        assert entry.get("lost_norm") is None or (
            entry["underflowed_norm"] <= entry["lost_norm"] <= entry["relative_error"])


def check_run(run):
    steps, skipped = run["steps"], run["skipped"]
    assert skipped == sorted(set(skipped)) and all(0 <= step < steps for step in skipped)
    assert 0 < steps <= run["settings"]["steps"]
    assert 0 <= run["nonfinite_losses"] <= steps
    changes = run["scales"]
    assert changes[0][0] == 0 and [step for step, _ in changes] == sorted({s for s, _ in changes})
    assert all(a != b for (_, a), (_, b) in zip(changes, changes[1:]))
    assert run["end_loss"] == run["curve"][-1] and len(run["curve"]) == min(20, steps)
    assert run["accuracy"] is None or 0 <= run["accuracy"] <= 1
    words = shlex.split(run["command"])
    assert words[:3] == ["halfscope", "simulate", run["settings"]["network"]]
    assert words[-2:] == ["--out", run["name"]]
    assert f"--seed {run['settings']['seed']} " in run["command"]


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("size", ["short", "full"])
def test_counts_add_up(short, story, size):
    found = told(short if size == "short" else ROOT, story)
    assert (found["story"], found["size"]) == (story, size)
    runs = 0
    for entry in objects_of(found):
        check_counts(entry)
        if "command" in entry and "settings" in entry:
            check_run(entry)
            runs += 1
    assert runs > 0 or story == "lost-update"


def test_the_same_seeds_give_the_same_files(short, tmp_path):
    stories = ("large-scale", "long-sums")
    again = tell_all(tmp_path, "--jobs", "1", *stories)
    for story in stories:
        files = [folder / "data/stories" / f"{story}.json" for folder in (short, again)]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_shipped_run_comes_out_again(short, tmp_path):
    """By its command line; where another backend ran, last bits may differ."""
    found = told(ROOT, "large-scale")["references"][0]
    command = shlex.split(found["command"])
    run(*command[1:], "--force", cwd=tmp_path)
    again = json.loads((tmp_path / found["name"] / "run.json").read_text())
    if again["backend"] != found["backend"]:
        pytest.skip(f"data/stories was made by {found['backend']}")
    sys.path.insert(0, str(ROOT / "tools/stories"))
    try:
        import facts
    finally:
        sys.path.pop(0)
    assert facts.scalars_of(tmp_path / found["name"]).items() <= found.items()


@pytest.mark.parametrize("folder", ["short", "full"])
def test_lost_update_is_that_of_the_formats(short, folder):
    """Judged by NumPy's binary16 and binary32."""
    found = told(short if folder == "short" else ROOT, "lost-update")
    assert {run["name"]: run["copy_first_changes"] for run in found["runs"]} == {"up": 5, "down": 3}
    for run in found["runs"]:
        assert run["alone_unchanged"] == run["steps"]
        master = numpy.float32(1)
        for row in run["track"]:
            master += numpy.float32(run["update"])
            assert row["master"] == master and row["copy"] == numpy.float16(master)
    for name in ("up", "down"):
        counts = found["analysis"][f"weight/{name}"]
        assert counts == {"updates": 20, "update_underflow": 0, "swamped": 20}
    for row in found["waits"]:
        start, update = numpy.float16(row["weight"]), numpy.float16(row["update"])
        assert row["alone_changes"] == bool(start + update != start)
        master, steps = numpy.float32(row["weight"]), 0
        while numpy.float16(master) == start:
            master, steps = master + numpy.float32(row["update"]), steps + 1
        assert row["copy_changes"] == steps


@pytest.mark.parametrize("folder", ["short", "full"])
def test_plain_sums_are_those_of_the_formats(short, folder):
    for run in told(short if folder == "short" else ROOT, "long-sums")["sums"]:
        kind = {"fp16": numpy.float16, "fp32": numpy.float32}[run["format"]]
        total, term, stalled, track = kind(0), kind(float(run["term"])), None, []
        for n in range(1, run["terms"] + 1):
            last, total = total, total + term
            stalled = n - 1 if stalled is None and last == total else stalled
            if n & (n - 1) == 0:
                track.append([n, float(total)])
        assert (run["stalled_after"], run["track"]) == (stalled, track)


def test_every_policy_that_drives_a_run_drives_the_detector():
    done = run("policies", "--list", "--json", "-")
    known = {row["policy"] for row in json.loads(done.stdout)}
    found = told(ROOT, "small-gradients")
    assert {run["policy"] for run in found["policies"]} == known - set(found["no_driver"])
    for policy in found["no_driver"]:
        done = subprocess.run([PROGRAM, "simulate", "mlp", "--out", "nowhere", "--loss-scale",
                               policy], capture_output=True, text=True)
        assert done.returncode == 1 and "is not a loss scale" in done.stderr


@pytest.mark.parametrize("folder", ["short", "full"])
def test_nan_and_overflow_are_told_apart(short, folder):
    """The words of recommend and policies, against what was done to the run."""
    for run in told(short if folder == "short" else ROOT, "nan-or-scale")["runs"]:
        assert run["recorded_skipped"] == len(run["skipped"])
        assert 0 <= run["skipped_in_model"] <= run["recorded_skipped"]
        assert set(run["causes"]) == CAUSES[run["kind"]]
        assert (run["nan_in_model"] is not None) == (run["kind"] == "model")
        assert (run["skipped_in_model"] == 0) == (run["kind"] == "scale")


def test_every_page_is_in_the_gallery():
    gallery = ROOT / "reports" / "gallery"
    pages = {path.stem: path.stat().st_size for path in gallery.glob("*.html")}
    recorded = {file.parts[-3] for file in ROOT.glob("data/cudnn-*/log/run.json")}  # runs on a GPU
    assert set(pages) == {*PAGES, *recorded}
    assert sum(pages.values()) < 12e6 and max(pages.values()) < 2.2e6
    extract = (gallery / "nan-or-scale.html").read_text(encoding="utf-8")
    assert "overflow by scale: the first 30 steps of the run</title>" in extract
    index = (gallery / "README.md").read_text(encoding="utf-8")
    assert all(f"({page}.html)" in index for page in pages)


def test_an_unknown_story_lists_the_known_ones():
    done = subprocess.run([sys.executable, "-B", ROOT / "tools/stories/run.py", "nonesuch"],
                          capture_output=True, text=True)
    assert done.returncode == 2
    assert all(story in done.stderr for story in STORIES)
