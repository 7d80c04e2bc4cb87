# SPDX-License-Identifier: Apache-2.0
"""The histogram that `halfscope analyze` draws in the terminal: NumPy knows the counts."""

import re

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import run, stdout_of

ROW = re.compile(r" +(\S.*?) \|([#-]*) +(\S.*? %) *(.*)$")


def histogram(folder, *options, **tensors):
    """heading in one line, [(label, bar, share, marks)]"""
    if tensors:
        folder = folder / "g.safetensors"
        save_file({name.replace("__", "/"): values for name, values in tensors.items()}, folder)
    out = stdout_of("analyze", folder, *options)
    if "Unscaled magnitudes of" not in out:
        assert " |" not in out
        return "", []
    part = out[out.index("Unscaled magnitudes of"):].split("\n\n")[0]
    assert part.isascii() and max(map(len, part.splitlines())) <= 80
    heading = [line for line in part.splitlines() if " |" not in line]
    rows = [ROW.match(line).groups() for line in part.splitlines() if " |" in line]
    assert len(heading) + len(rows) == len(part.splitlines()) and len(rows) <= 32
    assert out.index("Unscaled") < out.index("Tensors, worst first")  # before the table
    return " ".join(heading), rows


def ends(label):
    """[first, end) of the exponents of a row"""
    if label.startswith("< "):
        return -2000, int(label[4:])
    if label.startswith(">= "):
        return int(label[5:]), 2000
    first, *end = map(int, re.findall(r"2\^(-?\d+)", label))
    return first, *(end or [first + 1])


def check_counts(rows, values):
    exponents = np.frexp(values[values != 0].astype(np.float64))[1] - 1
    borders = [ends(label) for label, *_ in rows]
    assert all(upper[0] == lower[1] for upper, lower in zip(borders, borders[1:]))
    assert borders[0][1] > exponents.max() and borders[-1][0] <= exponents.min()
    lengths = {}
    for (label, bar, share, _), (first, end) in zip(rows, borders):
        count = int(np.sum((exponents >= first) & (exponents < end)))
        percent = 100 * count / exponents.size
        if share == "< 0.01 %":
            assert 0 < percent < 0.01
        else:
            assert float(share[:-2]) == pytest.approx(percent, abs=0.051 if percent >= 10 else 0.0051)
        assert (len(bar) > 0) == (count > 0) and "-" not in bar
        lengths.setdefault(count, len(bar))
    in_order = [lengths[count] for count in sorted(lengths)]
    assert in_order == sorted(in_order)


def marks_of(rows):
    return {label: marks for label, _, _, marks in rows if " " in marks}


def gradients(count, center=-12, deviation=4, seed=0):
    random = np.random.default_rng(seed)
    return (random.normal(0, 1, count) * np.exp2(random.normal(center, deviation, count))).astype(np.float32)


def test_rows_are_binades_with_the_limits_of_fp16(tmp_path):
    values = np.exp2(np.arange(-29.5, 2)).repeat(np.arange(1, 33)).astype(np.float32)
    heading, rows = histogram(tmp_path, weight_grad__a=values, weight_grad__zero=np.zeros(3, np.float32))
    check_counts(rows, values)
    assert [label for label, *_ in rows] == [f"2^{e}" for e in range(1, -31, -1)]
    assert "of 528 finite nonzero values: weight_grad (2 tensors, 1 step)" in heading
    assert marks_of(rows) == {"2^-15": "subnormal < 2^-14", "2^-25": "subnormal, zero <= 2^-25"}
    assert [marks for *_, marks in rows] == (
        16 * [""] + ["subnormal < 2^-14"] + 9 * ["subnormal"] + ["subnormal, zero <= 2^-25"] + 5 * ["zero"])
    assert "Bars are linear." in heading and [len(bar) for _, bar, *_ in rows][0] > 5


@pytest.mark.parametrize("scale, marks", [
    ("2^10", {"2^5": "overflow >= 63.984", "2^-25": "subnormal < 2^-24", "2^-35": "subnormal, zero <= 2^-35"}),
    ("1000", {"2^6": "overflow >= 65.52", "2^-24": "subnormal < 2^-23.97", "2^-35": "subnormal, zero <= 2^-34.97"}),
])
def test_the_limits_move_with_the_loss_scale(tmp_path, scale, marks):
    for first in (-40, -20):
        values = np.exp2(np.arange(first, first + 30)).astype(np.float32)
        _, rows = histogram(tmp_path, "--loss-scale", scale, weight_grad__a=values)
        check_counts(rows, values)
        wanted = {label: text for label, text in marks.items() if first <= int(label[2:]) < first + 30}
        assert marks_of(rows) == wanted and wanted


