# SPDX-License-Identifier: Apache-2.0
"""Logs without tensors: console lines and DeepSpeed's CSV metrics, alone and beside gradients."""
import csv
import functools
import json

import numpy as np
import pytest

import halfscope
from halfscope import _halfscope
from program import json_of, run, valid_json_of, words, words_of


analyzed = functools.partial(valid_json_of, "analyze")


def dynamic_scale(maxima, scale=65536.0, window=1000):
    """DeepSpeed's rule without hysteresis: (scale, skipped) of each step, and the scale after."""
    trace, last_overflow = [], -1
    for step, largest in enumerate(maxima):
        overflow = not largest * scale < 65520
        trace.append((scale, overflow))
        if overflow:
            scale, last_overflow = max(scale / 2, 1), step
        elif (step - last_overflow) % window == 0:
            scale *= 2
    return trace, scale


@pytest.fixture
def collapse():
    """From step 20 on one tensor's gradients grow by 4 each step."""
    return [0.5 if step < 20 else 0.5 * 4 ** (step - 19) for step in range(26)]


def write_console(folder, maxima, every):
    """As DeepSpeed prints with steps_per_print=every."""
    trace, after = dynamic_scale(maxima)
    skipped = 0
    with open(folder / "train.out", "w") as out:
        out.write("[2024-01-01 00:00:00,000] [INFO] [config.py:986:print_user_config]   json = {\n")
        for step, (scale, overflow) in enumerate(trace):
            following = trace[step + 1][0] if step + 1 < len(trace) else after
            if overflow:
                skipped += 1
                out.write("[2024-01-01 00:00:01,000] [INFO] [loss_scaler.py:183:update_scale] "
                          "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "
                          f"{scale:g}, reducing to {following:g}\n")
            if (step + 1) % every == 0:
                out.write(f"[2024-01-01 00:00:01,000] [INFO] [logging.py:96:log_dist] [Rank 0] "
                          f"step={step + 1}, skipped={skipped}, lr=[0.001], mom=[(0.9, 0.999)]\n")
    return trace, after


