# SPDX-License-Identifier: Apache-2.0
"""halfscope quantise, conform and vectors (docs/numerics/recipes.md)."""

import json
import pathlib
import re

import numpy as np
import pytest
from program import run, schema

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs/numerics/recipes.md"
READ = {}
exec(re.search(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)[1], READ)  # the page's own reader
read = READ["read"]

E4M3 = np.array([(m / 8 if e == 0 else 1 + m / 8) * 2.0 ** (max(e, 1) - 7)
                 for e in range(16) for m in range(8)])
X = np.random.default_rng(51).standard_normal((32, 64)).astype(np.float32)


def write_safetensors(path, **tensors):
    names = {np.dtype(np.uint8): "U8", np.dtype(np.float32): "F32", np.dtype(np.float64): "F64"}
    header, data = {}, b""
    for name, values in sorted(tensors.items(), key=lambda item: -item[1].itemsize):
        header[name] = {"dtype": names[values.dtype], "shape": values.shape,
                        "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.fixture
def x(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "x.npy"


def quantised(x, recipe, *options):
    out = x.with_name("q.safetensors")
    run("quantise", x, "--recipe", recipe, "--out", out, *options)
    return out, dict(read(out))


def conform(recipe, x, q, *options, expect=0):
    return run("conform", recipe, "--input", x, "--output", q, *options, expect=expect)


@pytest.mark.parametrize("recipe, scales, dtype", [
    ("nvfp4", (32, 4), np.uint8), ("nvfp4-2d", (2, 4), np.uint8), ("mxfp8-e4m3-rceil", (32, 2), np.uint8),
    ("mxfp4-floor", (32, 2), np.uint8), ("fp8-1x128", (32, 1), np.float32),
    ("fp8-128x128", (1, 1), np.float32)])
def test_an_output_has_the_shapes_of_the_page(x, recipe, scales, dtype):
    out, tensors = quantised(x, recipe)
    assert tensors["codes"].shape == X.shape and tensors["codes"].dtype == np.uint8
    assert tensors["scales"].shape == scales and tensors["scales"].dtype == dtype
    assert ("tensor_scale" in tensors) == recipe.startswith("nvfp4")
    assert "have the recipe's bits" in conform(recipe, x, out).stdout


def test_hifloat8_has_no_scales(x):
    out, tensors = quantised(x, "hifloat8")
    assert set(tensors) == {"codes"}
    conform("hifloat8", x, out)


def test_columns_are_the_rows_of_the_transposed_tensor(x, tmp_path):
    _, down = quantised(x, "mxfp8-e4m3-floor", "--columns")
    np.save(tmp_path / "t.npy", np.ascontiguousarray(X.T))
    _, across = quantised(tmp_path / "t.npy", "mxfp8-e4m3-floor")
    assert (down["codes"] == across["codes"].T).all() and (down["scales"] == across["scales"].T).all()


def test_values_by_numpy(x):
    """MX floor by its definition, in binary64."""
    _, tensors = quantised(x, "mxfp4-floor")
    blocks = X.astype(np.float64).reshape(32, 2, 32)
    exponent = np.floor(np.log2(np.abs(blocks).max(-1))) - 2
    assert (tensors["scales"] == exponent + 127).all()
    sizes = np.array([0, .5, 1, 1.5, 2, 3, 4, 6])
    scaled = np.abs(blocks / 2.0 ** exponent[..., None])
    codes = np.abs(scaled[..., None] - sizes).argmin(-1)
    codes = np.where(scaled > 6, 7, codes) | (np.signbit(blocks) << 3)
    assert (tensors["codes"].reshape(blocks.shape) == codes).all()


def test_a_dialect_is_named_and_the_first_differences_shown(x):
    rows = (X * 2.0 ** -np.arange(32)[:, None]).astype(np.float32)
    np.save(x, rows)
    out, _ = quantised(x, "nvfp4-torchao")
    done = conform("nvfp4", x, out, expect=4)
    assert "it is nvfp4-torchao (torchao 0.18.0). This explains every difference." in done.stdout
    assert "First scale: block" in done.stdout and "First code: row" in done.stdout
    result = json.loads(conform("nvfp4", x, out, "--json", "-", expect=4).stdout)
    schema("conform").validate(result)
    assert result["cause"] == "dialect" and result["changed"] == "nvfp4-torchao"
    assert result["left"]["codes"] == 0 < result["different"]["codes"]


def test_a_tensor_of_a_file_with_several_is_named(tmp_path):
    both = write_safetensors(tmp_path / "both.safetensors", a=X, b=2 * X)
    done = run("quantise", both, "--recipe", "nvfp4", "--out", tmp_path / "q.safetensors", expect=1)
    assert "holds 2 tensors ('a', 'b'), expected one; name it" in done.stderr
    quantised(both, "nvfp4", "--tensor", "b")


BAD = {
    "unknown recipe": (["nvfp5"], 2, "unknown recipe 'nvfp5'; the closest is 'nvfp4'"),
    "hadamard": (["nvfp4-hadamard", 40], 1, "the last dimension is 40, and must be a multiple of 16"),
    "history": (["fp8-delayed"], 1, "the largest magnitude of earlier steps is missing"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_recipe_refuses(x, name):
    (recipe, *columns), code, message = BAD[name]
    if columns:
        np.save(x, X[:, :columns[0]])
    done = run("quantise", x, "--recipe", recipe, "--out", x.with_name("q.safetensors"), expect=code)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("recipe, history, message", [
    ("fp8-current", "4", "only recipes with delayed scaling use it; leave it out"),
    ("hifloat8", "4", "only recipes with delayed scaling use it; leave it out"),
    ("fp8-delayed", "-1", "must be finite and not negative"),
    ("fp8-delayed", "1e300", "must be finite and not negative"),
])
def test_a_largest_magnitude_that_a_recipe_cannot_use(x, recipe, history, message):
    done = run("quantise", x, "--recipe", recipe, "--history", history, "--out",
               x.with_name("q.safetensors"), expect=1)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_output_that_lacks_something(x, tmp_path):
    out, tensors = quantised(x, "nvfp4")
    without = write_safetensors(tmp_path / "w.safetensors", codes=tensors["codes"])
    done = conform("nvfp4", x, without, expect=1)
    assert "holds no tensor 'scales', expected U8 of 128 elements" in done.stderr
    short = write_safetensors(tmp_path / "s.safetensors", codes=tensors["codes"],
                              scales=tensors["scales"][:5])
    done = conform("nvfp4", x, short, expect=1)
    assert "expected U8 with 128 elements" in done.stderr


def test_a_dtype_that_is_no_input(tmp_path):
    wide = write_safetensors(tmp_path / "d.safetensors", x=X.astype(np.float64))
    done = run("quantise", wide, "--recipe", "nvfp4", "--out", tmp_path / "q.safetensors", expect=1)
    assert "has dtype F64, expected F16, BF16 or F32" in done.stderr


def test_random_rounding_is_judged(x):
    out, tensors = quantised(x, "nvfp4-stochastic", "--seed", "7")
    conform("nvfp4-stochastic", x, out)
    other, changed = quantised(x, "nvfp4-stochastic", "--seed", "8")
    assert (changed["codes"] != tensors["codes"]).any()
    nearest, _ = quantised(x, "nvfp4")
    done = conform("nvfp4-stochastic", x, nearest, expect=4)
    assert "values round to nearest, not at random" in done.stdout


@pytest.mark.parametrize("recipe", ["nvfp4", "mxfp8-e4m3-floor", "mxfp4-even", "fp8-1x128", "hifloat8"])
def test_vectors_are_what_the_program_says(recipe, tmp_path):
    done = run("vectors", recipe, "--out", tmp_path / "v")
    tensors = read(pathlib.Path(done.stdout.strip()))
    cases = sorted({name.rsplit("/", 1)[0] for name in tensors if name.endswith("/x")})
    assert len(cases) >= 14
    for case in cases[::3]:
        x = tmp_path / "case.npy"
        np.save(x, tensors[f"{case}/x"])
        for direction, options in (("rows", ()), ("columns", ("--columns",))):
            _, made = quantised(x, recipe, *options)
            for name, values in made.items():
                kept = tensors[f"{case}/{direction}/{name}"]
                assert values.tobytes() == kept.tobytes(), (case, direction, name)


def test_blocks_in_the_other_direction_are_named(x):
    out, _ = quantised(x, "nvfp4", "--columns")
    assert "its blocks run in the other direction. This explains every difference." in conform(
        "nvfp4", x, out, expect=4).stdout


def test_an_inverted_tensor_scale_is_named(x):
    out, made = quantised(x, "nvfp4")
    write_safetensors(out, **{**made, "tensor_scale": np.float32(1) / made["tensor_scale"]})
    assert "the tensor's scale is the reciprocal of the recipe's. This explains" in conform(
        "nvfp4", x, out, expect=4).stdout


def test_a_coincidence_is_no_cause(x):
    out, made = quantised(x, "nvfp4")
    write_safetensors(out, **{**made, "codes": made["codes"] ^ 8})  # all signs
    found = conform("nvfp4", x, out, expect=4).stdout
    assert "No known library or single change of the recipe explains half of the differences." in found


def test_a_missing_tensor_scale_is_bad_input(x):
    out, made = quantised(x, "nvfp4")
    del made["tensor_scale"]
    write_safetensors(out, **made)
    assert "holds no tensor 'tensor_scale', expected F32 of 1 elements" in conform(
        "nvfp4", x, out, expect=1).stderr


def test_codes_of_four_bits_may_be_packed(x):
    out, made = quantised(x, "nvfp4")
    codes = made["codes"]
    write_safetensors(out, **{**made, "codes": codes[:, ::2] | codes[:, 1::2] << 4})
    assert "have the recipe's bits" in conform("nvfp4", x, out).stdout
    write_safetensors(out, **{**made, "codes": codes[:, 1::2] | codes[:, ::2] << 4})
    assert "the two codes of each byte are exchanged" in conform("nvfp4", x, out, expect=4).stdout


def test_a_file_of_vectors_is_compared_case_by_case(tmp_path):
    run("vectors", "nvfp4", "--out", tmp_path)
    path = tmp_path / "nvfp4.safetensors"
    for options in ([], ["--columns"]):
        assert "have the recipe's bits" in conform("nvfp4", path, path, "--tensor", "ties/x", *options).stdout


@pytest.mark.parametrize("change", [
    lambda codes, y: np.where(abs(y) >= 6, codes & 8, codes),  # saturated values become zero
    lambda codes, y: np.where(abs(y) >= 6, codes ^ 8, codes), lambda codes, y: codes | 0x30])
def test_no_random_rounding_makes_these(x, change):
    out, made = quantised(x, "nvfp4-stochastic")
    value = (X.reshape(32, 4, 16) / (E4M3[made["scales"]] * made["tensor_scale"])[:, :, None]).reshape(X.shape)
    write_safetensors(out, **{**made, "codes": change(made["codes"], value).astype(np.uint8)})
    assert "differ" in conform("nvfp4-stochastic", x, out, expect=4).stdout


def test_inputs_are_not_written_over(x):
    out, _ = quantised(x, "nvfp4")
    before = x.read_bytes(), out.read_bytes()
    run("quantise", x, "--recipe", "nvfp4", "--out", x, expect=2)
    conform("nvfp4", x, out, "--json", x, expect=2)
    conform("nvfp4", x, out, "--json", out, expect=2)
    assert (x.read_bytes(), out.read_bytes()) == before


@pytest.mark.parametrize("recipe", ["nvfp4", "nvfp4-hadamard", "mxfp4-floor", "fp8-current", "fp8-128x128"])
@pytest.mark.parametrize("options", [[], ["--columns"]])
def test_empty_tensors_have_no_codes(tmp_path, recipe, options):
    np.save(tmp_path / "x.npy", np.zeros((0, 32), np.float32))
    out, made = quantised(tmp_path / "x.npy", recipe, *options)
    assert made["codes"].shape == (0, 32)
    assert "have the recipe's bits" in conform(recipe, tmp_path / "x.npy", out, *options).stdout
