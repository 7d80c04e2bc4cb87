# SPDX-License-Identifier: Apache-2.0
"""`halfscope mma` as a user meets it: known answers, published results, messages, streaming."""

import os
import pathlib
import struct
import subprocess

import pytest

from program import PROGRAM, ROOT
from streams import answers_as_it_arrives

VECTORS = pathlib.Path(
    os.environ.get("HALFSCOPE_TENSOR_CORE_VECTORS", ROOT.parent / "shared" / "vectors" / "tensor_core")
)


def mma(lines, *arguments, expect=0):
    """stdout and stderr; the exit code must be the expected one."""
    data = lines if isinstance(lines, bytes) else lines.encode()
    done = subprocess.run([PROGRAM, "mma", *arguments], input=data, capture_output=True, timeout=60)
    assert done.returncode == expect, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def answer(line, arch="hopper", accumulate="fp32", *more):
    out, err = mma(line + "\n", "--arch", arch, "--accumulate", accumulate, *more)
    assert err == "" and out.endswith("\n")
    return out[:-1]


PAIR = ["7800", *["3c00"] * 15]
KNOWN = [
    # a, b, c of FP32 and of FP16; volta, ampere, hopper: D of FP32 and of FP16
    ("0001", "4400", "00000000", "0000", "34800000 0004", "34800000 0004", "34800000 0004"),
    ("3800,3800,3800,3800", "0001,0001,0001,0001", "3f800000", "3c00", "3F800000 3C00", "3F800000 3C00", "3F800001 3C00"),
    ("3c00", "3c00", "bf7fffff", "bc00", "34000000 0000", "33800000 0000", "33800000 0000"),
    ("3c00,0001", "3c00,3c00", "bf800000", "bc00", "00000000 0000", "33800000 0001", "33800000 0001"),
    ("3c00,0001", "3c00,3800", "bf800000", "bc00", "00000000 0000", "00000000 0000", "33000000 0000"),
    ("8000,8000", "3c00,3c00", "80000000", "8000", "00000000 0000", "00000000 0000", "00000000 0000"),
    ("0c00,0004", "0800,0002", "00000000", "0000", "33000008 0000", "33000008 0000", "33000008 0001"),
    ("7bff,4c00", "3c00,3c00", "00000000", "0000", "477FF000 7C00", "477FF000 7C00", "477FF000 7C00"),
    (
        ",".join([*PAIR[:3], "f800", *PAIR[4:]]),
        ",".join([*PAIR[:3], "7800", *PAIR[4:]]),
        "00000000",
        "0000",
        "41400000 4A00",
        "41000000 4800",
        "00000000 0000",
    ),
]


@pytest.mark.parametrize("row", KNOWN)
def test_known_answers(row):
    a, b, wide, half, *results = row
    for arch, result in zip(("volta", "ampere", "hopper"), results):
        found = answer(f"{a} {b} {wide}", arch), answer(f"{a} {b} {half}", arch, "fp16")
        assert " ".join(found) == result, arch
    for arch, same in (("ada", "ampere"), ("blackwell", "hopper")):
        assert answer(f"{a} {b} {wide}", arch) == answer(f"{a} {b} {wide}", same)


def half(bits):
    """A binary32 encoding rounded to binary16, by Python."""
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0x7C00 | (bits >> 16 & 0x8000)


@pytest.mark.parametrize("card, arch", [("V100", "volta"), ("A100", "ampere"), ("H100", "hopper")])
def test_published_results(card, arch):
    file = VECTORS / f"{card}.bin"
    if not file.exists():
        pytest.skip(f"Tensor Core vectors not found in {VECTORS}")
    data = file.read_bytes()
    k, rows = struct.unpack_from("<II", data, 4)
    row = struct.Struct(f"<{k}H{k}HIIH")
    read = [row.unpack_from(data, 12 + i * row.size) for i in range(rows)]
    for accumulate, digits, c, d in (
        ("fp32", 8, lambda r: r[2 * k], lambda r: r[2 * k + 1]),
        ("fp16", 4, lambda r: half(r[2 * k]), lambda r: r[2 * k + 2]),
    ):
        lines = "".join(
            f"{','.join(f'{x:04X}' for x in r[:k])} {','.join(f'{x:04X}' for x in r[k : 2 * k])} {c(r):0{digits}X}\n"
            for r in read
        )
        out, _ = mma(lines, "--arch", arch, "--accumulate", accumulate)
        assert out.split() == [f"{d(r):0{digits}X}" for r in read]


