# SPDX-License-Identifier: Apache-2.0
"""What is made of each form of console line: a file or folder a case in tests/data/console, with a
JSON beside it that says what is expected. `timeline`: fields of each log's entry, those given alone.
`notes` and `no_notes`: texts of notes. `says`, `first_line`, `no_first_line`: of `analyze`."""
import json
import re

import pytest

from program import ROOT, run, schema

CASES = sorted((ROOT / "tests/data/console").glob("*.json"))


def log_of(case):
    folder = case.with_suffix("")
    return folder if folder.is_dir() else case.with_suffix(".txt")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_form_of_lines(case):
    expected = json.loads(case.read_text())
    arguments = [log_of(case), *expected.get("arguments", [])]
    done = run("analyze", *arguments, "--json", "-")
    found = json.loads(done.stdout)
    schema("analyze").validate(found)
    timeline = found.get("timeline", [])
    assert len(timeline) == len(expected["timeline"]), timeline
    for log, wanted in zip(timeline, expected["timeline"]):
        assert {field: log.get(field) for field in wanted} == wanted
    said = done.stderr + "\n".join(remark for log in timeline for remark in log.get("remarks", []))
    for note in expected.get("notes", []):
        assert note in said
    for note in expected.get("no_notes", []):
        assert note not in said
    text = run("analyze", *arguments).stdout
    for part in expected.get("says", []):
        assert part in " ".join(text.split())
    assert text.splitlines()[0].startswith(expected.get("first_line", ""))
    if "no_first_line" in expected:
        assert expected["no_first_line"] not in text.splitlines()[0]


@pytest.mark.parametrize("case", [c for c in CASES if "first_line" in json.loads(c.read_text())],
                         ids=lambda case: case.stem)
def test_what_is_wrong_comes_first(case, tmp_path):
    wanted = json.loads(case.read_text())["first_line"]
    assert run("recommend", log_of(case)).stdout.startswith(wanted)
    run("report", log_of(case), "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    # A sentence is bold up to what to do about it.
    told = re.sub("</?strong>", "", page)
    assert f'<p class="answer">{wanted}' in told
    assert "Nothing was found" not in page and "show nothing wrong" not in page


def test_a_page_says_that_all_is_well_where_a_counter_shows_it(tmp_path):
    for case, well in (("deepspeed-clean", True), ("mlperf", False), ("deepspeed-zero", False)):
        run("report", ROOT / f"tests/data/console/{case}.txt", "--out", tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert ("The loss scale is normal: none of the steps 1 to" in page) == well


def test_every_case_has_its_log():
    assert CASES
    for case in CASES:
        assert log_of(case).exists()
