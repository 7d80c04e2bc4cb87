# SPDX-License-Identifier: Apache-2.0
"""Terminal, page, Markdown and JSON say the same: the answer's sentences are those of the JSON."""
import html
import json
import re

import numpy as np
import pytest

import halfscope
from page_data import data_of
from program import DIGITS, ROOT, json_of, run, stdout_of

CONSOLE = ROOT / "tests/data/console"
MOST_LINES = 20


def simulated(folder, *settings):
    stdout_of("simulate", *settings, "--steps", 40, "--record-every", 5, "--out", folder / "run")
    return folder / "run"


def half_weights(folder):
    return simulated(folder, "mlp", "--precision", "fp16", "--lr", "0.0001")


def hot(folder):
    return simulated(folder, "mlp", "--precision", "mixed", "--loss-scale", "2^24", "--seed", "3")


def broken(folder):
    return simulated(folder, "lenet", "--precision", "mixed", "--loss-scale", "1024", "--lr", "1000")


def bfloat16(folder):
    return simulated(folder, "mlp", "--precision", "bf16")


def of_names(folder):
    """Tensors whose names hold what terminals, HTML and Markdown read as markup."""
    arrays = {f"weight_grad/{name}": np.full(64, 2.0**-30, np.float32)
              for name in ("a`b``c", "x|y", "<i>z</i>", "w_1*2*", "e\x1b[1m")}
    np.savez(folder / "names.npz", **arrays)
    return folder / "names.npz"


LOGS = {
    "shipped": lambda folder: DIGITS,
    "half weights": half_weights,
    "hot": hot,
    "broken": broken,
    "bfloat16": bfloat16,
    "names": of_names,
    "slow start": lambda folder: CONSOLE / "megatron-slow-start.txt",
    "collapse": lambda folder: CONSOLE / "apex-collapse.txt",
    "nothing": lambda folder: CONSOLE / "hugging-face-clean.txt",
}


def words(text):
    """Text without layout: what is said."""
    return re.sub(r"\s+", " ", text).strip()


def of_page(page):
    """What the answer and the findings of a page say, as plain text."""
    parts = re.findall(r'<p class="answer">.*?</p>|<p class="clear">.*?</p>|<li class="harm-.*?</li>', page,
                       re.S)
    parts = [part for part in parts if 'href="#formats"' not in part]  # asked by a report alone
    bare = [re.sub(r' <a href="#[a-z]+">evidence</a>', "", part) for part in parts]
    return [words(html.unescape(re.sub(r"<[^>]*>", "", part))) for part in bare]


def of_markdown(text):
    """Markdown's code, emphasis and escapes taken away."""
    lines = []
    for line in text.splitlines():
        code = re.split(r"(`+)( ?)(.*?)\2\1(?!`)", line.replace("**", ""))
        plain = [re.sub(r"\\([\\`*_\[\]<>|#~&])", r"\1", part) for part in code[::4]]
        names = code[3::4]
        lines.append("".join(sum(zip(plain, names + [""]), ())))
    return [words(line.removeprefix("* ")) for line in lines]


def sentence(finding):
    return words(f"{finding['title']} {finding.get('action', '')}")


