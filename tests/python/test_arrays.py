# SPDX-License-Identifier: Apache-2.0
"""halfscope.arrays: the emulator on NumPy arrays, ml_dtypes' types and tensors, where they are.

NumPy's, PyTorch's and ml_dtypes' own conversions are the judges."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from halfscope import arrays, binade_table
from program import stdout_of


@pytest.fixture
def values():
    random = np.random.default_rng(5)
    out = (random.standard_normal(5000) * 2.0 ** random.integers(-30, 18, 5000)).astype(np.float32)
    out[:6] = [0.0, -0.0, np.inf, -np.inf, 65520.0, 2.0**-25]
    return out


def test_convert_is_the_cast_of_numpy(values):
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    found, flags = arrays.convert(values, "binary16")
    assert found.dtype == np.float16
    assert np.array_equal(found.view(np.uint16), expected.view(np.uint16))
    assert flags == {"overflow", "underflow", "inexact"}
    back, none = arrays.convert(found)
    assert back.dtype == np.float32 and np.array_equal(back, expected.astype(np.float32)) and not none


def test_convert_is_the_cast_of_torch(values):
    found = arrays.convert(torch.from_numpy(values), "bfloat16").values
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, torch.from_numpy(values).bfloat16())
    assert torch.equal(arrays.convert(found).values, found.float())


@pytest.mark.parametrize("format, name", [("bfloat16", "bfloat16"), ("e4m3", "float8_e4m3fn"),
                                          ("e5m2", "float8_e5m2")])
def test_types_of_ml_dtypes(values, format, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = values[np.isfinite(values)]
    expected = values.astype(getattr(ml_dtypes, name))
    found = arrays.convert(values, format).values
    assert found.dtype == expected.dtype
    known = ~np.isnan(expected.astype(np.float32))  # E4M3 has one NaN a sign, and no infinity
    bits = "uint16" if found.itemsize == 2 else "uint8"
    assert np.array_equal(found.view(bits)[known], expected.view(bits)[known])
    assert np.array_equal(arrays.convert(found).values[known], expected.astype(np.float32)[known])
    assert binade_table(found).total == found.size


def test_sums_and_products_are_those_of_numpy(values):
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = values[6:2000].astype(np.float16), values[2006:4000].astype(np.float16)
        for function, expected in ((arrays.add, a + b), (arrays.multiply, a * b)):
            found = function(a, b).values
            known = ~np.isnan(expected)
            assert np.array_equal(found.view(np.uint16)[known], expected.view(np.uint16)[known])
    one, tiny = np.float16([1.0]), np.float16([2.0**-11])
    assert arrays.fused_multiply_add(one, one, tiny).values[0] == 1.0
    assert arrays.fused_multiply_add(one, one, tiny, rounding="max").values[0] == 1.0 + 2.0**-10
    assert arrays.add(one, tiny).flags == {"inexact"} and arrays.add(one, one).flags == set()


def test_modes():
    big = np.float32([1e6])
    assert np.isinf(arrays.convert(big, "fp16").values[0])
    assert arrays.convert(big, "fp16", saturate=True).values[0] == 65504
    small = np.float32([2.0**-20])
    assert arrays.convert(small, "fp16").values[0] == 2.0**-20
    assert arrays.convert(small, "fp16", subnormals="flush").values[0] == 0
    middle = np.full(4000, 1 + 2.0**-12, np.float32)  # a quarter of the way
    up = np.sum(arrays.convert(middle, "fp16", rounding="stochastic", seed=3).values > 1)
    assert 850 < up < 1150  # 1000 expected, a standard deviation of 27


def test_results_go_where_they_are_asked_for(values):
    out = np.empty(values.shape, np.uint16)
    found, _ = arrays.convert(values, "bfloat16", out=out)
    assert found is out
    assert np.array_equal(out, torch.from_numpy(values).bfloat16().view(torch.int16).numpy().view(np.uint16))
    a = np.float16([1.0, 2.0])
    place = a.ctypes.data
    assert arrays.add(a, a, out=a).values is a and a.ctypes.data == place and a.tolist() == [2.0, 4.0]
    tensor = torch.tensor([1 + 2.0**-12, 3.0])
    place = tensor.data_ptr()
    found, flags = arrays.quantise(tensor, "binary16")
    assert found is tensor and tensor.data_ptr() == place and tensor.tolist() == [1.0, 3.0]
    assert flags == {"inexact"}
    half = torch.zeros(2, dtype=torch.bfloat16)
    arrays.convert(torch.tensor([1.5, 2.0]), "bfloat16", out=half)
    assert half.tolist() == [1.5, 2.0]
    weight = torch.ones(3, requires_grad=True)
    assert arrays.convert(weight, "binary16").values.dtype == torch.float16


SIZE = 128 << 20  # bytes of an array
GROWTH = f"""
import resource, sys, numpy, torch
from halfscope import arrays, binade_table
def anonymous():
    return int(open('/proc/self/status').read().split('RssAnon:')[1].split()[0]) << 10
