# SPDX-License-Identifier: Apache-2.0
"""`halfscope emulate` as a user meets it: TestFloat's lines byte for byte, messages, streaming."""

import gzip
import itertools
import os
import pathlib
import re
import subprocess

import pytest

from program import PROGRAM, ROOT
from streams import answers_as_it_arrives

VECTORS = pathlib.Path(
    os.environ.get("HALFSCOPE_TESTFLOAT_VECTORS", ROOT.parent / "shared" / "vectors" / "testfloat")
)


def emulate(lines, *arguments, expect=0):
    """stdout and stderr; the exit code must be the expected one."""
    data = lines if isinstance(lines, bytes) else lines.encode()
    done = subprocess.run([PROGRAM, "emulate", *arguments], input=data, capture_output=True, timeout=60)
    assert done.returncode == expect, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def answer(operands, *arguments):
    """Result and flags of one case."""
    out, _ = emulate(operands + "\n", *arguments)
    assert out.startswith(operands.upper() + " ")
    return out[len(operands) + 1 : -1]


VECTOR_FILES = [
    "f16_add.near_even",
    "f16_sub.min",
    "f16_mul.max.before",
    "f16_mulAdd.near_maxMag.after",
    "f16_div.minMag.after",
    "f16_rem.near_even",
    "f16_sqrt.max",
    "f16_roundToInt.near_maxMag.exact",
    "f16_roundToInt.min.notexact",
    "f16_le",
    "f16_eq_signaling",
    "f16_to_i32.near_even.exact",
    "f16_to_ui64.max.notexact",
    "f16_to_f64",
    "f32_to_f16.near_even.before",
    "f64_to_f16.min.after",
    "i32_to_f16.minMag",
    "ui64_to_f16.near_maxMag",
]
OPTIONS = {
    "before": ["--tininess", "before"],
    "after": ["--tininess", "after"],
    "exact": ["--exact"],
    "notexact": [],
}


@pytest.mark.parametrize("name", VECTOR_FILES)
def test_vectors_come_back_byte_for_byte(name):
    file = VECTORS / f"{name}.txt.gz"
    if not file.exists():
        pytest.skip(f"TestFloat vectors not found in {VECTORS}")
    lines = gzip.decompress(file.read_bytes()).decode()
    operation, *modes = name.split(".")
    arguments = [word for mode in modes for word in OPTIONS.get(mode, ["--rounding", mode])]
    out, err = emulate(lines, operation, *arguments)
    assert err == ""
    if out != lines:  # the whole difference would drown the first line of it
        got, wanted = next((a, b) for a, b in itertools.zip_longest(out.split("\n"), lines.split("\n")) if a != b)
        assert got == wanted


def test_lines_are_answered_without_vectors():
    assert answer("39C0 C3FE 07FE", "f16_mulAdd") == "C1BF 01"
    assert answer("0000", "f16_sqrt") == "0000 00"
    assert answer("3F801000", "f32_to_f16") == "3C00 01"
    assert answer("3C00 4000", "f16_lt") == "1 00"
    assert answer("3C00", "f16_to_f64") == "3FF0000000000000 00"
    assert answer("3C00", "f16_to_tf32") == "1FC00 00"
    assert answer("6 6", "e2m1_add") == "7 05"
    assert answer("3C00 FFFFFFFF", "f16_scaleB") == "3800 00"


def test_options_choose_the_modes():
    assert answer("6800 3C00", "f16_add") == "6800 01"  # 2048 + 1, a tie
    assert answer("6800 3C00", "f16_add", "--rounding", "near_maxMag") == "6801 01"
    assert answer("6801 3C00", "f16_add", "--rounding", "minMag") == "6801 01"
    assert answer("E800 B400", "f16_add", "--rounding", "min") == "E801 01"
    assert answer("6800 3400", "f16_add", "--rounding", "max") == "6801 01"
    assert answer("6800 3400", "f16_add", "--rounding", "odd") == "6801 01"
    assert answer("387FF000", "f32_to_f16") == "0400 01"
    assert answer("387FF000", "f32_to_f16", "--tininess", "before") == "0400 03"
    assert answer("4100", "f16_to_i32") == "00000002 00"
    assert answer("4100", "f16_to_i32", "--exact") == "00000002 01"
    assert answer("FC00", "f16_sqrt") == "FE00 10"
    assert answer("FC00", "f16_sqrt", "--nan", "canonical") == "7E00 10"
    assert answer("FC00", "f16_sqrt", "--nan", "cuda") == "7FFF 10"
    assert answer("7BFF 7BFF", "f16_add", "--saturate") == "7BFF 05"
    assert answer("0001 0000", "f16_eq", "--daz") == "1 00"
    assert answer("33800000", "f32_to_f16", "--ftz") == "0000 03"


