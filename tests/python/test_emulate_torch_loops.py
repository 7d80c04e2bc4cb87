# SPDX-License-Identifier: Apache-2.0
"""halfscope.torch.emulate in loops that do more than one backward pass and one step."""

import collections
import copy
import gc
import subprocess

import pytest
import torch
from torch import nn

from halfscope.torch import emulate, emulate_loop
from program import BUILD

half_types = pytest.mark.parametrize("precision", ["mixed", "fp16"])


def half(tensor):
    return tensor.detach().half().float()


def is_half(tensor):
    return torch.equal(tensor, half(tensor))


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)
    torch.set_num_threads(1)


def sgd(model, lr=0.1):
    return torch.optim.SGD(model.parameters(), lr=lr)


def agrees(folder):
    study = subprocess.run([BUILD / "halfscope", "policies", folder], check=True,
                           capture_output=True, text=True, timeout=60).stdout
    return " gives the same scales and skips at all " in " ".join(study.split())


class Watched:
    """Whether all that modules returned was binary16; hooks of the user's, behind emulate()'s."""

    def __init__(self, model):
        self.seen = collections.Counter()
        for path, module in model.named_modules():
            if isinstance(module, (nn.Linear, nn.LayerNorm, nn.MultiheadAttention)):
                module.register_forward_hook(lambda m, x, y, path=path: self._returned(path, y))

    def _returned(self, path, output):
        output = output[0] if isinstance(output, tuple) else output
        assert is_half(output), path
        self.seen[path] += 1


@half_types
@pytest.mark.parametrize("padded", [False, True])
def test_evaluation_of_a_transformer_is_emulated_as_training_is(precision, padded):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    x = torch.randn(3, 5, 8)
    mask = torch.arange(5).repeat(3, 1) >= 4 if padded else None
    before = [copy.copy(vars(module)) for module in model.modules()]
    optimizer = sgd(model)
    with emulate(model, optimizer, precision):
        watched = Watched(model)
        outputs = [model(x, src_key_padding_mask=mask)]
        model.eval()
        outputs.append(model(x, src_key_padding_mask=mask))
        for no_gradients in (torch.no_grad, torch.inference_mode):
            with no_gradients():
                outputs.append(model(x, src_key_padding_mask=mask))
    # out_proj is a parameter of attention, and no call
    assert len(watched.seen) == 2 * 5 and set(watched.seen.values()) == {len(outputs)}
    for output in outputs:
        assert torch.equal(output, outputs[0])
    model.train()
    after = [vars(module) for module in model.modules()]
    assert [v.get("activation_relu_or_gelu") for v in after] == [
        v.get("activation_relu_or_gelu") for v in before]
    assert [v.get("enable_nested_tensor") for v in after] == [
        v.get("enable_nested_tensor") for v in before]


def test_attention_alone_is_the_same_with_and_without_gradients():
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(3, 5, 8)
    with emulate(model, sgd(model)):
        with_gradients = model(x, x, x, need_weights=False)[0]
        with torch.no_grad():
            without = model(x, x, x, need_weights=False)[0]
    assert is_half(with_gradients) and torch.equal(with_gradients, without)


@pytest.mark.parametrize("scale", [None, 64.0, "torch,init_scale=64"])
def test_backward_after_unscale_is_refused_until_the_step(scale):
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    x = torch.randn(3, 4)
    with emulate(model, optimizer, loss_scale=scale) as run:
        for _ in range(2):
            optimizer.zero_grad()
            for _ in range(3):  # microbatches
                run.backward(model(x).sum() / 3)
            run.unscale_()
            with pytest.raises(RuntimeError, match="The order of a step is: run.backward"):
                run.backward(model(x).sum())
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    assert run.steps == 2 and run.skipped == 0


def test_gradients_of_gradients_are_rounded_and_are_there():
    """The penalty on an input's gradient: g = ones W, L = sum g^2, dL/dW = ones^T (2 g)."""
    model = nn.Linear(5, 3, bias=False)
    x = torch.randn(4, 5, requires_grad=True)
    w = half(model.weight)
    with emulate(model, sgd(model), loss_scale=8.0) as run:
        inner, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        assert torch.equal(inner, half(torch.ones(4, 3) @ w))
        run.backward(inner.square().sum())
        arrived = half(8.0 * 2 * half(torch.ones(4, 3) @ w))
        assert torch.equal(model.weight.grad, half(torch.ones(3, 4) @ arrived))


@pytest.mark.parametrize("precision, tolerance", [
    ("fp32", 0.0), ("mixed", 2e-3), ("fp16", 2e-3), ("mixed-bf16", 3e-2)])
