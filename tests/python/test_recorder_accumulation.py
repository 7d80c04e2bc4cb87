# SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation: with parameters in FP32, autocast or not, FP32 holds the sum over
microbatches and FP16 the parts alone. What is advised is held against the same steps in FP16."""

import contextlib

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder
from program import run, schema, stdout_of

MICROBATCHES, STEPS = 16, 20
HAS_AUTOCAST = hasattr(torch, "get_autocast_dtype")  # before 2.4 the CPU's has no FP16


def network():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 10))


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.02)


def loss_of(model, number):
    """One class, so that the gradients of microbatches agree and their sum is the larger for it."""
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(16, 20, generator=generator) + 0.5
    logits = model(x).float()
    return nn.functional.cross_entropy(logits, torch.zeros(16, dtype=torch.long)) / MICROBATCHES


def round_to_fp16(model):
    """What autocast does to gradients: those of outputs and of weights go through FP16."""
    def rounded(gradient):
        return gradient.half().float()

    def outputs_are_rounded(module, inputs, output):
        output.register_hook(rounded)

    for module in model:
        module.register_forward_hook(outputs_are_rounded)
    for parameter in model.parameters():
        parameter.register_hook(rounded)


def train(precision, scale):
    """Trains with a static scale, clipped. Returns how many steps were skipped."""
    model = network()
    optimizer = optimizer_of(model)
    cast = contextlib.nullcontext()
    if precision == "autocast":
        cast = torch.autocast("cpu", torch.float16)
    else:
        round_to_fp16(model)
    skipped = 0
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        for part in range(MICROBATCHES):
            with cast:
                loss = loss_of(model, MICROBATCHES * step + part)
            (loss * scale).backward()
            for p in model.parameters() if precision == "half" else ():
                p.grad.copy_(p.grad.half())
        for p in model.parameters():
            p.grad.div_(scale)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if all(torch.isfinite(p.grad).all() for p in model.parameters()):
            optimizer.step()
        else:
            skipped += 1
    return skipped


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The run in FP32."""
    folder = tmp_path_factory.mktemp("fp32") / "run"
    model = network()
    optimizer = optimizer_of(model)
    with Recorder(model, optimizer, folder, every=5) as recorder:
        for step in range(STEPS):
            optimizer.zero_grad()
            for part in range(MICROBATCHES):
                recorder.loss(loss_of(model, MICROBATCHES * step + part)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return folder


@pytest.mark.parametrize("times, overflows", [(1, False), (4, True)])
@pytest.mark.parametrize("precision, key", [
    ("emulated", "static_scale"), ("half", "highest_if_half"),
    pytest.param("autocast", "static_scale", marks=pytest.mark.skipif(
        not HAS_AUTOCAST, reason="this PyTorch has no autocast to FP16 on a CPU"))])
def test_training_in_fp16_overflows_above_the_advised_scale_alone(recorded, precision, key, times,
                                                                  overflows):
    """A binade of headroom is advised: at twice the scale steps may hold."""
    scale = halfscope.recommend(recorded)[key]
    assert (train(precision, times * scale) > 0) == overflows


def test_the_sum_bounds_parameters_in_fp16_alone(recorded, read_log):
    advice = halfscope.recommend(recorded)
    scalars = read_log(recorded).scalars
    largest_sum = max(step["max_abs_weight_grad"] for step in scalars.values())
    largest_part = max(value for step in scalars.values() for tag, value in step["more"].items()
                       if tag.startswith("max_abs/weight_grad/microbatch-"))
    assert largest_sum > 8 * largest_part  # else the test shows nothing
    assert advice["limited_by"]["max_abs"] == largest_part
    for scale, most in ((advice["static_scale"], largest_part),
                        (advice["highest_if_half"], largest_sum)):
        assert scale * most < 65520 / 2 <= 2 * scale * most


def test_the_answer_says_what_parameters_in_fp16_need(recorded, tmp_path):
    schema("recommend").validate(halfscope.recommend(recorded))
    scale = int(halfscope.recommend(recorded)["highest_if_half"])
    line = f"added up in FP16: then use at most {scale} "
    assert line in stdout_of("recommend", recorded, "--details")
    run("report", recorded, "--out", tmp_path / "page.html")
    assert line in (tmp_path / "page.html").read_text()


def test_policies_and_the_chance_of_an_overflow_follow_the_parts(recorded):
    advice = halfscope.recommend(recorded)
    scale = advice["static_scale"]
    (at,) = [row for row in advice["scales"] if 2.0 ** row["log2_scale"] == scale]
    assert at["overflow_steps"] == 0
    traces = halfscope.policies(recorded, policies=[f"static,scale={scale}",
                                                    f"static,scale={4 * scale}"])
    mine = [t for t in traces if t["policy"].startswith("static")]
    assert mine[0]["skipped"] == [] and len(mine[1]["skipped"]) > 0


def test_a_scaled_run_is_replayed_as_it_went(tmp_path, stand_in_scaler):
    """At step after step FP32 holds a sum that FP16 would not."""
    model = network()
    optimizer, scaler = optimizer_of(model), stand_in_scaler(2.0**21, growth_interval=4)
    round_to_fp16(model)
    with Recorder(model, optimizer, tmp_path / "run", every=5, scaler=scaler):
        for step in range(STEPS):
            optimizer.zero_grad()
            for part in range(MICROBATCHES):
                scaler.scale(loss_of(model, MICROBATCHES * step + part)).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    (own,) = [trace for trace in halfscope.policies(tmp_path / "run")
              if trace["policy"] == "recorded"]
    assert own["replay"]["equal"] and 0 < len(own["skipped"]) < STEPS


def test_steps_of_one_microbatch_among_others_are_known(tmp_path):
    """An odd number of batches, two a step: the last step of an epoch has one."""
    model = network()
    optimizer = optimizer_of(model)
    with Recorder(model, optimizer, tmp_path / "run", every=5) as recorder:
        for epoch in range(3):
            for number in range(9):
                recorder.loss(loss_of(model, 9 * epoch + number)).backward()
                if number % 2 == 1 or number == 8:
                    optimizer.step()
                    optimizer.zero_grad()
    traces = halfscope.policies(tmp_path / "run", policies=["static,scale=1024"])
    assert not [trace for trace in traces if trace["unknown"]]
