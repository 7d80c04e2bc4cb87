# SPDX-License-Identifier: Apache-2.0
"""emulate(accumulate="tensor-core:ARCH"): every product against `halfscope mma`, in the order that
docs/simulate.md states."""

import itertools
import json
import struct

import pytest
import torch
from program import run
from small_runs import small_network
from torch import nn

from halfscope.torch import emulate, emulate_convolutions
from halfscope.torch.emulate_products import TensorCore

KINDS = [("hopper", "mixed"), ("ampere", "mixed-bf16"), ("volta", "fp16")]


def narrow(precision):
    return torch.bfloat16 if "bf16" in precision else torch.float16


def rounded(x, precision):
    return x.to(narrow(precision)).float()


def chains(pairs, architecture, precision):
    """FP32 sums of the products of (a, b), pairs of vectors, by the program."""
    def words(values):
        return ",".join(f"{word & 0xffff:04X}" for word in values.to(narrow(precision)).view(torch.int16).tolist())

    lines = "".join(f"{words(a)} {words(b)} 00000000\n" for a, b in pairs)
    inputs = "bf16" if "bf16" in precision else "fp16"
    done = run("mma", "--arch", architecture, "--accumulate", "fp32", "--inputs", inputs,
               input=lines)
    return torch.tensor([struct.unpack(">f", bytes.fromhex(line))[0] for line in done.stdout.split()])


def values(*shape, seed=0):
    """Near 2^-8, and a few of 2^14 or -2^14. Where the large ones of a chain cancel, the sum shows
    which others were in a step with one: the order, and the grid that cuts them. Rounding to 16
    bits hides both in most other sums."""
    generator = torch.Generator().manual_seed(seed)
    small = torch.ldexp(1 + torch.rand(shape, generator=generator), torch.tensor(-8))
    large = torch.rand(shape, generator=generator) < 0.05
    return torch.where(large, torch.tensor(2.0 ** 14), small) * signs(*shape, seed=seed + 100)


def signs(*shape, seed=0):
    return torch.randint(2, shape, generator=torch.Generator().manual_seed(seed)) * 2.0 - 1


