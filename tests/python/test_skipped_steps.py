# SPDX-License-Identifier: Apache-2.0
"""Skipped steps of another tool's log bound the scale that gradients beside it would allow."""
import functools
import json
import subprocess

import numpy as np

from program import PROGRAM, run, valid_json_of, words_of

SKIPPED = ("[INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
           "Attempted loss scale: {}, reducing to {}\n")
PRINTED = "[INFO] [logging.py:96:log_dist] [Rank 0] step={}, skipped={}, lr=[0.001], mom=[0.9]\n"
recommended = functools.partial(valid_json_of, "recommend")


def write_gradients(folder, largest):
    for step in (10, 20):
        np.savez(folder / f"grads-step-{step}.npz",
                 **{"weight_grad/head": np.float32([largest, -largest / 3, largest / 100])})


def write_skips(folder, scales):
    """All between steps 11 and 20, each halving the scale."""
    with open(folder / "train.out", "w") as out:
        out.write(PRINTED.format(10, 0))
        for scale in scales:
            out.write(SKIPPED.format(scale, scale / 2))
        out.write(PRINTED.format(20, len(scales)))


def test_a_skipped_step_bounds_the_scale(tmp_path):
    write_gradients(tmp_path, 2.0 ** -10)
    free = recommended(tmp_path)
    assert free["highest"] == 2 ** 24  # 2^-10 * 2^24 * 2 is below 65520, twice that is not
    write_skips(tmp_path, [2.0 ** 20])
    bound = recommended(tmp_path)
    # 65520 / 2^20 or more: 2^18 keeps a binade free below the scale that overflowed.
    assert bound["highest"] == bound["static_scale"] == 2 ** 18
    limit = bound["limited_by"]
    assert limit["skipped_at"] == 2 ** 20 and limit["censored"] is True
    assert (limit["first_step"], limit["step"]) == (11, 20)
    assert limit["max_abs"] == 65520 / 2 ** 20
    text = words_of("recommend", tmp_path, "--details")
    assert ("at most 262144 (2^18): the log does not show how large the gradients of a skipped step "
            "were.") in text
    assert "one of steps 11 to 20 was skipped at loss scale 1048576 (2^20)" in text
    page = tmp_path.with_suffix(".html")
    words_of("report", tmp_path, "--out", page)
    assert "one of steps 11 to 20 was skipped at loss scale 1048576" in page.read_text()


def test_a_scale_that_collapses_in_vain_bounds_nothing_and_is_told_first(tmp_path):
    write_gradients(tmp_path, 2.0 ** -10)
    write_skips(tmp_path, [2.0 ** k for k in range(9, -1, -1)])
    found = recommended(tmp_path)
    assert found["highest"] == 2 ** 24 and "skipped_at" not in found["limited_by"]
    told = words_of("recommend", tmp_path)
    assert told.startswith("Every step from 11 to 20 was skipped, the last at loss scale 2^-1: no "
                           "update was applied after step 10")
    details = words_of("recommend", tmp_path, "--details")
    assert "The scale fell from 512 (2^9) to 2^-1 between steps 11 and 21." in details
    page = tmp_path.with_suffix(".html")
    words_of("report", tmp_path, "--out", page)
    assert "<strong>Every step from 11 to 20 was skipped" in page.read_text()


def test_infinities_left_out_leave_the_chance_of_a_skip_open(tmp_path):
    """W&B drops infinities: no step is surely clean, unless a scalar says so."""
    def write(more):
        buckets = {"_type": "histogram", "bins": [-1.0, 0.0, 1.0], "values": [5, 7]}
        rows = [{"_step": step, "gradients/head": buckets, **more} for step in range(20)]
        (tmp_path / "history.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
        return recommended(tmp_path / "history.jsonl")["skip"]["interval"]
    assert write({})[1] == 1
    assert write({"found_inf": 0})[1] < 0.2


def test_replays_say_that_skipped_steps_are_missing(tmp_path):
    write_gradients(tmp_path, 2.0 ** -10)
    write_skips(tmp_path, [2.0 ** 20, 2.0 ** 19])
    done = run("policies", tmp_path, "--assume-constant-between")
    assert "the run skipped 2 steps, but the log does not say which ones" in done.stderr


def test_a_scale_that_halves_tells_a_skipped_step(tmp_path):
    def write(after):
        rows = [{"_step": step, "loss_scale": 2.0 ** 20 if step < 10 else after,
                 "gradients/head": {"_type": "histogram", "bins": [2.0 ** -12, 2.0 ** -10],
                                    "values": [9]}} for step in range(20)]
        (tmp_path / "history.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
        return recommended(tmp_path / "history.jsonl")["limited_by"]
    limit = write(2.0 ** 19)
    assert limit["skipped_at"] == 2 ** 20 and limit["step"] == 9 and "first_step" not in limit
    assert "skipped_at" not in write(2.0 ** 16)  # the run may have been started again


def test_a_role_that_no_tensor_has_a_name_for(tmp_path):
    write_gradients(tmp_path, 1.0)
    done = run("analyze", tmp_path, "--role", "*.bias=weight", "--role", "*head=weight_grad")
    assert "--role '*.bias=weight': matches no selected tensor; the first of these is " \
        "'weight_grad/head'" in done.stderr
    assert "*head=" not in done.stderr


def test_messages_of_apex_tell_what_the_scale_became(tmp_path):
    write_gradients(tmp_path, 2.0 ** -10)
    line = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}\n"
    (tmp_path / "train.out").write_text("".join(line.format(2.0 ** k) for k in (14, 20, 20)))
    limit = recommended(tmp_path)["limited_by"]
    # The first was at 2^15: of the others the scale had grown before.
    assert limit["skipped_at"] in (2 ** 15, 2 ** 21) and limit["numbered"] is True
    assert "a step was skipped at loss scale" in words_of("recommend", tmp_path, "--details")


def test_one_message_of_apex_alone_is_valid_json(tmp_path):
    line = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0\n"
    (tmp_path / "train.out").write_text(line)
    recommended(tmp_path)
    assert "Largest magnitudes before it" not in words_of("recommend", tmp_path)


def test_every_rank_printing_does_not_overrule_the_counter(tmp_path):
    line = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}\n"
    text = "".join(line.format(2.0 ** k) * 4 for k in (15, 14, 13))
    (tmp_path / "train.out").write_text(text + PRINTED.format(10, 3))
    done = subprocess.run([PROGRAM, "analyze", tmp_path, "--json", "-"], capture_output=True,
                          text=True)
    assert json.loads(done.stdout)["timeline"][0]["skipped"] == 3
    assert "more overflow lines" not in done.stderr