def test_three_rules_of_flushing():
    """2^-14 - 2^-25 rounds to 2^-14, the least normal number; with 11 bits it would not."""
    for options, wanted in (
        ((), ("0400 03", "0400 01", "0400 01")),
        (("--ftz",), ("0000 03", "0400 01", "0400 01")),
        (("--subnormals", "flush"), ("0000 03", "0400 01", "0400 01")),
        (("--subnormals", "flush-before"), ("0000 03", "0000 03", "0000 03")),
        (("--ftz", "--tininess", "before"), ("0000 03", "0000 03", "0000 03")),
        (("--subnormals", "flush-result"), ("0400 03", "0400 01", "0400 01")),
        (("--subnormals", "keep"), ("0400 03", "0400 01", "0400 01")),
    ):
        found = [answer(word, "f32_to_f16", *options) for word in ("387FE000", "387FF000", "387FFFFF")]
        assert tuple(found) == wanted, options
    assert answer("387FDFFF", "f32_to_f16", "--subnormals", "flush-result") == "0000 03"
    assert answer("387FDFFF", "f32_to_f16") == "03FF 03"
    _, err = emulate("", "f32_to_f16", "--ftz", "--subnormals", "keep", expect=2)
    assert "--ftz means --subnormals flush, but found --subnormals keep too" in err


def softfloats_nan(operation, operand):
    """A NaN converted by SoftFloat 3e, 8086-SSE: sign, quiet bit, and a fraction that went through
    64 bits, by a shift that fits 8 bits in bfloat16 and 23 in binary32."""
    wide = operation == "f32_to_bf16"
    bits = int(operand, 16)
    sign, fraction = bits >> (31 if wide else 15), bits << (41 if wide else 56) & (1 << 64) - 1
    if wide:
        return f"{sign << 15 | 0x7FC0 | fraction >> 56:04X}"
    return f"{sign << 31 | 0x7FC00000 | fraction >> 41:08X}"


def test_bfloat16_nans_are_as_the_page_says():
    page = (ROOT / "docs" / "emulate.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `(bf16_to_f32|f32_to_bf16)` \| (\w+) \| (\w+ \w+) \| (\w+) (\w+) \|", page)
    assert {row[0] for row in rows} == {"bf16_to_f32", "f32_to_bf16"}
    for operation, operand, ours, theirs, flags in rows:
        assert answer(operand, operation) == ours
        assert theirs == softfloats_nan(operation, operand) != ours.split()[0]
        assert flags == ours.split()[1]


def test_forms_of_lines_that_are_taken():
    wanted = "3C00 4000 4200 00\n"
    for line in ("3c00 4000\n", "3C00 4000 4200 00\n", "  3C00\t4000\r\n", "\n\r\n3C00 4000", "3C00 4000 anything\n"):
        assert emulate(line, "f16_add")[0] == wanted
    assert emulate("1 2\n", "f16_add")[0] == "0001 0002 0003 00\n"
    assert emulate("", "f16_add")[0] == ""
    assert emulate(b"3C00 4000 " + b"\0\xff" * 400000 + b"\n3C00 4000\n", "f16_add")[0] == 2 * wanted


