# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest: tests with the mark and the fixture, run by a pytest that finds the plugin as
an installed one."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from entry_points import write_entry_points
from program import ROOT

pytest.importorskip("torch")

TESTS = '''
import unittest
import pytest
import torch


def train(lr, steps=3, scale=1.0, gradient=1.0, width=8):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(width, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        (gradient * model(scale * torch.randn(32, width)).square().mean()).backward()
        optimizer.step()


@pytest.mark.halfscope("updates_lost < 90%", "nan == 0", "static_scale >= 1024")
def test_passes():
    train(0.5)

@pytest.mark.halfscope("updates_lost < 90%")
def test_updates_are_lost():
    train(1e-4)

@pytest.mark.halfscope("updates_lost < 90%")
@pytest.mark.xfail(strict=True)
def test_expected_to_fail():
    train(1e-4)

@pytest.mark.halfscope("static_scale > 4")
def test_no_scale():
    train(0.5, gradient=float("nan"))

@pytest.mark.halfscope("static_scale <= 4")
def test_no_scale_either():
    train(0.5, gradient=float("nan"))

@pytest.mark.halfscope("flushed_to_zero == 0 for weight_grad/*.weight")
def test_flushed():
    train(0.5, gradient=2.0**-24)

@pytest.mark.halfscope("flushed_to_zero == 0 for weight_grad/*.weight", at_loss_scale=2**24)
def test_not_flushed_at_a_scale():
    train(0.5, gradient=2.0**-24)

@pytest.mark.halfscope("nan == 0")
def test_without_a_step():
    pass

@pytest.mark.halfscope("nan == 0 for nothing")
def test_no_such_tensor():
    train(0.5)

@pytest.mark.halfscope("nans == 0")
def test_unknown_field():
    train(0.5)

@pytest.mark.halfscope("nan == 0", evry=2)
def test_unknown_setting():
    train(0.5)

@pytest.mark.halfscope(3)
def test_no_text():
    train(0.5)

@pytest.mark.halfscope("nan == 0")
def test_fails_itself():
    train(0.5)
    assert False, "its own"

def test_fixture(halfscope_run):
    train(0.5)
    assert [recorder.step for recorder in halfscope_run.recorders] == [3]
    assert "loss scale" in halfscope_run.answer()

@pytest.mark.halfscope("total == 128 for weight/0.weight", every=3)
def test_settings(halfscope_run):
    train(0.5)

@pytest.mark.halfscope("nan == 0")
class TestOfAClass(unittest.TestCase):
    @pytest.mark.halfscope("inf == 0")
    def test_marks_add(self):
        train(0.5, gradient=float("inf"))

@pytest.mark.parametrize("lr", [pytest.param(0.5, marks=pytest.mark.halfscope("nan == 0")), 0.25])
def test_only_the_marked_is_recorded(lr, request):
    assert ("halfscope_run" in request.fixturenames) == (lr == 0.5)
    train(lr)

RELATIONS = {f"{op}{n}": holds for op, row in
             {"<": (0, 0, 1), "<=": (0, 1, 1), ">": (1, 0, 0), ">=": (1, 1, 0), "==": (0, 1, 0), "!=": (1, 0, 1)}.items()
             for n, holds in zip((383, 384, 385), row)}

@pytest.mark.parametrize("relation", [pytest.param(text, marks=[
    pytest.mark.halfscope(f"total {text} for weight/0.weight"),
    pytest.mark.xfail(not holds, strict=True, reason="false")]) for text, holds in RELATIONS.items()])
def test_relation(relation):
    train(0.5)
'''


@pytest.fixture(scope="module")
def pytest_in(tmp_path_factory):
    """A function that runs pytest on a file of tests and returns what it wrote."""
    folder = tmp_path_factory.mktemp("tests")
    path = os.pathsep.join([str(write_entry_points(folder / "installed")), os.environ["PYTHONPATH"]])

    def run(text, *arguments):
        (folder / "test_sample.py").write_text(text)
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--strict-markers", "test_sample.py",
             f"--basetemp={folder / 'temp'}", *arguments], cwd=folder, capture_output=True, text=True,
            timeout=120, env={**os.environ, "PYTHONPATH": path}).stdout

    return run


