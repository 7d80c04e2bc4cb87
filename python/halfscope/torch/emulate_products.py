# SPDX-License-Identifier: Apache-2.0
"""Products of matrices as a Tensor Core computes them, bit for bit (docs/tensor-core.md), and of
operands in block formats.

Operations are intercepted below autograd, so those of the backward pass are included, and PyTorch's
own derivatives determine which matrices are multiplied.
"""

import contextlib
import functools
import re
import warnings
from types import SimpleNamespace

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from halfscope import _halfscope
from halfscope._arguments import described
from halfscope.torch.emulate_convolutions import convolution, convolution_gradients
from halfscope.torch.emulate_recipes import shares
from halfscope.torch.emulate_rounding import PRECISIONS, rounded

_PREFIX = "tensor-core:"

# Operations that multiply matrices inside, where a dispatch mode cannot see the product.
_FUSED = re.compile(r"attention|_rnn|multi_head|_transformer_|_addmm_activation|addbmm|sparse_.*mm|"
                    r"mkldnn_(linear|convolution)|^(linear|matmul|conv[123]d|conv_t)")


def tensor_core_of(accumulate, precision):
    """Returns the TensorCore for the arguments `accumulate` and `precision`. None if PyTorch
    computes the sums. Raises ValueError."""
    if isinstance(accumulate, str) and accumulate == "fp32":
        return None
    formats = _halfscope.tensor_core_formats()
    names = {_PREFIX + architecture: architecture for architecture in formats}
    if not isinstance(accumulate, str) or accumulate not in names:
        raise ValueError(f"accumulate: found {described(accumulate)}, expected one of fp32, {', '.join(names)}")
    architecture = names[accumulate]
    if PRECISIONS[precision].format not in formats[architecture]:
        known = [name for name, row in PRECISIONS.items() if row.format in formats[architecture]]
        raise ValueError(f"accumulate: {architecture} has no Tensor Core for the tensors of precision "
                         f"{described(precision)}, expected one of {', '.join(known)}")
    return TensorCore(architecture, PRECISIONS[precision].format)


class TensorCore:
    """Computes products with FP32 sums in one chain of steps, starting at +0."""

    def __init__(self, architecture, format):
        self._architecture = architecture
        self._format = format

    def rounded(self, operand):
        """Returns a tensor as the Tensor Core reads it: a rounded copy in CPU memory."""
        return rounded(operand.cpu(), self._format)

    def add(self, a, b, to):
        """to += a b, with rounded a (batch, m, k) and b (batch, k, n)."""
        _halfscope.add_products(self._architecture, self._format, a, b, to)

    def product(self, a, b):
        """Returns a b, with a (m, k) and b (k, n), or a (batch, m, k) and b (batch, k, n)."""
        batch = a.dim() == 3
        left, right = (self.rounded(x if batch else x[None]) for x in (a, b))
        out = torch.zeros(left.shape[0], left.shape[1], right.shape[2])
        self.add(left, right, out)
        return (out if batch else out[0]).to(a.device)