def test_other_formats():
    bf16, e4m3, e5m2 = (("--inputs", word) for word in ("bf16", "e4m3", "e5m2"))
    assert answer("0D80,3FC0 3580,3FC0 00000000", "hopper", "fp32", *bf16) == "40100000"
    assert answer("0D80 3580 00000000", "ampere", "fp32", *bf16) == "03800000"  # 2^-100 * 2^-20
    # 1 + 2^-14: Hopper and Ada keep 13 bits of FP8, Blackwell 25.
    line = "38,01 38,04 00000000"  # 2^-9 * 2^-7 is E4M3's; plus 1
    assert answer(line, "hopper", "fp32", *e4m3) == "3F800000"
    assert answer(line, "ada", "fp32", *e4m3) == "3F800000"
    assert answer(line, "blackwell", "fp32", *e4m3) == "3F800080"
    assert answer("3c,3c 3c,3c 3c00", "hopper", "fp16", *e5m2) == "4200"
    assert answer("7f 38 00000000", "hopper", "fp32", *e4m3) == "7FFFFFFF"  # E4M3's NaN


@pytest.mark.parametrize(
    "arch, accumulate, inputs, has",
    [
        ("volta", "fp32", "bf16", "fp16 (sums of fp32 or fp16); or --arch ampere|ada|hopper|blackwell\n"),
        ("turing", "fp32", "e4m3", "fp16 (sums of fp32 or fp16); or --arch ada|hopper|blackwell\n"),
        ("ampere", "fp16", "bf16", "fp16 (sums of fp32 or fp16), bf16 (sums of fp32)\n"),
        ("ampere", "fp32", "mxf4", "fp16 (sums of fp32 or fp16), bf16 (sums of fp32); or --arch blackwell\n"),
        ("hopper", "fp32", "mxf8f6f4", "e5m2 (sums of fp32 or fp16); or --arch blackwell\n"),
        ("blackwell", "fp16", "mxf4nvf4", "mxf8f6f4 (sums of fp32), mxf4 (sums of fp32), mxf4nvf4 (sums of fp32)\n"),
    ],
)
def test_what_an_architecture_lacks(arch, accumulate, inputs, has):
    out, err = mma("", "--arch", arch, "--accumulate", accumulate, "--inputs", inputs, expect=2)
    assert out == "" and err.count("\n") == 1
    assert f"{arch} has no Tensor Core for {inputs} with sums of {accumulate}; use one of: fp16" in err
    assert err.endswith(has)


SCALED = ("--arch", "blackwell", "--accumulate", "fp32", "--inputs")


def scaled(line, *inputs):
    out, err = mma(line + "\n", *SCALED, *inputs)
    assert err == ""
    return out[:-1]


def codes(*pairs):
    """64 values of E2M1, those that are given by their place."""
    values = ["0"] * 64
    for place, code in pairs:
        values[place] = code
    return ",".join(values)