def passes(model, x, up, architecture, precision):
    """(x, y, gradient of x) of a model of one layer; its weights and their gradients are in it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0)
    x = x.clone().requires_grad_()
    with emulate(model, optimizer, precision, accumulate=f"tensor-core:{architecture}") as run:
        y = model(x)
        run.backward((y * up).sum())
    return rounded(x.detach(), precision), y.detach(), x.grad


def same(found, want):
    return torch.equal(found.detach().view(torch.int32), want.view(torch.int32))


# Of weights and of inputs: signs beside values() show the order in y and dx, or in dw.
OPERANDS = [(signs, values), (values, signs)]


@pytest.mark.parametrize("weights, inputs", OPERANDS)
@pytest.mark.parametrize("architecture, precision", KINDS)
@pytest.mark.parametrize("shape", [(35, 37, 33), (1, 16, 7), (33, 1, 2)])
def test_a_linear_layer_is_one_chain_an_element(architecture, precision, shape, weights, inputs):
    n, c, k = shape
    model = nn.Linear(c, k)
    model.weight.data, model.bias.data = weights(k, c, seed=1), values(k, seed=2)
    up = rounded(values(n, k, seed=3), precision)
    w, b = rounded(model.weight.data, precision), rounded(model.bias.data, precision)
    x, y, dx = passes(model, inputs(n, c, seed=4), up, architecture, precision)

    def product(left, right):
        sums = chains(itertools.product(left, right.t()), architecture, precision)
        return sums.reshape(len(left), -1)

    assert same(y, rounded(product(x, w.t()) + b, precision))
    assert same(dx, rounded(product(up, w), precision))
    assert same(model.weight.grad, rounded(product(up.t(), x), precision))


def orders(model, x, y):
    """{output: its products in order}: of y (x, w), of dx (dy, w), of dw (dy, x), by their places;
    None: outside, a zero. Naive loops over what docs/simulate.md says."""
    (down, across), (pad_y, pad_x) = model.stride, model.padding
    (step_y, step_x), groups = model.dilation, model.groups
    k_all, c_group, kernel_y, kernel_x = model.weight.shape
    k_group = k_all // groups
    forward, backward, weights = {}, {}, {}
    for n, k, p, q in itertools.product(*map(range, y.shape)):
        for r, s, c in itertools.product(range(kernel_y), range(kernel_x), range(c_group)):
            i, j = p * down + r * step_y - pad_y, q * across + s * step_x - pad_x
            inside = 0 <= i < x.shape[2] and 0 <= j < x.shape[3]
            at = (n, k // k_group * c_group + c, i, j) if inside else None
            forward.setdefault((n, k, p, q), []).append((at, (k, c, r, s)))
    for n, p, q in itertools.product(range(y.shape[0]), range(y.shape[2]), range(y.shape[3])):
        for k in range(k_all):
            for at, w in forward[n, k, p, q]:
                weights.setdefault(w, []).append(((n, k, p, q), at))
    for n, c, i, j in itertools.product(*map(range, x.shape)):
        taps = [(r, s) for r in reversed(range(kernel_y)) for s in reversed(range(kernel_x))
                if (i + pad_y - r * step_y) % down == 0 and (j + pad_x - s * step_x) % across == 0]
        products = backward.setdefault((n, c, i, j), [])
        for (r, s), k in itertools.product(taps, range(k_group)):
            k += c // c_group * k_group
            p, q = (i + pad_y - r * step_y) // down, (j + pad_x - s * step_x) // across
            inside = 0 <= p < y.shape[2] and 0 <= q < y.shape[3]
            products.append(((n, k, p, q) if inside else None, (k, c % c_group, r, s)))
    return forward, backward, weights


@pytest.mark.parametrize("weights, inputs", OPERANDS)
@pytest.mark.parametrize("architecture, precision", KINDS)
@pytest.mark.parametrize("shape", [dict(kernel_size=3, padding=1), dict(kernel_size=3, stride=2, padding=1),
                                   dict(kernel_size=(2, 3), stride=(1, 2), padding=(0, 2), dilation=(2, 1), groups=2)])
def test_a_convolution_is_one_chain_an_element(architecture, precision, shape, weights, inputs,
                                                      monkeypatch):
    monkeypatch.setattr(emulate_convolutions, "_VALUES", 1)  # several parts
    model = nn.Conv2d(4, 6, **shape)
    model.weight.data, model.bias.data = weights(*model.weight.shape, seed=1), values(6, seed=2)
    w, b = rounded(model.weight.data, precision), rounded(model.bias.data, precision)
    x = inputs(2, 4, 5, 7, seed=3)
    up = rounded(values(*model(x).shape, seed=4), precision)
    x, y, dx = passes(model, x, up, architecture, precision)

    def sums(of, left, right, like):
        def read(tensor, at):
            return torch.stack([torch.tensor(0.0) if one is None else tensor[one] for one in at])

        places = sorted(of)
        pairs = ((read(left, [a for a, _ in of[at]]), read(right, [b for _, b in of[at]])) for at in places)
        found = torch.zeros(like.shape)
        for at, value in zip(places, chains(pairs, architecture, precision)):
            found[at] = value
        return found

    of_y, of_x, of_w = orders(model, x, y)
    of_x = {at: products for at, products in of_x.items() if products}  # others are zero
    assert same(y, rounded(sums(of_y, x, w, y) + b.reshape(1, -1, 1, 1), precision))
    assert same(dx, rounded(sums(of_x, up, w, x), precision))
    assert same(model.weight.grad, rounded(sums(of_w, up, x, w), precision))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.inner = kind(8, 6)

    def forward(self, x):
        return self.inner(x)[0]


class Products(nn.Module):
    """By functions."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(8, 8))

    def forward(self, x):
        y = torch.einsum("nsc,ck->nsk", x, self.weight) + torch.baddbmm(x, x, self.weight.expand(3, 8, 8), alpha=2)
        return y + torch.mv(self.weight, x[0, 0]) + torch.dot(x[0, 0], self.weight[0])


LAYERS = {
    "linear": (lambda: nn.Linear(8, 6), (3, 5, 8)),
    "without bias": (lambda: nn.Linear(8, 6, bias=False), (8,)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1), (2, 4, 9)),
    "same": (lambda: nn.Conv1d(4, 6, 3, padding="same"), (2, 4, 9)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2, stride=(1, 2, 3), padding=1), (2, 2, 4, 5, 6)),
    "depthwise": (lambda: nn.Conv2d(6, 6, 3, groups=6, dilation=2), (2, 6, 7, 8)),
    "gaps": (lambda: nn.Conv2d(2, 3, 2, stride=3), (2, 2, 8, 7)),
    "no batch": (lambda: nn.Conv2d(2, 3, 2), (2, 8, 7)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), (2, 4, 5, 4)),
    "dilated transposed": (lambda: nn.ConvTranspose1d(4, 6, 3, stride=3, dilation=2), (2, 4, 5)),
    "functions": (Products, (3, 5, 8)),
}


