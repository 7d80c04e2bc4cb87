# SPDX-License-Identifier: Apache-2.0
"""Comments of the product have no words and beginnings that hide who does what, and renderers hold no
sentence about data."""
import importlib.util

import pytest

from program import ROOT


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def check():
    return tool("check_comments")


def test_all_comments_are_plain(check):
    wrong = [f"{file.relative_to(ROOT)}:{line}: {fault}" for file in check.files(check.FOLDERS)
             for line, text in check.comments(file) for fault in check.faults(text)]
    assert not wrong, "\n".join(wrong)


def test_what_is_refused(check):
    assert list(check.faults("Told how much is done. May be empty."))
    assert list(check.faults("Returns the step. Whether it is known."))
    assert list(check.faults("those of the other ranks"))
    assert not list(check.faults('Returns the step of a line: "those that nobody told".'))
    assert not list(check.faults("Returns the number of tensors; 0 if the log has none."))


def test_what_a_comment_is(check):
    source = """// One comment
// over two lines.
int a;  ///< of the code
const char* b = "http://x";
"""
    assert check.blocks(source) == [(1, "One comment over two lines."), (3, "of the code")]
    assert check.docstrings('"""Of a file."""\nx = 1  # the first\n') == [
        (1, "Of a file."), (2, "the first")]


def test_no_renderer_has_a_sentence_about_data():
    check = tool("check_sentences")
    assert sorted({sentence for _, sentence in check.found()}) == sorted(check.labels())


def test_what_a_sentence_is():
    said = tool("check_sentences").sentences
    assert list(said('fmt::format("<b>{} of the {} values\\n" "become zero</b>", a, b);')) == [
        "of the values become zero"]
    assert not list(said('// "a comment that is as long as a sentence"\nh3("Loss scale by step");'))
