# SPDX-License-Identifier: Apache-2.0
"""The emulator on arrays: each element has the bits that the scalar functions return.

    values, flags = halfscope.arrays.convert(gradients, "binary16")
    total, flags = halfscope.arrays.add(a, b)

Arrays are NumPy arrays (with ml_dtypes' types for bfloat16 and FP8), PyTorch CPU tensors, or any
arrays that support DLPack; contiguous in C order. None is copied: results are written to `out`, or
to a new array of the same kind. Each function returns (values, flags): the array, and the IEEE 754
exceptions that some element raised ("invalid", "divide_by_zero", "overflow", "underflow",
"inexact").

All functions accept the options of `halfscope emulate` (docs/emulate.md):
rounding: "near_even" (default), "near_maxMag", "minMag", "min", "max", "odd" or "stochastic", which
draws its bits from `seed` and the element's index. subnormals: "keep", "flush", "flush-before" or
"flush-result". saturate: the largest finite number in place of an infinity. nan: "x86", "canonical"
or "cuda". denormals_are_zero: subnormal operands count as zeros. threads: 0 uses all cores; results
do not depend on the number.

Recipes of block formats (NVFP4, MXFP8, MXFP4, FP8 blocks, HiFloat8: docs/numerics/recipes.md) have
functions of their own, whose first argument is the recipe's name:

    codes, scales, tensor_scale = halfscope.arrays.quantise_blocks("nvfp4", weights)
    halfscope.arrays.conform("nvfp4", weights, codes, scales, tensor_scale)["conforms"]

All functions raise TypeError for elements of other types, and ValueError for other layouts, other
devices, different lengths, and unknown formats or options.
"""

import re
from numbers import Integral, Real
from typing import Any, FrozenSet, NamedTuple

from halfscope import _halfscope
from halfscope._arguments import check_number, check_text, described
from halfscope._parts import part

__all__ = ["Blocks", "Rounded", "add", "conform", "convert", "dequantise_blocks", "fused_multiply_add",
           "multiply", "quantise", "quantise_blocks", "recipes", "tensor_core_product"]

# {format: name of its dtype in NumPy with ml_dtypes, and in PyTorch}
_DTYPES = {"binary16": "float16", "bfloat16": "bfloat16", "binary32": "float32",
           "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e3m2": "float6_e3m2fn",
           "e2m3": "float6_e2m3fn", "e2m1": "float4_e2m1fn"}
_NARROW = re.compile(r"float[468]_")  # one-byte types of ml_dtypes and PyTorch
_FORMATS = {dtype: format for format, dtype in _DTYPES.items()}
_NAMES = {"fp16": "binary16", "half": "binary16", "float16": "binary16", "f16": "binary16",
          "bf16": "bfloat16", "fp32": "binary32", "float32": "binary32", "single": "binary32"}


class Rounded(NamedTuple):
    """The result of a function: the array, and the exceptions that some element raised."""

    values: Any
    flags: FrozenSet[str]


class Blocks(NamedTuple):
    """A quantised tensor. Arrays are of the same kind as the tensor."""

    codes: Any         # uint8, one code an element, in the tensor's shape
    scales: Any        # (rows, columns) of blocks: uint8 for E4M3 and E8M0, else float32; None: no scales
    tensor_scale: Any  # float32: one, or one a row; None if the recipe has no second scale


def _checked(format):
    check_text("format", format, "the name of one, such as 'binary16'")
    return format


def _dtype(array):
    return str(getattr(array, "dtype", "")).replace("torch.", "")


def _is_torch(array):
    return hasattr(array, "detach")


def _seen(array):
    """Returns a view for the extension. Types without a name in DLPack become integers."""
    if _is_torch(array):
        array = array.detach()
        if _NARROW.match(_dtype(array)):
            import torch

            return array.view(torch.uint8)
        return array
    name = _dtype(array)
    if name == "bfloat16" and hasattr(array, "view"):
        return array.view("uint16")
    return array.view("uint8") if _NARROW.match(name) else array


def _format_of(array, format):
    if format is not None:
        return _checked(format)
    found = _FORMATS.get(_dtype(array))
    if found is None:
        raise TypeError(f"the array has dtype {_dtype(array) or type(array).__name__}, which names no "
                        "format; say which one its bits are of, format='binary16'")
    return found