def test_two_engines_in_one_log_are_two_logs(tmp_path):
    lines = "".join(PRINTED.format(step, 3) + PRINTED.format(step, 1) for step in (10, 20, 30))
    (tmp_path / "train.out").write_text(lines)
    done = subprocess.run([PROGRAM, "analyze", tmp_path, "--json", "-"], capture_output=True,
                          text=True)
    assert [log["skipped"] for log in json.loads(done.stdout)["timeline"]] == [3, 1]
    assert "two engines write to the log" in json.loads(done.stdout)["timeline"][0]["remarks"][0]


def test_a_restart_in_csv_metrics_is_no_skipped_step(tmp_path):
    rows = [f"{8 * (n + 1)},{2.0 ** 20 if n < 20 else 2.0 ** 16}\n" for n in range(40)]
    (tmp_path / "Train_Samples_loss_scale.csv").write_text("step,loss_scale\n" + "".join(rows))
    write_gradients(tmp_path, 2.0 ** -10)
    assert recommended(tmp_path)["highest"] == 2 ** 24


def write_history(folder, rows):
    log = folder / "history.jsonl"
    log.write_text("\n".join(json.dumps(row) for row in rows))
    return log


def histogram(*edges):
    return {"_type": "histogram", "bins": edges, "values": [9] * (len(edges) - 1)}


def test_gradients_that_carry_the_scale_are_said_to(tmp_path):
    rows = [{"_step": step, "loss_scale": 4096.0, "gradients/head": histogram(1000.0, 1001.0)}
            for step in range(20)]
    log = write_history(tmp_path, rows)
    text = words_of("recommend", log)
    assert text.startswith("The gradients seem to carry the loss scale: multiplied by their "
                           "step's scale, those of 19 of 20 steps would overflow")
    assert "init_scale" not in text and "Give --recorded-scale 'loss_scale'" in text.splitlines()[0]
    table = words_of("analyze", log, "--loss-scale", "4096")
    assert table.startswith("The gradients seem to carry the loss scale") and "Values of" not in table
    found = recommended(log)
    assert (found["seems_scaled"]["steps"], found["seems_scaled"]["of"]) == (19, 20)
    told = words_of("recommend", log, "--recorded-scale", "loss_scale")
    assert "seem to carry" not in told and "init_scale" in told
    page = tmp_path / "page.html"
    words_of("report", log, "--out", page)
    assert "<strong>The gradients seem to carry" in page.read_text()
    assert "id=\"paste\"" not in page.read_text()


def test_a_largest_value_that_is_a_buckets_edge_is_at_most(tmp_path):
    log = write_history(tmp_path, [{"_step": 0, "gradients/dead": histogram(-0.5, 0.5)}])
    assert "its largest magnitude is at most 0.5" in words_of("recommend", log, "--details")


def test_infinities_between_recorded_steps_that_no_scale_cures(tmp_path):
    """Gradients every 10 steps, the loss and a scale that falls at every step."""
    from tensorboardX import SummaryWriter
    scale = 2.0 ** 15
    with SummaryWriter(str(tmp_path / "tb")) as writer:
        for step in range(61):
            if step % 10 == 0:
                gradients = np.float32([0.5, -0.25, 0.125]) * np.float32(scale)
                if step >= 30:
                    gradients[0] = np.inf
                writer.add_histogram("grads/head", gradients, step)
            writer.add_scalar("amp/scale", scale, step)
            writer.add_scalar("loss", 0.7, step)
            if step >= 30:
                scale /= 2
    arguments = (tmp_path / "tb", "--recorded-scale", "amp/scale")
    found = recommended(*arguments)
    (event,) = found["overflow_events"]
    assert (event["step"], event["last_step"], event["cause"]) == (30, 60, "nan_in_model")
    assert found["timeline"][0]["falls"][0]["from"] == 2 ** 15
    assert found["highest"] == 2 ** 15  # by 0.5, with a binade to spare; infinities bound nothing
    text = words_of("recommend", *arguments)
    assert text.startswith("The loss scale collapsed from 32768 (2^15) to")
    assert "Infinity in the model from step 30" in text
