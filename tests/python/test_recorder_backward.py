# SPDX-License-Identifier: Apache-2.0
"""weight_grad is what backward made: before clipping, after all microbatches, after the reduction."""

import copy

import pytest
import torch
from torch import nn

import halfscope
from halfscope.torch import Recorder
from small_runs import gradients_of, join_ranks, loss_of, require_recorded, small_network


@pytest.mark.parametrize("clip", [
    lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.001),
    lambda model: nn.utils.clip_grad_value_(model.parameters(), 0.001),
    lambda model: [p.grad.div_(7) for p in model.parameters()]])
def test_clipped_gradients_were_read_before(tmp_path, read_log, clip):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    made = []
    with Recorder(model, optimizer, tmp_path / "run"):
        for step in range(3):
            optimizer.zero_grad()
            loss_of(model, step).backward()
            made.append(gradients_of(model))
            clip(model)
            optimizer.step()
    log = read_log(tmp_path / "run")
    for step in range(3):
        require_recorded(log, step, made[step])


def test_the_update_is_of_the_clipped_gradient(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with Recorder(model, optimizer, tmp_path / "run", sample_every=1):
        loss_of(model, 0).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.001)
        clipped = gradients_of(model)
        optimizer.step()
    sample, _ = read_log(tmp_path / "run").sample(0)
    for name, gradient in clipped.items():
        assert torch.equal(sample[f"update/{name}"], -0.5 * gradient)
        assert not torch.equal(sample[f"weight_grad/{name}"], gradient)