def _empty(like, format):
    """Returns a new array for values of a format, of the same kind and shape as `like`."""
    name = _DTYPES.get(_NAMES.get(format.lower(), format))
    if _is_torch(like):
        import torch

        return torch.empty(like.shape, dtype=getattr(torch, name or "", torch.uint8))
    numpy = part("numpy", "a new array", "numpy")
    shape = numpy.shape(like)
    if name in ("float16", "float32"):
        return numpy.empty(shape, name)
    if name is None:
        raise ValueError(f"format {described(format)} has no dtype; give out=, with its bits as integers")
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"an array of {format} needs ml_dtypes: pip install ml_dtypes; or give out=, "
                          "an array of uint16 or uint8 for its bits") from error
    return numpy.empty(shape, getattr(ml_dtypes, name))


def _options(rounding="near_even", subnormals="keep", saturate=False, nan="x86",
             denormals_are_zero=False, seed=0, threads=0):
    for name, text in (("rounding", rounding), ("subnormals", subnormals), ("nan", nan)):
        check_text(name, text, "the name of one, such as 'near_even', 'keep' or 'x86'")
    for name, flag in (("saturate", saturate), ("denormals_are_zero", denormals_are_zero)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} is {described(flag)}, expected True or False")
    check_number("seed", seed, "a whole number below 2^64", Integral, 2**64 - 1)
    check_number("threads", threads, "a whole number below 2^31", Integral, 2**31 - 1)
    return _halfscope.ArrayOptions(rounding=rounding, subnormals=subnormals, saturate=saturate, nan=nan,
                                   denormals_are_zero=denormals_are_zero, seed=seed, threads=threads)


def _rounded(values, flags):
    return Rounded(values, frozenset(flags))


def convert(array, format=None, *, out=None, **options):
    """Converts float32 to a format, rounding each element once; or a format to float32, exactly.

    array: float32, or elements of a format of at most 16 bits. format: "binary16", "bfloat16",
    "e4m3", ...; the format of the result if the array is float32, else the format of the array, by
    default its dtype. out: array of the same shape for the result; uint16 and uint8 hold bits.
    """
    options = _options(**options)
    if _dtype(array) == "float32":
        if format is None:
            raise ValueError("the array is float32: say what to convert it to, format='binary16'")
        out = _empty(array, _checked(format)) if out is None else out
    else:
        format = _format_of(array, format)
        out = _empty(array, "binary32") if out is None else out
    return _rounded(out, _halfscope.convert_array(_checked(format), _seen(array), _seen(out), options))


def quantise(array, format="binary16", **options):
    """Rounds float32 values in place to values of a format.

    format: any format whose values are all float32 values, such as "tf32".
    """
    flags = _halfscope.quantise_array(_checked(format), _seen(array), _options(**options))
    return _rounded(array, flags)


def _combine(operation, arrays, out, format, options):
    options = _options(**options)
    format = _format_of(arrays[0], format)
    out = _empty(arrays[0], format) if out is None else out
    flags = _halfscope.combine_arrays(operation, format, list(map(_seen, arrays)), _seen(out), options)
    return _rounded(out, flags)


def add(a, b, *, out=None, format=None, **options):
    """Returns a + b, rounding each element once. a, b: arrays of one 16-bit format and one length.
    out: may be a or b. format: by default the dtype of a; required for uint16."""
    return _combine("add", (a, b), out, format, options)


def multiply(a, b, *, out=None, format=None, **options):
    """Returns a * b. Arguments as for add()."""
    return _combine("multiply", (a, b), out, format, options)


def fused_multiply_add(a, b, c, *, out=None, format=None, **options):
    """Returns a * b + c, rounded once. Arguments as for add()."""
    return _combine("fused_multiply_add", (a, b, c), out, format, options)


def tensor_core_product(a, b, architecture, *, format=None):
    """Returns the product of two matrices as a Tensor Core computes it, bit for bit, in float32.

    a: (m, k), b: (k, n), float16 or bfloat16; or float32, which is rounded to `format` first.
    architecture: "volta", "turing", "ampere", "ada", "hopper" or "blackwell". Products are added in
    FP32, starting at +0, in the architecture's steps in ascending k (docs/tensor-core.md).
    """
    formats = {_format_of(side, format if _dtype(side) == "float32" else None) for side in (a, b)}
    formats = {_NAMES.get(each, each) for each in formats}
    if format is not None:
        formats.add(_NAMES.get(format, format))
    known = _halfscope.tensor_core_formats()
    check_text("architecture", architecture, f"one of {', '.join(known)}")
    if architecture not in known:
        raise ValueError(f"architecture is {described(architecture)}, expected one of {', '.join(known)}")
    name = next(iter(formats))
    if len(formats) > 1 or name not in known[architecture]:
        raise ValueError(f"a and b are of {' and '.join(sorted(formats))}; the Tensor Cores of "
                         f"{architecture} take two matrices of {' or '.join(known[architecture])}; for "
                         "float32 say what to round it to, format='binary16'")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}, expected (m, k) and (k, n)")
    left, right = (_in_float32(side, name) for side in (a, b))
    out = _zeros(left, (a.shape[0], b.shape[1]))
    _halfscope.add_products(architecture, name, left[None], right[None], out[None])
    return out


