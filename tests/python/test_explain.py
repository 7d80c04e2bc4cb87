# SPDX-License-Identifier: Apache-2.0
"""`halfscope explain`: numbers against exact fractions, sums against `halfscope mma`, tensors
against NumPy and `analyze`, and messages."""

import json
import random
import re
from fractions import Fraction

import numpy
import pytest

from program import DIGITS, run, stdout_of, words

# name, precision, emax, width, kind of the largest exponent field: as docs/numerics lists them
FORMATS = {
    "binary16": (11, 15, 16, "ieee"),
    "bfloat16": (8, 127, 16, "ieee"),
    "tf32": (11, 127, 19, "ieee"),
    "binary32": (24, 127, 32, "ieee"),
    "binary64": (53, 1023, 64, "ieee"),
    "e4m3": (4, 8, 8, "nan"),
    "e5m2": (3, 15, 8, "ieee"),
    "e3m2": (3, 4, 6, "numbers"),
    "e2m3": (4, 2, 6, "numbers"),
    "e2m1": (2, 2, 4, "numbers"),
}


def tables(text):
    """The tables of an answer: {title: [[cell, ...], ...]}, without headings and marks."""
    found, title = {}, None
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line]
        first = next((i for i, line in enumerate(lines) if line.startswith("  ") and i), None)
        if first is None or lines[0].startswith("*"):
            continue
        title = re.split(r"[.:]", lines[0])[0]
        rows = [re.split(r"\s{2,}", line.replace("  <-", "").strip()) for line in lines[first + 1:]]
        found[title] = rows
    return found


