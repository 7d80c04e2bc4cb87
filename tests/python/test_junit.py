# SPDX-License-Identifier: Apache-2.0
"""--junit: the file says what the exit code and stderr say, whatever the names are."""

import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from safetensors.numpy import save_file

from program import PROGRAM, run


def gate(command, log, *conditions, file, expect, options=()):
    """The parsed file, and stderr's lines without the program's name."""
    words = [word for condition in conditions for word in ("--fail-if", condition)]
    _, err = run(command, log, *options, *words, "--junit", file, expect=expect)
    return ElementTree.parse(file).getroot(), [line.removeprefix("halfscope: ") for line in err.splitlines()]


def require_agreement(root, lines, code):
    """Counts add up; failures are stderr's lines; the exit code is 4 exactly where there are any."""
    for node in [root, *root]:
        cases = list(node.iter("testcase"))
        assert int(node.get("tests")) == len(cases)
        assert int(node.get("failures")) == sum(case.find("failure") is not None for case in cases)
        assert int(node.get("skipped")) == sum(case.find("skipped") is not None for case in cases)
        assert node.get("errors") == "0"
    failures = [case.find("failure") for case in root.iter("testcase") if case.find("failure") is not None]
    texts = [failure.text for failure in failures]
    assert [line for line in lines if line in texts] == texts
    assert all(failure.text.endswith(failure.get("message")) for failure in failures)
    assert (code == 4) == bool(failures)


@pytest.fixture
def log(tmp_path):
    """Of three tensors one loses a value, one is clean, one has no values to take a share of."""
    tensors = {
        "weight_grad/a": np.array([1, 2.0**-30], np.float32),
        "weight_grad/b": np.ones(5, np.float32),
        "activation/c": np.zeros(3, np.float32),
    }
    save_file(tensors, tmp_path / "g.safetensors")
    return tmp_path / "g.safetensors"


def test_a_case_each_condition_and_tensor(log, tmp_path):
    conditions = ("flushed_to_zero > 10%", "nan > 0", "total >= 5 for weight_grad")
    root, lines = gate("analyze", log, *conditions, file=tmp_path / "out.xml", expect=4)
    require_agreement(root, lines, 4)
    assert [suite.get("name") for suite in root] == list(conditions)
    seen = {
        (suite.get("name"), case.get("name")): [child.tag for child in case] for suite in root for case in suite
    }
    assert seen == {
        ("flushed_to_zero > 10%", "weight_grad/a"): ["failure"],
        ("flushed_to_zero > 10%", "weight_grad/b"): [],
        ("flushed_to_zero > 10%", "activation/c"): ["skipped"],
        ("nan > 0", "weight_grad/a"): [],
        ("nan > 0", "weight_grad/b"): [],
        ("nan > 0", "activation/c"): [],
        ("total >= 5 for weight_grad", "weight_grad/a"): [],
        ("total >= 5 for weight_grad", "weight_grad/b"): ["failure"],
    }
    failure = root.find("testsuite/testcase[@name='weight_grad/a']/failure")
    assert failure.get("type") == "violated"
    assert failure.text == f"{log}: tensor 'weight_grad/a': flushed_to_zero 1 of 2 (50.0 %) > 10 %"
    assert all(case.get("classname") == str(log) for case in root.iter("testcase"))


def test_no_failure_where_no_condition_holds(log, tmp_path):
    root, lines = gate("analyze", log, "nan > 0", file=tmp_path / "out.xml", expect=0)
    require_agreement(root, lines, 0)
    assert root.get("failures") == "0" and root.get("tests") == "3"


def test_conditions_given_twice_stay_apart(log, tmp_path):
    root, _ = gate("analyze", log, "nan > 0", "nan > 0", file=tmp_path / "out.xml", expect=0)
    assert [suite.get("tests") for suite in root] == ["3", "3"]