whole = numpy.ones({SIZE} // 4, numpy.float32)
halves = numpy.ones({SIZE} // 2, numpy.float16)
tensor = torch.ones({SIZE} // 2, dtype=torch.bfloat16)
out = numpy.zeros({SIZE} // 4, numpy.float16); out[:] = 1
arrays.convert(whole[:1000], 'fp16', out=out[:1000]); binade_table(tensor[:1000])
before, most = anonymous(), 0
import threading
stop = threading.Event()
def watch():
    global most
    while not stop.wait(0.001):
        most = max(most, anonymous())
watcher = threading.Thread(target=watch); watcher.start()
{{call}}
most = max(most, anonymous())
stop.set(); watcher.join()
print(most - before)
"""


@pytest.mark.parametrize("call", [
    "arrays.convert(whole, 'binary16', out=out)",
    "arrays.quantise(whole, 'bfloat16')",
    "arrays.quantise(torch.from_numpy(whole), 'binary16')",
    "arrays.add(halves, halves, out=halves)",
    "arrays.multiply(tensor, tensor, out=tensor)",
    "binade_table(tensor)",
    "binade_table(halves)"])
def test_nothing_is_copied(call):
    done = subprocess.run([sys.executable, "-c", GROWTH.replace("{call}", call)], check=True,
                          capture_output=True, text=True, env=os.environ)
    assert int(done.stdout) < SIZE // 4


def test_a_copy_would_be_seen():
    done = subprocess.run([sys.executable, "-c", GROWTH.replace("{call}", "kept = halves.copy()")],
                          check=True, capture_output=True, text=True, env=os.environ)
    assert int(done.stdout) > SIZE // 2


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("call, error, said", [
    (lambda: arrays.convert(np.arange(3), "fp16"), TypeError, "float32"),
    (lambda: arrays.convert(np.ones(3), "fp16"), TypeError, "float32"),
    (lambda: arrays.convert([1.0], "fp16"), TypeError, "names no format|list"),
    (lambda: arrays.convert(np.ones(3, np.float32)), ValueError, "format='binary16'"),
    (lambda: arrays.convert(np.ones(3, np.float32), "fp17"), ValueError, "fp17"),
    (lambda: arrays.convert(np.ones(3, np.float32), "fp16", rounding="up"), ValueError,
     "rounding is 'up', expected one of 'near_even'"),
    (lambda: arrays.convert(np.ones((4, 4), np.float32)[:, ::2], "fp16"), ValueError, "not contiguous"),
    (lambda: arrays.quantise(read_only(np.ones(3, np.float32))), TypeError, "may be written to"),
    (lambda: arrays.quantise(np.ones(3, np.float16)), ValueError, "not float32"),
    (lambda: arrays.add(np.ones(3, np.float16), np.ones(4, np.float16)), ValueError, "3.*4"),
    (lambda: arrays.add(np.ones(3, np.uint16), np.ones(3, np.uint16)), TypeError, "which names no format"),
    (lambda: arrays.add(np.ones(3, np.float16), np.ones(3, np.float32)), ValueError, "16 bits"),
    (lambda: arrays.add(*[(a := np.ones(4, np.float16))[:3]] * 2, out=a[1:]), ValueError, "overlaps"),
])
def test_what_cannot_be_done_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


@pytest.mark.parametrize("architecture", ["volta", "turing", "ampere", "ada", "hopper", "blackwell"])
def test_products_are_those_of_mma(architecture):
    """Which adds each dot product by itself."""
    random = np.random.default_rng(7)
    a, b = ((random.standard_normal(shape) * 2.0 ** random.integers(-12, 8, shape)).astype(np.float16)
            for shape in ((5, 50), (50, 4)))
    lines = "".join(f"{','.join(f'{x:04x}' for x in row)} {','.join(f'{x:04x}' for x in column)} 00000000\n"
                    for row in a.view(np.uint16) for column in b.T.copy().view(np.uint16))
    told = stdout_of("mma", "--arch", architecture, "--accumulate", "fp32", input=lines).split()
    expected = np.array([int(word, 16) for word in told], np.uint32).view(np.float32).reshape(5, 4)
    found = arrays.tensor_core_product(a, b, architecture)
    assert found.dtype == np.float32 and np.array_equal(found, expected)
    of_torch = arrays.tensor_core_product(torch.from_numpy(a), torch.from_numpy(b), architecture)
    assert isinstance(of_torch, torch.Tensor) and np.array_equal(of_torch.numpy(), expected)
    wide = a.astype(np.float32)
    assert np.array_equal(arrays.tensor_core_product(wide, b.astype(np.float32), architecture, format="fp16"), expected)
    assert np.array_equal(wide, a)
    turned = np.asfortranarray(a), torch.from_numpy(b.T.copy()).t()
    assert np.array_equal(arrays.tensor_core_product(turned[0], b, architecture), expected)
    assert np.array_equal(arrays.tensor_core_product(torch.from_numpy(a), turned[1], architecture).numpy(), expected)
    with pytest.raises(ValueError, match="a and b are of"):
        arrays.tensor_core_product(a, b, architecture, format="bfloat16")


@pytest.mark.parametrize("a, b, architecture, said", [
    (np.ones((2, 3), np.float16), np.ones((3, 2), np.float32), "hopper", "for float32 say what to round it to"),
    (np.ones((2, 3), np.float16), np.ones((2, 3), np.float16), "hopper", "expected (m, k) and (k, n)"),
    (np.ones((2, 3), np.float16), np.ones((3, 2), np.float16), "kepler", "expected one of volta, turing"),
    (torch.ones(2, 3).bfloat16(), torch.ones(3, 2).bfloat16(), "volta", "take two matrices of binary16")])
def test_products_that_no_tensor_core_has(a, b, architecture, said):
    with pytest.raises(ValueError, match="") as caught:
        arrays.tensor_core_product(a, b, architecture)
    assert said in str(caught.value)
