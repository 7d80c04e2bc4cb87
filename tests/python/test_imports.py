# SPDX-License-Identifier: Apache-2.0
"""Functions that run after an import: one that fails does not end the program's import."""

import importlib
import sys

import pytest

from halfscope._imports import after_import


def test_a_function_that_fails_is_a_warning(tmp_path, monkeypatch):
    (tmp_path / "watched_module.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = []

    def fails(module):
        raise AttributeError("no class Trainer")

    after_import("watched_module", fails)
    after_import("watched_module", lambda module: found.append(module.value))
    with pytest.warns(RuntimeWarning, match="does not record watched_module: AttributeError.*no class") as heard:
        importlib.import_module("watched_module")
    assert len(heard) == 1 and found == [3]
    del sys.modules["watched_module"]
