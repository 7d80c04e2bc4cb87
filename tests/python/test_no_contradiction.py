# SPDX-License-Identifier: Apache-2.0
"""One number for one thing: what the terminal, the page and the JSON of an answer say of the scale,
of steps that overflow and of headroom, of the logs of these tests and of drawn ones."""

import html
import json
import math
import random
import re
import subprocess

import pytest
import torch

from halfscope import _halfscope
from program import DIGITS, PROGRAM, ROOT

SAID = ROOT / "tests/data"
GOLDEN = [DIGITS,
          *sorted(path for kind in ("console", "tensorboard", "wandb")
                  for path in (SAID / kind).iterdir() if path.is_file())]
DRAWN, SAMPLED = 500, 100


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)


def record_of(value, zeros):
    gathered = _halfscope.Gathered()
    gathered.add(torch.tensor([value, value / 2, *[0.0] * zeros]), None)
    return gathered


def drawn(folder, seed):
    """A run of 20 to 80 steps, of which some lack gradients of one kind; some overflow, and a scale
    that grows and falls."""
    draw = random.Random(seed)
    steps, every = draw.randint(20, 80), draw.choice([1, 3, 20])
    chance = dict(zip(("weight", "activation"),
                      draw.choice([(1, 1), (1, 0.3), (1, 0.05), (0.3, 1), (1, 0), (0, 1)])))
    scaled = draw.random() < 0.5
    scale, interval, clean = (2.0 ** draw.randint(4, 20) if scaled else 1.0), draw.randint(2, 30), 0
    writer = _halfscope.RunLogWriter(str(folder), json.dumps(
        {"scaled": False, "rank": 0, "world_size": 1, "sharded": [], "about": {}}))
    for step in range(steps):
        size = {role: 2.0 ** draw.gauss(-4, 3) for role in ("weight", "activation")}
        overflows = scaled and max(size.values()) * scale >= 65520
        at_histogram = step % every == 0
        if at_histogram:
            writer.write_tensors(step, [(f"{role}_grad/a", record_of(size[role], draw.randint(0, 3)),
                                         False, 1.0) for role in size if chance[role]])
        said = {role: None if not (at_histogram or draw.random() < chance[role]) or not chance[role]
                else size[role] for role in size}
        writer.write_scalars(step=step, loss=1.0, learning_rate=0.1, loss_scale=scale,
                             found_inf=overflows, max_abs_weight_grad=said["weight"],
                             max_abs_activation_grad=said["activation"], more={})
        if scaled:
            clean = 0 if overflows else clean + 1
            if overflows:
                scale /= 2
            elif clean == interval:
                scale, clean = scale * 2, 0
    return folder


def number(text):
    return int(text.replace(",", ""))


def bounds(value):
    return tuple(value) if isinstance(value, list) else (value, value)


def scale_in(text):
    """"65536", "2^-3"."""
    return 2.0 ** int(text[2:]) if text.startswith("2^") else float(text.replace(",", ""))


def read_bounds(text):
    low, _, high = text.partition(" to ")
    return number(low), number(high or low)


def require_counts(answer, said):
    """Counts of the JSON among themselves, and those of the sentences."""
    for row in answer.get("scales", []):
        if "skip" not in row:
            continue
        skip = row["skip"]
        low, high = bounds(skip["exceedances"])
        steps, unread = skip["steps"], skip.get("unread_steps", 0)
        assert 0 <= low <= high <= steps
        assert bounds(row["overflow_steps"])[0] >= low
        assert bounds(row["overflow_steps"])[1] >= high + unread
        assert skip["interval"][0] <= skip["probability"] <= skip["interval"][1]
        if row["log2_scale"] == math.log2(answer["static_scale"]):
            assert skip == answer["skip"]
    for scale, counted, steps in re.findall(
            r"At (\S+)(?: \(2\^\d+\))?, ([\d,]+(?: to [\d,]+)?) of ([\d,]+) steps?\b[^(]* overflow", said):
        assert scale_in(scale) == answer["static_scale"]
        assert read_bounds(counted) == bounds(answer["skip"]["exceedances"])
        assert number(steps) == answer["skip"]["steps"]
    for counted, steps in re.findall(
            r"it skips ([\d,]+(?: to [\d,]+)?) of ([\d,]+)\b", said):
        rate = answer["dynamic"]["expected_skip_rate"]
        assert read_bounds(counted) == tuple(round(share * number(steps)) for share in bounds(rate))
    unread = [number(n) for n in re.findall(r"([\d,]+) more (?:are|is) unknown", said)]
    known = {part.get("unread_steps") for part in (answer.get("skip", {}), answer.get("dynamic", {}))}
    assert set(unread) <= known


def require_bound(answer, first):
    """"At most" is said of the scale where it is a bound, and only there."""
    found = re.search(r"loss scale (?:can be|of)(?: up to)?( at most)? ?(?:up to )?(2\^-?\d+|[\d,]+)", first)
    if found and not answer.get("may_use"):
        assert scale_in(found.group(2)) == answer["static_scale"]
        assert bool(found.group(1)) == bool(answer.get("overflow_not_identifiable"))
    if "unread" in answer and found:
        read = answer["unread"]["of"] - answer["unread"]["steps"]
        assert f"read at {read:,} of {answer['unread']['of']:,} steps" in first


def require_headroom(answer, said, page):
    """The page's digest is the least that is said anywhere."""
    left = re.search(r"leaves (?:at most )?(-?[\d.]+) binades below overflow", said)
    if left:
        assert float(left.group(1)) == pytest.approx(answer["headroom_bits"], abs=0.051)
    digest = re.search(r"least headroom (?:at most )?(-?[\d.]+) binades", page)
    tables = re.findall(r"of all steps, step [\d,]+ leaves the least: (?:at most )?(-?[\d.]+) binades", page)
    for value in tables:
        assert digest and value == digest.group(1)
    if digest and answer.get("static_scale") and answer.get("limited_by"):
        assert float(digest.group(1)) <= answer["headroom_bits"] + 0.051


def require_one_answer(log, folder):
    done = run("recommend", "--json", "-", log)
    if done.returncode != 0:
        return False
    answer = json.loads(done.stdout)
    text = run("recommend", "--details", log).stdout
    said, first = " ".join(text.split()), text.splitlines()[0]
    run("report", log, "--out", folder / "page.html")
    page = html.unescape((folder / "page.html").read_text())
    if answer.get("static_scale"):
        require_counts(answer, said)
        require_bound(answer, first)
    require_headroom(answer, said, page)
    return True


@pytest.mark.parametrize("log", GOLDEN, ids=lambda path: path.name)
def test_of_a_golden_log(log, tmp_path):
    require_one_answer(log, tmp_path)


@pytest.mark.parametrize("seed", [
    seed if seed < SAMPLED else pytest.param(seed, marks=pytest.mark.exhaustive)
    for seed in range(DRAWN)])
def test_of_a_drawn_log(seed, tmp_path):
    assert require_one_answer(drawn(tmp_path / "run", seed), tmp_path)