def test_a_gradient_penalty_trains(precision, tolerance):
    def gradients(model, backward):
        model.zero_grad()
        x = inputs.clone().requires_grad_()
        y = model(x)
        slope, = torch.autograd.grad(y.sum(), x, create_graph=True)
        backward(y.mean() + 10 * slope.square().sum())
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    inputs = torch.randn(6, 5)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))
    true = gradients(model, lambda loss: loss.backward())
    with emulate(model, sgd(model), precision) as run:
        found = gradients(model, run.backward)
    assert (found - true).norm() <= tolerance * true.norm()


def test_derivatives_with_respect_to_weights_that_are_differentiated_again():
    model = nn.Linear(3, 1)
    x = torch.randn(4, 3)

    def meta(backward):
        model.zero_grad()
        first = torch.autograd.grad(model(x).square().mean(), list(model.parameters()),
                                    create_graph=True)
        backward((x @ (model.weight - 0.5 * first[0]).t()).square().mean())
        return model.weight.grad.clone()

    true = meta(lambda loss: loss.backward())
    with emulate(model, sgd(model)) as run:
        found = meta(run.backward)
    assert (found - true).norm() <= 2e-2 * true.norm() and is_half(found)


@pytest.mark.filterwarnings("ignore:Using backward")  # PyTorch's, of a cycle that ends below
def test_a_backward_pass_that_is_kept_for_a_second_one():
    model = nn.Linear(3, 1, bias=False)
    x = torch.randn(4, 3)
    with emulate(model, sgd(model)) as run:
        run.backward(model(x).square().sum(), create_graph=True)
        gradient, model.weight.grad = model.weight.grad, None
        assert is_half(gradient)
        run.backward(gradient.sum())
        true = 2 * x.t() @ x @ torch.ones(3)  # the Hessian's sums of rows
        assert is_half(model.weight.grad)
        torch.testing.assert_close(model.weight.grad[0], true, rtol=1e-2, atol=1e-2)


def test_a_context_can_be_entered_again():
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    optimizer = sgd(model)
    context = emulate(model, optimizer, loss_scale="torch")
    for _ in range(2):
        with context as run:
            optimizer.zero_grad()
            run.backward(model(torch.randn(4, 5)).square().mean())
            assert all(is_half(p.grad) and is_half(p) for p in model.parameters())
            run.unscale_()  # and leaves without a step
        assert not any(is_half(p) for p in model.parameters())


def test_backward_passes_beside_the_step_do_not_decide_it(tmp_path, read_log):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = sgd(model)
    with emulate(model, optimizer, loss_scale="torch,init_scale=1024", log=tmp_path / "run") as run:
        for _ in range(3):
            x = torch.randn(2, 3, requires_grad=True)
            (model(x).sum() * 1e9).backward()  # for a map of what the model looks at
            optimizer.zero_grad()
            run.backward(model(x).sum())
            assert all(torch.isfinite(p.grad).all() for p in model.parameters())
            optimizer.step()
        for _ in range(50):
            run.backward(model(x).sum())
        assert len(run._modules.take()) == 1  # one a device, however many passes
    assert run.skipped == 0
    scalars = read_log(tmp_path / "run").scalars
    assert all(0 < scalars[step]["max_abs_activation_grad"] < 10 for step in range(3))
    assert agrees(tmp_path / "run")


def test_two_models_train_each_other():
    maker, judge = nn.Linear(3, 3), nn.Linear(3, 1)
    ours, theirs = sgd(maker), sgd(judge)
    with emulate(maker, ours, loss_scale="torch,init_scale=2^100") as making, \
            emulate(judge, theirs, loss_scale="torch,init_scale=8") as judging:
        for _ in range(3):
            ours.zero_grad()
            making.backward(judge(maker(torch.randn(4, 3))).mean())  # overflows, in both
            ours.step()
            theirs.zero_grad()
            judging.backward(judge(maker(torch.randn(4, 3)).detach()).mean())
            theirs.step()
    assert making.skipped == 3 and judging.skipped == 0
    assert judging.loss_scale == 8


def written_into(write, values=(1.0002, 0.5001, 1e-9, -1.0002), **settings):
    """The weights after the context, in which `write` was called without gradients."""
    model = nn.Linear(len(values), 1, bias=False)
    model.weight.data.copy_(torch.tensor([values]))
    with emulate(model, sgd(model), **settings) as run, torch.no_grad():
        write(model.weight)
        model(torch.zeros(1, len(values)))
        inside = run.master_weights()["weight"].clone()
        assert is_half(model.weight)
    assert torch.equal(model.weight, inside)
    return model.weight.detach()[0].tolist()


def single(*values):
    return torch.tensor(values).tolist()