@pytest.fixture(scope="module")
def outcomes(pytest_in, tmp_path_factory):
    """{name of a test: ("passed", "failure", "error" or "skipped", text)}"""
    results = tmp_path_factory.mktemp("results") / "junit.xml"
    pytest_in(TESTS, f"--junitxml={results}")
    cases = ElementTree.parse(results).iter("testcase")
    return {case.get("name"): (case[0].tag, case[0].text or "") if len(case) and case[0].tag != "system-out"
            else ("passed", "") for case in cases}


PASSED = ["test_passes", "test_not_flushed_at_a_scale", "test_fixture", "test_settings",
          "test_only_the_marked_is_recorded[0.5]", "test_only_the_marked_is_recorded[0.25]"]


@pytest.mark.parametrize("name", PASSED)
def test_conditions_hold(outcomes, name):
    assert outcomes[name] == ("passed", "")


@pytest.mark.parametrize("name, lines", [
    ("test_updates_are_lost", [
        "'updates_lost < 90%' does not hold:",
        r"  \S+: tensor 'weight/0.weight': updates_lost 375 of 384 \(97.7 %\) >= 90 %",
        r"  \S+: tensor 'weight/0.bias': updates_lost 48 of 48 \(100 %\) >= 90 %",
        r"To see more: halfscope report \S+/run"]),
    ("test_flushed", ["'flushed_to_zero == 0 for weight_grad/.*' does not hold:"]),
    ("test_no_scale", ["'static_scale > 4' does not hold:", ".*undecided|.*unknown|.*no value"]),
    ("test_no_scale_either", ["'static_scale <= 4' does not hold:"]),
    ("test_marks_add", ["'inf == 0' does not hold:"]),
    ("test_no_such_tensor", ["'nan == 0 for nothing' cannot be tested:",
                             "  --fail-if 'nan != 0 for nothing': no selected tensor is of role or name 'nothing'"]),
    ("test_without_a_step", [
        "@pytest.mark.halfscope: nothing was recorded: no PyTorch optimizer .*; train some steps in the test, "
        "or remove the mark"]),
])
def test_conditions_that_do_not_hold_fail_with_the_evidence(outcomes, name, lines):
    outcome, text = outcomes[name]
    assert outcome == "failure"
    for expected, line in zip(lines, text.splitlines()):
        assert re.match(expected, line), text


@pytest.mark.parametrize("name, text", [
    ("test_unknown_field", "@pytest.mark.halfscope: 'nans == 0': unknown field 'nans'; use one of total, zero"),
    ("test_unknown_setting", "@pytest.mark.halfscope: got an unexpected keyword argument 'evry'"),
    ("test_no_text", "@pytest.mark.halfscope: a condition is 3, expected a text such as 'updates_lost < 10%'"),
])
def test_wrong_marks_are_errors_of_one_line(outcomes, name, text):
    outcome, said = outcomes[name]
    assert outcome == "error" and said.startswith(text) and said.count("\n") == 0


def test_a_test_that_fails_itself_says_only_that(outcomes):
    outcome, text = outcomes["test_fails_itself"]
    assert outcome == "failure" and "its own" in text and "halfscope" not in text.partition("assert")[2]


def test_expected_failures_and_every_relation(outcomes):
    expected = {"test_expected_to_fail": "skipped"}
    for op, row in {"<": "fft", "<=": "ftt", ">": "tff", ">=": "ttf", "==": "ftf", "!=": "tft"}.items():
        for n, holds in zip((383, 384, 385), row):
            expected[f"test_relation[{op}{n}]"] = "passed" if holds == "t" else "skipped"  # xfail
    assert {name: outcomes[name][0] for name in expected} == expected


def test_it_can_be_switched_off_and_imports_no_torch(pytest_in):
    assert "halfscope_run" not in pytest_in("def test_it(): pass", "--fixtures", "-p", "no:halfscope")
    said = pytest_in("import sys\ndef test_it(): assert 'torch' not in sys.modules", "-W", "error")
    assert "1 passed" in said
    assert "halfscope(*conditions, " in pytest_in("", "--markers")


def test_the_example_of_the_documentation_passes(pytest_in):
    page = (ROOT / "docs/integrations.md").read_text()
    [example] = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "pytest.mark" in block]
    assert "1 passed" in pytest_in(example)
    assert "'updates_lost < 1%' does not hold:" in pytest_in(example.replace("90%", "1%"))
