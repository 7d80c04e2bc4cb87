# SPDX-License-Identifier: Apache-2.0
"""Backward passes that no step follows: the loop looks at the gradients and skips the batch."""

import math

import pytest
import torch
from small_runs import batch, loss_of, small_network
from torch import nn

import halfscope
from halfscope.torch import Recorder


def by_hand(model, optimizer):
    for p in model.parameters():
        p.grad = None


def in_place(model, optimizer):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.zero_()


# How a loop takes gradients away.
ZEROED = {
    "optimizer, to None": lambda model, optimizer: optimizer.zero_grad(set_to_none=True),
    "optimizer, to zero": lambda model, optimizer: optimizer.zero_grad(set_to_none=False),
    "model, to None": lambda model, optimizer: model.zero_grad(set_to_none=True),
    "model, to zero": lambda model, optimizer: model.zero_grad(set_to_none=False),
    "by hand": by_hand,
    "in place": in_place,
}
BAD = (1, 4)


def loss_with_bad_batches(model, step):
    x, y = batch(step)
    return nn.functional.cross_entropy(model(x * math.inf if step in BAD else x), y)


def guarded_loop(model, optimizer, zero, steps, recorder=None, zero_behind_forward=False):
    """A loop that skips bad batches itself. Returns the losses of steps that were applied."""
    applied = []
    for step in range(steps):
        if not zero_behind_forward:
            zero(model, optimizer)
        loss = loss_with_bad_batches(model, step)
        if recorder:
            recorder.loss(loss)
        if zero_behind_forward:
            zero(model, optimizer)
        loss.backward()
        if not torch.isfinite(nn.utils.clip_grad_norm_(model.parameters(), 1.0)):
            continue
        applied.append(loss.item())
        optimizer.step()
    return applied


def new_run():
    model = small_network()
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.mark.parametrize("zero_behind_forward", [False, True])
@pytest.mark.parametrize("how", ZEROED)
def test_a_batch_that_the_loop_leaves_out_is_of_no_step(tmp_path, read_log, how,
                                                       zero_behind_forward):
    model, optimizer = new_run()
    with Recorder(model, optimizer, tmp_path / "run", sample_every=2,
                  local_gradients=True) as recorder:
        applied = guarded_loop(model, optimizer, ZEROED[how], 7, recorder, zero_behind_forward)
    assert len(applied) == 5 and all(map(math.isfinite, applied))
    log = read_log(tmp_path / "run")
    assert [log.scalars[step]["loss"] for step in range(5)] == pytest.approx(applied)
    for step in range(5):
        assert not [tag for tag in log.scalars[step]["more"] if "microbatch" in tag]
        assert log.tables["activation/3", step]["shape"] == (7, 5)
        assert log.tables["activation_grad/3", step]["shape"] == (7, 5)
        assert not [name for name in log.names(step) if name.startswith("local_weight_grad/")]
    assert not [name for (name, _), record in log.tables.items()
                if record["table"].nan or record["table"].inf]


def test_such_a_run_is_not_called_spoiled(tmp_path):
    model, optimizer = new_run()
    with Recorder(model, optimizer, tmp_path / "run") as recorder:
        guarded_loop(model, optimizer, ZEROED["optimizer, to None"], 12, recorder)
    advice = halfscope.recommend(tmp_path / "run")
    assert "nan_in_model" not in advice and not advice["overflow_events"]
    own = halfscope.policies(tmp_path / "run", policies=["static,scale=1024"])
    assert not [trace for trace in own if trace["skipped"] or trace["unknown"]]


@pytest.mark.parametrize("how", ZEROED)
def test_microbatches_before_it_are_given_up_with_it(tmp_path, read_log, how):
    model, optimizer = new_run()
    with Recorder(model, optimizer, tmp_path / "run", local_gradients=True) as recorder:
        for part in range(2):
            recorder.loss(100 * loss_of(model, part)).backward()
        ZEROED[how](model, optimizer)
        losses = []
        for part in (2, 3):
            loss = recorder.loss(loss_of(model, part))
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    log = read_log(tmp_path / "run")
    more = log.scalars[0]["more"]
    assert sorted(tag for tag in more if "microbatch" in tag) == [
        f"max_abs/{role}/microbatch-{i}" for role in ("activation_grad", "weight_grad")
        for i in (0, 1)]
    assert log.scalars[0]["loss"] == pytest.approx(sum(losses))
    assert log.tables["activation/3", 0]["shape"] == (2, 7, 5)
    assert log.tables["local_weight_grad/3.weight", 0]["shape"][0] == 2