def test_clipped_and_zeroed_weights_are_so_after_the_context():
    assert written_into(lambda p: None) == single(1.0002, 0.5001, 1e-9, -1.0002)
    assert written_into(lambda p: p.clamp_(-1, 1)) == single(1.0, 0.5001, 0.0, -1.0)
    assert written_into(lambda p: p.clamp_(-0.3, 0.3)) == single(0.3, 0.3, 0.0, -0.3)
    assert written_into(lambda p: p.zero_()) == [0.0] * 4
    assert written_into(lambda p: p.mul_(torch.tensor([[1.0, 1.0, 0.0, 0.0]]))) == single(
        1.0, 0.5001, 0.0, 0.0)  # 1.0 is the largest that was written


def test_elements_that_a_write_leaves_keep_their_bits_in_the_masters():
    def write(p):
        p[0, 3] = 7.0001

    assert written_into(write) == single(1.0002, 0.5001, 0.0, 7.0001)
    assert written_into(lambda p: p.data[0, 3].fill_(7.0001)) == single(1.0002, 0.5001, 0.0, 7.0001)


def test_writing_shows_the_masters():
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(1.0)
    optimizer = sgd(model, lr=0.0)
    want = torch.ones(1, 1)
    with emulate(model, optimizer) as run:
        for _ in range(1000):
            run.backward(model(torch.zeros(1, 1)).sum())
            optimizer.step()
            with run.writing(), torch.no_grad():
                model.weight.mul_(1 - 1e-4)
            want.mul_(1 - 1e-4)
            assert is_half(model.weight)
    assert torch.equal(model.weight, want) and want < 0.91
    with pytest.raises(RuntimeError, match="outside of the context"):
        run.writing()


@pytest.mark.filterwarnings("ignore:the end of emulate")
@pytest.mark.parametrize("change, words", [
    (lambda m: setattr(m.weight, "data", torch.randn(4, 3)), r"weight is float32 of shape \(4, 3\)"),
    (lambda m: m.double(), "weight is float64")])
def test_a_parameter_that_was_replaced_is_named_and_nothing_is_left(change, words):
    model = nn.Linear(3, 3, bias=False)
    optimizer = sgd(model)
    with pytest.raises(RuntimeError, match=words), emulate(model, optimizer):
        change(model)
        model(torch.randn(2, 3))
    assert not emulate_loop._emulated and not model._forward_hooks and "step" not in vars(optimizer)


def test_a_weight_that_was_written_as_nan_is_nan():
    def write(p):
        p[0, 1] = float("nan")

    model = nn.Linear(3, 1, bias=False)
    before = model.weight.detach().clone()
    with emulate(model, sgd(model)), torch.no_grad():
        write(model.weight)
    assert model.weight[0, 1].isnan()
    assert torch.equal(model.weight[0, ::2], before[0, ::2])


def test_the_users_exception_is_the_one_that_leaves():
    model = nn.Linear(3, 3)
    with pytest.warns(RuntimeWarning, match="when emulate"), pytest.raises(KeyError):
        with emulate(model, sgd(model)):
            model.weight.data = torch.randn(4, 3)
            raise KeyError("the loop's own")
    assert not emulate_loop._emulated and not is_half(model.bias)


def test_an_entry_that_fails_leaves_nothing(tmp_path):
    model = nn.Linear(3, 3)
    (tmp_path / "file").write_text("")
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="recording stops"), emulate(model, sgd(model), log=tmp_path / "file"):
            pass
        assert not emulate_loop._emulated and not model._forward_hooks
    del model
    gc.collect()
    with emulate(other := nn.Linear(3, 3), sgd(other)):
        assert len(emulate_loop._emulated) == 3
    assert not emulate_loop._emulated


def test_a_part_that_was_unfrozen_and_called_by_itself_has_rounded_gradients():
    model = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))
    model[0].requires_grad_(False)
    with emulate(model, sgd(model)) as run:
        model[0].requires_grad_(True)
        run.backward(model[1](model[0](torch.randn(4, 5))).square().mean())
        assert all(is_half(p.grad) for p in model.parameters())


@pytest.mark.parametrize("add, what", [
    (lambda m, o: m.add_module("more", nn.ReLU()), "a module of the model or the optimizer, ReLU"),
    (lambda m, o: o.add_param_group({"params": [nn.Parameter(torch.ones(3))]}),
     r"a parameter of the model or the optimizer, Parameter of shape \(3,\)")])
def test_what_is_added_inside_is_refused(add, what):
    model = nn.Sequential(nn.Linear(3, 3))
    optimizer = sgd(model)
    with emulate(model, optimizer) as run:
        outputs = model(torch.randn(2, 3)).sum()
        add(model, optimizer)
        with pytest.raises(RuntimeError, match="backward.*" + what):
            run.backward(outputs)
        with pytest.raises(RuntimeError, match="step.*" + what):
            optimizer.step()
