# SPDX-License-Identifier: Apache-2.0
"""Comments of the product have no words and beginnings that hide who does what."""
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_comments", ROOT / "tools/check_comments.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
