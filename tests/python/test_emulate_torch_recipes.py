# SPDX-License-Identifier: Apache-2.0
"""emulate(recipe=...): each product against NumPy's product of operands that NumPy quantised after
docs/numerics/recipes.md. The values are such that all sums are exact in FP32, whatever the order."""

import json

import numpy as np
import pytest
import torch
from numpy_recipes import mxfp8_floor, nvfp4_values
from small_runs import small_network
from torch import nn
from torch.autograd import Variable
from torch.utils.checkpoint import checkpoint

from halfscope.torch import emulate

SIGNS = [1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1]  # Transformer Engine's
TE = {"weight": "nvfp4-2d", "activation": "nvfp4-hadamard", "gradient": "nvfp4-hadamard"}


def values(*shape, seed=0):
    """Magnitudes from 0.5 to 1: no block has a small scale."""
    random = np.random.default_rng(seed)
    return (random.uniform(0.5, 1, shape) * random.choice([-1, 1], shape)).astype(np.float32)


def hadamard(x):
    """Rows of 16 times diag(SIGNS) H / 4; each sum is in order, in FP32."""
    h = np.array([[1]])
    while len(h) < 16:
        h = np.block([[h, h], [h, -h]])
    rows = x.reshape(-1, 16) * np.float32(SIGNS) / 4
    sums = np.zeros_like(rows)
    for k in range(16):
        sums += rows[:, k:k + 1] * h[k].astype(np.float32)
    return sums.reshape(x.shape)


def nvfp4(x, tile=1):
    return nvfp4_values(np.ascontiguousarray(x), tile)


def mxfp8(x):
    return mxfp8_floor(np.ascontiguousarray(x)), np.float32(1)


def product(a, b):
    """a b' of operands (values, second scale) with blocks along their rows."""
    (left, scale), (right, other) = a, b
    sums = left.astype(float) @ right.astype(float).T
    assert (sums == sums.astype(np.float32)).all()
    return sums.astype(np.float32) * (scale * other)


def emulated(model, x, up=None, precision="fp32", **arguments):
    """(y, gradient of x); of the weights in the model."""
    x = torch.from_numpy(x).requires_grad_()
    with emulate(model, torch.optim.SGD(model.parameters(), lr=0), precision, **arguments) as run:
        y = model(x)
        if up is not None:
            run.backward((y * torch.from_numpy(up)).sum())
    return y.detach().numpy(), None if up is None else x.grad.numpy()


def linear(inputs=64, outputs=48, **arguments):
    model = nn.Linear(inputs, outputs, **arguments)
    model.weight.data = torch.from_numpy(values(outputs, inputs, seed=1))
    return model


def half(x):
    return x.astype(np.float16).astype(np.float32)


@pytest.mark.parametrize("accumulate", ["fp32", "tensor-core:hopper"])
@pytest.mark.parametrize("recipe, quantised", [("nvfp4", nvfp4), ("mxfp8-e4m3-floor", mxfp8)])
def test_a_linear_layer_and_its_gradients(recipe, quantised, accumulate):
    model, x, up = linear(outputs=96), half(values(32, 64, seed=2)), half(values(32, 96, seed=3))
    w, b = half(model.weight.data.numpy()), half(model.bias.data.numpy())
    y, dx = emulated(model, x, up, "mixed", recipe=recipe, accumulate=accumulate)
    assert (y == half(product(quantised(x), quantised(w)) + b)).all()
    assert (dx == half(product(quantised(up), quantised(w.T)))).all()
    assert (model.weight.grad.numpy() == half(product(quantised(up.T), quantised(x.T)))).all()


def test_a_recipe_for_each_kind_of_operand():
    """As Transformer Engine's: the transform is in the product whose both operands have it."""
    model, x, up = linear(bias=False), values(32, 64, seed=2), values(32, 48, seed=3)
    w = model.weight.data.numpy()
    y, dx = emulated(model, x, up, recipe=TE)
    assert (y == product(nvfp4(x), nvfp4(w, 16))).all()
    assert (dx == product(nvfp4(up), nvfp4(w.T, 16))).all()
    assert (model.weight.grad.numpy() == product(nvfp4(hadamard(up.T)), nvfp4(hadamard(x.T)))).all()
    assert (nvfp4(w.T, 16)[0] == nvfp4(w, 16)[0].T).all()  # one copy of a weight in tiles


