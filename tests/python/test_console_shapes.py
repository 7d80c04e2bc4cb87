# SPDX-License-Identifier: Apache-2.0
"""Shapes of lines in which a NaN stood and was not seen, or was seen at another step: a log a case,
with the first step of NaN and the last finite one."""

import pytest

from program import json_of


def loss(nan, finite=2.1):
    return "nan" if nan else finite


def joined(lines):
    return "".join(line + "\n" for line in lines)


def bars(epochs, total, nan):
    """A progress bar of each epoch, without a word of which."""
    return [f"{100 * i // total}%|#  | {i}/{total} [00:0{i}<00:01,  1.0it/s, loss={loss(nan(e, i))}]"
            for e in range(epochs) for i in range(total + 1)]


SHAPES = {
    "a function and its line": (
        [f"m:train:12 - Epoch 1 batch {i} loss {loss(i >= 4)}" for i in range(1, 9)], 4, 3),
    "a header of each step, rows equally wide": (
        [line for i in range(1, 13)
         for line in (f"[Step {i}]", f"train loss {loss(i >= 10, 2.48):>8}   accuracy 0.50 time 1.0")],
        10, 9),
    "two losses below a header": (
        [line for i in range(1, 8)
         for line in (f"Epoch {i}", f"D loss: {loss(i >= 4)}", "G loss: 1.0")], 4, 3),
    "a header far above": (
        [line for i in range(1, 11)
         for line in (f"Epoch {i}", *["warning: slow"] * 40, f"loss {loss(i >= 8)}")], 8, 7),
    "one header above all": (
        ["Epoch 1", *[f"loss: {loss(i > 40)}" for i in range(60)]], 41, 40),
    "a table whose step comes last": (
        ["loss  acc  epoch", *[f"{loss(i >= 5)} 0.5 {i}" for i in range(1, 9)]], 5, 4),
    "a table with an empty cell": (
        ["epoch loss loss_aux", *[f"{i} {loss(i >= 5)} -" for i in range(1, 9)]], 5, 4),
    "a table of two columns": (["step loss", *[f"{i} {loss(i >= 5)}" for i in range(1, 9)]], 5, 4),
    "the loss before a bar": (
        [f"loss {loss(i > 3)}: {10 * i}%|#   | {i}/10 [00:02<00:00, 1.0it/s]" for i in range(1, 11)],
        4, 3),
    "the loss of an epoch beside its batches": (
        [f"Epoch {e} [{i}/5] loss 1.0" for e in (1, 2) for i in range(1, 6)] +
        ["Epoch 2 train loss nan"], 10, 9),
    "a message at the end": (
        [f"step {i} loss 2.1" for i in range(1, 41)] + ["Loss is nan, stopping training"], 40, 39),
    "a rate above each loss": (
        [line for i in range(1, 61) for line in (f"step {i} lr 0.1", f"loss: {loss(i >= 41)}")],
        41, 40),
    "a tensor": (
        [f"it {i} loss: tensor({loss(i >= 6)}, device='cuda:0')" for i in range(1, 12)], 6, 5),
    "bars of epochs": (bars(6, 3, lambda e, i: (e, i) >= (4, 2)), 14, 13),
    "an epoch and its batch in brackets": (
        [f"[{e}, {i:5d}] loss: {loss((e, i) >= (2, 6000))}"
         for e in (1, 2) for i in range(2000, 13000, 2000)], 18000, 16000),
    "steps between those of a counter": (
        [line for i in range(1, 75)
         for line in ([f"step={i}, skipped=0, lr=[0.1]"] if i % 10 == 0 else
                      [f"step {i}: loss {loss(i >= 62)}"])], 62, 61),
}


def recommend(folder, text):
    log = folder / "train.log"
    log.write_text(text)
    return json_of("recommend", log)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.replace(" ", "-"))
def test_the_first_nan_is_seen_at_its_step(tmp_path, shape):
    lines, since, finite = SHAPES[shape]
    log = recommend(tmp_path, joined(lines))["timeline"][0]
    assert (log.get("state"), log.get("nonfinite_since"), log.get("last_finite")) == \
        ("broken", since, finite)


def test_lines_of_a_validation_are_no_training(tmp_path):
    """They have the training's form, and are finite again."""
    lines = []
    for epoch in (1, 2):
        lines += [f"batch count: {i}/308, iter: {i}, loss: {loss((epoch, i) >= (2, 100))}"
                  for i in range(0, 308, 20)]
        lines += [f"Validation at epoch {epoch}", "batch count: 0/309, iter: 0, loss: 1.5"]
    log = recommend(tmp_path, joined(lines))["timeline"][0]
    assert (log["state"], log["nonfinite_since"], log["last"]) == ("broken", 401, 601)


def test_a_part_of_a_finite_loss_is_said(tmp_path):
    found = recommend(tmp_path, joined(
        f"step {i} loss 2.1 loss_ctc {loss(i >= 20)}" for i in range(1, 41)))
    assert "loss_ctc, a part of the loss, is NaN or infinite from step 20" in found["answer"]["headline"]
    assert found["timeline"][0]["bad_loss_part"] == {"step": 20, "name": "loss_ctc", "bad": 1, "of": 1}


def test_a_nan_in_a_pass_before_is_no_restart(tmp_path):
    lines = [f"iter {i} loss {loss((e, i) == (1, 5))}" for e in range(3) for i in range(12)]
    assert recommend(tmp_path, joined(lines))["timeline"][0]["nonfinite_since"] == 17


@pytest.mark.parametrize("text", ["1/" * 20000, "1/2 " * 20000, "1 " * 20000, ")1" * 50000],
                         ids=["slashes", "totals", "numbers", "brackets"])
def test_a_line_of_nothing_but_numbers_is_read_soon(tmp_path, text):
    recommend(tmp_path, text + "\nstep 1 loss 2\nstep 2 loss 3\n")


@pytest.mark.parametrize("printed, scale", [("4,294,967,296", 2.0**32), ("65536.0", 65536)])
def test_a_scale_with_separators(tmp_path, printed, scale):
    lines = [f"step {i} loss 2.1 loss_scale: {printed}" for i in range(1, 10)]
    assert recommend(tmp_path, joined(lines))["timeline"][0]["last_scale"] == scale


def test_a_scale_by_its_value(tmp_path):
    """A loop written by hand calls it 'scale': a power of two is a loss scale, other numbers are not."""
    for scale, known in ((65536.0, True), (0.18215, False)):
        lines = [f"step {i} loss 2.1 scale={scale}" for i in range(1, 10)]
        assert ("last_scale" in recommend(tmp_path, joined(lines))["timeline"][0]) == known