def exponent_of(x):
    """The largest e with 2^e <= |x|."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if abs(x) >= Fraction(2) ** e else e - 1


def judge(x, name):
    """Encoding, outcome and error in ulps of a nonzero fraction rounded to a format."""
    precision, emax, width, kind = FORMATS[name]
    emin = (1 if kind == "ieee" else 2) - emax
    place = max(exponent_of(x), emin) - precision + 1
    units = round(abs(x) / Fraction(2) ** place)  # ties to even
    largest = Fraction(2) ** emax * (2 - Fraction(2) ** (1 - precision))
    if kind == "nan":
        largest -= Fraction(2) ** (emax + 1 - precision)  # that encoding is NaN
    field_size = precision - 1
    ones = (1 << (width - 1)) - 1
    if units * Fraction(2) ** place > largest:
        infinity = ((1 << (width - precision)) - 1) << field_size
        bits, outcome, error = {
            "ieee": (infinity, "overflow: infinity", None),
            "nan": (ones, "overflow: NaN", None),
            "numbers": (ones, "overflow: largest number", None),
        }[kind]
    else:
        bits = units + ((place - (emin - precision + 1)) << field_size)
        error = units - abs(x) / Fraction(2) ** place
        error = -error if x < 0 else error
        normal = bits >> field_size != 0
        outcome = "flushed to zero" if bits == 0 else "normal" if normal else "subnormal"
    return bits | ((1 << (width - 1)) if x < 0 else 0), outcome, error


def numbers():
    """Ties, their neighbours and plain numbers in all binades of the narrow formats and beyond."""
    chance = random.Random(52)
    for exponent in [*range(-30, 20), -1074, -1040, -160, -150, -149, -133, -127, -126, 126, 127, 128, 1023]:
        precision = chance.choice([2, 3, 4, 8, 11, 24])
        units = chance.randrange(1 << (precision - 1), 1 << precision)
        tie = Fraction(2 * units + 1, 2) * Fraction(2) ** (exponent - precision + 1)
        x = float(tie) if exponent > -1022 else 2.0**exponent
        for value in {x, float(numpy.nextafter(x, 0)), float(numpy.nextafter(x, numpy.inf))}:
            if value not in (0.0, float("inf")):
                yield value if chance.random() < 0.5 else -value


def test_numbers_against_fractions():
    checked = 0
    for x in numbers():
        found = tables(stdout_of("explain", x.hex()))
        values = {row[0]: row for row in found["Values"]}
        codes = {row[0]: row for row in found["Encodings"]}
        for name in FORMATS:
            bits, outcome, error = judge(Fraction(x), name)
            digits = (FORMATS[name][2] + 3) // 4
            place = f"{x.hex()} in {name}"
            assert codes[name][1] == f"0x{bits:0{digits}X}", place
            assert values[name][2] == outcome, place
            exact = error is not None and error == 0
            assert exact == ("inexact" not in values[name][-1]), place
            if error:
                assert values[name][3] == f"{float(error):+.3g} ulp", place
            fields = codes[name][2].replace(" ", "").replace("1.", "").replace("0.", "")
            assert int(fields, 2) == bits, place
            checked += 1
    assert checked > 1500


def test_encodings_of_every_kind():
    chance = random.Random(53)
    for name, dtype in (("binary16", numpy.float16), ("binary32", numpy.float32), ("binary64", numpy.float64)):
        width = FORMATS[name][2]
        for bits in [chance.getrandbits(width) for _ in range(10)]:
            value = float(numpy.array([bits], f"u{width // 8}").view(dtype)[0])
            text = stdout_of("explain", f"0x{bits:0{width // 4}X}")
            if numpy.isfinite(value):
                assert float.fromhex(re.search(r"exactly (-?0x\S+)\.", words(text))[1]) == value
            else:
                assert re.search(r": -?(nan|inf)", text)


def test_an_encoding_of_the_named_format():
    assert "0x38 is an encoding of e4m3: 1, exactly 0x1p+0." in stdout_of("explain", "0x38")
    assert "0x38 is an encoding of e5m2: 0.5, exactly 0x1p-1." in stdout_of("explain", "0x38", "--format", "e5m2")
    assert "0x3F80 is an encoding of bfloat16: 1," in stdout_of("explain", "0x3F80", "--format", "bf16")


def test_what_a_scale_saves():
    text = stdout_of("explain", "1e-8", "--scale", "1024")
    rows = {row[0]: row[1:] for row in tables(text)["At scale 1024 (2^10)"]}
    left = float(numpy.float16(1e-8 * 1024)) / 1024
    assert rows["binary16"] == ["0x00AC", "subnormal", f"{left:.6g}", f"{left / 1e-8 * 100 - 100:+.3g} %", "-100 %"]
    # the least powers of two at which NumPy's float16 is not zero, is normal, is infinite
    with numpy.errstate(over="ignore"):
        half = [numpy.float16(numpy.ldexp(1e-8, k)) for k in range(60)]
    nonzero = next(k for k, h in enumerate(half) if h != 0)
    normal = next(k for k, h in enumerate(half) if h >= numpy.finfo(numpy.float16).tiny)
    overflow = next(k for k, h in enumerate(half) if numpy.isinf(h))
    assert (
        f"flushed to zero at scales below {2**nonzero} (2^{nonzero}), a normal number from {2**normal} "
        f"(2^{normal}) on, and overflows from 2^{overflow} on." in words(text)
    )


UNITS = [
    (arch, inputs, sums)
    for arch, all_inputs in {
        "volta": "fp16",
        "ampere": "fp16 bf16",
        "ada": "fp16 e4m3 e5m2",
        "hopper": "fp16 bf16 e4m3",
        "blackwell": "fp16 e5m2 mxf8f6f4 mxf4 mxf4nvf4",
    }.items()
    for inputs in all_inputs.split()
    for sums in (["fp32", "fp16"] if inputs == "fp16" else ["fp32"])
]


def operands(chance, inputs, sums):
    """The words of a line of `mma`, of 1 to 100 products."""
    count = chance.randrange(1, 100)
    digits = {"fp16": 4, "bf16": 4, "mxf4": 1, "mxf4nvf4": 1}.get(inputs, 2)

    def words_of(n, digits):
        return ",".join(f"{chance.getrandbits(4 * digits):0{digits}X}" for _ in range(n))

    block = {"mxf8f6f4": 32, "mxf4": 32, "mxf4nvf4": 16}.get(inputs)
    c = f"{chance.getrandbits(30):08X}" if sums == "fp32" else f"{chance.getrandbits(14):04X}"
    scales = [words_of(-(-count // block), 2) for _ in "ab"] if block else []
    return [words_of(count, digits), words_of(count, digits), c, *scales]


@pytest.mark.parametrize("unit", UNITS, ids="-".join)
def test_sums_equal_mma(unit):
    arch, inputs, sums = unit
    chance = random.Random("-".join(unit))
    options = ["--arch", arch, "--accumulate", sums, "--inputs", inputs]
    lines = [operands(chance, inputs, sums) for _ in range(4)]
    wanted = stdout_of("mma", *options, input="".join(" ".join(line) + "\n" for line in lines)).split()
    for line, result in zip(lines, wanted):
        assert f"The result is 0x{result} (" in stdout_of("explain", "mma", *line, *options)


def test_terms_against_fractions():
    """Each term is what is kept on the grid plus what is cut off, and the sum is of what is kept."""
    chance = random.Random(54)
    halves = [numpy.array([chance.randrange(0x2000, 0x5000)], "u2") for _ in range(32)]
    a, b = (",".join(f"{int(h[0]):04X}" for h in half) for half in (halves[:16], halves[16:]))
    text = stdout_of("explain", "mma", a, b, "3F800000", "--arch", "hopper")
    grid = int(re.search(r"bits below 2\^(-?\d+)", text)[1]) - 25
    rows = tables(text)["Terms"]
    exact = [Fraction(1)] + [
        Fraction(float(x.view("f2")[0])) * Fraction(float(y.view("f2")[0])) for x, y in zip(halves[:16], halves[16:])
    ]
    kept = [int(row[3], 2) * Fraction(2) ** grid for row in rows[:-1]]
    assert [Fraction(float(row[1])) for row in rows[:-1]] == exact
    assert [x - k for x, k in zip(exact, kept)] == [Fraction(float(row[4])) for row in rows[:-1]]
    assert any(x != k for x, k in zip(exact, kept))
    assert all(abs(k) <= abs(x) and abs(x - k) < Fraction(2) ** grid for x, k in zip(exact, kept))
    assert Fraction(float(rows[-1][1])) == sum(kept)


def test_a_special_sum():
    text = stdout_of("explain", "mma", "7C00,3C00", "3C00,3C00", "00000000")
    assert "An operand is NaN or infinite, so nothing is aligned." in text
    assert "Rounded once, d is 0x7F800000 (inf)." in text


@pytest.fixture(scope="module")
def gradients(tmp_path_factory):
    """A file of tensors, one with a name that is also a pattern."""
    file = tmp_path_factory.mktemp("explain") / "g.npz"
    values = numpy.random.default_rng(1).standard_normal((40, 30)).astype(numpy.float32) * 1e-5
    values[3, 7], values[5, 5], values[0, 0], values[1, 1] = numpy.inf, 0.25, -0.75, numpy.nan
    numpy.savez(file, **{"weight_grad/w[0]*": values, "weight_grad/w0": values[:2], "weight_grad/c": values + 1})
    return file, values


def test_largest_values_and_histogram(gradients):
    file, values = gradients
    text = stdout_of("explain", file, "--tensor", "weight_grad/w[0]*", "--step", 0, "--scale", "2^14")
    found = tables(text)
    assert "At this step its values allow a scale of 65536 (2^16), without headroom." in text  # -0.75 is the largest
    finite = numpy.where(numpy.isfinite(values), values, 0)
    order = numpy.argsort(-abs(finite), axis=None, kind="stable")[:10]
    wanted = [[int(i) for i in numpy.unravel_index(at, values.shape)] for at in order]
    assert [json.loads(row[0]) for row in found["Largest values"]] == wanted
    with numpy.errstate(over="ignore"):
        for row, (i, j) in zip(found["Largest values"], wanted):
            for scale, cell in zip((1, 2**14), row[2:]):
                outcome, rounded = cell.split(", ")
                half = float(numpy.float16(values[i, j] * scale))
                assert float(rounded) == pytest.approx(half, rel=1e-5), row
                assert outcome == ("normal" if abs(half) >= 2**-14 else "subnormal"), row
    binades = numpy.floor(numpy.log2(abs(finite[finite != 0])))
    counts = {f"2^{int(b)}": f"{n:,}" for b, n in zip(*numpy.unique(binades, return_counts=True))}
    assert {row[0]: row[1] for row in found["Histogram"]} == counts
    last = found["Histogram"][-1]
    assert last[3] == "flushed to zero" and "zero" not in last[4]


@pytest.mark.parametrize("scale", [None, "1", "2^24"])
def test_a_run_as_analyze_counts_it(scale):
    name, step = "weight_grad/classifier.weight", 900
    options = [] if scale is None else ["--scale", scale]
    text = words(stdout_of("explain", DIGITS, "--tensor", name, "--step", step, *options))
    advised = json.loads(stdout_of("recommend", DIGITS, "--json", "-"))["static_scale"]
    one = {"1": 1, "2^24": 2**24, None: int(advised)}[scale]
    for loss_scale in {1, one}:
        counted = json.loads(
            stdout_of("analyze", DIGITS, "--tensor", name, "--step", step, "--loss-scale", loss_scale, "--json", "-")
        )["tensors"][0]
        share = counted["flushed_to_zero"] / sum(
            counted[of] for of in ("flushed_to_zero", "subnormal", "normal", "overflow")
        )
        power = f"{loss_scale} (2^{loss_scale.bit_length() - 1})" if loss_scale != 1 else "1"
        found = re.search(rf"At scale {re.escape(power)} in FP16: (\S+) % flushed", text)
        assert float(found[1]) == pytest.approx(share * 100, abs=0.06)


def test_no_whole_tensor_at_a_step():
    text = stdout_of("explain", DIGITS, "--tensor", "weight_grad/conv1.weight", "--step", 1)
    assert "no whole tensor of this step can be read" in words(text)
    assert "Largest values" not in tables(text) and tables(text)["Histogram"]


def test_no_scale_for_weights():
    text = stdout_of("explain", DIGITS, "--tensor", "weight/conv1.weight", "--step", 0)
    assert "No loss scale acts on this tensor." in text and "at scale 1 " not in text


BAD = [
    (["1e-8x"], "'1e-8x', expected a number"),
    (["1e400"], "'1e400', expected a number"),
    ([""], "'', expected a number"),
    (["1", "2"], "'1 2', expected a number"),
    (["0x123"], "'0x123', expected an encoding of 1, 2, 4, 5, 8 or 16 hexadecimal digits"),
    (["0x" + "1" * 40], "expected an encoding"),
    (["0x13C00", "--format", "fp16"], "expected an encoding of binary16"),
    (["1", "--scale", "1000"], "--scale: found '1000', expected a power of two"),
    (["1", "--scale", "x"], "--scale: found 'x', expected a positive number"),
    (["no/such/run"], "'no/such/run', expected a number"),
    (["mma"], "mma: 0 words; expected 3"),
    (["mma", "3C00", "3C00"], "mma: 2 words; expected 3"),
    (["mma", "3C00", "3C00", "0"], "mma: c is '0'; expected 8 hex digits"),
    (["mma", "3C00,3C00", "3C00", "00000000"], "mma: a has 2 values and b has 1"),
    (["mma", "XX", "3C00", "00000000"], "mma: value 1 of a is 'XX'"),
    (["mma", "3C00", "3C00", "00000000", "--inputs", "bf16"], "volta has no Tensor Core for bf16"),
    ([DIGITS], "--tensor: found '', expected a tensor"),
    ([DIGITS, "--tensor", "weight_grad/conv1.weigt"], "the nearest: weight_grad/conv1.weight,"),
    ([DIGITS, "--tensor", "weight_grad/conv1.weight"], "--step: found '', expected one step"),
    ([DIGITS, "--tensor", "weight_grad/conv1.weight", "--step", "0:5"], "--step: found '0:5'"),
    ([DIGITS, "--tensor", "weight_grad/conv1.weight", "--step", "7"], "the nearest of 10 is 5"),
    (["x" * 5000], "expected a number"),
    (["-inf"], "The following argument was not expected: -inf"),
    (["1", "--tensor", "w"], "1: "),
    (["1", "--step", "3"], "--step is for a run; found a number; remove --step"),
    (["1", "--arch", "hopper"], "--arch is for mma A B C; found a number"),
    (["mma", "3C00", "3C00", "00000000", "--scale", "2"], "--scale is for a number or a run; found mma A B C"),
    ([DIGITS, "--a", "e2m1"], "--a is for mma A B C; found a run"),
    (["1", "--out", "x.txt"], "--out"),
    ([DIGITS, "--out", DIGITS / "x.md"], "lies inside the log"),
]


@pytest.mark.parametrize("words_given, message", BAD, ids=[row[1] for row in BAD])
def test_bad_input(words_given, message):
    for expect in (2, 1):
        try:
            found = run("explain", *words_given, expect=expect)
            break
        except AssertionError:
            if expect == 1:
                raise
    assert found.stdout == "" and found.stderr.count("\n") == 1 and message in found.stderr


def test_page_and_markdown(tmp_path, gradients):
    file, _ = gradients
    what = ["explain", file, "--tensor", "weight_grad/w[0]*", "--step", 0]
    assert stdout_of(*what, "--out", tmp_path / "e.html") == stdout_of(*what, "--out", tmp_path / "e.md") == ""
    page, markdown = ((tmp_path / name).read_text() for name in ("e.html", "e.md"))
    assert "<script" not in page and "<style>" in page and "<h3>Largest values</h3>" in page
    assert "<button" not in page and "<th scope=\"col\">at scale 1</th>" in page.replace(' class="left"', "")
    for text in (page, markdown):
        assert "[5, 5]" in text.replace("\\", "") and "Histogram" in text and "2^-18" in text.replace("\\", "")


@pytest.mark.parametrize("command", ["run", "watch"])
def test_commands_of_the_package(command):
    found = run(command, "train.py", "--epochs", 3, expect=3)
    assert found.stdout == "" and found.stderr.count("\n") == 1
    assert "pip install halfscope" in found.stderr
    assert f"  {command} " in stdout_of("--help")
