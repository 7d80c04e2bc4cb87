# SPDX-License-Identifier: Apache-2.0
"""One recommendation: the same JSON from the program and in Python."""

import json
import os
import pathlib
import subprocess

import pytest

import halfscope

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("HALFSCOPE_BUILD_DIR", ROOT / "build")) / "halfscope"
LOG = ROOT / "data" / "digits-cnn" / "log"


def run(*args):
    return subprocess.run([PROGRAM, *map(str, args)], check=True, capture_output=True,
                          text=True).stdout


@pytest.mark.parametrize("options", [{}, {"headroom": 3}, {"format": "bfloat16"}])
def test_the_recommendation_is_the_same_everywhere(options):
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    printed = json.loads(run("recommend", LOG, "--json", "-", *given))
    assert halfscope.recommend(LOG, **options) == printed