def test_block_formats():
    # 1 * 2 + 2 * 3, by scales of 2 and 1; the sign of an E4M3 scale is ignored.
    assert scaled("2,4 4,5 00000000 80 7F", "mxf4") == "41800000"
    assert scaled("2,4 4,5 00000000 40 B8", "mxf4nvf4") == "41800000"
    assert scaled("2,4 4,5 00000000 80 7f anything", "mxf4nvf4", "--scales", "e8m0") == "41800000"
    assert scaled("2,4 4,5 00000000 80 7F", "mxf8f6f4", "--a", "e2m1", "--b", "e2m1") == "41800000"
    assert scaled("38,40 40,44 00000000 80 7F", "mxf8f6f4") == "41800000"
    assert scaled("3C,40 08,0C 00000000 80 7F", "mxf8f6f4", "--a", "e5m2", "--b", "e2m3") == "41000000"  # (1 + 2 * 1.5) * 2
    # 1 - 1 + 2^-35, and 2^-36: mxf4 keeps 35 bits below the largest exponent.
    line = f"{codes((0, '2'), (32, '2'))} {codes((0, '2'), (32, '2'))} BF800000 7F,{{}} 7F,7F"
    assert scaled(line.format("5C"), "mxf4") == "2E000000"
    assert scaled(line.format("5B"), "mxf4") == "00000000"
    # A group that cancels keeps its exponent, 40, and cuts 1. A group of zeros has none.
    line = f"{codes((0, '2'), (1, '2'), (16, '2'))} {codes((0, '2'), (1, '{}'), (16, '2'))} 00000000 A7,7F,7F,7F 7F,7F,7F,7F"
    assert scaled(line.format("A"), "mxf4nvf4", "--scales", "e8m0") == "00000000"
    zeros = f"{codes((16, '2'))} {codes((16, '2'))} 00000000 A7,7F,7F,7F 7F,7F,7F,7F"
    assert scaled(zeros, "mxf4nvf4", "--scales", "e8m0") == "3F800000"
    for line, *inputs in (("0 0 00000000 FF 7F", "mxf4"), ("0 0 00000000 38 7F", "mxf4nvf4"),
                          ("0 0 00000000 38 FF", "mxf4nvf4"), ("7F 00 00000000 7F 7F", "mxf8f6f4"),
                          ("7C 38 FF800000 7F 7F", "mxf8f6f4", "--a", "e5m2")):
        assert scaled(line, *inputs) == "7FFFFFFF", line
    assert scaled("7C B8 00000000 7F 7F", "mxf8f6f4", "--a", "e5m2") == "FF800000"


def test_a_long_product_of_blocks_in_pieces():
    a = [f"{i * 7 % 16:X}" for i in range(640)]
    b = [f"{i * 11 % 13:X}" for i in range(640)]
    scales = [f"{0x70 + i * 5 % 24:02X}" for i in range(20)]
    whole = scaled(f"{','.join(a)} {','.join(b)} 3F800000 {','.join(scales)} {','.join(scales[::-1])}", "mxf4")
    c = "3F800000"
    for i in range(10):
        piece = slice(64 * i, 64 * i + 64)
        pair = slice(2 * i, 2 * i + 2)
        c = scaled(f"{','.join(a[piece])} {','.join(b[piece])} {c} {','.join(scales[pair])} "
                   f"{','.join(scales[::-1][pair])}", "mxf4")
    assert c == whole


@pytest.mark.parametrize(
    "line, inputs, wanted",
    [
        ("2,2 2,2 00000000", ["mxf4"],
         "3 words; expected 5: the values of a, separated by commas, those of b, c, the scales of a, and those of b"),
        ("2,2 2,2 00000000 7F", ["mxf4"], "4 words; expected 5"),
        ("2,2 2,2 00000000 7F,7F 7F", ["mxf4"], "a has 2 values and 2 scales; expected 1, one for every 32 values"),
        (f"{codes()} {codes()} 00000000 38,38,38,38 38", ["mxf4nvf4"],
         "b has 64 values and 1 scale; expected 4, one for every 16 values"),
        ("2,2 2,2 00000000 17F 7F", ["mxf4"], "scale 1 of a is '17F'; expected 2 hex digits (e8m0), without 0x"),
        ("2,2 2,2 00000000 38 8", ["mxf4nvf4"], "scale 1 of b is '8'; expected 2 hex digits (e4m3), without 0x"),
        ("2,2 2,02 00000000 7F 7F", ["mxf4"], "value 2 of b is '02'; expected 1 hex digit (e2m1), without 0x"),
        ("38 40 00000000 7F 7F", ["mxf8f6f4", "--b", "e3m2"], "value 1 of b is '40'; e3m2 has 6 bits, 3F at most"),
    ],
)
def test_a_line_of_blocks_that_cannot_be_used_is_named(line, inputs, wanted):
    out, err = mma(f"\n{line}\n", *SCALED, *inputs, expect=1)
    assert out == "" and err.startswith(f"halfscope: stdin: line 2: {wanted}") and err.count("\n") == 1


