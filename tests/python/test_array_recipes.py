# SPDX-License-Identifier: Apache-2.0
"""halfscope.arrays: recipes of block formats. The judges are NumPy after the formulas of
docs/numerics/recipes.md, and the program."""

import json

import numpy as np
import pytest
import torch
from numpy_recipes import E2M1, e4m3, mxfp8_floor, nvfp4
from program import run
from test_recipes import write_safetensors

from halfscope import arrays

X = (np.random.default_rng(51).standard_normal((32, 64))
     * 2.0 ** np.random.default_rng(52).integers(-9, 3, (32, 1))).astype(np.float32)


def test_recipes_are_those_of_the_program():
    lines = run("quantise", "--list").stdout.splitlines()
    assert arrays.recipes() == [line.split()[0] for line in lines]


def test_nvfp4_is_numpys():
    codes, scales, dec = nvfp4(X)
    found = arrays.quantise_blocks("nvfp4", X)
    assert (found.codes == codes).all() and (found.scales == scales).all()
    assert found.tensor_scale == dec and found.tensor_scale.dtype == np.float32
    values = E2M1[codes] * np.repeat(e4m3(scales), 16, axis=1) * dec
    assert (arrays.dequantise_blocks("nvfp4", *found) == values).all()


def test_mxfp8_is_numpys():
    values = mxfp8_floor(X)
    found = arrays.quantise_blocks("mxfp8-e4m3-floor", X)
    assert found.scales.shape == (32, 2) and found.tensor_scale is None
    assert (arrays.dequantise_blocks("mxfp8-e4m3-floor", *found) == values).all()


@pytest.mark.parametrize("recipe", [r for r in arrays.recipes() if r != "fp8-1x128-deepseek"])
def test_every_recipe_conforms_to_itself_and_is_near_its_input(recipe):
    history = 8.0 if "delayed" in recipe else None
    for columns in (False, True):
        made = arrays.quantise_blocks(recipe, X, columns=columns, seed=3, history=history)
        told = arrays.conform(recipe, X, *made, columns=columns, history=history)
        assert told["recipe"] == recipe and told["conforms"] and told["cause"] == "none"
        values = arrays.dequantise_blocks(recipe, *made, columns=columns)
        if "hadamard" not in recipe:
            assert np.linalg.norm(values - X) < 0.2 * np.linalg.norm(X)


def test_columns_are_the_rows_of_the_transposed_array():
    down = arrays.quantise_blocks("nvfp4-row-scaled", X, columns=True)
    across = arrays.quantise_blocks("nvfp4-row-scaled", np.ascontiguousarray(X.T))
    assert (down.codes == across.codes.T).all() and (down.scales == across.scales.T).all()
    assert (down.tensor_scale == across.tensor_scale).all() and down.tensor_scale.shape == (64,)
    values = arrays.dequantise_blocks("nvfp4-row-scaled", *down, columns=True)
    assert (values == arrays.dequantise_blocks("nvfp4-row-scaled", *across).T).all()


def test_tensors_and_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    narrow = X.astype(ml_dtypes.bfloat16)
    wanted = arrays.quantise_blocks("mxfp8-e4m3-floor", narrow.astype(np.float32))
    for array in (narrow, torch.from_numpy(X).bfloat16()):
        found = arrays.quantise_blocks("mxfp8-e4m3-floor", array)
        assert type(found.codes) is type(found.scales) is type(array)
        assert np.array_equal(found.codes, wanted.codes) and np.array_equal(found.scales, wanted.scales)
        assert arrays.conform("mxfp8-e4m3-floor", array, *found)["conforms"]
    elements = wanted.codes.view(ml_dtypes.float8_e4m3fn)
    values = elements.astype(np.float32) * np.repeat(2.0 ** (wanted.scales.astype(int) - 127), 32, axis=1)
    assert (arrays.dequantise_blocks("mxfp8-e4m3-floor", elements, wanted.scales) == values).all()


def test_more_dimensions_and_none_and_empty_arrays():
    cube = X.reshape(4, 8, 64)
    found = arrays.quantise_blocks("nvfp4", cube)
    assert found.codes.shape == cube.shape and found.scales.shape == (32, 4)
    assert arrays.dequantise_blocks("nvfp4", *arrays.quantise_blocks("nvfp4", X[0, 0])).shape == ()
    for shape in ((0, 16), (3, 0)):
        for recipe in ("nvfp4", "nvfp4-row-scaled"):
            made = arrays.quantise_blocks(recipe, np.zeros(shape, np.float32))
            assert arrays.conform(recipe, np.zeros(shape, np.float32), *made)["conforms"]
            assert arrays.dequantise_blocks(recipe, *made).shape == shape


