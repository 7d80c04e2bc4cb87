# SPDX-License-Identifier: Apache-2.0
"""Quantised checkpoints: values, losses against the original, and refusals."""

import json
from fractions import Fraction

import numpy as np
import pytest
from program import json_of, run, valid_json_of, words_of
from quantised_files import (
    E2M1,
    E2M3,
    E3M2,
    E4M3,
    E4M3FNUZ,
    E5M2,
    E5M2FNUZ,
    bf16,
    f32,
    floats,
    largest_of,
    losses,
    nibbles,
    quantised,
    rounded,
    tensor,
    write,
)

LAYER = "model.layers.0.mlp.down_proj"
POWERS = np.array([2.0 ** (code - 127) for code in range(255)] + [np.nan])


def original(seed=1, shape=(48, 160)):
    """Weights that bfloat16 holds; some blocks are far smaller, one is zero."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape).astype(np.float32) * 0.02
    values[3] *= 2.0**-30
    values[5, :32] = 0
    return (values.view(np.uint32) & 0xFFFF0000).view(np.float32)


def e4m3_scales(values, tensor_scale, block=(1, 16), shrink=1.0):
    """Stored scales of NVFP4; `shrink` below 1 clips."""
    wanted = largest_of(values, block) / 6 / tensor_scale * shrink
    codes = rounded(wanted, E4M3[:127])
    return codes, floats(E4M3)[codes]


def e8m0_scales(values, largest, block=(1, 32)):
    with np.errstate(divide="ignore"):
        powers = np.floor(np.log2(largest_of(values, block))) - np.floor(np.log2(largest))
    codes = np.clip(np.nan_to_num(powers, neginf=-127) + 127, 0, 254).astype(np.uint8)
    return codes, POWERS[codes].astype(np.float32)


class Case:
    """A file of one producer: its tensors, and what the program must see."""

    def __init__(self, tensors, values, factors, table, block, name=f"{LAYER}.weight", **more):
        self.tensors, self.values, self.factors = tensors, values, factors
        self.table, self.block, self.name = table, block, name
        self.metadata = more.get("metadata")
        self.original = more.get("original", original())
        self.transposed = more.get("transposed", False)


def nvfp4(names, divides, shrink=1.0, packed="U8"):
    weights = original()
    scale = np.float32(np.abs(weights).max() / 2688)
    second = np.float32(1 / scale) if divides else scale
    codes_of_scales, numbers = e4m3_scales(weights, scale, shrink=shrink)
    factors = numbers / second if divides else numbers * second
    codes, values = quantised(weights, E2M1, (1, 16), factors)
    shape = codes.shape if packed == "F4" else None
    stored = [
        tensor(nibbles(codes), packed, shape),
        tensor(codes_of_scales, "F8_E4M3"),
        f32([second]),
    ]
    return Case(dict(zip(names, stored)), values, factors, E2M1, (1, 16))


def compressed_tensors_nvfp4():
    names = [f"{LAYER}.weight_{part}" for part in ("packed", "scale", "global_scale")]
    case = nvfp4(names, divides=True)
    case.tensors[f"{LAYER}.input_global_scale"] = f32([3])
    return case


def modelopt_nvfp4():
    names = [f"{LAYER}.weight{part}" for part in ("", "_scale", "_scale_2")]
    case = nvfp4(names, divides=False, shrink=0.6)
    case.tensors[f"{LAYER}.input_scale"] = f32(3)
    return case


def torchao_nvfp4():
    parts = ("qdata", "scale", "per_tensor_scale")
    case = nvfp4([f"{LAYER}._weight_{part}" for part in parts], divides=False)
    attributes = {"_type": "NVFP4Tensor", "_data": {"is_swizzled_scales": False}}
    case.metadata = {
        f"{LAYER}.weight": json.dumps(attributes),
        "tensor_names": json.dumps([f"{LAYER}.weight"]),
    }
    return case


def f4_with_e8m0():
    weights = original()
    stored, numbers = e8m0_scales(weights, 6)
    codes, values = quantised(weights, E2M1, (1, 32), numbers)
    tensors = {
        f"{LAYER}.weight_packed": tensor(nibbles(codes), "F4", codes.shape),
        f"{LAYER}.weight_scale": tensor(stored, "F8_E8M0"),
    }
    return Case(tensors, values, numbers, E2M1, (1, 32))


def compressed_tensors_mxfp4():
    case = f4_with_e8m0()
    codes, scales = case.tensors.values()
    shape = (codes[1][0], codes[1][1] // 2)
    case.tensors = {
        f"{LAYER}.weight_packed": ("U8", shape, codes[2]),
        f"{LAYER}.weight_scale": ("U8", scales[1], scales[2]),
    }
    return case


def mxfp8():
    weights = original()
    stored, numbers = e8m0_scales(weights, 448)
    codes, values = quantised(weights, E4M3, (1, 32), numbers)
    tensors = {
        f"{LAYER}.weight": tensor(codes, "F8_E4M3"),
        f"{LAYER}.weight_scale": tensor(stored, "U8"),
    }
    return Case(tensors, values, numbers, E4M3, (1, 32))


def fp8(block, suffix="_scale", kind=f32, shape=None, name="weight{}", dtype="F8_E4M3", table=E4M3,
        shrink=1.0):
    weights = original()
    whole = (block[0] or weights.shape[0], block[1] or weights.shape[1])
    largest = np.float32(max(n for n in table if n is not None) / Fraction(shrink))
    scales = np.maximum(largest_of(weights, whole) / largest, np.float32(1e-12))
    scales = (scales.view(np.uint32) & 0xFFFF0000).view(np.float32)  # for bf16; clips a little
    codes, values = quantised(weights, table, whole, scales)
    stored = kind(scales if shape is None else scales.reshape(shape))
    tensors = {
        f"{LAYER}." + name.format(""): tensor(codes, dtype),
        f"{LAYER}." + name.format(suffix): stored,
    }
    return Case(tensors, values, scales, table, whole)


def torchao_float8():
    case = fp8((1, 0))
    codes, scales = case.tensors.values()
    case.tensors = {f"{LAYER}._weight_qdata": codes, f"{LAYER}._weight_scale": scales}
    return case


def gpt_oss(transposed):
    weights = original(2, (2 * 48, 160))
    stored, numbers = e8m0_scales(weights, 6)
    codes, values = quantised(weights, E2M1, (1, 32), numbers)
    name = "model.layers.0.mlp.experts.down_proj" if transposed else "block.0.mlp.mlp2_weight"
    join = "_" if transposed else "."
    tensors = {
        f"{name}{join}blocks": tensor(nibbles(codes).reshape(2, 48, 5, 16), "U8"),
        f"{name}{join}scales": tensor(stored.reshape(2, 48, 5), "U8"),
    }
    how = {"original": weights, "transposed": transposed}
    return Case(tensors, values, numbers, E2M1, (1, 32), name, **how)


CASES = {
    "compressed-tensors NVFP4": compressed_tensors_nvfp4,
    "ModelOpt NVFP4": modelopt_nvfp4,
    "torchao NVFP4": torchao_nvfp4,
    "F4 with F8_E8M0": f4_with_e8m0,
    "compressed-tensors MXFP4": compressed_tensors_mxfp4,
    "compressed-tensors MXFP8": mxfp8,
    "FP8 per tensor": lambda: fp8((0, 0), shape=()),
    "FP8 per channel": lambda: fp8((1, 0), kind=bf16),
    "FP8 per channel, one dimension": lambda: fp8((1, 0), shape=(48,)),
    "ModelOpt FP8 blocks": lambda: fp8((128, 128), shape=(1, 1, 2, 1)),
    "FP8 E5M2, clipped": lambda: fp8((1, 128), dtype="F8_E5M2", table=E5M2, shrink=0.75),
    "FP8 E4M3FNUZ, clipped": lambda: fp8((1, 0), dtype="F8_E4M3FNUZ", table=E4M3FNUZ, shrink=0.75),
    "DeepSeek-V3": lambda: fp8((128, 128), "_scale_inv"),
    "torchao FP8": torchao_float8,
    "GPT-OSS of Transformers": lambda: gpt_oss(True),
    "GPT-OSS of OpenAI": lambda: gpt_oss(False),
}


def as_shown(case, array):
    return array.reshape(2, 48, 160).swapaxes(1, 2) if case.transposed else array


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_values_and_losses(tmp_path, make):
    case = make()
    small = write(tmp_path / "small.safetensors", case.tensors, case.metadata)
    exact = write(tmp_path / "exact.safetensors", {case.name: f32(as_shown(case, case.values))})
    before = write(tmp_path / "a.safetensors", {case.name: bf16(as_shown(case, case.original))})

    same = valid_json_of("compare", exact, small)["tensors"]
    assert [one["name"] for one in same] == [f"weight/{case.name}"]
    assert same[0]["elements"]["equal"] == case.values.size
    assert same[0]["b"]["stored"]["signal_to_noise"] is None

    found = valid_json_of("compare", before, small)
    assert found["only_a"] == found["only_b"] == []
    stored = found["tensors"][0]["b"]["stored"]
    vanished, clipped = losses(case.original, case.values, case.table, case.factors, case.block)
    assert stored["block"] == list(case.block)
    assert stored["blocks"] == case.factors.size
    assert (stored["vanished"], stored["clipped"]) == (vanished, clipped)
    a, b = case.original.astype(np.float64), case.values.astype(np.float64)
    decibels = 10 * np.log10((a * a).sum() / ((b - a) ** 2).sum())
    assert stored["signal_to_noise"] == pytest.approx(decibels, rel=1e-9)
    swapped = json_of("compare", small, before)["tensors"][0]
    assert swapped["a"]["stored"] == stored and "stored" not in swapped["b"]


def test_some_block_vanishes_and_some_is_clipped():
    case = modelopt_nvfp4()
    vanished, clipped = losses(case.original, case.values, E2M1, case.factors, (1, 16))
    assert vanished == 10 and clipped > 100


def test_text_names_the_losses(tmp_path):
    case = modelopt_nvfp4()
    small = write(tmp_path / "small.safetensors", case.tensors)
    before = write(tmp_path / "a.safetensors", {case.name: bf16(case.original)})
    words = words_of("compare", before, small)
    vanished, clipped = losses(case.original, case.values, E2M1, case.factors, (1, 16))
    assert "B stores 1 tensor as codes with scales." in words
    assert f"Of 480 blocks, {vanished} vanished (all values became zero) and {clipped}" in words
    page = tmp_path / "page.html"
    run("compare", before, small, "--out", page)
    assert 'id="stored"' in page.read_text(encoding="utf-8")


def test_analyze_counts_the_values(tmp_path):
    case = compressed_tensors_nvfp4()
    small = write(tmp_path / "small.safetensors", case.tensors)
    (one,) = valid_json_of("analyze", small)["tensors"]
    assert one["name"] == case.name
    assert one["total"] == case.values.size
    assert one["max_abs"] == np.abs(case.values).max()
    exponents = np.floor(np.log2(np.abs(case.values[case.values != 0])))
    counts = {int(e): int((exponents == e).sum()) for e in np.unique(exponents)}
    assert {e: n for e, n in one["binades"] if n} == counts


def test_shards_with_an_index(tmp_path):
    case = compressed_tensors_nvfp4()
    write(tmp_path / "model-1.safetensors", case.tensors)
    index = {"weight_map": dict.fromkeys(case.tensors, "model-1.safetensors")}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (one,) = json_of("analyze", tmp_path)["tensors"]
    assert (one["name"], one["total"]) == (case.name, case.values.size)


def test_scales_in_another_shard_are_missed(tmp_path):
    case = fp8((128, 128), "_scale_inv")
    files = {}
    for i, (name, held) in enumerate(case.tensors.items()):
        files[name] = write(tmp_path / f"model-{i}.safetensors", {name: held}).name
    index = {"weight_map": files}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    notes = json_of("analyze", tmp_path)["notes"]
    assert any(
        note.endswith(
            f"tensor '{case.name}' is read without its scales, which are in another file, "
            "model-1.safetensors"
        )
        for note in notes
    )


def sixes(codes):
    """Codes of 6 bits one after the other, from the low bits on."""
    bits = (codes[:, None] >> np.arange(6)) & 1
    return np.packbits(bits.astype(np.uint8).ravel(), bitorder="little")


ALONE = {
    "F4": (floats(E2M1), lambda codes: nibbles(codes)),
    "F6_E2M3": (floats(E2M3), sixes),
    "F6_E3M2": (floats(E3M2), sixes),
    "F8_E4M3FNUZ": (floats(E4M3FNUZ), np.asarray),
    "F8_E5M2FNUZ": (floats(E5M2FNUZ), np.asarray),
    "F8_E8M0": (POWERS.astype(np.float32), np.asarray),
}


@pytest.mark.parametrize("dtype", ALONE)
def test_small_types_alone(tmp_path, dtype):
    table, pack = ALONE[dtype]
    codes = np.arange(len(table), dtype=np.uint8)
    small = write(tmp_path / "s.safetensors", {"w": tensor(pack(codes), dtype, codes.shape)})
    exact = write(tmp_path / "e.safetensors", {"w": f32(table)})
    (one,) = valid_json_of("compare", exact, small)["tensors"]
    assert one["elements"]["equal"] == len(table)
    assert "stored" not in one["b"]


def test_ml_dtypes_has_the_same_fnuz_numbers():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    codes = np.arange(256, dtype=np.uint8)
    for name in ("float8_e4m3fnuz", "float8_e5m2fnuz"):
        table = E4M3FNUZ if "e4m3" in name else E5M2FNUZ
        theirs = codes.view(getattr(ml_dtypes, name)).astype(np.float32)
        assert np.array_equal(theirs, floats(table), equal_nan=True)


def refusal(tmp_path, case, change, metadata=None):
    tensors = dict(case.tensors)
    change(tensors)
    path = write(tmp_path / "bad.safetensors", tensors, metadata)
    (line,) = run("analyze", path, expect=1).stderr.splitlines()
    assert str(path) in line
    return line.split("bad.safetensors: ", 1)[1]


def replace(part, value):
    def change(tensors):
        (name,) = [name for name in tensors if name.endswith(part)]
        tensors[name] = value

    return change


def drop(part):
    return lambda tensors: tensors.pop(f"{LAYER}.{part}")


def test_refusals(tmp_path):
    nv, opt, deep = compressed_tensors_nvfp4(), modelopt_nvfp4(), fp8((128, 128), "_scale_inv")
    nan = nv.tensors[f"{LAYER}.weight_scale"]
    nan = (nan[0], nan[1], nan[2][:7] + b"\x7f" + nan[2][8:])
    ao = torchao_nvfp4()
    swizzled = {f"{LAYER}.weight": ao.metadata[f"{LAYER}.weight"].replace("false", "true")}
    for case, change, metadata, message in [
        (nv, drop("weight_scale"), None,
         f"tensor '{LAYER}.weight_packed' holds codes, but the file has no scales "
         f"'{LAYER}.weight_scale', expected both; write the file again"),
        (nv, drop("weight_global_scale"), None,
         f"tensor '{LAYER}.weight_packed' has block scales in E4M3, but the file has no tensor "
         f"scale '{LAYER}.weight_global_scale', expected F32 with 1 element; write the file again"),
        (opt, drop("weight_scale_2"), None,
         f"tensor '{LAYER}.weight' has block scales in E4M3, but the file has no tensor scale "
         f"'{LAYER}.weight_scale_2', expected F32 with 1 element; write the file again"),
        (nv, replace("weight_scale", tensor(np.zeros((48, 9), np.uint8), "F8_E4M3")), None,
         f"tensor '{LAYER}.weight_scale' has dtype F8_E4M3 and shape [48, 9], expected [48, 10] "
         f"for the values [48, 160] of '{LAYER}.weight_packed'; write the file again"),
        (deep, replace("_inv", f32(np.ones((2, 3)))), None,
         f"tensor '{LAYER}.weight_scale_inv' has dtype F32 and shape [2, 3], expected [1, 1] or "
         f"[48, 1] or [1, 2] or [48, 2] for the values [48, 160] of '{LAYER}.weight'; write the "
         "file again"),
        (nv, replace("weight_scale", nan), None,
         f"tensor '{LAYER}.weight_scale' holds NaN at index 7, expected finite scales; quantise "
         "again"),
        (nv, replace("weight_global_scale", f32([0])), None,
         f"tensor '{LAYER}.weight_global_scale' holds 0, and the factor of block 0 is not finite, "
         "expected a finite one; quantise again"),
        (nv, replace("weight_global_scale", f32([1, 2])), None,
         f"tensor '{LAYER}.weight_global_scale' has dtype F32 and shape [2], expected F32 with 1 "
         "element; write the file again"),
        (ao, lambda tensors: None, swizzled,
         f"tensor '{LAYER}._weight_scale' has swizzled scales, expected "
         "is_swizzled_scales=False; write the file again"),
        (nv, lambda tensors: tensors.update({f"{LAYER}.weight": f32([1])}), None,
         f"tensor '{LAYER}.weight_packed' holds codes of '{LAYER}.weight', which the file also "
         "holds, expected one; write the file again"),
    ]:
        assert refusal(tmp_path, case, change, metadata) == message
