# SPDX-License-Identifier: Apache-2.0
"""The terminal and the page of a comparison say the same sentences and the same numbers."""
import html
import json
import re

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import DIGITS, stdout_of

WIDEST, SHOWN, COLUMNS = 48, 20, 7  # of a table in a terminal
LONG = "weight_grad/" + "\u00fc\u4e0a" * 40  # characters of two and of three bytes
HOSTILE = "weight_grad/<b>x</b>&\"'\x1b[2J\u202e|`"


def simulated(folder, name, network, *settings):
    stdout_of("simulate", network, *settings, "--steps", 30, "--record-every", 5, "--threads", 1,
              "--out", folder / name)
    return folder / name


def half(folder):
    return (simulated(folder, "a", "mlp"), simulated(folder, "b", "mlp", "--precision", "fp16"))


def bfloat16(folder):
    return (simulated(folder, "a", "mlp"), simulated(folder, "b", "mlp", "--precision", "mixed-bf16"))


def broken(folder):
    return (simulated(folder, "a", "lenet", "--precision", "mixed", "--loss-scale", "torch,init_scale=2^24"),
            simulated(folder, "b", "lenet", "--precision", "mixed", "--loss-scale", "2^10", "--lr", "1000"))


def same(folder):
    log = DIGITS
    return log, log


def files(folder):
    """Names that are markup, control characters and long; a tensor of A alone; one of another size."""
    random = np.random.default_rng(4)
    for name, sizes in (("a", (300, 40)), ("b", (300, 50))):
        tensors = {HOSTILE: np.exp2(random.normal(-20, 6, sizes[0])), LONG: np.ones(9),
                   "activation/x": np.full(sizes[1], 1e5), f"weight_grad/{name}": np.ones(2)}
        save_file({key: values.astype(np.float32) for key, values in tensors.items()},
                  folder / f"{name}.safetensors")
    return folder / "a.safetensors", folder / "b.safetensors"


def checked(folder):
    """Operations of A against their emulation."""
    for name in "ab":
        (folder / name).mkdir()
        save_file({"weight_grad/w": np.ones(9, np.float32)}, folder / name / "step-000000.safetensors")
    both = {"run": 5, "emulated": 7}
    operations = [
        {"operation": f"{name} of 3 x 4, {format_}", "calls": 1, "elements": 1000, "identical": 1000 - different,
         "within_one_ulp": 1000 - beyond, "largest_ulps": 300 if beyond else 1, "not_finite_in_one": 0,
         "largest_relative_error": error, "zero": both, "subnormal": both, "not_finite": both}
        for name, format_, different, beyond, error in (
            ("cancels", "F16", 90, 80, 2e-6), ("wrong_", "F16", 9, 8, 0.02), ("sum", "F32", 3, 0, 1e-7),
            ("fine", "BF16", 0, 0, 0))]
    told = {"schema": "halfscope.operations/1", "first_step": 4, "last_step": 4, "operations": operations}
    (folder / "a/operations.json").write_text(json.dumps(told))
    return folder / "a", folder / "b"


PAIRS = {pair.__name__: pair for pair in (half, bfloat16, broken, same, files, checked)}


def words(text):
    return " ".join(text.split())


def bare(part):
    """What a piece of a page says."""
    return words(html.unescape(re.sub(r"<[^>]*>", "", part)))


def of_block(block):
    """Of a part of the terminal's text between empty lines: title, sentences, rows of cells."""
    title, sentences, rows = [], [], []
    for line in block.splitlines():
        if line.startswith("* "):
            sentences.append(line[2:])
        elif line.startswith("  ") and sentences:
            sentences[-1] += " " + line.strip()
        elif line.startswith("  "):
            rows.append(re.split(r" {2,}", line.strip()))
        else:
            title.append(line)
    return words(" ".join(title)), [words(sentence) for sentence in sentences], rows


def items(text):
    return [bare(item) for item in re.findall(r"<li>(.*?)</li>", text, re.S)]


def rows_of(table):
    return [[bare(cell) for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.S)]
            for row in re.findall(r"<tr[ >].*?</tr>", table.split("<tbody>")[1], re.S)]


