# SPDX-License-Identifier: Apache-2.0
"""Judges golden vectors of ./run gpu (docs/gpu.md): inputs made again in NumPy, results computed again by
Halfscope, ml_dtypes or decimal arithmetic. Shares no code with tools/gpu. Each judge returns how many
values it compared; a difference fails."""

import base64
import decimal
import hashlib
import subprocess
import zlib

import ml_dtypes
import numpy as np

from halfscope import optimizer
from program import PROGRAM

DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
FP8 = {"e4m3fn": 448.0, "e5m2": 57344.0, "e4m3fnuz": 240.0, "e5m2fnuz": 57344.0}  # the largest numbers
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def hashed(count, seed):
    x = (np.arange(count, dtype=np.uint64) + np.uint64(seed * 0x9E3779B9 % 2**32)) & np.uint64(2**32 - 1)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        x = ((x ^ (x >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(2**32 - 1)
    return x.astype(np.int64)


def stored(bits, dtype):
    values = np.frombuffer(zlib.decompress(base64.b64decode(bits["zlib"])), dtype)
    assert (len(values), values.itemsize) == (bits["elements"], bits["bytes_each"])
    return values


def encodings(values):
    """Every NaN as the same encoding."""
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float32)
    return np.where(np.isnan(wide), 0, values.view(BITS[values.itemsize]).astype(np.int64) + 1)


def same(a, b):
    return np.array_equal(encodings(a), encodings(b))


def digest(values):
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def drawn(count, seed, low, high, dtype):
    words, exponents = hashed(count, seed), hashed(count, seed + 100)
    words = (words & 0x807FFFFF) | ((exponents % (high - low) + low + 127) << 23)
    return words.astype(np.uint32).view(np.float32).astype(dtype)


def one_step(case, number, before, gradient, processor, **bound):
    settings = {name: case["settings"][name] for name in (
        "lr", "betas", "eps", "weight_decay", "momentum", "dampening", "nesterov", "maximize", "amsgrad")
        if name in case["settings"]}
    return optimizer.step(case["row"], case["class"].lower(), settings, number, before["weight"], gradient,
                          *(before.get(name) for name in optimizer.Stepped._fields[1:]),
                          first=number == 1, processor=processor, **bound)._asdict()


def begun(case, weight):
    """The state before the first step."""
    return {name: weight if name == "weight" else np.zeros_like(weight) for name in case["after"][0]}


def judge_case(case, weight, gradients, kept, processor):
    """Steps of the stored elements, each from the stored state before it; if the row is exact, also all
    elements, by their digest."""
    exact = {row.name: row.accuracy for row in optimizer.rows()}[case["row"]] == "exact"
    before, whole = begun(case, weight[:kept]), begun(case, weight)
    for number, after in enumerate(case["after"], 1):
        gradient, where = gradients[(number - 1) % 3], (case["row"], case["optimizer"], number)
        found = {name: stored(bits, weight.dtype) for name, bits in after.items()}
        ours = one_step(case, number, before, gradient[:kept], processor)
        bounds = (one_step(case, number, before, gradient[:kept], processor, bound=bound)
                  for bound in ("shortest", "longest"))
        low, high = (bound["weight"].astype(np.float32) for bound in bounds)
        got = found["weight"].astype(np.float32)
        assert same(ours["weight"], found["weight"]) or not exact and np.all(
            (got >= np.minimum(low, high)) & (got <= np.maximum(low, high))), where
        assert all(same(ours[name], values) for name, values in found.items() if name != "weight"), where
        if exact:
            whole = {name: value for name, value in one_step(case, number, whole, gradient, processor).items()
                     if value is not None}
            assert {name: digest(value) for name, value in whole.items()} == {
                name: bits["sha256"] for name, bits in after.items()}, where
        before = found
    return kept * len(case["after"]) + exact * len(weight) * len(case["after"])


def judge_optimizers(content, dtype):
    count = content["elements"]
    weight = drawn(count, 1, -6, 3, DTYPES[dtype])
    gradients = [drawn(count, seed, -14, 1, DTYPES[dtype]) for seed in (2, 3, 4)]
    assert content["sha256"] == {"weight": digest(weight), "gradients": [digest(each) for each in gradients]}
    kept = content["cases"][0]["after"][0]["weight"]["elements"]
    return sum(judge_case(case, weight, gradients, kept, content["processor"]) for case in content["cases"])


def judge_powers(content, ulps=4):
    """CUDA documents an error of powf of at most four units in the last place."""
    first, last = content["exponents"]
    for beta, bits in content["powers"].items():
        found = stored(bits, np.float32)
        exact = decimal.Decimal(float(np.float32(beta)))
        true = np.array([float(exact**t) for t in range(first, last + 1)], np.float32)
        assert len(found) == len(true)
        assert np.abs(found.view(np.int32).astype(np.int64) - true.view(np.int32)).max() <= ulps, beta
    return len(content["powers"]) * (last - first + 1)


def cast_inputs(name):
    if name == "float32":
        below = np.array([0, 1, 0x1000, 0x1FFF], np.uint32)
        return ((np.arange(2**19, dtype=np.uint32)[:, None] << 13) | below).flatten().view(np.float32)
    if name in DTYPES:
        return np.roll(np.arange(2**16, dtype=np.uint16), 2**15).view(DTYPES[name])
    return np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name))