def _in_float32(array, format):
    array = array.contiguous() if _is_torch(array) else array.copy("C")
    if _dtype(array) != "float32":
        return convert(array, format).values
    return quantise(array.clone() if _is_torch(array) else array, format).values


def _zeros(like, shape):
    if _is_torch(like):
        return like.new_zeros(shape)
    return part("numpy", "a new array", "numpy").zeros(shape, "float32")


def recipes():
    """Returns the names of all recipes, then of the dialects of libraries."""
    return _halfscope.recipe_names()


def quantise_blocks(recipe, array, *, columns=False, seed=0, history=None, threads=0):
    """Quantises an array by a recipe. Returns Blocks: codes, scales, tensor_scale.

    recipe: a name that recipes() has. array: float32, float16 or bfloat16; its rows are all
    dimensions but the last. columns: blocks run down the columns, as those of the transposed array.
    seed: for recipes that round at random. history: for fp8-delayed, the largest magnitude of
    earlier steps. Raises ValueError for a size that the recipe does not allow.
    """
    _check_recipe(recipe, columns, history)
    check_number("seed", seed, "a whole number below 2^64", Integral, 2**64 - 1)
    check_number("threads", threads, "a whole number below 2^31", Integral, 2**31 - 1)
    values, format = _values(array)
    return Blocks(*_halfscope.quantise_blocks(recipe, values, format, True, columns, seed, history,
                                              threads, _is_torch(array)))


def dequantise_blocks(recipe, codes, scales=None, tensor_scale=None, *, columns=False):
    """Returns the values of a quantised array in float32: code times scale, times tensor_scale, each
    product rounded. A recipe's Hadamard transform is not undone.

    codes: one code a byte, uint8 or a type of ml_dtypes or PyTorch. Arguments as Blocks has them.
    """
    _check_recipe(recipe, columns)
    return _halfscope.dequantise_blocks(recipe, _seen(codes), _seen(scales), _numbers(tensor_scale),
                                        columns, _is_torch(codes))


def conform(recipe, array, codes, scales=None, tensor_scale=None, *, columns=False, history=None):
    """Compares a quantiser's output with a recipe's, bit for bit. Returns the fields of
    `halfscope conform --json` as a dict: docs/json.md.

    array: what was quantised. codes, scales, tensor_scale: the output, as Blocks has them. A
    tensor_scale of None is not compared.
    """
    _check_recipe(recipe, columns, history)
    values, format = _values(array)
    return _halfscope.conform_blocks(recipe, values, format, _seen(codes), _seen(scales),
                                     _numbers(tensor_scale), columns, history)


def _check_recipe(recipe, columns, history=None):
    check_text("recipe", recipe, "the name of one, such as 'nvfp4'; recipes() has all")
    if not isinstance(columns, bool):
        raise TypeError(f"columns is {described(columns)}, expected True or False")
    if history is not None:
        check_number("history", history, "the largest magnitude of earlier steps: a float32, not negative",
                     most=(2 - 2**-23) * 2.0**127)


def _values(array):
    """Returns an array's values in float32, and the format that they had."""
    format = _FORMATS.get(_dtype(array))
    if format == "binary32":
        return _seen(array), format
    if format not in ("binary16", "bfloat16"):
        raise TypeError(f"the array is {described(array)} with dtype {_dtype(array) or 'unknown'}, "
                        "expected float32, float16 or bfloat16")
    return _seen(convert(array).values), format


def _numbers(tensor_scale):
    """Returns the numbers of a tensor_scale as a list."""
    if tensor_scale is None or isinstance(tensor_scale, Real):
        return None if tensor_scale is None else [float(tensor_scale)]
    if _dtype(tensor_scale) != "float32":
        raise TypeError(f"tensor_scale is {described(tensor_scale)}, expected a number or float32")
    return tensor_scale.reshape(-1).tolist()
