# SPDX-License-Identifier: Apache-2.0
"""Renderers hold no sentence about data."""
import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def checker():
    spec = importlib.util.spec_from_file_location("check_sentences", ROOT / "tools/check_sentences.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_renderer_has_a_sentence_about_data():
    check = checker()
    assert sorted({sentence for _, sentence in check.found()}) == sorted(check.labels())


def test_what_a_sentence_is():
    said = checker().sentences
    assert list(said('fmt::format("<b>{} of the {} values\\n" "become zero</b>", a, b);')) == [
        "of the values become zero"]
    assert not list(said('// "a comment that is as long as a sentence"\nh3("Loss scale by step");'))
