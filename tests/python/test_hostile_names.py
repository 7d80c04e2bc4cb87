# SPDX-License-Identifier: Apache-2.0
"""Names from logs are data in every output: for a terminal, a spreadsheet, Markdown, a notebook."""

import csv
import io
import json
import re
import subprocess

import numpy as np
import pytest
from safetensors.numpy import save_file

import halfscope
from program import PROGRAM, run

FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-2+3", "@SUM(A1)", "＝1", "plain", "a=b"]
UNSAFE = ["\x1b[31m", "\x7f", "\x9b31m", "\x85", "\u061c", "\u200e", "\u2028", "\u202e", "\u2066",
          "\ufeff", "\U000e0041", "\u200b", "\u2060", "\xad", "\u200d", "\u180e", "\u034f", "\u3164",
          "\ufe0f"]
LINKED = ["@octocat", "x@example.org", "https://example.org/?a=1&b=*c*", "www.example.org",
          "(ftp://example.org),", "a`@b|c", "http://`` https://x"]
# What must never leave the line, drive a terminal or turn text around.
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e"
                 "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]")


def write(path, names):
    values = np.exp2(np.random.default_rng(1).normal(-24, 4, 2000)).astype(np.float32)
    values[0] = 3e5  # overflows in binary16: the names are in findings
    save_file({f"weight_grad/{name}": values for name in names}, path)
    return path


def test_a_spreadsheet_sees_no_formula(tmp_path):
    np.savez(tmp_path / "=g.npz", **{name: np.ones(3, np.float32) for name in FORMULAS})
    done = subprocess.run([PROGRAM, "analyze", "=g.npz", "--csv", "-"], cwd=tmp_path, timeout=60,
                          capture_output=True, check=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode(), newline="")))
    guarded = ["'" + name if name not in ("plain", "a=b") else name for name in FORMULAS]
    assert sorted(row["name"] for row in rows) == sorted(guarded)
    for row in rows:
        assert row["log"] == "'=g.npz" and (row["total"], row["max_abs"]) == ("3", "1")
        assert all(cell[:1] not in tuple("=+-@\t\r") for cell in row.values())


def test_no_output_drives_a_terminal(tmp_path):
    log = write(tmp_path / "g.safetensors", UNSAFE)
    pages = [run(command, log, *options) for command, options in
             [("analyze", ()), ("recommend", ()), ("analyze", ("--csv", "-")),
              ("analyze", ("--json", "-")), ("recommend", ("--json", "-")),
              ("compare", (log,)), ("compare", (log, "--json", "-"))]]
    for out, err in pages:
        assert not RAW.search(out.replace("\r\n", "\n")), RAW.search(out)
        assert not RAW.search(err)
    names = [tensor["name"] for tensor in json.loads(pages[3][0])["tensors"]]
    assert sorted(names) == sorted(f"weight_grad/{name}" for name in UNSAFE)
    assert "\\u009b" in pages[3][0] and "\\u202e" in pages[3][0] and "\\udb40\\udc41" in pages[3][0]


def without_code(markdown):
    """Markdown without its code, in blocks and in spans."""
    markdown = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", markdown)


@pytest.mark.parametrize("names", [LINKED, *([name] for name in LINKED)])
def test_markdown_links_nothing_of_a_log(names, tmp_path):
    folder = tmp_path / "https:" / "@octocat www.example.org"
    folder.mkdir(parents=True)
    log = write(folder / "g.safetensors", names)
    out = tmp_path / "out.md"
    run("report", log, "--out", out)
    notebook = halfscope.recommend(str(log))._repr_markdown_()
    assert any(name.split()[0] in out.read_text() for name in names)
    for markdown in (out.read_text(), notebook):
        left = without_code(markdown)
        assert not re.search(r"@|://|www\.", left), re.search(r".*(@|://|www\.).*", left)[0]
