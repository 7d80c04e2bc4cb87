# SPDX-License-Identifier: Apache-2.0
"""halfscope.torch.emulate with every loss-scaling policy; `halfscope policies` judges the log."""

import json
import re

import pytest
import torch
from torch import nn

from halfscope import binade_table
from halfscope.torch import emulate
from program import stdout_of, words_of

NOT_OF_A_LOSS = ("als", "te-delayed")


def names():
    return re.findall(r"^([a-z0-9-]+): ", stdout_of("policies", "--list"), re.MULTILINE)


def train(run, model, optimizer, steps, spikes=()):
    """Returns the scale of every attempt, and whether it was applied."""
    attempts = []
    generator = torch.Generator().manual_seed(2)
    for step in range(steps):
        optimizer.zero_grad()
        x = torch.randn(8, 6, generator=generator)
        loss = model(x).square().mean() * (2.0 ** 12 if step in spikes else 2.0 ** -3)
        scale = run.loss_scale
        run.backward(loss)
        applied = run.steps - run.skipped
        optimizer.step()
        attempts.append((scale, run.steps - run.skipped > applied))
    return attempts


def network():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


def agrees(folder):
    study = words_of("policies", folder)  # lines may break
    return " gives the same scales and skips at all " in " ".join(study.split())


@pytest.fixture(scope="module")
def policies():
    found = names()
    assert len(found) == 32
    return [name for name in found if name not in NOT_OF_A_LOSS]


def test_every_policy_does_in_a_loop_what_its_replay_does(tmp_path, policies):
    skipped = 0
    for name in policies:
        model, optimizer = network()
        folder = tmp_path / name
        with emulate(model, optimizer, "mixed", name, log=folder, every=50) as run:
            train(run, model, optimizer, 40, spikes=(25, 26, 33))
        assert agrees(folder), name
        skipped += run.skipped > 0
    assert skipped > 20


@pytest.mark.parametrize("precision", ["fp16", "mixed"])
def test_backoff_growth_and_skips_are_what_the_framework_does(tmp_path, read_log, precision):
    model, optimizer = network()
    before = [p.detach().clone() for p in model.parameters()]
    with emulate(model, optimizer, precision, "torch,init_scale=2^40,growth_interval=4",
                 log=tmp_path / "run") as run:
        attempts = train(run, model, optimizer, 40)
    clean = 0
    for (scale, applied), (after, _) in zip(attempts, attempts[1:]):
        clean = clean + 1 if applied else 0
        grown = clean == 4
        assert after == scale * (0.5 if not applied else 2 if grown else 1)
        clean = 0 if grown else clean
    assert run.steps == 40 and run.skipped == sum(not applied for _, applied in attempts) > 5
    log = read_log(tmp_path / "run")
    assert [log.scalars[step]["found_inf"] for step in range(40)] == [not a for _, a in attempts]
    assert [log.scalars[step]["loss_scale"] for step in range(40)] == [s for s, _ in attempts]
    assert ("update/0.weight", 0) not in log.tables
    assert agrees(tmp_path / "run")
    assert not all(torch.equal(p, q) for p, q in zip(model.parameters(), before))


def test_a_skipped_step_leaves_weights_and_state_alone():
    model, optimizer = network()
    with emulate(model, optimizer, "mixed", "torch,init_scale=2^60") as run:
        before = run.master_weights()
        assert [applied for _, applied in train(run, model, optimizer, 3)] == [False] * 3
        assert all(torch.equal(values, before[name]) for name, values in run.master_weights().items())
    assert not optimizer.state


