# SPDX-License-Identifier: Apache-2.0
"""Errors of the Python functions describe what they were given by type and shape."""

import json
import re

import numpy as np
import pytest

import halfscope
from log_inputs import CORPUS
from program import DIGITS, run

LOG = str(CORPUS / "megatron.txt")
VALUES = np.float32([[0.12345, 0.54321, 0.98765]])

# Old NumPy warns where an array is compared with a text, and new NumPy compares each element.
pytestmark = pytest.mark.filterwarnings("error::FutureWarning")


def hostile_values():
    """Name and value of what holds arrays."""
    yield "array", VALUES
    yield "dict", {"w": VALUES}
    yield "list", [VALUES, VALUES]
    yield "nested", {"a": {"b": [VALUES]}}
    yield "tuple", (VALUES, VALUES, VALUES)
    try:
        import pandas
        yield "frame", pandas.DataFrame(VALUES, columns=["a", "b", "c"])
        yield "series", pandas.Series(VALUES[0])
    except ImportError:
        pass
    try:
        import torch
        yield "tensor", torch.tensor(VALUES)
        yield "parameters", {"w": torch.nn.Parameter(torch.tensor(VALUES))}
    except ImportError:
        pass


ARGUMENTS = {
    "recommend": ["logs", "format", "headroom", "target_underflow", "recorded_scale", "steps",
                  "tensor", "roles", "read_as", "ranks", "lines"],
    "analyze": ["logs", "format", "loss_scale", "subnormals", "learning_rate", "steps"],
    "report": ["logs", "policies", "steps"],
    "reduce": ["logs", "over", "format", "order", "counts"],
    "policies": ["log", "amax", "policies", "framework"],
    "compare": ["a", "loss_scale", "sums"],
    "weights": ["a", "format", "between", "set", "tensor"],
    "count": ["logs", "shard", "roles"],
}


def called(function, argument, value):
    arguments = {"compare": {"a": LOG, "b": LOG}, "policies": {"log": LOG},
                 "weights": {"a": LOG}}.get(
        function, {"logs": LOG})
    if argument == "amax":
        arguments = {}
    getattr(halfscope, function)(**{**arguments, argument: value})


@pytest.mark.parametrize("kind, value", hostile_values())
@pytest.mark.parametrize("function, argument", [(function, argument)
                                                for function, arguments in ARGUMENTS.items()
                                                for argument in arguments])
def test_no_values_are_in_an_error(function, argument, kind, value):
    if argument == "counts" and kind == "series":
        return  # the number that is none of ranks is named
    try:
        called(function, argument, value)
    except Exception as error:
        text = str(error)
        assert not re.search(r"tensor\(|array\(|0\.12345|0\.54321", text), text
        assert len(text) < 1000, text
        assert isinstance(error, (TypeError, ValueError, halfscope.BadInput)), repr(error)


@pytest.mark.parametrize("value, said", [
    ({"w": VALUES}, "dict of 1 entry, ndarray of shape (1, 3)"),
    ([VALUES, VALUES], "list of 2 entries, ndarray of shape (1, 3)"),
    (VALUES, "ndarray of shape (1, 3)"), (3, "3"), ([True, None], "[True, None]")])
def test_what_is_no_log_is_described(value, said):
    with pytest.raises(TypeError) as error:
        halfscope.recommend(value)
    assert str(error.value) == (f"logs is {said}, expected a path or several; arrays in "
                                "memory are tensors=...")


@pytest.mark.parametrize("function, argument", [(function, argument)
                                                for function, arguments in ARGUMENTS.items()
                                                for argument in arguments])
@pytest.mark.parametrize("value", ["x" * 100_000, "torch," * 20_000 + "y" * 200, "9" * 4000, 10**4400, 10**30,
                                   ["x" * 100_000]],
                         ids=["text", "parts", "digits", "number", "large", "list"])
def test_a_long_text_is_not_printed_whole(function, argument, value):
    if function == "policies" and argument == "amax" and not isinstance(value, str):
        return
    try:
        called(function, argument, value)
    except (TypeError, ValueError) as error:  # BadInput is one
        text = str(error)
        assert len(text) < 600 and "\n" not in text and "incompatible function" not in text, text
        assert not re.search(r"x{100}|9{100}|0{100}", text), text