@pytest.mark.parametrize("name, each", [
    ("nvfp4-training", {**TE, "gradient": "nvfp4-hadamard-stochastic"}),
    ("fp8-block", {"weight": "fp8-128x128", "activation": "fp8-1x128", "gradient": "fp8-1x128"}),
    ("mxfp8:floor", "mxfp8-e4m3-floor")])
def test_a_frameworks_recipes_together(name, each):
    x, up, results = values(32, 64, seed=2), values(32, 48, seed=3), []
    for recipe in (name, each):
        model = linear(bias=False)
        results.append((*emulated(model, x, up, recipe=recipe, seed=5), model.weight.grad.numpy()))
    for one, other in zip(*results):
        assert (one == other).all() and (one != 0).any()
    scores = [emulated_scores(values(3, 16, 32, seed=2), recipe)[0] for recipe in (name, each, None)]
    assert (scores[0] == scores[1]).all() and (scores[0] != scores[2]).any() == isinstance(each, str)


def test_a_weight_is_known_wherever_it_is_in_memory():
    """A view into a parameter, and memory that a parameter has since the last forward pass."""
    model, x = linear(bias=False), values(32, 64, seed=2)
    w = model.weight.data.numpy().copy()
    with emulate(model, torch.optim.SGD(model.parameters(), lr=0), "fp32", recipe={"weight": "nvfp4"}):
        inputs = torch.from_numpy(np.sign(x))
        kept = model.weight.data
        model.weight.data = kept.clone()
        for y, rows in ((model(inputs), w), (inputs @ model.weight[16:].T, w[16:])):
            assert (y.detach().numpy() == product((np.sign(x), np.float32(1)), nvfp4(rows))).all()


def test_kinds_without_a_recipe_stay_as_they_are():
    model, x, up = linear(bias=False), np.sign(values(32, 64, seed=2)), np.sign(values(32, 48, seed=3))
    y, dx = emulated(model, x, up, recipe={"weight": "nvfp4"})
    w = model.weight.data.numpy()
    assert (y == product((x, np.float32(1)), nvfp4(w))).all()
    assert (dx == product((up, np.float32(1)), nvfp4(w.T))).all()
    assert (model.weight.grad.numpy() == up.T @ x).all()


class Scores(nn.Module):
    def forward(self, x):
        return torch.matmul(x, x.transpose(-1, -2))


def test_products_of_activations_are_quantised_too():
    """A batch is one tensor, with one scale."""
    x = values(3, 16, 32, seed=2)
    y, _ = emulated_scores(x, "nvfp4")
    code, scale = nvfp4(x.reshape(48, 32))
    for one, block in zip(y, code.reshape(x.shape)):
        assert (one == product((block, scale), (block, scale))).all()
    plain, _ = emulated_scores(x, {"activation": "nvfp4", "gradient": "nvfp4", "weight": "nvfp4"})
    assert np.allclose(plain, x @ x.transpose(0, 2, 1), rtol=1e-6)
    same, _ = emulated_scores(x, {"other": "nvfp4"})
    assert (same == y).all()


def emulated_scores(x, recipe):
    model = nn.Sequential(Scores(), nn.PReLU())  # an optimizer needs a parameter
    model[1].weight.data[:] = 1
    return emulated(model, x, recipe=recipe)


def run_twice(seed, steps=2, recipe="nvfp4-stochastic"):
    model, x, up = linear(bias=False), values(32, 64, seed=2), torch.from_numpy(values(32, 48, seed=3))
    found = []
    with emulate(model, torch.optim.SGD(model.parameters(), lr=0), "fp32",
                 recipe={"gradient": recipe}, seed=seed) as run:
        for _ in range(steps):
            inputs = torch.from_numpy(x).requires_grad_()
            run.backward((model(inputs) * up).sum())
            found.append(inputs.grad)
    return found


