# SPDX-License-Identifier: Apache-2.0
"""Lines that a terminal wrapped, and lines that do not end, are read as what was printed."""

import pytest
from log_inputs import OVERFLOW, analyzed
from program import json_of, run


def wrapped(text, columns):
    rows = []
    for line in text.splitlines():
        rows += [line[i:i + columns] for i in range(0, len(line), columns)] or [""]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("columns", [60, 80, 87, 88, 89, 120])
def test_lines_that_a_terminal_wrapped(columns, tmp_path):
    lines = []
    for k in range(16, 8, -1):
        lines.append(f"[2024-05-02 12:00:{k}] [INFO] [logging.py:96:log_dist] [Rank 0] "
                     f"step={10 * (17 - k)}, skipped={16 - k}, lr=[0.001], mom=[[0.9, 0.999]]\n")
        lines.append(OVERFLOW.format(2**k, 2 ** (k - 1)))
    text = "".join(lines)
    (tmp_path / "plain").write_text(text)
    (tmp_path / "wrapped").write_text(wrapped(text, columns))
    assert analyzed(tmp_path / "wrapped", "LOG") == analyzed(tmp_path / "plain", "LOG")


def test_a_wrapped_line_of_megatron_whose_end_begins_much_like_the_next_line(tmp_path):
    form = (" iteration {:8d}/    2000 | consumed samples: {:12d} | elapsed time per iteration (ms): 100.0 | learning "
            "rate: 1.000E-04 | global batch size:     8 | lm loss: 2.000000E+00 | loss scale: {} | grad norm: {} | "
            "number of skipped iterations: {:3d} | number of nan iterations:   0 |")
    rows = [(8388608.0, "nan", 10), (131072.0, "0.373", 6), (65536.0, "0.371", 1), (1024.0, "0.372", 6)] * 5
    lines = [form.format(10 * (i + 1), 80 * (i + 1), *row) for i, row in enumerate(rows)]
    (tmp_path / "plain").write_text("\n".join(lines) + "\n")
    at = {line.index(" iterations:") for line in lines}
    columns = [c for c in range(60, 140) if any(i % c == 0 for i in at)]
    assert columns
    for width in columns:
        (tmp_path / "wrapped").write_text(wrapped("\n".join(lines), width))
        assert analyzed(tmp_path / "wrapped", "LOG") == analyzed(tmp_path / "plain", "LOG")


def test_scales_are_powers_of_two_with_the_next_row_alone(tmp_path):
    line = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}\n"
    text = "".join(line.format(2.0**k) for k in range(31, 14, -1))
    (tmp_path / "plain").write_text(text)
    (tmp_path / "wrapped").write_text(wrapped(text, 80))
    assert analyzed(tmp_path / "wrapped", "LOG") == analyzed(tmp_path / "plain", "LOG")


def test_a_number_that_goes_on_in_the_next_row(tmp_path):
    """Nothing but the next row shows that 3000 is not the scale."""
    line = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}\n"
    text = "".join(line.format(scale) for scale in (30000.0, 7500.0, 15000.0))
    (tmp_path / "log").write_text("begin\n" + wrapped(text, 76) + line.format("4.0"))
    found = json_of("analyze", tmp_path / "log")
    assert found["timeline"][0]["skipped"] == 4
    assert [found["timeline"][0]["loss_scale"][name] for name in ("first", "last")] == [30000, 4]


def test_a_progress_bar_without_a_line_break_is_cut_once(tmp_path):
    bars = "".join(f"\r{n}/300 loss: 2.5 step={n} loss={3 - n / 200}" for n in range(300))
    (tmp_path / "train.log").write_text(OVERFLOW.format(65536, 32768) + bars)
    _, err = run("analyze", tmp_path / "train.log", expect=0)
    assert "300 times" not in err and "299 times" not in err