def whole_numbers(*shape, seed):
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).float()


@pytest.mark.parametrize("layer", LAYERS)
def test_where_sums_are_exact_every_layer_has_pytorchs_bits(layer):
    make, shape = LAYERS[layer]
    found = {}
    for accumulate in ("fp32", "tensor-core:hopper"):
        model, x = make(), whole_numbers(*shape, seed=1).requires_grad_()
        for i, parameter in enumerate(model.parameters()):
            parameter.data = whole_numbers(*parameter.shape, seed=2 + i)
        optimizer = torch.optim.SGD(model.parameters(), lr=0)
        with emulate(model, optimizer, "fp16", accumulate=accumulate) as run:
            y = model(x)
            run.backward((y * whole_numbers(*y.shape, seed=9)).sum())
        found[accumulate] = [y, x.grad, *(p.grad for p in model.parameters())]
    for a, b in zip(*found.values()):
        assert torch.equal(a, b)
        assert a.is_contiguous() == b.is_contiguous()


@pytest.mark.parametrize("make", [Attention, lambda: Recurrent(nn.LSTM), lambda: Recurrent(nn.GRU),
                                  lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)])
def test_products_inside_of_modules_are_seen(make, monkeypatch):
    """Also in evaluation, where PyTorch takes other ways, and in inference mode."""
    torch.manual_seed(0)
    model, x = make(), torch.randn(3, 5, 8)
    calls = []
    add = TensorCore.add
    monkeypatch.setattr(TensorCore, "add", lambda *args: calls.append(1) or add(*args))
    with torch.no_grad(), emulate(model, torch.optim.SGD(model.parameters(), lr=0), "mixed"):
        plain = model(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0)
    with emulate(model, optimizer, "mixed", accumulate="tensor-core:ampere") as run:
        y = model(x)
        seen = len(calls)
        run.backward(y.sum())
        assert 0 < seen < len(calls)
        model.eval()
        del calls[:]
        with torch.no_grad():
            assert torch.equal(model(x), y)
        assert len(calls) == seen
        with torch.inference_mode():
            assert torch.equal(model(x), y)
        assert len(calls) == 2 * seen
    assert torch.allclose(plain, y, atol=5e-3)


def test_gradients_of_gradients_of_a_convolution_are_seen():
    model = nn.Conv2d(2, 3, 3, padding=1)
    model.weight.data = whole_numbers(3, 2, 3, 3, seed=1)
    found = {}
    for accumulate in ("fp32", "tensor-core:hopper"):
        x = whole_numbers(2, 2, 5, 5, seed=3).requires_grad_()
        model.zero_grad()
        with emulate(model, torch.optim.SGD(model.parameters(), lr=0), "fp16", accumulate=accumulate) as run:
            y = model(x)
            gradient, = torch.autograd.grad((y * whole_numbers(*y.shape, seed=4)).sum(), x, create_graph=True)
            run.backward((gradient * whole_numbers(*x.shape, seed=5)).sum())
        found[accumulate] = model.weight.grad
    assert torch.equal(*found.values())


def trained(folder, **arguments):
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(1)
    with emulate(model, optimizer, "mixed", "torch", log=folder, **arguments) as run:
        for _ in range(3):
            optimizer.zero_grad()
            run.backward(nn.functional.cross_entropy(model(torch.randn(4, 1, 8, 8)), torch.arange(4)))
            optimizer.step()
    return model


def test_the_log_says_how_products_were_summed(tmp_path):
    for name, arguments, says in (("none", {}, "fp32"), ("fp32", {"accumulate": "fp32"}, "fp32"),
                                  ("core", {"accumulate": "tensor-core:hopper"}, "tensor-core:hopper")):
        trained(tmp_path / name, **arguments)
        assert json.loads((tmp_path / name / "run.json").read_text())["accumulate"] == says


def test_threads_change_no_bit(tmp_path):
    states = []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        states.append(trained(tmp_path / str(threads), accumulate="tensor-core:volta").state_dict())
    torch.set_num_threads(before)
    for name in states[0]:
        assert torch.equal(states[0][name], states[1][name]), name


def test_the_optimizers_own_products_stay_pytorchs():
    class Squares(torch.optim.SGD):
        def step(self):
            parameter, = self.param_groups[0]["params"]
            parameter.data = parameter.data @ parameter.data

    weight = values(3, 3)
    squared = weight @ weight
    model = nn.Linear(3, 3, bias=False)
    model.weight.data = weight.clone()
    optimizer = Squares(model.parameters(), lr=1)
    with emulate(model, optimizer, "mixed", accumulate="tensor-core:volta") as run:
        assert not torch.equal(weight @ weight, squared)
        run.backward(model(torch.ones(1, 3)).sum())
        optimizer.step()
        assert torch.equal(run.master_weights()["weight"], squared)
    assert torch.equal(weight @ weight, squared)  # after the context