class Products(TorchDispatchMode):
    """A context in which a TensorCore computes every product of FP32 matrices, except inside
    paused(), and Recipes quantise their operands. core and recipes may be None. wide: {name:
    parameter} for the parameters that stay FP32."""

    def __init__(self, core, recipes, wide):
        super().__init__()
        self._core = core
        self._recipes = recipes
        self._wide = wide
        self._paused = False
        self._warned = False  # True after the warning of a convolution

    @contextlib.contextmanager
    def begun(self):
        with _unfused(), self._recipes.begun() if self._recipes else contextlib.nullcontext(), self:
            yield

    def before_forward(self):
        if self._recipes is not None:
            self._recipes.find_weights()

    @contextlib.contextmanager
    def paused(self):
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self._paused:
            return function(*args, **kwargs)
        name = getattr(function, "overloadpacket", function).__name__
        compute = _PRODUCTS.get(name.rstrip("_") if name in _IN_PLACE else name)
        if compute is None:
            return self._other(function, name, args, kwargs)
        operands = [x for x in args if isinstance(x, torch.Tensor)]
        if any(x.dtype != torch.float32 for x in operands):
            return function(*args, **kwargs)  # a product of the loop: the model's are all FP32
        self._require(name, operands)
        core = self._core_of(name, compute)
        if core is None:
            return function(*args, **kwargs)
        out = args[0] if name in _IN_PLACE else kwargs.pop("out", None)
        result = compute(core, *args, **kwargs)
        return result if out is None else out.resize_(result.shape).copy_(result)

    def _core_of(self, name, compute):
        """Returns what multiplies the operands of an operation; None for PyTorch."""
        if self._recipes is None:
            return self._core
        if compute in (convolution, convolution_gradients):
            if not self._warned:
                self._warned = True
                warnings.warn("recipe: convolutions are not quantised, only products of matrices; the "
                              "convolutions of this model stay in the run's precision", RuntimeWarning,
                              stacklevel=2)
            return self._core
        product = self._core.product if self._core else torch.matmul
        return SimpleNamespace(product=functools.partial(self._recipes.product, product, name))

    def _require(self, name, operands):
        for x in operands:
            if x.layout != torch.strided:
                raise RuntimeError(f"{name}: found a tensor of layout {x.layout}, expected a dense one: "
                                   f"sparse products are not emulated; {self._without()}")
            if self._core is None:
                continue
            wide = next((key for key, p in self._wide.items() if shares(p, x)), None)
            if wide is not None:
                raise RuntimeError(f"{name}: reads {wide}, which keep_fp32 keeps in FP32, and a Tensor "
                                   "Core reads 16-bit values; leave its module out of keep_fp32, or "
                                   "use accumulate='fp32'")

    def _other(self, function, name, args, kwargs):
        if torch.is_inference_mode_enabled():  # operations are not decomposed into products there
            with self:
                result = function.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if _FUSED.search(name):
            what = "the sums of a Tensor Core cannot be emulated" if self._core else "operands cannot be quantised"
            raise RuntimeError(f"torch.ops.aten.{name} multiplies matrices inside, where {what}; compute it "
                               f"by matrix products, or {self._without()}")
        return function(*args, **kwargs)

    def _without(self):
        """Returns the way to run without the emulation of products."""
        words = ["use accumulate='fp32'"] if self._core else []
        return " and ".join(words + (["leave out recipe"] if self._recipes else []))


@contextlib.contextmanager
def _unfused():
    """A context in which PyTorch runs recurrent layers and attention as separate products."""
    with contextlib.ExitStack() as stack:
        # torch.backends.mkldnn.flags() sets TF32 as well, and warns of it.
        stack.callback(torch._C._set_mkldnn_enabled, torch._C._get_mkldnn_enabled())
        torch._C._set_mkldnn_enabled(False)
        attention = getattr(torch.nn, "attention", None)
        if attention is not None:
            stack.enter_context(attention.sdpa_kernel(attention.SDPBackend.MATH))
        yield


def _mm(core, a, b):
    return core.product(a, b)


def _added(core, c, a, b, *, beta=1, alpha=1):
    """Returns beta c + alpha a b."""
    sums = core.product(a, b)
    if alpha != 1:
        sums = sums * alpha
    if beta == 0:
        return sums
    return sums + (c if beta == 1 else c * beta)


def _mv(core, a, x):
    return core.product(a, x[:, None])[:, 0]


def _added_mv(core, c, a, x, *, beta=1, alpha=1):
    return _added(core, c[..., None], a, x[:, None], beta=beta, alpha=alpha)[..., 0]


def _dot(core, a, b):
    return core.product(a[None], b[:, None])[0, 0]


_PRODUCTS = {"mm": _mm, "bmm": _mm, "addmm": _added, "baddbmm": _added, "mv": _mv,
             "addmv": _added_mv, "dot": _dot, "vdot": _dot, "convolution": convolution,
             "_convolution": convolution, "convolution_backward": convolution_gradients}
_IN_PLACE = ("addmm_", "baddbmm_", "addmv_")