def write_csv(folder, maxima, batch):
    """As DeepSpeed's csv_monitor writes: after every step, by samples."""
    trace, after = dynamic_scale(maxima)
    scales = [scale for scale, _ in trace[1:]] + [after]
    with open(folder / "Train_Samples_loss_scale.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "loss_scale"])
        writer.writerows([(n + 1) * batch, scale] for n, scale in enumerate(scales))
    return trace, after


def test_a_console_log_that_prints_every_step(tmp_path, collapse):
    trace, after = write_console(tmp_path, collapse, every=1)
    [timeline] = analyzed(tmp_path)["timeline"]
    assert timeline["skipped_steps"] == [n + 1 for n, (_, skip) in enumerate(trace) if skip]
    assert timeline["skipped"] == len(timeline["skipped_steps"]) == 6
    assert (timeline["first"], timeline["last"], timeline["steps"]) == (1, 26, 26)
    assert timeline["loss_scale"]["last"] == after
    assert "skipped_between" not in timeline and "numbered" not in timeline
    [fall] = timeline["falls"]
    assert fall["from"] == max(s for s, skip in trace[10:]) and fall["to"] == after
    assert fall["first"] >= 20
    text = words(run("analyze", tmp_path).stdout)
    assert "the loss scale may start too high" in text and "The cause is unknown" not in text


def test_between_printed_steps_skipped_ones_are_counted(tmp_path, collapse):
    trace, _ = write_console(tmp_path, collapse, every=13)
    [timeline] = analyzed(tmp_path)["timeline"]
    assert timeline["skipped_steps"] == []
    between = timeline["skipped_between"]
    assert [(r["first"], r["last"]) for r in between] == [(14, 26)]
    assert [r["count"] for r in between] == [sum(skip for _, skip in trace[13:])]
    assert timeline["skipped"] == sum(skip for _, skip in trace)
    assert "of steps 14 to 26" in words(run("analyze", tmp_path).stdout)


def test_csv_metrics_tell_the_same_steps(tmp_path, collapse):
    trace, after = write_csv(tmp_path, collapse, batch=32)
    [timeline] = analyzed(tmp_path)["timeline"]
    # The scale before the first step is not in the file, so whether it was skipped is not known.
    assert timeline["skipped_steps"] == [n + 1 for n, (_, skip) in enumerate(trace)
                                         if skip and n > 0]
    assert timeline["loss_scale"]["last"] == after
    assert [c["from"] for c in timeline["changes"]] != []


@pytest.mark.parametrize("scale, state", [(2.0 ** 16, "normal"), (512.0, "unknown")])
def test_a_scale_that_may_be_at_its_minimum_hides_skipped_steps(tmp_path, scale, state):
    """Nothing but a fall of the scale shows a skipped step."""
    rows = [(n, scale if n <= 100 else scale / 2) for n in range(1, 401)]
    with open(tmp_path / "Train_Samples_loss_scale.csv", "w", newline="") as file:
        csv.writer(file).writerows([("step", "loss_scale"), *rows])
    assert analyzed(tmp_path)["timeline"][0]["state"] == state


def test_a_fall_over_missing_rows_is_as_many_skipped_steps_as_halvings(tmp_path):
    rows = [(n, 2.0 ** 16 if n <= 100 else 2.0 ** 14) for n in range(1, 401) if not 100 < n < 105]
    with open(tmp_path / "Train_Samples_loss_scale.csv", "w", newline="") as file:
        csv.writer(file).writerows([("step", "loss_scale"), *rows])
    [timeline] = analyzed(tmp_path)["timeline"]
    [between] = timeline["skipped_between"]
    assert (between["first"], between["last"], between["count"]) == (101, 105, [2, 5])


def test_gradients_beside_a_log_name_what_drove_the_fall(tmp_path, collapse):
    write_csv(tmp_path, collapse, batch=8)
    rng = np.random.default_rng(1)
    for step in (10, 21, 24):
        largest = collapse[step - 1]
        np.savez(tmp_path / f"grads-step-{step}.npz",
                 **{"weight_grad/embedding": np.float32([largest, -largest / 3, 1e-3]),
                    "weight_grad/head": rng.normal(0, 1e-3, 100).astype(np.float32)})
    done = run("analyze", tmp_path)
    assert "treated as one run, joined by step" in done.stderr
    [timeline] = analyzed(tmp_path)["timeline"]
    driver = timeline["falls"][0]["driver"]
    assert driver["tensor"] == "weight_grad/embedding" and driver["step"] == 24
    assert driver["max_abs"] == collapse[23] and "before" not in driver
    assert "weight_grad/embedding came closest to overflow" in words(done.stdout)
    # The tensor's infinities come before larger finite ones.
    np.savez(tmp_path / "grads-step-22.npz",
             **{"weight_grad/head": np.float32([np.inf]), "weight_grad/embedding": np.float32([9])})
    driver = analyzed(tmp_path)["timeline"][0]["falls"][0]["driver"]
    assert driver["tensor"] == "weight_grad/head" and driver["step"] == 22
    assert driver["max_abs"] is None


@pytest.mark.parametrize("command", ["recommend", "report", "policies"])
def test_other_commands_say_what_is_missing(tmp_path, collapse, command):
    logs = tmp_path / "logs"
    logs.mkdir()
    write_console(logs, collapse, every=1)
    if command == "recommend":
        done = run(command, logs)
        assert "The scale fell from" in words(done.stdout)
        found = json_of(command, logs)
        assert found["reason"] == "no_gradients"
    elif command == "report":
        run(command, logs, "--out", tmp_path / "page.html")
        assert (tmp_path / "page.html").stat().st_size > 10000
    else:
        done = run(command, logs)
        assert "has no gradients" in done.stderr
        assert "No dynamic settings are searched" in words(done.stdout)


def test_a_tag_tells_the_scale_of_a_run_log(tmp_path):
    writer = _halfscope.RunLogWriter(tmp_path / "run", json.dumps(
        {"scaled": True, "rank": 0, "world_size": 1, "sharded": [], "about": {}}))
    for step in range(3):
        writer.write_scalars(step=step, loss=1.0, learning_rate=0.1, loss_scale=1024.0,
                             found_inf=False, max_abs_weight_grad=None,
                             max_abs_activation_grad=None, more={"amp/scale": 2.0 ** step})
    del writer
    message = run("analyze", tmp_path / "run", "--recorded-scale", "amp/scal", expect=1).stderr
    assert "has no scalar 'amp/scal'" in message and "'amp/scale', 'loss_scale'" in message


def test_tensor_files_have_no_tags(tmp_path):
    np.save(tmp_path / "a.npy", np.float32([1]))
    message = run("analyze", tmp_path / "a.npy", "--recorded-scale", "amp/scale", expect=1).stderr
    assert "tensor files have no scalars" in message and "2^10" in message
    assert run("analyze", tmp_path / "a.npy", "--recorded-scale", "-3", expect=2).stderr
    assert run("analyze", tmp_path / "a.npy", "--recorded-scale", "2^x", expect=2).stderr
    run("analyze", tmp_path / "a.npy", "--recorded-scale", "2^4")


def test_a_file_of_no_kind_says_where_kinds_are_listed(tmp_path):
    (tmp_path / "notes.txt").write_text("dear diary\n")
    for log in (tmp_path, tmp_path / "notes.txt"):
        refused = run("analyze", log, expect=1).stderr
        assert "'halfscope logs --kinds' lists what it reads" in refused
    for kind in ("run logs", "console logs", "safetensors"):
        assert kind in run("logs", "--kinds").stdout


def test_the_number_of_ranks_is_an_argument(tmp_path):
    line = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n"
    (tmp_path / "log.txt").write_text("loss 3\n" + 4 * line + "loss 2\n")
    for ranks, skipped in ((None, [1, 4]), (2, 2), (4, 1)):
        [timeline] = halfscope.analyze(tmp_path, ranks=ranks)["timeline"]
        assert timeline["skipped"] == skipped
    [timeline] = halfscope.recommend(tmp_path, ranks=4)["timeline"]
    assert timeline["skipped"] == 1
    with pytest.raises(ValueError, match="ranks is 0, expected a whole number"):
        halfscope.analyze(tmp_path, ranks=0)
    assert "--ranks" in run("analyze", tmp_path, "--ranks", "0", expect=2).stderr


@pytest.mark.parametrize("command", ["analyze", "recommend"])
def test_a_log_of_scalars_alone_claims_nothing_about_the_loss_scale(tmp_path, command):
    rows = [{"_step": step, "loss": 2.0, "grad_norm": 1.0} for step in range(9)]
    log = tmp_path / "history.jsonl"
    log.write_text("\n".join(json.dumps(row) for row in rows))
    text = words(run(command, log).stdout)
    assert "The loss is finite at all 9 printed steps. The log shows neither" in text
    run("report", log, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Nothing was found" not in page and "neither a loss scale nor skipped steps" in page


def test_a_norm_that_is_not_finite_in_other_logs_comes_first(tmp_path):
    rows = [{"_step": step, "loss": 2.0, "grad_norm": 1.0 if step < 5 else "NaN"}
            for step in range(9)]
    log = tmp_path / "history.jsonl"
    log.write_text("\n".join(json.dumps(row) for row in rows))
    assert run("analyze", log).stdout.startswith(
        "The gradient norm is NaN or infinite from step 5 to 8, at 4 printed steps.")


def test_a_file_without_steps_beside_one_that_counts(tmp_path):
    """Standard output and standard error of one run."""
    skip = "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, reducing to 4\n"
    counted = "step={}, skipped={}, lr=[0.1], mom=[0.9]\n"
    (tmp_path / "err.txt").write_text(skip)
    (tmp_path / "out.txt").write_text(counted.format(10, 0) + counted.format(20, 1))
    assert "its overflows are skipped" in words_of("analyze", tmp_path)
    [timeline] = analyzed(tmp_path)["timeline"]
    assert timeline["skipped"] == 1
    line = " iteration {}/ 30 | lm loss: 2.0 | loss scale: 8.0 | grad norm: 1.0\n"
    (tmp_path / "out.txt").write_text(line.format(10) + line.format(20))
    [timeline] = analyzed(tmp_path)["timeline"]
    assert timeline["skipped_between"] == [{"first": 10, "last": 20, "count": 1, "from": 8,
                                            "to": 4}]
