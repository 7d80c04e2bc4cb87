# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md run, and print what their comments say."""

import re
import subprocess
import sys

import pytest

from program import ROOT

pytest.importorskip("vl_convert")
pytest.importorskip("altair")

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.S)


def test_there_are_examples():
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_runs(block, tmp_path):
    if "to_pandas" in block:
        pytest.importorskip("pandas")
    (tmp_path / "data").symlink_to(ROOT / "data")
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for said in re.findall(r"^print\([^#\n]*#\s+(\S.*)$", block, re.M):
        if not said.startswith("the "):  # words about it
            start = said.split(", ...")[0].split("'...")[0].removesuffix("]").rstrip("'")
            assert start in done.stdout, said
