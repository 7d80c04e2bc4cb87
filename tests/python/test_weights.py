# SPDX-License-Identifier: Apache-2.0
"""`halfscope weights`: which copies change. The judge rounds with ml_dtypes or NumPy, and counts steps
with fractions, one weight at a time."""
import json
from fractions import Fraction

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import halfscope
from program import run, valid_json_of
from sum_runs import write_rank

RANDOM = np.random.default_rng(53)
PRECISION = {"bf16": (8, -126), "f16": (11, -14), "e4m3": (4, -6), "e5m2": (3, -14)}
LARGEST = {"bf16": (2 - Fraction(1, 128)) * 2**127, "f16": 65504, "e4m3": 448, "e5m2": 57344}


def rounded(value, format):
    """(sign, magnitude) of the copy of a finite number; the magnitude is a fraction, or None above
    the largest finite number."""
    precision, emin = PRECISION[format]
    x = abs(Fraction(float(value)))
    exponent = emin
    while x >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (exponent - precision + 1)
    near = round(x / step) * step  # ties to even
    return bool(np.signbit(value)), near if near <= LARGEST[format] else None


def as_sum(value, zero_sign):
    """The copy's input: a sum that is exactly zero is +0."""
    return value if value != 0 or not zero_sign else value


def steps_until_moved(first, last, span, format):
    """Least number k of steps for which the copy of last + k * u differs, by bisection; None: never."""
    p, u = Fraction(float(last)), Fraction(float(last) - float(first)) / span
    if u == 0:
        return None
    start = rounded(last, format)

    def moved(k):
        x = p + k * u
        precision, emin = PRECISION[format]
        negative = x < 0
        magnitude, exponent = abs(x), emin
        while magnitude >= Fraction(2) ** (exponent + 1):
            exponent += 1
        step = Fraction(2) ** (exponent - precision + 1)
        near = round(magnitude / step) * step
        return (negative, near if near <= LARGEST[format] else None) != start

    high = 1
    while not moved(high):
        high *= 2
        if high > 2**70:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if moved(middle) else (middle, high)
    return high


def pair(n, size=1e-3):
    """Weights of many magnitudes, and the same after small updates. Some stay, some change sign."""
    a = (RANDOM.normal(0, 1, n) * 2.0 ** RANDOM.integers(-30, 10, n)).astype(np.float32)
    b = (a * (1 + RANDOM.normal(0, size, n))).astype(np.float32)
    b[::7] = a[::7]
    b[3::50] = -a[3::50]
    a[5::60], b[5::60] = 0.0, -0.0
    return a, b


def moved_by_judge(a, b, format):
    return np.array([rounded(x, format) != rounded(y, format) for x, y in zip(a, b)])


def set_of(path, name, count):
    """docs/weights.md: three lines of NumPy."""
    x = load_file(path).get(name, np.zeros(0, np.uint32))
    return x if x.dtype == np.uint32 else np.flatnonzero(np.unpackbits(x, bitorder="little"))