@pytest.mark.parametrize("log", LOGS)
def test_all_say_the_same(tmp_path, log):
    path = LOGS[log](tmp_path)
    answer = json_of("recommend", path)["answer"]
    lead = words(f"{answer['headline']} {answer.get('action', '')}")
    first = [lead] if answer["headline"] == answer["scale"] else [lead, words(answer["scale"])]
    clear = [answer["clear"]] if "clear" in answer else []
    findings = [sentence(finding) for finding in answer["findings"]]

    short = stdout_of("recommend", path).splitlines()
    assert [words(line) for line in short[:len(first)]] == first
    assert len(short) <= MOST_LINES
    shown = [words(line[2:]) for line in short if line.startswith("* ")]
    shown = [line for line in shown if line in findings]
    assert shown == findings[:len(shown)] and len(shown) == min(4, len(findings))
    assert short[-1].startswith("More: --details shows ")

    details = [words(line.removeprefix("* "))
               for line in stdout_of("recommend", path, "--details").splitlines()]
    assert details[:len(first)] == first
    assert [line for line in details if line in findings] == findings

    stdout_of("report", path, "--out", tmp_path / "page.html")
    page = of_page((tmp_path / "page.html").read_text())
    assert page[0] == " ".join(first)
    assert page[1:] == clear + findings

    stdout_of("report", path, "--out", tmp_path / "report.md")
    markdown = of_markdown((tmp_path / "report.md").read_text())
    for said in [*first, *clear, *findings]:
        assert said in markdown
    advice = halfscope.recommend(path)
    python = [words(line.removeprefix("* ")) for line in str(advice).splitlines()]
    assert [line for line in python if line] == [
        *first, *map(words, advice["answer"].get("paste", "").splitlines()), *clear, *findings]
    notebook = [words(re.sub(r"\\([\\`*_\[\]<>|#~&])", r"\1", line.replace("**", "")).removeprefix("* "))
                for line in advice._repr_markdown_().splitlines()]
    for said in [*first, *clear, *findings]:
        assert said in notebook
    for text in (*short, *details, *page, *markdown):
        assert not set(text) & set("\x0e\x0f\x1b")


def test_lines_to_paste_are_the_same(tmp_path):
    for log in ("half weights", "hot"):
        path = LOGS[log](tmp_path / log)
        found = json_of("recommend", path)
        pasted = [line.strip() for line in stdout_of("recommend", path).splitlines()
                  if line.startswith("  scaler")]
        assert pasted == [found["answer"]["paste"]]
        lines = found.get("snippets", {}) | {"dynamic": found["dynamic_snippets"]["pytorch"]}
        assert pasted[0] in lines.values()
        stdout_of("report", path, "--out", tmp_path / "page.html")
        page = html.unescape((tmp_path / "page.html").read_text())
        assert f'tabindex="0">{pasted[0]}</pre>' in page
        stdout_of("report", path, "--out", tmp_path / "report.md")
        assert f"```\n{pasted[0]}\n```" in (tmp_path / "report.md").read_text()


def test_lost_updates_lead(tmp_path):
    path = half_weights(tmp_path)
    first = stdout_of("recommend", path).splitlines()[0]
    assert first.startswith("Weights are stored in FP16, and ") and "Use FP32 master weights" in first


def test_a_negligible_loss_never_leads():
    """Of the shipped log 17.6 % of the values become zero, and hardly any of their squares."""
    log = DIGITS
    said = stdout_of("recommend", log)
    assert "GradScaler() is fine" in said.splitlines()[0]
    strict = stdout_of("recommend", log, "--negligible-loss", "0", "--json", "-")
    severity = {finding["title"][:22]: finding["severity"]
                for finding in json.loads(strict)["answer"]["findings"]}
    assert severity["Without a loss scale, "] == "warning"


def test_a_serious_loss_is_not_below_a_negligible_one():
    done = run("recommend", DIGITS, "--negligible-loss", "0.1",
               "--serious-loss", "1%", expect=2)
    assert "--serious-loss is 0.01, below --negligible-loss 0.1; make it at least that" in done.stderr


@pytest.mark.parametrize("options", [{}, {"headroom": 3}, {"format": "bfloat16"}])
def test_the_recommendation_is_the_same_everywhere(tmp_path, options):
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    printed = json_of("recommend", DIGITS, *given)
    stdout_of("report", DIGITS, "--out", tmp_path / "page.html", *given)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    on_page = data_of(page, "recommendation")
    on_page["answer"]["findings"] = [finding for finding in on_page["answer"]["findings"]
                                     if finding["evidence"] != "formats"]  # asked by a report alone
    assert on_page == printed
    assert halfscope.recommend(DIGITS, **options) == printed