def test_random_numbers_follow_from_the_seed_and_advance():
    first, second = run_twice(7)
    assert not torch.equal(first, second)
    assert all(map(torch.equal, run_twice(7), (first, second)))
    assert not torch.equal(run_twice(8)[0], first)


def test_random_rounding_has_the_mean_of_the_unrounded_gradient():
    found = torch.stack(run_twice(0, steps=400)).double().numpy()
    up, w = values(32, 48, seed=3), linear().weight.data.numpy()
    error = found.mean(0) - up.astype(float) @ w
    assert abs(error / (found.std(0) / 20)).max() < 5.5
    assert abs(error).mean() < 0.1 * abs(found[0] - up @ w).mean()


def test_the_kind_is_known_without_gradients_and_in_a_checkpoint():
    model, x, up = linear(bias=False), values(32, 64, seed=2), values(32, 48, seed=3)
    expected = emulated(model, x, up, recipe=TE)
    wanted = model.weight.grad
    optimizer = torch.optim.SGD(model.parameters(), lr=0)
    recipe = {**TE, "gradient": None}
    with emulate(model, optimizer, "fp32", recipe=recipe):
        with torch.no_grad():
            assert (model(torch.from_numpy(x)).numpy() == expected[0]).all()
        with torch.inference_mode():
            assert (model(torch.from_numpy(x)).numpy() == expected[0]).all()
    with emulate(model, optimizer, "fp32", recipe=TE):
        model.zero_grad()
        inputs = torch.from_numpy(x).requires_grad_()
        checkpoint(model, inputs).backward(torch.from_numpy(up))
        assert (inputs.grad.numpy() == expected[1]).all() and torch.equal(model.weight.grad, wanted)
        gradient, = torch.autograd.grad(model(inputs), inputs, torch.from_numpy(up), create_graph=True)
        assert (gradient.detach().numpy() == expected[1]).all()


def test_what_a_checkpoint_computes_again_are_activations():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16)), torch.from_numpy(values(32, 64))
    optimizer, gradients = torch.optim.SGD(model.parameters(), lr=0), []
    for compute in (lambda x: model(x), lambda x: checkpoint(model, x)):
        model.zero_grad()
        with emulate(model, optimizer, "fp32", recipe={"activation": "nvfp4"}):
            compute(x.clone().requires_grad_()).square().sum().backward()
        gradients.append(model[2].weight.grad.clone())
    assert torch.equal(*gradients)


def test_autograds_engine_comes_back():
    engine, model = Variable._execution_engine, linear()
    with pytest.raises(KeyError), emulate(model, torch.optim.SGD(model.parameters(), lr=0), recipe="nvfp4"):
        assert Variable._execution_engine is not engine
        raise KeyError
    assert Variable._execution_engine is engine


def test_a_layer_that_keep_fp32_names_is_not_quantised():
    model = nn.Sequential(linear(bias=False), linear(48, 16, bias=False))
    x, up = np.sign(values(32, 64, seed=2)), np.sign(values(32, 16, seed=3))
    first, second = (layer.weight.data.numpy() for layer in model)
    h = product((x, np.float32(1)), nvfp4(first))
    y, dx = emulated(model, x, up, recipe={"weight": "nvfp4"}, keep_fp32=lambda path, module: path == "1")
    assert np.allclose(y, h @ second.T, rtol=1e-5, atol=1e-5)
    back = torch.from_numpy(up) @ model[1].weight.data
    assert np.allclose(dx, back.numpy() @ (nvfp4(first.T)[0] * nvfp4(first.T)[1]).T, rtol=1e-5, atol=1e-5)
    for recipe in ("nvfp4", "mxfp4-even"):  # both operands of the second layer's gradient
        model.zero_grad()
        emulated(model, x, up, recipe=recipe, keep_fp32=lambda path, module: True)
        assert torch.allclose(model[1].weight.grad, torch.from_numpy(up.T @ (x @ first.T)), rtol=1e-5, atol=1e-4)


