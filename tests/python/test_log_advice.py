# SPDX-License-Identifier: Apache-2.0
"""What is advised from the lines that frameworks print, where a wrong word would mislead."""
import json
import math
import subprocess

from printed_runs import FORMS, icefall, mindspore, run_of
from program import PROGRAM, json_of, stdout_of, words_of

QUIET = [0.3 + 0.1 * math.sin(n) for n in range(1000)]


def timeline(log):
    [found] = json_of("analyze", log)["timeline"]
    return found


def written(folder, lines):
    path = folder / "train.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_no_step_after_the_last_line_is_counted(tmp_path):
    run = run_of(QUIET, "normal", scale=2.0 ** 15, window=1000)
    assert run.steps[-1].after == 2.0 ** 16
    for form in ("Megatron-LM", "MindSpore", "PaddleNLP"):
        log = written(tmp_path, FORMS[form](run))
        assert timeline(log)["last"] == 1000, form
        assert timeline(log)["last_scale"] == 2.0 ** 16, form
        assert "1001" not in stdout_of("analyze", log)


def test_halvings_between_lines_are_no_upper_bound(tmp_path):
    run = run_of(QUIET, "skipping", scale=2.0 ** 17, window=10)
    assert sum(step.skipped for step in run.steps) == 79
    log = written(tmp_path, FORMS["NeMo"](run))
    assert timeline(log)["state"] == "unknown"
    text = words_of("recommend", log)
    assert "normal: the loss scale was halved 20 times" in text
    assert "20 to 495 of the steps 9 to 999" in text  # it may grow after each clean step


def test_sparse_lines_are_normal_as_far_as_growth_bounds_what_they_hide(tmp_path):
    # Between lines 50 steps apart a scale that grows after 10 steps is skipped unseen.
    fast = run_of(QUIET * 4, "unknown", scale=1.0, window=10)
    log = written(tmp_path, icefall(fast, every=50))
    assert sum(step.skipped for step in fast.steps) > 200
    assert timeline(log)["state"] == "unknown"
    usual = run_of(QUIET * 4, "normal", scale=2.0 ** 17, window=400)
    log = written(tmp_path, icefall(usual, every=50))
    assert 1 < sum(step.skipped for step in usual.steps) < 40
    assert timeline(log)["state"] == "normal"
    assert ("1 to 50 of the steps 50 to 4000 (0.025 % to 1.27 %) were skipped, if the scale doubles "
            "after 100 clean steps or more.") in words_of("analyze", log)


def test_nemo_counts_steps_where_its_bar_counts_batches(tmp_path):
    # Four batches a step; the field is of the step, and the bar of the batch.
    lines = [f"Epoch 0: :   1%|#  | {4 * n}/4000 [00:40<2:40:10, 2.50it/s, v_num=0, "
             f"reduced_train_loss=2.0, global_step={n - 1}.0, loss_scale=65536.0]"
             for n in range(1, 101)]
    log = written(tmp_path, lines)
    assert timeline(log)["last"] == 99
    done = subprocess.run([PROGRAM, "analyze", log], capture_output=True, text=True)
    assert "from the progress bar" not in done.stdout + done.stderr


def test_fairseq2_has_settings_of_its_own(tmp_path):
    run = run_of(QUIET, "normal", scale=2.0 ** 17, window=100)
    log = written(tmp_path, FORMS["fairseq2"](run))
    text = stdout_of("recommend", log)
    assert "trainer:\n" in text and "fp16_loss_scale: [131072.0, 0.0001]" in text
    assert "--fp16" not in text
    assert "--fp16-init-scale 131072" in stdout_of("recommend", log, "--framework", "fairseq")


def test_mindspore_is_not_told_to_call_pytorch(tmp_path):
    run = run_of(QUIET, "normal", scale=2.0 ** 17, window=100)
    rates = (line.replace("lr: 1e-04", f"lr: {1e-4 + 1e-7 * n:.7e}")
             for n, line in enumerate(mindspore(run)))
    text = words_of("recommend", written(tmp_path, rates))
    assert "The learning-rate schedule went on at 9 skipped steps" in text
    assert "Let the schedule count applied updates alone" in text
    assert "scheduler.step()" not in text


def apex(scaler, scale):
    return f"Gradient overflow.  Skipping step, loss scaler {scaler} reducing loss scale to {scale}"


def test_the_dead_one_of_two_scalers_is_named(tmp_path):
    healthy = [apex(0, 65536.0)] * 3
    dead = [apex(1, 2.0 ** -n) for n in range(-15, 12)]
    text = words_of("analyze", written(tmp_path, healthy + dead))
    assert "Loss scaler 1 is dead: it has 27 messages of skipped steps, down to loss scale 2^-11" in text
    assert "All else here is of loss scaler 0 alone" in text
    text = words_of("analyze", written(tmp_path, dead + healthy))
    assert "The loss scale of scaler 1 collapsed from 32768 (2^15) to 2^-11" in text
    assert "Loss scaler 0 has 3 messages" in text
    assert "All else here is of loss scaler 1 alone" in text


def deepspeed(hysteresis):
    """Overflows at 2^17 once in 100 steps; each lowers the scale only after some before it."""
    prefix = ("[2026-01-01 00:00:00,000] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] "
              "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 131072, ")
    skipped = 0
    for step in range(1, 1001):
        left = hysteresis - (step - 1) % 100
        if left >= 1:
            skipped += 1
            yield prefix + ("reducing to 65536" if left == 1 else
                            f"but hysteresis is {left}. Reducing hysteresis to {left - 1}")
        if step % 10 == 0:
            yield (f"[2026-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, "
                   f"skipped={skipped}, lr=[0.0001], mom=[(0.9, 0.999)]")


def test_deepspeed_keeps_the_hysteresis_that_it_prints(tmp_path):
    for hysteresis in (1, 2, 3):
        text = stdout_of("recommend", written(tmp_path, deepspeed(hysteresis)))
        assert f'"hysteresis": {hysteresis},' in text


def test_an_infinite_activation_is_no_gradient(tmp_path):
    value = {"type": "torch.Tensor", "dtype": "torch.float16", "shape": [8], "requires_grad": True}
    numbers = {"Max": 2.0, "Min": -1.0, "Mean": 0.0, "Norm": 3.0}
    hold = {"Max": math.inf, "Min": -1.0, "Mean": math.inf, "Norm": math.inf}
    for step, output in ((0, hold), (1, numbers)):
        folder = tmp_path / "dump" / f"step{step}" / "rank0"
        folder.mkdir(parents=True)
        (folder / "dump.json").write_text(json.dumps({
            "task": "statistics", "level": "L0", "dump_data_dir": None, "data": {
                "Module.fc1.Linear.forward.0": {"input_args": [value | numbers],
                                                "input_kwargs": {}, "output": [value | output]}}}))
    text = words_of("analyze", tmp_path / "dump") + words_of("recommend", tmp_path / "dump")
    assert "first in Module.fc1.Linear.forward.0.output.0 at step 0" in text.replace("`", "")
    assert "Gradients hold" not in text
