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
        ("volta", "fp32", "bf16", "use one of: fp16 (sums of fp32 or fp16)\n"),
        ("turing", "fp32", "e4m3", "use one of: fp16 (sums of fp32 or fp16)\n"),
        ("ampere", "fp16", "bf16", "use one of: fp16 (sums of fp32 or fp16), bf16 (sums of fp32)\n"),
        ("ampere", "fp32", "e5m2", "use one of: fp16 (sums of fp32 or fp16), bf16 (sums of fp32)\n"),
        ("blackwell", "fp16", "bf16", "e4m3 (sums of fp32 or fp16), e5m2 (sums of fp32 or fp16)\n"),
    ],
)
def test_what_an_architecture_lacks(arch, accumulate, inputs, has):
    out, err = mma("", "--arch", arch, "--accumulate", accumulate, "--inputs", inputs, expect=2)
    assert out == "" and err.count("\n") == 1
    assert f"{arch} has no Tensor Core for {inputs} with sums of {accumulate}; " in err and err.endswith(has)


def test_options():
    for arguments, found in [
        (["--accumulate", "fp32"], "--arch is required"),
        (["--arch", "hopper"], "--accumulate is required"),
        (["--arch", "pascal", "--accumulate", "fp32"], "volta|turing|ampere|ada|hopper|blackwell"),
        (["--arch", "ada", "--accumulate", "bf16"], "use one of fp32|fp16"),
        (["--arch", "ada", "--accumulate", "fp32", "--inputs", "tf32"], "use one of fp16|bf16|e4m3|e5m2"),
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