@pytest.mark.parametrize("options, marks", [
    (["e4m3"], {"2^8": "overflow >= 464", "2^-7": "subnormal < 2^-6", "2^-10": "subnormal, zero <= 2^-10"}),
    (["e2m1"], {"2^2": "overflow >= 7", "2^-1": "subnormal < 2^0", "2^-2": "subnormal, zero <= 2^-2"}),
    (["binary16", "--subnormals", "flush-before"], {"2^-15": "zero < 2^-14"}),
    (["bfloat16"], {}),
])
def test_every_format_has_its_limits(tmp_path, options, marks):
    values = np.exp2(np.arange(-19, 12)).astype(np.float32)
    _, rows = histogram(tmp_path, "--format", *options, weight_grad__a=values)
    check_counts(rows, values)
    assert marks_of(rows) == marks


def test_values_on_the_far_side_of_a_limit_have_it_too(tmp_path):
    _, rows = histogram(tmp_path, weight_grad__a=np.float32([1e-9, 1e-10]))
    assert rows[0][3] == "zero <= 2^-25" and rows[-1][3] == "zero"
    _, rows = histogram(tmp_path, weight_grad__a=np.float32([1e9, 1e10]))
    assert rows[-1][3] == "overflow >= 65520" and rows[0][3] == "overflow"


def test_a_wide_range_is_folded(tmp_path):
    values = np.concatenate([gradients(100000), np.float32([1e-30, 1e-38, 0])])
    heading, rows = histogram(tmp_path, weight_grad__a=values)
    check_counts(rows, values)
    assert rows[-1][0].startswith("< 2^-")
    assert "Bars are logarithmic" in heading and rows[-1][1] == "#"


def test_all_of_binary64(tmp_path):
    values = np.ldexp(1.0, -np.arange(0, 1075))
    _, rows = histogram(tmp_path, weight_grad__a=values)
    check_counts(rows, values)
    values = np.ldexp(1.0, np.arange(-1074, 1024))
    _, rows = histogram(tmp_path, weight_grad__a=values)
    check_counts(rows, values)
    assert any(row[3] == "overflow, subnormal, zero" for row in rows)  # all limits in a row


def test_one_value(tmp_path):
    heading, rows = histogram(tmp_path, weight_grad__a=np.float32([0, -1.5]))
    ((label, bar, share, marks),) = rows
    assert (label, share, marks) == ("2^0", "100 %", "") and set(bar) == {"#"}
    assert "of 1 finite nonzero value: weight_grad (1 tensor, 1 step)" in heading


@pytest.mark.parametrize("values", [[], [0, 0], [np.nan, np.inf]])
def test_without_values_nothing_is_drawn(tmp_path, values):
    assert histogram(tmp_path, weight_grad__a=np.float32(values)) == ("", [])


def test_gradients_alone_or_what_there_is(tmp_path):
    a, b = gradients(500), gradients(400, 3, 1, 1)
    heading, rows = histogram(tmp_path, weight_grad__a=a, activation_grad__b=b, activation__c=b, weight__a=b)
    check_counts(rows, np.concatenate([a, b]))
    assert "of 900 finite nonzero values: weight_grad, activation_grad (2 tensors" in heading
    heading, rows = histogram(tmp_path, weight__a=a, activation__c=b)
    check_counts(rows, np.concatenate([a, b]))
    assert re.search(r"of 900 finite nonzero values: (weight, activation|activation, weight) \(2 tensors", heading)


def test_bounds_are_drawn_as_bounds(tmp_path):
    import tensorboardX
    values = gradients(20000, -6, 3)
    writer = tensorboardX.SummaryWriter(str(tmp_path))
    writer.add_histogram("gradients/a", values, 0)
    writer.close()
    heading, rows = histogram(tmp_path)
    assert "# at least, - at most" in heading and any("-" in bar for _, bar, *_ in rows)
    exponents = np.frexp(values)[1] - 1
    for label, bar, share, _ in rows:
        first, end = ends(label)
        percent = 100 * np.mean((exponents >= first) & (exponents < end))
        if share == "< 0.01 %":
            assert percent < 0.01
            continue
        low, high = (share[:-2].split(" to ") * 2)[:2]
        low = 0 if low.startswith("<") else float(low)
        assert low - 0.06 <= percent <= float(high) + 0.06
        assert re.fullmatch("#*-*", bar)


def test_the_page_says_the_same_of_its_histogram(tmp_path):
    """What bars stand for, and which zeros none stands for: float16 holds what it flushed as zeros."""
    values = gradients(3000)
    values[:200] = 0
    tensors = {"weight_grad/a": values.astype(np.float16), "activation_grad/b": values}
    save_file(tensors, tmp_path / "g.safetensors")
    heading, _ = histogram(tmp_path / "g.safetensors")
    page = tmp_path / "page.html"
    run("report", tmp_path / "g.safetensors", "--out", page)
    caption = re.search(r'<figcaption class="note">(.*?)</figcaption>', page.read_text(), re.S)[1]
    caption = re.sub(r"<[^>]*>", "", caption)
    first, zeros = re.match(r"(Unscaled .*? up to 2\^\(e\+1\)\.) .* (Not drawn: .*)", heading).groups()
    assert caption.startswith(first + " ") and zeros in caption