def test_losses_that_a_scaler_saw_are_given_up_too(tmp_path, read_log, stand_in_scaler):
    model, optimizer = new_run()
    scaler = stand_in_scaler(1024.0)
    applied = []
    with Recorder(model, optimizer, tmp_path / "run", scaler=scaler):
        for step in range(6):
            optimizer.zero_grad()
            loss = loss_with_bad_batches(model, step)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            if not torch.isfinite(nn.utils.clip_grad_norm_(model.parameters(), 1.0)):
                scaler.update()
                continue
            applied.append(loss.item())
            scaler.step(optimizer)
            scaler.update()
    log = read_log(tmp_path / "run")
    assert [log.scalars[step]["loss"] for step in range(4)] == pytest.approx(applied)
    assert not [step for step in range(4) if log.scalars[step]["found_inf"]]


def test_each_optimizer_gives_up_its_own(tmp_path, read_log):
    """Two parts of a model, a recorder each. The second accumulates while the first is zeroed."""
    model = small_network()
    optimizers = [torch.optim.SGD(model[i].parameters(), lr=0.1) for i in (0, 3)]
    with Recorder(model, optimizers[0], tmp_path / "0"), Recorder(model, optimizers[1],
                                                                 tmp_path / "1"):
        for part in range(2):
            optimizers[0].zero_grad()
            loss_of(model, part).backward()
        for optimizer in optimizers:
            optimizer.step()
    microbatches = [[tag for tag in read_log(tmp_path / str(i)).scalars[0]["more"]
                     if "activation_grad/microbatch" in tag] for i in (0, 1)]
    assert [len(tags) for tags in microbatches] == [0, 2]


def test_what_another_optimizers_loss_left_is_no_microbatch(tmp_path, read_log):
    """As of a GAN: the generator's pass goes through the discriminator, whose step comes later."""
    generator, discriminator = nn.Linear(3, 3), nn.Linear(3, 1)
    first, second = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (generator, discriminator))
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    with Recorder(discriminator, second, tmp_path / "run"):
        for _ in range(3):
            second.zero_grad()
            (discriminator(x).mean() - discriminator(generator(x).detach()).mean()).backward()
            second.step()
            first.zero_grad()
            (1000 * discriminator(generator(x)).mean()).backward()
            first.step()
    log = read_log(tmp_path / "run")
    for step in range(3):
        assert "max_abs/weight_grad/microbatch-0" not in log.scalars[step]["more"]
        assert log.scalars[step]["max_abs_activation_grad"] <= 1


def test_microbatches_that_are_clipped_between_are_kept(tmp_path, read_log):
    """Gradients are written to, but not taken away; some are zero and stay so."""
    model, optimizer = new_run()
    with Recorder(model, optimizer, tmp_path / "run"):
        for part in range(3):
            (loss_of(model, part) + 0 * model[0].weight.sum()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            model[0].weight.grad.zero_()
        optimizer.step()
    more = read_log(tmp_path / "run").scalars[0]["more"]
    assert len([tag for tag in more if "weight_grad/microbatch" in tag]) == 3


def test_gradients_that_the_loop_adds_up_itself_are_kept(tmp_path, read_log):
    """torch.autograd.grad() leaves nothing in place: nothing is taken away."""
    model, optimizer = new_run()
    parameters = list(model.parameters())
    with Recorder(model, optimizer, tmp_path / "run"):
        parts = [torch.autograd.grad(loss_of(model, part), parameters) for part in range(2)]
        for parameter, *each in zip(parameters, *parts):
            parameter.grad = sum(each)
        optimizer.step()
    assert read_log(tmp_path / "run").tables["activation/3", 0]["shape"] == (2, 7, 5)