def test_options():
    for arguments, found in [
        (["--accumulate", "fp32"], "--arch is required"),
        (["--arch", "hopper"], "--accumulate is required"),
        (["--arch", "pascal", "--accumulate", "fp32"], "volta|turing|ampere|ada|hopper|blackwell"),
        (["--arch", "ada", "--accumulate", "bf16"], "use one of fp32|fp16"),
        (["--arch", "ada", "--accumulate", "fp32", "--inputs", "tf32"], "use one of fp16|bf16|e4m3|e5m2|mxf8f6f4"),
        ([*SCALED, "mxf8f6f4", "--a", "fp16"], "use one of e4m3|e5m2|e3m2|e2m3|e2m1"),
        ([*SCALED, "mxf4", "--a", "e2m1"], "--a needs --inputs mxf8f6f4; found --inputs mxf4; remove --a"),
        ([*SCALED, "e5m2", "--b", "e4m3"], "--b needs --inputs mxf8f6f4; found --inputs e5m2"),
        ([*SCALED, "mxf4", "--scales", "e8m0"], "--scales needs --inputs mxf4nvf4; found --inputs mxf4; remove --scales"),
    ]:
        out, err = mma("", *arguments, expect=2)
        assert out == "" and err.count("\n") == 1 and found in err


def test_forms_of_lines_that_are_taken():
    for line in (
        "3c00,3C00 3c00,4000 3f800000\n",
        "  3c00,3c00\t3c00,4000  3f800000\r\n",
        "\n \n3c00,3c00 3c00,4000 3f800000",
        "3c00,3c00 3c00,4000 3f800000 40800000 anything\n",
    ):
        assert mma(line, "--arch", "hopper", "--accumulate", "fp32")[0] == "40800000\n"
    assert mma("", "--arch", "hopper", "--accumulate", "fp32")[0] == ""


def test_a_long_product_in_pieces():
    """Steps are chained: pieces of whole steps, each from the result of the one before."""
    a = [f"{0x2C00 + 977 * i % 0x1400:04X}" for i in range(4096)]
    b = [f"{(0x2C00 + 1999 * i % 0x1400) | (i % 3 % 2) << 15:04X}" for i in range(4096)]
    for arch, accumulate, c in (("volta", "fp32", "00000000"), ("hopper", "fp16", "0000")):
        whole = answer(f"{','.join(a)} {','.join(b)} {c}", arch, accumulate)
        for first in range(0, 4096, 512):
            c = answer(f"{','.join(a[first : first + 512])} {','.join(b[first : first + 512])} {c}", arch, accumulate)
        assert c == whole


@pytest.mark.parametrize(
    "line, found, wanted",
    [
        ("3G00 3C00 00000000", "value 1 of a is '3G00'", "expected 4 hex digits (binary16), without 0x"),
        ("3C00,3C0 3C00,3C00 00000000", "value 2 of a is '3C0'", "expected 4 hex digits"),
        ("3C00 0x3C00 00000000", "value 1 of b is '0x3C00'", "without 0x"),
        ("3C00 3C00, 00000000", "value 2 of b is ''", "expected 4 hex digits"),
        ("3C00 3C00 3C00", "c is '3C00'", "expected 8 hex digits (binary32)"),
        ("3C00,3C00 3C00 00000000", "a has 2 values and b has 1", "give both as many"),
        ("3C00 3C00", "2 words", "expected 3: the values of a, separated by commas, those of b, and c"),
        ("3C00", "1 word;", "expected 3"),
        ("\x1b[31m 3C00 00000000", r"value 1 of a is '\x1B[31m'", "expected 4 hex digits"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(line, found, wanted):
    check_named(line, found, wanted)


def test_a_huge_line_is_named_shortly():
    check_named("A" * 200000 + " 3C00 0", "'" + "A" * 40 + "...' (200000 characters)", "expected 4 hex digits")
    check_named("3C00," * 100000, "longer than 262144 bytes", "cut the dot product at a multiple of 16 values")


def check_named(line, found, wanted):
    good = "3C00 3C00 00000000\n"
    out, err = mma(f"{good}\n{line}\n{good}", "--arch", "hopper", "--accumulate", "fp32", expect=1)
    assert out == "3F800000\n"  # the line before is answered
    assert err.startswith("halfscope: stdin: line 3: ") and err.count("\n") == 1 and len(err) < 300
    assert found in err and wanted in err


def test_input_is_answered_as_it_arrives():
    answers_as_it_arrives([PROGRAM, "mma", "--arch", "ampere", "--accumulate", "fp16"], [
        (b"3C00 3C00 3C00\n", b"4000\n"),
        (b"3C00 3C00 0000\n3C0", b"3C00\n"),  # a line that has not ended waits
        (b"0 4000 0000\n", b"4000\n"),
    ])
