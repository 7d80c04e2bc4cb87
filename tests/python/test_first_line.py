# SPDX-License-Identifier: Apache-2.0
"""NaN, infinities and steps skipped in vain are said in the first line of analyze, recommend and the page."""
import html
import json
import os
import re

import numpy as np
import pytest

from halfscope import _halfscope
from program import json_of, stdout_of

SAFETENSORS = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
NAN, INF = float("nan"), float("inf")


def first_lines(log, folder):
    """Of analyze, of recommend and of the page."""
    page = folder / "first.html"
    stdout_of("report", log, "--out", page)
    answer = re.search(r'<p class="answer">(.*?)</p>', page.read_text(), re.S).group(1)
    return [stdout_of(command, log).splitlines()[0] for command in ("analyze", "recommend")] + [
        re.sub("<[^>]*>", "", answer)]


def save(path, dtype, values):
    values = np.asarray(values, np.float32)
    stored = (values.view(np.uint32) >> 16 if dtype == "BF16" else values).astype(SAFETENSORS[dtype])
    header = json.dumps({"weight_grad/a": {"dtype": dtype, "shape": list(values.shape),
                                           "data_offsets": [0, stored.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + stored.tobytes())


def folder_of(path, dtype, breaks):
    """Five steps of gradients; {step: what one of them is}."""
    path.mkdir()
    for step in range(5):
        values = np.random.default_rng(step).standard_normal(2000) * 1e-3
        values[7] = breaks.get(step, values[7])
        save(path / f"step-{step:06d}.safetensors", dtype, values)
    return path


EVERY = range(5)


@pytest.mark.parametrize("dtype, breaks, said", [
    ("F32", {4: NAN}, "weight_grad/a holds NaN at the last recorded step, 4."),
    ("F32", {4: INF}, "weight_grad/a holds infinities at the last recorded step, 4."),
    ("F32", {2: NAN, 3: INF, 4: NAN},
     "weight_grad/a holds NaN or infinities from step 2 to the last, 4, at 3 recorded steps."),
    ("BF16", dict.fromkeys(EVERY, INF),
     "weight_grad/a holds infinities from step 0 to the last, 4, at 5 recorded steps."),
    ("BF16", dict.fromkeys(EVERY, NAN),
     "weight_grad/a holds NaN from step 0 to the last, 4, at 5 recorded steps."),
    ("F16", {4: NAN}, "weight_grad/a holds NaN at the last recorded step, 4."),
])
def test_tensors_that_end_in_nan(tmp_path, dtype, breaks, said):
    for line in first_lines(folder_of(tmp_path / "log", dtype, breaks), tmp_path):
        assert line.startswith(said)


@pytest.mark.parametrize("dtype, breaks", [
    ("F32", {2: NAN}),  # later ones are finite
    ("F16", {4: INF}),  # as at a step that a dynamic scale skips
])
def test_tensors_that_do_not(tmp_path, dtype, breaks):
    for line in first_lines(folder_of(tmp_path / "log", dtype, breaks), tmp_path):
        assert "last recorded step" not in line and "to the last" not in line


def test_the_scale_is_that_of_the_finite_gradients(tmp_path):
    said = stdout_of("recommend", folder_of(tmp_path / "log", "F32", {4: NAN})).splitlines()
    assert said[1].startswith("The finite gradients of this log need no loss scale. If you use one, it can be up to ")
    log = folder_of(tmp_path / "bf16", "BF16", {4: NAN})
    asked = stdout_of("recommend", log, "--format", "fp16")
    assert asked.startswith("weight_grad/a holds NaN at the last recorded step, 4.")


def test_magnitudes_without_counts(tmp_path):
    log = tmp_path / "te.log"
    log.write_text("".join(
        f"2026-01-01 00:00:00,000 - INFO - l1_wgrad_cur_amax \t\t\t\t iteration={step:06d} \t\t\t\t "
        f"value={'nan' if step >= 5 else '0.0123'}\n" for step in range(10)))
    for line in first_lines(log, tmp_path):
        assert line.startswith(
            "l1_wgrad holds NaN from step 5 to the last, 9, at 5 recorded steps.")
    assert "\nThe finite gradients alone would allow a " in stdout_of("recommend", log)


def run_log(folder, steps):
    """Scalars of every step, as a recorder's, and one tensor at step 0."""
    writer = _halfscope.RunLogWriter(os.fspath(folder), json.dumps(
        {"scaled": False, "rank": 0, "world_size": 1, "sharded": [], "about": {}}))
    values = np.array([0.5, -1e-4], np.float32)
    table, mean, sum_squares, _ = _halfscope.measure(values)
    gathered = _halfscope.Gathered.of(table, "F32", [2], mean, sum_squares)
    writer.write_tensors(0, [("weight_grad/a", gathered, False, 1.0)])
    for step, given in enumerate(steps):
        told = {"loss": 1.0, "learning_rate": 0.1, "loss_scale": 1024.0, "found_inf": False,
                "max_abs_weight_grad": 0.5, "max_abs_activation_grad": 0.5, "more": {}}
        writer.write_scalars(step=step, **{**told, **given})
    return folder


SKIPPED = {"found_inf": True, "max_abs_weight_grad": INF}


@pytest.mark.parametrize("steps, said", [
    ([{}] * 11 + [{"loss": NAN}] * 9, "The loss is NaN or infinite from step 11 to 19"),
    ([{}] + [{"loss": NAN, "loss_scale": 2.0**(16 - step), **SKIPPED} for step in range(59)],
     "Every step from 1 to 59 was skipped, the last at loss scale 2^-42"),
    ([{}] * 20 + [SKIPPED] * 40,
     "Every step from 20 to 59 was skipped, all 40, at loss scale 1024 (2^10). "
     "The scale never changed, and a smaller one may help"),
])
def test_scalars_of_a_run_log(tmp_path, steps, said):
    for line in first_lines(run_log(tmp_path / "log", steps), tmp_path):
        assert line.startswith(said)


def test_a_run_log_with_a_skipped_step_now_and_then(tmp_path):
    steps = [{} if step != 30 else SKIPPED for step in range(60)]
    first = first_lines(run_log(tmp_path / "log", steps), tmp_path)
    assert first[0].startswith("FP16 at loss scale 1: of 2 finite nonzero gradient values")
    assert not any("skipped" in line for line in first)


def test_no_static_scale_that_is_no_more_than_a_bound(tmp_path):
    """At 2^24 all 60 steps of this run are skipped, at 2^22 too: no step says how much is enough."""
    stdout_of("simulate", "mlp", "--precision", "mixed", "--loss-scale", 2**24, "--steps", 60,
              "--seed", 3, "--record-every", 1, "--out", tmp_path / "hot")
    for line in first_lines(tmp_path / "hot", tmp_path):
        assert line.startswith("Every step from 0 to 59 was skipped, all 60, at loss scale 16777216")
    said = stdout_of("recommend", tmp_path / "hot")
    assert said.splitlines()[1].startswith(
        "No static loss scale can be recommended: infinities hide the largest gradients of every "
        "recorded step, so 4194304 (2^22) is only an upper bound.")
    assert said.count("until steps are applied") == 1
    assert "growth_interval=2**31" not in said
    found = json_of("recommend", tmp_path / "hot")
    assert "snippets" not in found
    assert f"init_scale={found['dynamic']['init']:.1f}, " in found["dynamic_snippets"]["pytorch"]
    assert found["dynamic_snippets"]["pytorch"] in said
    page = (tmp_path / "first.html").read_text()
    assert html.escape(found["dynamic_snippets"]["pytorch"]) in page  # as in the terminal
    assert 'name="kind"' not in page and "Loss scale to use" not in page
    assert "A loss scale of 4194304" not in page and "skipped every one of its last" not in page


def test_the_page_of_a_run_that_no_scale_helps_recommends_none(tmp_path):
    page = tmp_path / "page.html"
    for breaks, word in (({4: NAN}, "allowed"), ({}, "recommended")):
        stdout_of("report", folder_of(tmp_path / f"log-{word}", "F32", breaks), "--out", page)
        text = re.sub("<[^>]*>", "", html.unescape(page.read_text()))
        said = set(re.findall(r"(allowed|recommended) \d+ \(2\^", text))
        said |= set(re.findall(r'"(allowed|recommended) 2\^', text))
        assert said == {word}, (word, said)
