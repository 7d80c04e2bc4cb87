# SPDX-License-Identifier: Apache-2.0
"""What the command line says to words that it does not know."""

import pytest

from program import DIGITS, run


def test_a_command_that_is_none_is_named():
    _, err = run("emulat", expect=2)
    assert "unknown command 'emulat'; did you mean 'emulate'?" in err
    _, err = run("recomend", "x", expect=2)
    assert "did you mean 'recommend'?" in err
    _, err = run("xyz", expect=2)
    assert "use one of: analyze, recommend" in err and "mean" not in err


def test_help_is_a_command():
    assert run("help") == run("--help")
    assert run("help", "recommend") == run("recommend", "--help")


@pytest.mark.parametrize("ending", ["pdf", "txt", "json", "html.gz"])
def test_a_page_of_an_unknown_ending_is_refused(ending, tmp_path):
    log, page = DIGITS, tmp_path / f"page.{ending}"
    _, err = run("report", log, "--out", page, expect=2)
    assert f"found '{page}', expected a name that ends in .html, .htm, .md, .markdown" in err
    _, err = run("compare", log, log, "--out", page.with_suffix(".md"), expect=2)
    assert "expected a name that ends in .html, .htm" in err
    assert not list(tmp_path.iterdir())


def test_a_gate_of_another_command_says_which():
    log = DIGITS
    _, err = run("recommend", log, "--fail-if", "updates_lost > 1%", expect=2)
    assert "unknown field 'updates_lost' (halfscope analyze has it)" in err
    _, err = run("analyze", log, "--fail-if", "no_such > 1%", expect=2)
    assert "unknown field 'no_such'; use one of" in err
    _, err = run("analyze", log, "--fail-if", "static_scale < 2", expect=2)  # so in Recorder.alert()
    assert "unknown field 'static_scale' (halfscope recommend has it)" in err
    for field in ("loss", "grad_norm"):
        _, err = run("analyze", log, "--fail-if", f"{field} > 1", expect=2)
        assert f"unknown field '{field}' (halfscope.torch.Recorder.alert() has it)" in err