def test_a_difference_has_the_fields_of_the_program(tmp_path):
    rows = (X * 2.0 ** -np.arange(32)[:, None]).astype(np.float32)
    made = arrays.quantise_blocks("nvfp4-torchao", rows)
    told = arrays.conform("nvfp4", rows, *made)
    assert (told["cause"], told["changed"]) == ("dialect", "nvfp4-torchao")
    np.save(tmp_path / "x.npy", rows)
    q = write_safetensors(tmp_path / "q.safetensors", **made._asdict())
    done = run("conform", "nvfp4", "--input", tmp_path / "x.npy", "--output", q, "--json", "-", expect=4)
    assert told == json.loads(done.stdout)


def test_random_rounding_draws_from_its_seed():
    recipe = "nvfp4-stochastic"
    one, same, other = (arrays.quantise_blocks(recipe, X, seed=seed).codes for seed in (1, 1, 2))
    assert (one == same).all() and (one != other).any()
    nearest = arrays.quantise_blocks("nvfp4", X)
    told = arrays.conform(recipe, X, *nearest)
    assert not told["conforms"] and told["cause"] == "nearest" and not told["randomness"]["fits"]


MADE = arrays.quantise_blocks("nvfp4", X)
BAD = {
    "unknown": (lambda: arrays.quantise_blocks("nvfp5", X), ValueError, "the closest is 'nvfp4'"),
    "size": (lambda: arrays.quantise_blocks("nvfp4-hadamard", X[:, :40].copy()), ValueError,
             "recipe nvfp4-hadamard: the last dimension is 40, and must be a multiple of 16"),
    "history": (lambda: arrays.quantise_blocks("fp8-delayed", X), ValueError, "earlier steps is missing"),
    "history below 0": (lambda: arrays.quantise_blocks("fp8-delayed", X, history=-1), ValueError,
                        "history is -1, expected the largest magnitude of earlier steps: a float32, not neg"),
    "history NaN": (lambda: arrays.conform("fp8-delayed", X, X, history=float("nan")), ValueError,
                    "history is nan"),
    "unused history": (lambda: arrays.quantise_blocks("nvfp4", X, history=4.0), ValueError,
                       "only recipes with delayed scaling use it; leave it out"),
    "large history": (lambda: arrays.conform("fp8-delayed", X, MADE.codes, X[:1, :1], history=1e300),
                      ValueError, "history is 1e"),
    "float64": (lambda: arrays.quantise_blocks("nvfp4", X.astype(float)), TypeError, "expected float32"),
    "layout": (lambda: arrays.quantise_blocks("nvfp4", X.T), ValueError, "not contiguous"),
    "columns": (lambda: arrays.quantise_blocks("nvfp4", X, columns=1), TypeError, "columns is 1"),
    "seed": (lambda: arrays.quantise_blocks("nvfp4", X, seed=2**64), ValueError, "below 2.64"),
    "no scale": (lambda: arrays.dequantise_blocks("nvfp4", MADE.codes), ValueError, "scales is None"),
    "no second scale": (lambda: arrays.dequantise_blocks("nvfp4", *MADE[:2]), ValueError,
                        "tensor_scale is missing: codes of recipe nvfp4 have no values without it"),
    "scales": (lambda: arrays.conform("nvfp4", X, MADE.codes, MADE.scales[:4]), ValueError,
               "scales has 16 elements of 8 bits, expected 32 x 4 of uint8"),
    "wide scales": (lambda: arrays.conform("nvfp4", X, MADE.codes, MADE.scales.astype(np.float32)),
                    ValueError, "128 elements of 32 bits, expected 32 x 4 of uint8"),
    "codes": (lambda: arrays.conform("nvfp4", X, MADE.codes[:5], MADE.scales), ValueError,
              "codes has 320 elements, expected 2048, as many as the input"),
    "wide codes": (lambda: arrays.conform("nvfp4", X, X, MADE.scales), TypeError, "codes is not uint8"),
    "second scales": (lambda: arrays.conform("mxfp4-even", X, MADE.codes, MADE.scales[:, :2].copy(), 1.0),
                      ValueError, "tensor_scale has 1 elements, expected None"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name):
    function, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as error:
        function()
    assert "\n" not in str(error.value)