def test_an_activations_gradient_that_overflows_alone_is_an_overflow(tmp_path):
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU())
    model[0].weight.data.fill_(-1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with emulate(model, optimizer, "mixed", "torch,init_scale=16", log=tmp_path / "run") as run:
        run.backward(model(torch.ones(1, 1)).sum() * 2.0 ** 13)  # stops at the ReLU
        assert model[0].weight.grad == 0
        optimizer.step()
        assert run.skipped == 1 and run.loss_scale == 8
    assert agrees(tmp_path / "run")


def test_a_policy_that_follows_magnitudes_follows_those_of_weights(tmp_path):
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    for layer in model:
        layer.weight.data.fill_(1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, optimizer, "mixed", "nvcaffe,adaptive=true", log=tmp_path / "run") as run:
        for _ in range(3):
            optimizer.zero_grad()
            run.backward(model(torch.full((1, 1), 0.25)).sum() * 4)  # d/dw 1, d/dy 4
            optimizer.step()
        assert run.loss_scale == 4
    assert agrees(tmp_path / "run")


def test_gradients_that_stay_fp32_do_not_overflow_where_16_bits_would(tmp_path, read_log):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with emulate(model, optimizer, "mixed", "torch,init_scale=4096", log=tmp_path / "run") as run:
        run.backward(model(torch.randn(64, 4)).sum())
        assert (model[1].bias.grad == 64 * 4096).all()
        optimizer.step()
        assert run.skipped == 0
    scalars = read_log(tmp_path / "run").scalars[0]
    assert scalars["max_abs_weight_grad"] * 4096 < 65504 and not scalars["found_inf"]
    assert agrees(tmp_path / "run")


def test_a_step_that_is_tried_again_takes_the_next_batch_and_is_one_step(tmp_path, read_log):
    model, optimizer = network()
    with emulate(model, optimizer, "mixed", "nnabla,scale=2^24", log=tmp_path / "run") as run:
        attempts = train(run, model, optimizer, 30)
    tried = [applied for _, applied in attempts].index(True)
    assert tried > 2
    log = read_log(tmp_path / "run")
    assert sorted(log.scalars) == list(range(sum(applied for _, applied in attempts)))
    more = log.scalars[0]["more"]
    assert [more[f"loss_scale/attempt-{i}"] for i in range(tried + 1)] == [
        scale for scale, _ in attempts[:tried + 1]]
    assert more[f"max_abs/weight_grad/attempt-{tried}"] == log.scalars[0]["max_abs_weight_grad"]
    assert log.scalars[0]["loss_scale"] == attempts[tried][0] and not log.scalars[0]["found_inf"]
    assert log.tables["weight_grad/0.weight", 0]["scale"] == attempts[tried][0]
    assert agrees(tmp_path / "run")


def test_a_policys_error_ends_the_loop_and_the_log_is_whole(tmp_path, read_log):
    model, optimizer = network()
    policy = "deepspeed,init_scale=4,min_scale=4"
    with pytest.raises(RuntimeError, match="loss scaling by deepspeed ends training here"):
        with emulate(model, optimizer, "mixed", policy, log=tmp_path / "run") as run:
            train(run, model, optimizer, 6)
            model[3].bias.data.fill_(float("nan"))
            train(run, model, optimizer, 1)
    assert sorted(read_log(tmp_path / "run").scalars) == list(range(6))
    assert "step" not in vars(optimizer)


def test_without_a_policy_infinity_goes_into_the_weights():
    model, optimizer = network()
    with emulate(model, optimizer, "mixed") as run:
        run.backward(model(torch.ones(8, 6) * torch.randn(8, 1)).square().mean() * 2.0 ** 40)
        optimizer.step()
    assert run.skipped == 0 and not torch.isfinite(model[3].weight).all()


def test_clipping_after_unscaling_sees_true_gradients_and_the_log_what_backward_made(tmp_path, read_log):
    model, optimizer = network()
    with emulate(model, optimizer, "mixed", 2.0 ** 10, log=tmp_path / "run") as run:
        optimizer.zero_grad()
        run.backward(model(torch.randn(8, 6)).square().mean())
        scaled = model[3].weight.grad.clone()
        run.unscale_()
        assert torch.equal(model[3].weight.grad, scaled / 2.0 ** 10)
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
    record = read_log(tmp_path / "run").tables["weight_grad/3.weight", 0]
    assert record["scaled"] and record["scale"] == 2.0 ** 10
    assert record["table"] == binade_table(scaled)
    assert record["source_dtype"] == record["computed_dtype"] == "F16"


def test_the_manifest_says_what_was_emulated(tmp_path):
    model, optimizer = network()
    with emulate(model, optimizer, "mixed", "torch,growth_interval=7", log=tmp_path / "run",
                 about={"data": "noise"}):
        pass
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert run["precision"] == "mixed" and run["data"] == "noise" and run["gradients"] == "scaled"
    assert run["loss_scaling"]["policy"] == "torch"
    assert run["loss_scaling"]["growth_interval"] == 7
    assert run["loss_scaling"]["init_scale"] == 65536