@pytest.mark.parametrize("call", [
    lambda: halfscope.report(LOG, policies=VALUES), lambda: halfscope.policies(LOG, policies=[VALUES]),
    lambda: halfscope.policies(LOG, policies=3), lambda: halfscope.report(LOG, subnormals=VALUES),
    lambda: halfscope.analyze(LOG, subnormals=3), lambda: halfscope.compare(LOG, LOG, subnormals=None),
    lambda: halfscope.arrays.convert(VALUES, VALUES), lambda: halfscope.arrays.quantise(VALUES, VALUES),
    lambda: halfscope.arrays.convert(VALUES, "binary16", rounding=VALUES),
    lambda: halfscope.arrays.convert(VALUES, "binary16", seed="x"),
    lambda: halfscope.arrays.add(VALUES, VALUES, format=3),
    lambda: halfscope.arrays.tensor_core_product(VALUES, VALUES, VALUES),
    lambda: halfscope.arrays.quantise_blocks(VALUES, VALUES),
    lambda: halfscope.arrays.quantise_blocks("nvfp4", VALUES, history=VALUES)])
def test_values_of_another_type_are_described(call):
    with pytest.raises(TypeError) as error:
        call()
    assert re.search(" is (ndarray of shape|list of 1 entry|3|None|'x')", str(error.value)), error.value
    assert "incompatible function" not in str(error.value) and "\n" not in str(error.value)


def test_lookups_and_charts_describe_what_they_were_given():
    findings = halfscope.analyze(DIGITS)
    for look in (findings.charts.__getitem__, findings.tensor):
        for value in (("x" * 1000, "y"), "x" * 1000):
            with pytest.raises((KeyError, TypeError)) as error:
                look(value)
            assert len(str(error.value)) < 1000


def test_the_recorder_and_the_emulator_describe_what_they_were_given(tmp_path):
    torch = pytest.importorskip("torch")
    from halfscope.torch import Recorder, emulate

    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrong = [VALUES, {"w": VALUES}, [torch.tensor(VALUES)]]
    for value in wrong:
        for name in ("every", "sample_every", "first_step", "modules", "about", "on_error"):
            with pytest.raises((TypeError, ValueError)) as error:
                Recorder(model, optimizer, tmp_path / "run", **{name: value})
                raise ValueError("accepted")  # as about may be
            assert "0.12345" not in str(error.value), (name, error.value)
        for name in ("precision", "loss_scale", "accumulate", "recipe", "seed"):
            with pytest.raises((TypeError, ValueError, halfscope.BadInput)) as error:
                emulate(model, optimizer, **{"precision": "fp16", name: value})
            assert "0.12345" not in str(error.value), (name, error.value)


@pytest.mark.parametrize("steps", ["30", "10:40", "10:", ":20", "0:1"])
def test_steps_are_those_of_the_command_line(steps, tmp_path):
    run("analyze", DIGITS, "--step", steps, "--json", tmp_path / "out.json")
    expected = json.loads((tmp_path / "out.json").read_text())
    found = halfscope.analyze(DIGITS, steps=steps)
    assert found.tensors
    assert json.loads(json.dumps(found.tensors, default=dict)) == expected["tensors"]


@pytest.mark.parametrize("steps, same", [("30", 30), (np.int64(30), 30), ("10:40", slice(10, 40)),
                                         ("10:40", range(10, 40)), (":20", slice(None, 20))])
def test_steps_as_text_and_as_numbers_are_the_same(steps, same):
    assert (halfscope.analyze(DIGITS, steps=steps).tensors ==
            halfscope.analyze(DIGITS, steps=same).tensors)


@pytest.mark.parametrize("steps", ["", "a", "1:b", "1:2:3", "5:5", "7:3", "1.5", "²", slice(5, 5)])
def test_steps_that_select_nothing_are_refused(steps):
    with pytest.raises(ValueError, match="^steps is "):
        halfscope.analyze(DIGITS, steps=steps)