def test_of_several_backward_passes_the_last_holds_all(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run"):
        for microbatch in range(3):
            loss_of(model, microbatch).backward()
        added = gradients_of(model)
        nn.utils.clip_grad_norm_(model.parameters(), 0.001)
        optimizer.step()
    log = read_log(tmp_path / "run")
    require_recorded(log, 0, added)


def test_a_backward_pass_without_a_step_is_replaced(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run"):
        (1000 * loss_of(model, 0)).backward()  # given up
        optimizer.zero_grad()
        loss_of(model, 1).backward()
        made = gradients_of(model)
        optimizer.step()
    log = read_log(tmp_path / "run")
    assert list(log.scalars) == [0]
    require_recorded(log, 0, made)


def test_a_backward_pass_that_raised_hides_no_later_one(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fail(gradient):
        raise ArithmeticError("a hook of the loop's own")

    with Recorder(model, optimizer, tmp_path / "run"):
        handle = model[0].weight.register_hook(fail)
        with pytest.raises(ArithmeticError):
            loss_of(model, 0).backward()
        handle.remove()
        optimizer.zero_grad()
        loss_of(model, 1).backward()
        made = gradients_of(model)
        nn.utils.clip_grad_norm_(model.parameters(), 0.001)
        optimizer.step()
    require_recorded(read_log(tmp_path / "run"), 0, made)


def test_each_optimizer_has_its_own_passes(tmp_path, read_log):
    """As of a GAN: both losses reach the first network, each optimizer steps after its own."""
    first, second = small_network(), nn.Linear(5, 1)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (first, second)]
    x = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    made = []
    with Recorder(first, optimizers[0], tmp_path / "first"), Recorder(second, optimizers[1],
                                                                       tmp_path / "second"):
        (10 * second(first(x)).mean()).backward()
        made.append(gradients_of(second))
        nn.utils.clip_grad_norm_(second.parameters(), 0.001)
        optimizers[1].step()
        for optimizer in optimizers:
            optimizer.zero_grad()
        first(x).mean().backward()
        made.append(gradients_of(first))
        nn.utils.clip_grad_norm_(first.parameters(), 0.001)
        optimizers[0].step()
    require_recorded(read_log(tmp_path / "second"), 0, made[0])
    require_recorded(read_log(tmp_path / "first"), 0, made[1])


def test_two_optimizers_of_one_model_are_apart(tmp_path, read_log, stand_in_scaler):
    """Each is unscaled and clipped before the other's pass."""
    model, scaler, made = small_network(), stand_in_scaler(65536.0), []
    optimizers = [torch.optim.SGD(model[i].parameters(), lr=0.1) for i in (0, 3)]
    with Recorder(model, optimizers[0], tmp_path / "0", scaler=scaler), Recorder(
            model, optimizers[1], tmp_path / "1", scaler=scaler):
        for i, optimizer in enumerate(optimizers):
            wanted = list(optimizer.param_groups[0]["params"])
            scaler.scale(loss_of(model, i)).backward(inputs=wanted)
            made.append(max(p.grad.abs().max().item() for p in wanted) / 65536)
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(wanted, 0.001)
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()
    for i in (0, 1):
        assert read_log(tmp_path / str(i)).scalars[0]["max_abs_weight_grad"] == made[i]


def test_a_pass_that_was_given_up_is_not_what_the_loop_puts_in_place(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run", clipping="norm 1"):
        (1000 * loss_of(model, 0)).backward()
        optimizer.zero_grad()
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()
    scalars = read_log(tmp_path / "run").scalars[0]
    assert scalars["max_abs_weight_grad"] == 1
    assert scalars["more"]["gradients_read_at_step"] == 1
    assert halfscope.recommend(tmp_path / "run")["clipped"]


def test_a_model_that_is_not_called_as_a_whole_recovers_from_a_pass_that_raised(tmp_path, read_log):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(step):
        x = model[2](model[1](model[0](torch.randn(7, 1, 8, 8))))
        return model[3](x).square().mean()

    def fail(gradient):
        raise ArithmeticError

    with Recorder(model, optimizer, tmp_path / "run"):
        handle = model[0].weight.register_hook(fail)
        with pytest.raises(ArithmeticError):
            loss(0).backward()
        handle.remove()
        optimizer.zero_grad()
        loss(1).backward()
        made = gradients_of(model)
        nn.utils.clip_grad_norm_(model.parameters(), 0.001)
        optimizer.step()
    require_recorded(read_log(tmp_path / "run"), 0, made)


def test_parameters_unfrozen_later_are_seen(tmp_path, read_log):
    model = small_network()
    for p in model.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model, optimizer, tmp_path / "run"):
        model[3].weight.requires_grad_(True)
        loss_of(model, 0).backward()
        made = gradients_of(model)
        nn.utils.clip_grad_norm_(model.parameters(), 0.001)
        optimizer.step()
    require_recorded(read_log(tmp_path / "run"), 0, made)


# With several ranks: the gradient after the reduction, though DistributedDataParallel puts it in
# place in a callback of its own.


def train_rank(rank, folder, no_sync):
    join_ranks(rank, folder)
    model = nn.parallel.DistributedDataParallel(small_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = []
    with Recorder(model, optimizer, f"{folder}/run"):
        for step in range(2):
            optimizer.zero_grad()
            twin = copy.deepcopy(model.module)  # seen by nobody
            batches = [100 * rank + step] if no_sync else []
            for batch in batches:
                with model.no_sync():
                    loss_of(model, batch).backward()
            batches.append(10 * rank + step)
            loss_of(model, batches[-1]).backward()
            local = [torch.autograd.grad(loss_of(twin, batch), list(twin.parameters()))
                     for batch in batches]
            made.append((gradients_of(model.module),
                         [max(g.abs().max().item() for g in each) for each in local]))
            nn.utils.clip_grad_norm_(model.parameters(), 0.001)
            optimizer.step()
    torch.save(made, f"{folder}/made-{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
@pytest.mark.parametrize("no_sync", [False, True])
def test_ranks_record_the_reduced_gradient(tmp_path, read_log, no_sync):
    torch.multiprocessing.spawn(train_rank, (str(tmp_path), no_sync), nprocs=2)
    made = [torch.load(tmp_path / f"made-{rank}.pt") for rank in (0, 1)]
    for rank in (0, 1):
        log = read_log(tmp_path / "run" / f"rank-{rank:04d}")
        for step in (0, 1):
            reduced, local = made[rank][step]
            require_recorded(log, step, reduced)
            more = log.scalars[step]["more"]
            assert [more[f"max_abs/weight_grad/microbatch-{i}"] for i in range(len(local))] == local
    for one, other in zip(made[0][1][0].values(), made[1][1][0].values()):
        assert torch.equal(one, other)  # what was compared is what the ranks agreed on


# What it is for: the scale that a clipped run is advised.


def clipped_loop(model, optimizer, before_step, backward, steps=20):
    for step in range(steps):
        optimizer.zero_grad()
        backward(loss_of(model, step))
        before_step()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()


def small_run():
    model = small_network()
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


@pytest.fixture
def advised(tmp_path):
    """The scale advised for a run in FP32 whose gradients are clipped."""
    model, optimizer = small_run()
    with Recorder(model, optimizer, tmp_path / "fp32", clipping="norm 0.1"):
        clipped_loop(model, optimizer, lambda: None, lambda loss: loss.backward())
    advice = halfscope.recommend(tmp_path / "fp32")
    assert "clipped" not in advice and "overflow_not_identifiable" not in advice
    return advice["static_scale"]


@pytest.mark.parametrize("times, overflows", [(1, False), (4, True)])
def test_fp16_overflows_above_the_advised_scale_alone(advised, times, overflows):
    """The same 20 steps in emulated FP16: with a binade of headroom twice the scale may hold."""
    model, optimizer = small_run()
    scaling = f"torch,init_scale={advised * times},growth_interval=1000"
    with halfscope.torch.emulate(model, optimizer, "mixed", scaling) as run:
        clipped_loop(model, optimizer, run.unscale_, run.backward)
    assert run.steps == 20 and (run.skipped > 0) == overflows


def test_a_log_that_was_recorded_after_clipping_says_so(tmp_path):
    """As other recorders write it: gradients are what the loop made of them."""
    model, optimizer = small_run()
    with Recorder(model, optimizer, tmp_path / "run"):
        for step in range(8):
            gradients = torch.autograd.grad(loss_of(model, step), list(model.parameters()))
            for parameter, gradient in zip(model.parameters(), gradients):
                parameter.grad = gradient.clone()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
    advice = halfscope.recommend(tmp_path / "run")
    assert advice["clipped"] and advice["overflow_not_identifiable"]