@pytest.mark.parametrize(
    "line, operation, found, wanted",
    [
        ("12345 1", "f16_add", "operand 1 is '12345'", "expected 4 hex digits (f16)"),
        ("03C00 1", "f16_add", "operand 1 is '03C00'", "expected 4 hex digits (f16)"),
        ("10000000000000001", "i64_to_f16", "operand 1 is '10000000000000001'", "expected 16 hex digits (i64)"),
        ("3C00 0x1", "f16_add", "operand 2 is '0x1'", "without 0x"),
        ("3C00", "f16_add", "1 operand;", "f16_add takes 2 (f16 f16)"),
        ("80000", "tf32_sqrt", "operand 1 is '80000'", "tf32 has 19 bits, 7FFFF at most"),
        ("40", "e3m2_sqrt", "operand 1 is '40'", "e3m2 has 6 bits, 3F at most"),
        ("\x1b[31m\x00", "f16_sqrt", r"operand 1 is '\x1B[31m\x00'", "expected 4 hex digits"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(line, operation, found, wanted):
    check_named(line, operation, found, wanted)


def test_a_huge_line_is_named_shortly():
    check_named("A" * 2000000, "f16_sqrt", "'" + "A" * 40 + "...'", "expected 4 hex digits")
    check_named(" " * 2000000, "f16_sqrt", "0 operands in its first", "f16_sqrt takes 1 (f16)")


def check_named(line, operation, found, wanted):
    arity = 2 if operation.endswith("add") else 1
    good = " ".join(["01"] * arity) + "\n"
    out, err = emulate(f"{good}\n{line}\n{good}", operation, expect=1)
    assert out.count("\n") == 1  # the line before is answered
    assert err.startswith("halfscope: stdin: line 3: ") and err.count("\n") == 1 and len(err) < 300
    assert found in err and wanted in err


def test_a_wrong_name_is_told_the_near_ones():
    out, err = emulate("", "f16_muladd", expect=2)
    assert out == "" and err.count("\n") == 1
    assert "'f16_muladd'" in err and "f16_mulAdd" in err and "halfscope emulate --list" in err
    assert "--list" in emulate("", expect=2)[1]
    assert "near_maxMag" in emulate("", "f16_add", "--rounding", "up", expect=2)[1]
    names = emulate("", "--list")[0].split("\n")
    assert {"f16_add", "f32_to_f16", "ui64_to_e2m1", "bf16_minimumNumber"} <= set(names)


def test_listed_names_work():
    names = emulate("", "--list")[0].split()
    one_of_each = {name.partition("_")[2]: name for name in names}.values()
    assert len(one_of_each) > 30
    for name in one_of_each:
        out, _ = emulate("0 0 0\n", name)
        assert out.count("\n") == 1 and out.startswith("0"), name


def test_input_is_answered_as_it_arrives():
    answers_as_it_arrives([PROGRAM, "emulate", "f16_add"], [
        (b"3C00 3C00\n", b"3C00 3C00 4000 00\n"),
        (b"3C00 4000\n3C0", b"3C00 4000 4200 00\n"),  # a line that has not ended waits
        (b"0 4200\n", b"3C00 4200 4400 00\n"),
    ])


def test_long_streams_arrive_whole(tmp_path):
    lines = "".join(f"{i & 0xFFFF:04X} {(i * 40503) & 0xFFFF:04X}\n" for i in range(200000))
    out, _ = emulate(lines, "f16_mul")
    answers = out.splitlines()
    assert len(answers) == 200000
    assert all(a.startswith(q) and len(a) == 17 for a, q in zip(answers, lines.splitlines()))
    (tmp_path / "lines").write_text(lines)  # read in other, larger blocks than a pipe
    with open(tmp_path / "lines") as file:
        done = subprocess.run([PROGRAM, "emulate", "f16_mul"], stdin=file, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == answers


def test_stdout_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "emulate", "f16_add"], input=b"1 2\n", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"cannot be written" in done.stderr
    done = subprocess.run(
        f"yes 1 2 | '{PROGRAM}' emulate f16_add | head -n 1", shell=True, capture_output=True, timeout=60
    )
    assert done.stdout == b"0001 0002 0003 00\n" and done.stderr == b""


def test_stdin_that_cannot_be_read(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        done = subprocess.run([PROGRAM, "emulate", "f16_add"], stdin=folder, capture_output=True, timeout=60)
    finally:
        os.close(folder)
    assert done.returncode == 1 and b"stdin: cannot be read" in done.stderr