@pytest.mark.parametrize("accumulate", ["tensor-core:pascal", "tensor-core", "fp16",
                                        "tensor-core:hopper:fp16", 16, None])
def test_an_unknown_accumulator_is_refused(accumulate):
    model = small_network()
    with pytest.raises(ValueError) as error:
        emulate(model, torch.optim.SGD(model.parameters(), lr=1), accumulate=accumulate)
    assert str(error.value) == (
        f"accumulate: found {accumulate!r}, expected one of fp32, tensor-core:volta, tensor-core:turing, "
        "tensor-core:ampere, tensor-core:ada, tensor-core:hopper, tensor-core:blackwell")


@pytest.mark.parametrize("architecture, precision, has", [
    ("volta", "mixed-bf16", "fp16, mixed"), ("turing", "bf16", "fp16, mixed"),
    ("hopper", "fp32", "fp16, mixed, bf16, mixed-bf16")])
def test_a_format_that_the_architecture_lacks_is_refused(architecture, precision, has):
    model = small_network()
    with pytest.raises(ValueError) as error:
        emulate(model, torch.optim.SGD(model.parameters(), lr=1), precision,
                accumulate=f"tensor-core:{architecture}")
    assert str(error.value) == (f"accumulate: {architecture} has no Tensor Core for the tensors of precision "
                                f"{precision!r}, expected one of {has}")


def test_products_that_are_no_tensor_cores_are_refused():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1)
    core = "tensor-core:hopper"
    with emulate(model, optimizer, accumulate=core, keep_fp32=lambda path, module: True):
        with pytest.raises(RuntimeError, match="reads weight, which keep_fp32 keeps in FP32.*leave its module"):
            model(torch.ones(1, 3))
    with emulate(model, optimizer, accumulate=core):
        with pytest.raises(RuntimeError, match="addbmm multiplies matrices inside"):
            torch.addbmm(torch.zeros(3, 3), torch.ones(2, 3, 3), torch.ones(2, 3, 3))
        with pytest.raises(RuntimeError, match="sparse.*accumulate='fp32'"):
            torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 3))
        double = torch.full((2, 2), 1 / 3, dtype=torch.float64)
        assert torch.equal(double @ double, torch.full((2, 2), 2 / 9, dtype=torch.float64))
        out = torch.empty(0)
        assert torch.equal(torch.mm(torch.eye(2), torch.ones(2, 2), out=out), torch.ones(2, 2))
        assert torch.equal(torch.ones(2, 2).addmm_(torch.eye(2), torch.ones(2, 2)), torch.full((2, 2), 2.0))


def test_a_view_of_a_wide_weight_is_refused():
    """The rows that a packed projection is made of, as those of attention."""
    model = nn.Linear(8, 6, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with emulate(model, optimizer, accumulate="tensor-core:hopper", keep_fp32=lambda path, module: True):
        for view in (model.weight[2:], model.weight.chunk(3)[1]):
            with pytest.raises(RuntimeError, match="reads weight, which keep_fp32 keeps in FP32"):
                torch.ones(3, 8) @ view.t()
        torch.ones(3, 8) @ torch.ones(8, 4)


@pytest.mark.parametrize("layer, shape", [
    (nn.Conv2d(3, 4, 3), (0, 3, 5, 5)), (nn.Conv1d(2, 4, 2, groups=2), (0, 2, 6)),
    (nn.ConvTranspose2d(3, 2, 3), (0, 3, 4, 4))])
def test_an_empty_batch_has_no_sums(layer, shape):
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    expected = layer(torch.ones(shape)).shape
    with emulate(layer, optimizer, accumulate="tensor-core:hopper"):
        out = layer(torch.ones(shape))
        assert out.shape == expected
        out.sum().backward()
        assert not layer.weight.grad.any()


def test_a_convolution_over_time_is_refused():
    model = nn.Linear(2, 2)
    with emulate(model, torch.optim.SGD(model.parameters(), lr=0.1), accumulate="tensor-core:hopper"):
        with pytest.raises(RuntimeError, match="conv_tbc multiplies matrices inside"):
            torch.conv_tbc(torch.ones(5, 2, 3), torch.ones(2, 3, 4), torch.zeros(4))