def cast(values, to, saturating):
    with np.errstate(all="ignore"):
        wide = values.astype(np.float32)
        if to in DTYPES:
            return wide.astype(DTYPES[to])
        if saturating:
            wide = np.clip(wide, -FP8[to[7:]], FP8[to[7:]])
        return wide.astype(getattr(ml_dtypes, to))


def as_digested(values, to):
    nan = (0x80 if to.endswith("uz") else 0x7F) if to not in DTYPES else 0
    return np.where(np.isnan(values.astype(np.float32)), nan, values.view(BITS[values.itemsize])).astype(
        BITS[values.itemsize])


def judge_casts(content):
    """ml_dtypes computes each cast, with values too large as NaN or as the largest number."""
    for name, row in content["casts"].items():
        dtype, to = name.split(" to ")
        values = cast_inputs(dtype)
        assert digest(values) == row["inputs"], name
        modes = [cast(values, to, saturating) for saturating in (False, True)]
        assert row["results"] in [digest(as_digested(mode, to)) for mode in modes], name
        if "zlib" in row:
            assert any(same(stored(row, mode.dtype), mode) for mode in modes), name
    return sum(len(cast_inputs(name.split(" ")[0])) for name in content["casts"])


def codes(kind, format, count, seed):
    words = hashed(count, seed)
    sign = (words >> 8 & 1) << 7
    if kind == "near one":
        one, step = (0x38, 8) if format == "e4m3fn" else (0x3C, 4)
        return (sign | (one - step * (words >> 16 & 3) + words % step)).astype(np.uint8)
    return (sign | words % (0x7F if format == "e4m3fn" else 0x7C)).astype(np.uint8)


def chain(architecture, a, b):
    """Rows of codes of E4M3, each with the same row of b, in one chain from +0."""
    lines = "".join(f"{a[i].tobytes().hex(',')} {b[i].tobytes().hex(',')} 00000000\n" for i in range(len(a)))
    done = subprocess.run([PROGRAM, "mma", "--arch", architecture, "--accumulate", "fp32", "--inputs", "e4m3"],
                          input=lines, capture_output=True, text=True, check=True)
    return np.array([int(word, 16) for word in done.stdout.split()], np.uint32)


def judge_product(case, architecture, outputs):
    (m, n, k), formats = case["shape"], case["formats"]
    a = codes(case["kind"], formats[0], m * k, 1).reshape(m, k)
    b = codes(case["kind"], formats[1], n * k, 2).reshape(n, k)
    assert (case["a"], case["b"]) == (digest(a), digest(b))
    rows, columns = a[hashed(outputs, 7) % m], b[hashed(outputs, 8) % n]
    left, right = (side.view(getattr(ml_dtypes, f"float8_{format}")).astype(np.float64)
                   for side, format in zip((rows, columns), formats))
    for name in ("fast", "not fast"):
        found = stored(case[name]["outputs"], np.float32)
        # A step of 32 products and C cuts each to 13 bits below the largest.
        cut = (k / 32 + 1) * 33 * 2.0**-12 * np.abs(left * right).sum(1)
        assert np.all(np.abs(found - (left * right).sum(1)) <= cut), (case["shape"], name)
        if "all" in case[name]["predicted"]:
            equal = int((chain(architecture, rows, columns) == found.view(np.uint32)).sum())
            assert equal == case[name]["predicted"]["all"]
    return 2 * outputs


def judge_products(content):
    return sum(judge_product(case, content["architecture"], content["outputs"]) for case in content["cases"])
