# SPDX-License-Identifier: Apache-2.0
"""One recommendation: the same JSON from the program, of the page, and in Python."""

import json
import os
import pathlib
import re
import subprocess

import pytest

import halfscope

from page_data import data_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("HALFSCOPE_BUILD_DIR", ROOT / "build")) / "halfscope"
LOG = ROOT / "data" / "digits-cnn" / "log"


def run(*args):
    return subprocess.run([PROGRAM, *map(str, args)], check=True, capture_output=True,
                          text=True).stdout


@pytest.mark.parametrize("options", [{}, {"headroom": 3}, {"format": "bfloat16"}])
def test_the_recommendation_is_the_same_everywhere(tmp_path, options):
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    printed = json.loads(run("recommend", LOG, "--json", "-", *given))
    run("report", LOG, "--out", tmp_path / "page.html", *given)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    on_page = data_of(page, "recommendation")
    on_page["answer"]["findings"] = [finding for finding in on_page["answer"]["findings"]
                                     if finding["evidence"] != "formats"]  # asked by a report alone
    assert on_page == printed
    assert halfscope.recommend(LOG, **options) == printed