def facts_of(page):
    """(name, A, B) of every tile, and of its details."""
    for tile in re.findall(r'<div class="tile">(.*?)</div>', page, re.S):
        name, values = (bare(part) for part in re.search(r"<h3>(.*?)</h3>(<p.*?</p>)", tile).groups())
        yield [name, *values.split(" \u2192 ")]
        for detail in re.findall(r'<p class="detail">(.*?)</p>', tile):
            name, values = bare(detail).split(": ", 1)
            yield [name, *values.split(" \u2192 ")]


def as_shown(rows, columns):
    """Rows of a page as a terminal has them: fewer columns, long cells cut at their beginning."""
    def cut(text):
        return text if len(text) <= WIDEST else "..." + text[-(WIDEST - 3):]
    return [[*map(cut, row[:columns - 1]), row[columns - 1]] for row in rows[:SHOWN]]


@pytest.fixture(params=PAIRS)
def shown(request, tmp_path):
    """The terminal's text, and the page."""
    pair = PAIRS[request.param](tmp_path)
    said = stdout_of("compare", *pair, "--out", tmp_path / "page.html")
    assert not set(said) & set("\x0e\x0f\x1b\u202e")
    return said, (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_answer_is_the_same(shown):
    said, page = shown
    about, answer = (re.search(rf'<p class="{name}">.*?</p>', page, re.S)[0] for name in ("about", "answer"))
    names, verdict = said.split("\n\n")[:2]
    a, b, counted_for = names.splitlines()
    assert bare(about) == f"{a}, {b}. {counted_for}"
    title, reasons, _ = of_block(verdict)
    assert bare(re.search("<strong>.*?</strong>", answer)[0]) == title
    assert bare(answer) == " ".join([title, *reasons]) and reasons


def test_the_facts_are_the_same(shown):
    said, page = shown
    title, _, rows = of_block(said.split("\n\n")[2])
    assert title == "Both runs:" and rows[0] == ["A", "B"]
    assert rows[1:] == list(facts_of(page)) and len(rows) > 2


def test_the_sentences_are_the_same(shown):
    said, page = shown
    _, sentences, _ = of_block(said.split("\n\n")[3])
    on_page = items(re.search(r'<ul class="note">.*?</ul>', page, re.S)[0])
    losses = re.search(r'<h2 id="h-loss">.*?<p class="note">.*?</span> <span.*?</span>(.*?)</p>', page, re.S)
    assert sentences == on_page + ([bare(losses[1])] if losses else [])


def test_the_table_of_tensors_is_the_same(shown):
    said, page = shown
    title, _, rows = of_block(said.split("\n\n")[-1])
    heading = bare(re.search(r'<h2 id="h-worst">(.*?)</h2>', page)[1])
    note = bare(re.search(r'<h2 id="h-worst">.*?<p class="note">(.*?)</p>', page, re.S)[1])
    assert title.startswith(heading + ". ") and note.startswith(title.removeprefix(heading + ". "))
    on_page = rows_of(re.search(r'<table class="data" id="worst">.*?</table>', page, re.S)[0])
    wanted = as_shown(on_page, COLUMNS)
    more = [["and {} more: --json -".format(len(on_page) - SHOWN)]] if len(on_page) > SHOWN else []
    assert rows[-len(wanted + more):] == wanted + more


def test_operations_are_the_same(tmp_path):
    said = stdout_of("compare", *checked(tmp_path), "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    section = re.search(r'<section id="operations".*?</section>', page, re.S)[0]
    blocks = said.split("\n\n")
    title, sentences, _ = of_block(blocks[4])
    table_title, _, rows = of_block(blocks[5])
    heading, table_heading = (bare(part) for part in re.findall("<h3>.*?</h3>", section))
    assert title == heading + ":"
    assert sentences == items(section) and len(sentences) > 4
    note = bare(re.search(r'<p class="note">(.*?)</p>', section)[1])
    assert table_title == f"{table_heading}. {note}"
    on_page = rows_of(section)
    assert rows[-len(on_page):] == as_shown(on_page, 8) and len(on_page) == 4


def test_a_terminal_cuts_names_between_characters(tmp_path):
    table = stdout_of("compare", *files(tmp_path)).split("\n\n")[-1]  # decoded strictly
    rows = [line for line in table.splitlines() if line.startswith("  ")][-3:]
    cut = "..." + LONG[-(WIDEST - 3):]
    assert len([row for row in rows if row.startswith(f"  {cut}  ")]) == 1
    assert len(set(map(len, rows))) == 1  # columns end below each other