def test_undecided_is_a_failure_that_says_so(tmp_path):
    half = np.array([0, 0, 2.0**-24, 1], np.float16)
    save_file({"weight_grad/a": half}, tmp_path / "g.safetensors")
    root, lines = gate(
        "recommend", tmp_path / "g.safetensors", "flushed_at_1 > 30%", "lowest > 8", "highest < 2",
        file=tmp_path / "out.xml", expect=4,
    )
    require_agreement(root, lines, 4)
    assert [case.get("name") for case in root.iter("testcase")] == ["recommendation"] * 3
    failures = [case.find("failure") for case in root.iter("testcase")]
    assert [failure is not None and failure.get("type") for failure in failures] == ["undecided", "undecided", False]
    assert "only bounds are known" in failures[0].text and "has no value" in failures[1].text


NAMES = [
    "weight_grad/<a href=\"x\">&amp;'b'</a>",
    "weight_grad/]]>",
    "weight_grad/\x00\x01\x1b[31m\r\n\ttab",
    "weight_grad/\u202eover\u2028ride\ufeff",
    "weight_grad/\ufffe\uffff",
    "weight_grad/Gewichtsänderung Δw 重み 😀",
]


def safetensors_of(names, path):
    """By hand: the package refuses some of these names, the format does not."""
    header = {name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, name in enumerate(names)}
    text = json.dumps(header, ensure_ascii=True).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + np.ones(len(names), "<f4").tobytes())


def test_any_name_makes_well_formed_xml(tmp_path):
    safetensors_of(NAMES, tmp_path / "g.safetensors")
    root, lines = gate("analyze", tmp_path / "g.safetensors", "total > 0", file=tmp_path / "out.xml", expect=4)
    names = [case.get("name") for case in root.iter("testcase")]
    assert len(names) == len(NAMES) and sorted(set(names)) == sorted(names)
    assert NAMES[0] in names and NAMES[1] in names and NAMES[5] in names
    assert any(r"\x00\x01\x1B[31m\x0D\x0A\x09tab" in name for name in names)
    assert r"weight_grad/\u{FFFE}\u{FFFF}" in names
    assert root.get("failures") == str(len(NAMES)) == str(sum("total 1 > 0" in line for line in lines))


def test_a_path_that_is_no_utf8(tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    os.mkdir(folder)
    save_file({"weight_grad/a": np.ones(1, np.float32)}, tmp_path / "g.safetensors")
    os.rename(tmp_path / "g.safetensors", os.path.join(folder, b"g.safetensors"))
    done = subprocess.run(
        [PROGRAM, "analyze", os.path.join(folder, b"g.safetensors"), "--fail-if", "nan > 0", "--junit",
         os.path.join(folder, b"out.xml")],
        capture_output=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder, b"out.xml"), "rb") as file:
        case = ElementTree.parse(file).getroot().find("testsuite/testcase")
    assert case.get("classname").endswith(r"caf\xE9/g.safetensors")


def test_the_file_is_whole_or_as_it_was(log, tmp_path):
    file = tmp_path / "out.xml"
    file.write_text("old")
    run("analyze", log, "--fail-if", "nan > 0 for update", "--junit", file, expect=2)
    run("analyze", tmp_path / "none.npy", "--fail-if", "nan > 0", "--junit", file, expect=1)
    assert file.read_text() == "old"
    _, err = run("analyze", log, "--fail-if", "nan > 0", "--junit", tmp_path / "no" / "x.xml", expect=1)
    assert "x.xml" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.safetensors", "out.xml"]


@pytest.mark.parametrize("command", ["analyze", "recommend"])
def test_bad_usage(command, log, tmp_path):
    _, err = run(command, log, "--junit", tmp_path / "out.xml", expect=2)
    assert "--junit" in err and "--fail-if" in err
    condition = ("--fail-if", "nan > 0" if command == "analyze" else "lowest > 8")
    assert "expected a file" in run(command, log, *condition, "--junit", "-", expect=2)[1]
    assert "would damage" in run(command, log, *condition, "--junit", log, expect=2)[1]
    assert not (tmp_path / "out.xml").exists()


def test_several_logs_are_told_apart(log, tmp_path):
    save_file({"weight_grad/a": np.ones(2, np.float32)}, tmp_path / "h.safetensors")
    root, lines = gate(
        "analyze", log, "total > 2", file=tmp_path / "out.xml", expect=4, options=(tmp_path / "h.safetensors",)
    )
    require_agreement(root, lines, 4)
    assert {case.get("classname") for case in root.iter("testcase")} == {str(log), str(tmp_path / "h.safetensors")}