def test_a_size_that_a_recipe_refuses_names_the_layer():
    model = nn.Sequential(linear(bias=False))
    with pytest.raises(RuntimeError) as error:
        emulated(model, values(24, 64), values(24, 48), recipe=TE)
    assert str(error.value).startswith(
        "mm (0.weight) of (48, 24) and (24, 64): recipe nvfp4-hadamard: the last dimension is 24, and must be "
        "a multiple of 16, for the dimension that is summed over; change the layer's size or the batch")
    emulated(model, values(24, 64), values(24, 48), recipe=TE, keep_fp32=lambda path, module: True)


def test_other_sizes_are_padded_with_zeros():
    model, x, up = linear(40, 24, bias=False), values(5, 40, seed=2), values(5, 24, seed=3)
    y, _ = emulated(model, x, up, recipe="nvfp4")
    wide, tall = (np.pad(a, ((0, 0), (0, 8))) for a in (x, model.weight.data.numpy()))
    assert (y == product(nvfp4(wide), nvfp4(tall))).all()


def test_convolutions_stay_and_say_so():
    model = small_network()
    assert any(isinstance(layer, nn.Conv2d) for layer in model)
    with emulate(model, torch.optim.SGD(model.parameters(), lr=0), recipe="nvfp4") as run:
        with pytest.warns(RuntimeWarning, match="recipe: convolutions are not quantised") as told:
            run.backward(model(torch.ones(2, 1, 8, 8)).sum())
        assert len(told) == 1


def test_attention_and_recurrent_layers_are_seen_inside():
    for layer, x in ((nn.TransformerEncoderLayer(32, 2, 64, dropout=0, batch_first=True), (2, 16, 32)),
                     (nn.LSTM(32, 16, batch_first=True), (2, 16, 32))):
        outputs = []
        for recipe in (None, "mxfp8-e4m3-rceil", "mxfp4-floor"):
            with emulate(layer, torch.optim.SGD(layer.parameters(), lr=0), "fp32", recipe=recipe):
                y = layer(torch.from_numpy(values(*x)))
                y = y if isinstance(y, torch.Tensor) else y[0]
                y.sum().backward()
                outputs.append(y.detach())
        near, far = ((y - outputs[0]).norm() / outputs[0].norm() for y in outputs[1:])
        assert 0 < near < 0.05 < far < 0.5


def test_the_log_has_the_recipe(tmp_path):
    model = linear()
    with emulate(model, torch.optim.SGD(model.parameters(), lr=0), log=tmp_path / "log", recipe=TE) as run:
        run.backward(model(torch.ones(16, 64)).sum())
    assert json.loads((tmp_path / "log" / "run.json").read_text())["recipe"] == TE


@pytest.mark.parametrize("recipe, kind, message", [
    ("nvfp5", ValueError, "recipe: unknown recipe 'nvfp5'; fp8-block, nvfp4-training and those of"),
    ("n" * 90, ValueError, "recipe: found 'nnn"),
    ({"weights": "nvfp4"}, ValueError, "found the kind 'weights', expected weight, activation, gradient, other"),
    ({"weight": 4}, ValueError, "recipe: found 4, expected a name"),
    (4, TypeError, "recipe: found 4, expected None, the name of a recipe"),
    ("fp8-delayed", ValueError, "fp8-delayed needs largest magnitudes of earlier steps")])
def test_a_recipe_that_is_none(recipe, kind, message):
    model = linear()
    with pytest.raises(kind) as error:
        emulate(model, torch.optim.SGD(model.parameters(), lr=0), recipe=recipe)
    assert message in str(error.value)


def test_products_that_cannot_be_quantised_are_refused():
    model = linear()
    with emulate(model, torch.optim.SGD(model.parameters(), lr=0), recipe="nvfp4"):
        with pytest.raises(RuntimeError, match="operands cannot be quantised.*or leave out recipe"):
            torch.addbmm(torch.zeros(3, 3), torch.ones(2, 3, 3), torch.ones(2, 3, 3))
