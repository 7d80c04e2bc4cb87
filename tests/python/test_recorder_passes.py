# SPDX-License-Identifier: Apache-2.0
"""Backward passes that end otherwise: by an exception, with gradients moved or used inside them."""

import pytest
import torch
from small_runs import batch, gradients_of, loss_of, require_recorded, small_network
from torch import nn

from halfscope.torch import Recorder


@pytest.mark.parametrize("called", [True, False])
def test_one_that_raised_where_no_module_is_watched_hides_no_later_one(tmp_path, read_log, called):
    """called: whether the loop calls the model, or its parts alone, of which no hook tells."""
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fail(gradient):
        raise ArithmeticError("out of memory")

    def backward(step):
        x, y = batch(step)
        for part in (model,) if called else model:
            x = part(x)
        nn.functional.cross_entropy(x, y).backward()

    made = []
    with Recorder(model, optimizer, tmp_path / "run", modules=lambda path, module: False):
        for step in range(4):
            for p in model.parameters():
                p.grad = None
            if step == 1:
                handle = model[0].weight.register_hook(fail)
                with pytest.raises(ArithmeticError):
                    backward(step)
                handle.remove()
                continue
            backward(step)
            made.append(gradients_of(model))
            nn.utils.clip_grad_norm_(model.parameters(), 0.001)
            optimizer.step()
    log = read_log(tmp_path / "run")
    for step, gradients in enumerate(made):
        require_recorded(log, step, gradients)
        assert "gradients_read_at_step" not in log.scalars[step]["more"]


needs_hooks_behind_accumulation = pytest.mark.skipif(
    not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"),
    reason="PyTorch before 2.1 has no hooks behind the accumulation of a gradient")


@needs_hooks_behind_accumulation
@pytest.mark.parametrize("zeroed", [True, False])
@pytest.mark.parametrize("hooked_before", [True, False])
def test_an_optimizer_that_steps_inside_backward(tmp_path, read_log, zeroed, hooked_before):
    model = small_network()
    parameters = dict(model.named_parameters())
    optimizers = {name: torch.optim.SGD([p], lr=0.1) for name, p in parameters.items()}
    made = {name: [] for name in parameters}

    def step_of(name):
        def step_now(parameter):
            made[name].append(parameter.grad.clone())
            optimizers[name].step()
            if zeroed:
                optimizers[name].zero_grad()
        return step_now

    def hook():
        for name, parameter in parameters.items():
            parameter.register_post_accumulate_grad_hook(step_of(name))

    if hooked_before:
        hook()
    recorders = [Recorder(model, o, tmp_path / name).start() for name, o in optimizers.items()]
    if not hooked_before:
        hook()
    for step in range(3):
        loss_of(model, step).backward()
    for recorder in recorders:
        recorder.stop()
    for name, gradients in made.items():
        log = read_log(tmp_path / name)
        assert sorted(log.scalars) == [0, 1, 2]
        for step, gradient in enumerate(gradients):
            require_recorded(log, step, {name: gradient})
            assert log.scalars[step]["more"]["gradients_read_at_step"] == 1


@needs_hooks_behind_accumulation
def test_gradients_that_a_hook_moved_are_read_when_they_are_back(tmp_path, read_log):
    """As where they wait in CPU memory: the pass ends with none in place."""
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    moved = {}

    def move(parameter):
        moved[parameter], parameter.grad = parameter.grad, None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(move)
    with Recorder(model, optimizer, tmp_path / "run"):
        loss_of(model, 0).backward()
        for parameter, gradient in moved.items():
            parameter.grad = gradient
        made = gradients_of(model)
        optimizer.step()
    log = read_log(tmp_path / "run")
    require_recorded(log, 0, made)
    assert log.scalars[0]["more"]["gradients_read_at_step"] == 1