@pytest.mark.parametrize("format", PRECISION)
@pytest.mark.parametrize("size", [1e-4, 0.3])
def test_counts_set_and_steps_equal_the_judge(tmp_path, format, size):
    a, b = pair(1500, size)
    save_file({"layer.0.w": a.reshape(30, 50)}, tmp_path / "step-100.safetensors")
    save_file({"layer.0.w": b.reshape(30, 50)}, tmp_path / "step-107.safetensors")
    found = valid_json_of("weights", tmp_path / "step-100.safetensors", tmp_path / "step-107.safetensors",
                          "--format", format, "--set", tmp_path / "set.safetensors")
    judge = moved_by_judge(a, b, format)
    assert (found["elements"], found["moved"], found["steps"]) == (1500, judge.sum(), [100, 107])
    assert found["changed"] == [judge.sum()] and found["kinds"][0]["kind"] == "layer.*.w"
    assert np.array_equal(set_of(tmp_path / "set.safetensors", "layer.0.w", 1500), np.flatnonzero(judge))
    steps = [steps_until_moved(x, y, 7, format) for x, y in zip(a[~judge], b[~judge])]
    zero = int(np.sum(a[~judge] == b[~judge]))
    stall = found["stall"]
    counted = {}
    for k in steps:
        if k is not None:
            counted[k.bit_length() - 1] = counted.get(k.bit_length() - 1, 0) + 1
    assert stall["zero_update"] == zero
    assert stall["lost_update"] == steps.count(None) - zero
    assert {log2: n for log2, n in stall["steps"]} == counted
    assert stall["weights"] == len(steps)
    ordered = sorted(2**80 if k is None else k for k in steps)
    median = ordered[(len(ordered) + 1) // 2 - 1]
    if median == 2**80:
        assert "median_steps" not in stall
    else:
        assert stall["median_steps"][0] <= median <= stall["median_steps"][1]


def test_a_log_counts_over_all_steps_and_says_since_when(tmp_path):
    w = [RANDOM.normal(0, 1, 200).astype(np.float32)]
    for step in range(3):
        w.append((w[-1] * (1 + RANDOM.normal(0, 2e-3, 200))).astype(np.float32))
    still = np.ones(64, np.float32)
    norm = [still, still * np.float32(1.01), still * np.float32(1.01), still * np.float32(1.01)]
    for i, step in enumerate([0, 10, 20, 40]):
        write_rank(tmp_path, {"weight/fc.weight": w[i], "weight/norm.weight": norm[i]}, step=step,
                   text="Net(\n  (fc): Linear(in_features=1)\n  (norm): LayerNorm((64,))\n)")
    found = halfscope.weights(tmp_path)
    assert found.steps == [0, 10, 20, 40]
    fc, of_norm = found.tensors
    pairs = [moved_by_judge(w[i], w[i + 1], "bf16") for i in range(3)]
    assert fc.changed == [int(p.sum()) for p in pairs]
    assert fc.moved == int(np.logical_or.reduce(pairs).sum())
    assert (of_norm.changed, of_norm.last_moved, of_norm.moved) == ([64, 0, 0], 10, 64)
    assert [kind.kind for kind in found.kinds] == ["Linear.weight", "LayerNorm.weight"]
    two = halfscope.weights(tmp_path, between=(10, 40))
    assert two.steps == [10, 40] and two.tensors[1].moved == 0
    assert two.tensors[1].stall.zero_update == 64
    assert valid_json_of("analyze", tmp_path)["weights_moved"][0]["changed"] == found.changed
    said = run("weights", tmp_path)[0]
    assert "By kind of layer" in said and "Tensors that do not move in the last pair" in said


def test_narrow_weights_move_when_their_masters_do(tmp_path):
    import ml_dtypes
    w = np.linspace(0.5, 1.5, 64).astype(ml_dtypes.bfloat16)
    p = w.astype(np.float32)
    as_bits = {"weight/w": w}
    for step, masters in ((0, p), (4, p + np.float32(2.0**-14))):
        save_step(tmp_path / "masters", step, {**as_bits, "master_weight/w": masters})
        save_step(tmp_path / "alone", step, as_bits)
    masters = halfscope.weights(tmp_path / "masters").tensors[0]
    assert (masters.moved, masters.stall.weights, masters.dtype) == (0, 64, "BF16")
    judge = [steps_until_moved(x, x + np.float32(2.0**-14), 4, "bf16") for x in p]
    assert sum(n for _, n in masters.stall.steps) == len(judge) == 64
    alone = halfscope.weights(tmp_path / "alone").tensors[0]  # no values in 32 bits
    assert alone.moved == 0 and alone.stall is None


def save_step(folder, step, tensors):
    """A sampled step. BF16 needs the library of PyTorch or a header of one's own."""
    (folder / "tensors").mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps({"schema": 1, "gradients": "unscaled"}))
    head, data = {"__metadata__": {"schema": "1", "step": str(step)}}, b""
    for name, values in sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize):
        dtype = {"float32": "F32", "bfloat16": "BF16"}[values.dtype.name]
        head[name] = {"dtype": dtype, "shape": list(values.shape),
                      "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    (folder / f"tensors/step-{step:06}.safetensors").write_bytes(
        len(text).to_bytes(8, "little") + text + data)


def test_bytes(tmp_path):
    a, b = pair(5000)
    save_file({"w": a}, tmp_path / "a.safetensors")
    save_file({"w": b}, tmp_path / "b.safetensors")
    found = halfscope.weights(tmp_path / "a.safetensors", tmp_path / "b.safetensors", bytes=True)
    assert found.bytes.copies == 10000 and found.bytes.sparse == 6 * found.moved
    assert 0 < found.bytes.sparse_zstd and 0 < found.bytes.xor_zstd <= 10000 + 100
    assert found.steps == [0, 1]
    said = run("weights", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "--bytes")[0]
    assert "XOR of all copies" in " ".join(said.split())


def test_bad_input_is_named(tmp_path):
    a, b = pair(50)
    files = {"a": {"w": a}, "name": {"v": b}, "shape": {"w": b.reshape(5, 10)}, "more": {"w": b, "x": b},
             "dtype": {"w": b.astype(np.float16)}, "none": {"opt/state/0/exp_avg": a}}
    for name, tensors in files.items():
        save_file(tensors, tmp_path / f"{name}.safetensors")

    def refused(*logs, said):
        text = run("weights", *logs, expect=1)[1]
        assert said in text and len(text.splitlines()) == 1, text

    path = {name: tmp_path / f"{name}.safetensors" for name in files}
    refused(path["a"], path["name"], said="tensor 'v' is missing")
    refused(path["a"], path["more"], said="a.safetensors: tensor 'x' is missing")
    refused(path["a"], path["shape"], said="tensor 'w' is [5, 10] in F32, expected [50] in F32")
    refused(path["a"], path["dtype"], said="tensor 'w' is [50] in F16, expected [50] in F32")
    refused(path["a"], path["a"], said="is named twice")
    refused(path["none"], path["a"], said="")
    refused(path["a"], said="2 or more")
    refused(path["a"], tmp_path / "absent.safetensors", said="absent.safetensors: no such file")
    refused(tmp_path / "absent.safetensors", path["a"], said="absent.safetensors: no such file")
    write_rank(tmp_path / "log", {"weight/w": a}, step=3)
    write_rank(tmp_path / "log", {"weight/w": b}, step=5)
    refused(tmp_path / "log", "--steps", 3, 3, said="2 or more")
    refused(tmp_path / "log", "--steps", 3, 4, said="2 or more")
    refused(tmp_path / "log", path["a"], said="2 of the steps")
    refused(tmp_path / "log", "--tensor", "nothing", said="holds no weights")
    run("weights", tmp_path / "log", "--steps", "x", 4, expect=2)
    run("weights", path["a"], path["name"], "--steps", 3, 4, expect=2)
    with pytest.raises(ValueError, match="format is"):
        halfscope.weights(path["a"], path["name"], format="fp64")
