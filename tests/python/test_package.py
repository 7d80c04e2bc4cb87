# SPDX-License-Identifier: Apache-2.0
"""The package without PyTorch's recorder: arrays to tables, logs to findings."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

import halfscope

# A value in each class of binary16, by the boundaries of IEEE 754-2019, round to nearest even.
VALUES = [0.0, -0.0, 2.0**-25, -(2.0**-26), np.nextafter(np.float32(2**-25), np.float32(1)), 2.0**-24,
          2.0**-15, 2.0**-14, 1.0, -65504.0, 65519.0, 65520.0, np.inf, -np.inf, np.nan]


@pytest.fixture
def array():
    return np.array(VALUES, dtype=np.float32)


def test_a_table_counts_every_class(array):
    table = halfscope.binade_table(array)
    assert table.total == len(VALUES)
    assert (table.zero, table.negative_zero, table.nan, table.inf) == (2, 1, 1, 2)
    assert table.finite_nonzero == 10
    assert table.classify() == {"flushed_to_zero": 2, "subnormal": 3, "normal": 4, "overflow": 1}
    assert table.classify(scale=2.0) == {"flushed_to_zero": 1, "subnormal": 3, "normal": 3,
                                         "overflow": 3}
    assert (table.max_abs, table.min_abs_nonzero) == (65520.0, 2.0**-26)
    assert dict(table.binades())[15] == 3


def test_counts_are_those_of_casting(array):
    """NumPy's own cast is the judge."""
    values = (np.random.default_rng(1).standard_normal(40000) * 2.0 ** np.random.default_rng(2).integers(
        -40, 20, 40000)).astype(np.float32)
    with np.errstate(over="ignore"):
        cast = np.abs(values.astype(np.float16))
    assert halfscope.binade_table(values).classify() == {
        "flushed_to_zero": int(np.sum(cast == 0)),
        "subnormal": int(np.sum((cast > 0) & (cast < 2.0**-14))),
        "normal": int(np.sum((cast >= 2.0**-14) & np.isfinite(cast))),
        "overflow": int(np.sum(np.isinf(cast)))}


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_tensors_and_arrays_of_every_type(name):
    tensor = torch.linspace(-3, 3, 1001, dtype=torch.float32).to(getattr(torch, name))
    table = halfscope.binade_table(tensor)
    exact = tensor.double().numpy()  # widening is exact
    assert table.total == 1001
    assert table.binades() == halfscope.binade_table(exact).binades()
    if name != "bfloat16":
        assert table == halfscope.binade_table(tensor.numpy())


def test_a_tensor_under_differentiation_is_read():
    assert halfscope.binade_table(torch.ones(3, requires_grad=True)).total == 3


def test_memory_is_looked_at_not_copied(tmp_path):
    file = np.lib.format.open_memmap(tmp_path / "big.npy", mode="w+", dtype=np.float32,
                                     shape=(64 << 20,))
    file[:4] = [1, 2, 3, 4]
    del file
    grown = subprocess.run(
        [sys.executable, "-c",
         "import sys, numpy, halfscope\n"
         "def anonymous():\n"
         "    status = open('/proc/self/status').read()\n"
         "    return int(status.split('RssAnon:')[1].split()[0])\n"
         "a = numpy.load(sys.argv[1], mmap_mode='r')\n"
         "halfscope.binade_table(a[:1000]); before = anonymous()\n"
         "assert halfscope.binade_table(a).finite_nonzero == 4\n"
         "print(anonymous() - before)", str(tmp_path / "big.npy")],
        check=True, capture_output=True, text=True, env=os.environ)
    assert int(grown.stdout) < 16 << 10  # KiB, for a file of 256 MiB


@pytest.mark.parametrize("make, error, found, way_out", [
    (lambda: np.arange(3), TypeError, "int64", "float32"),
    (lambda: np.ones(3, complex), TypeError, "complex128", "float32"),
    (lambda: torch.ones(3, dtype=torch.int32), TypeError, "int32", "float32"),
    (lambda: [1.0, 2.0], TypeError, "list", "NumPy array"),
    (lambda: np.ones(3, ">f4"), TypeError, "ndarray", "byte order"),
    (lambda: np.ones((4, 4), np.float32)[:, ::2], ValueError, "not contiguous", "ascontiguousarray"),
    (lambda: torch.ones(2, 3).t(), ValueError, "not contiguous", "contiguous()"),
])
def test_what_is_no_table_is_refused_with_a_way_out(make, error, found, way_out):
    with pytest.raises(error) as raised:
        halfscope.binade_table(make())
    assert found in str(raised.value) and way_out in str(raised.value)
    assert "\n" not in str(raised.value)


def test_read_only_and_empty_arrays(array):
    expected = halfscope.binade_table(array)
    array.flags.writeable = False
    assert halfscope.binade_table(array) == expected
    assert halfscope.binade_table(np.ones((0, 3), np.float32)).total == 0


def test_tables_add_to_the_same_in_any_order(array):
    parts = [halfscope.binade_table(part) for part in np.array_split(array, 4)]
    whole = halfscope.binade_table(array)
    forward = parts[0] + parts[1] + parts[2] + parts[3]
    backward = halfscope.BinadeTable()
    for part in reversed(parts):
        backward.merge(part)
    assert forward == backward == whole
    assert forward.encode() == whole.encode()
    assert parts[0] != whole


def test_tables_travel(array):
    table = halfscope.binade_table(array)
    assert halfscope.BinadeTable.decode(table.encode()) == table
    assert pickle.loads(pickle.dumps(table)) == table
    with pytest.raises(ValueError):
        halfscope.BinadeTable.decode([1, 2, 3])


def test_a_format_by_any_other_name(array):
    with pytest.raises(ValueError, match="format 'fp17' is unknown; use one of binary16"):
        halfscope.binade_table(array).classify("fp17")
    for unknown, named in ((np.int8, "int8"), (None, "None")):
        with pytest.raises(ValueError, match=f"format '{named}' is unknown"):
            halfscope.binade_table(array).classify(unknown)
    for name in ("fp16", "half", "float16", "FP16", np.float16, np.dtype("float16")):
        assert (halfscope.binade_table(array).classify(name)
                == halfscope.binade_table(array).classify("binary16"))


def test_analyze_and_recommend_are_the_command_lines(tmp_path, root):
    program = os.environ.get("HALFSCOPE_PROGRAM", str(root / "build" / "halfscope"))
    if not os.path.exists(program):
        pytest.skip("no program to compare with: build it and set HALFSCOPE_PROGRAM")
    file = tmp_path / "gradients.npz"
    random = np.random.default_rng(0)
    np.savez(file, first=random.standard_normal(999).astype(np.float32) * np.float32(1e-6),
             second=np.float64(3.0))

    def command(name, *options):
        done = subprocess.run([program, name, str(file), *options, "--json", "-"], check=True,
                              capture_output=True, text=True)
        return json.loads(done.stdout)

    assert halfscope.analyze(file) == command("analyze")
    assert halfscope.analyze([file], loss_scale=1024, subnormals="flush", tensor="f*") == command(
        "analyze", "--loss-scale", "1024", "--subnormals", "flush", "--tensor", "f*")
    assert halfscope.analyze([file], subnormals="flush-before") == command(
        "analyze", "--subnormals", "flush-before")
    with pytest.raises(ValueError, match="subnormals is 'ftz', expected one of 'keep', 'flush', "):
        halfscope.analyze([file], subnormals="ftz")
    assert halfscope.analyze(file, format="bfloat16", roles={"*": "activation"}, steps=0) == command(
        "analyze", "--format", "bfloat16", "--role", "*=activation", "--step", "0")
    assert halfscope.recommend(file, headroom=3) == command("recommend", "--headroom", "3")


def test_a_tag_tells_the_recorded_scale(tmp_path):
    rows = [{"_step": step, "amp/scale": 2.0 ** 10, "gradients/w": {
        "_type": "histogram", "bins": [2.0 ** -3, 2.0 ** -2], "values": [7]}} for step in range(3)]
    log = tmp_path / "history.jsonl"
    log.write_text("\n".join(json.dumps(row) for row in rows))
    (tensor,) = halfscope.analyze(log, recorded_scale="amp/scale")["tensors"]
    low, high = tensor["max_abs"]  # of the bucket, which the log rounds
    assert 0.99 * 2.0 ** -13 < low < high < 1.01 * 2.0 ** -12
    with pytest.raises(halfscope.BadInput, match="has no scalar 'amp/scal'"):
        halfscope.recommend(log, recorded_scale="amp/scal")


def test_elements_of_two_bytes_are_what_is_said(tmp_path):
    file = tmp_path / "g.npy"
    np.save(file, np.array([0x3F80, 0x0080], dtype=np.uint16))  # 1 and 2^-126 in bfloat16
    for name in ("bf16", "bfloat16"):
        (tensor,) = halfscope.analyze(file, read_as=name)["tensors"]
        assert (tensor["max_abs"], tensor["flushed_to_zero"]) == (1, 1)
    assert halfscope.recommend(file, read_as="f16")["limited_by"]["max_abs"] == 1.875
    with pytest.raises(ValueError, match="read_as is 'f8', expected 'bf16' or 'f16'"):
        halfscope.analyze(file, read_as="f8")
    with pytest.raises(halfscope.BadInput, match="read_as='bf16'"):
        halfscope.analyze(file)


def test_messages_name_arguments_where_the_command_line_names_flags(tmp_path, root, caplog):
    program = os.environ.get("HALFSCOPE_PROGRAM", str(root / "build/halfscope"))
    file = tmp_path / "--step.npy"  # a name is no option
    np.save(file, np.ones(4, dtype=np.float32))
    halfscope.analyze(file)
    said = subprocess.run([program, "analyze", str(file)], check=True, capture_output=True,
                          text=True).stderr
    for flag, argument in (("--role GLOB=ROLE", "roles={GLOB: ROLE}"),
                           ("--role '*=weight'", "roles={'*': 'weight'}"),
                           ("--recorded-scale S", "recorded_scale=S")):
        assert flag in said and argument not in said
        assert argument in caplog.text and flag not in caplog.text
    assert "--step.npy" in said and "--step.npy" in caplog.text
    with pytest.raises(halfscope.BadInput, match="no tensor is selected by tensor= and steps=") as bad:
        halfscope.analyze(file, tensor="other")
    assert "--step.npy" in str(bad.value) and "--tensor" not in str(bad.value)
    halfscope.analyze(file, roles={"x": "weight"})
    assert "roles={'x': 'weight'}: matches no selected tensor" in caplog.text


def test_analyze_counts_what_the_table_counts(tmp_path, array):
    np.save(tmp_path / "g.npy", array)
    (tensor,) = halfscope.analyze(tmp_path / "g.npy")["tensors"]
    table = halfscope.binade_table(array)
    assert {name: tensor[name] for name in table.classify()} == table.classify()
    assert (tensor["zero"], tensor["nan"], tensor["inf"]) == (2, 1, 2)


def test_bad_input_is_one_line_that_names_the_file(tmp_path):
    with pytest.raises(halfscope.BadInput) as raised:
        halfscope.analyze(tmp_path / "nothing")
    assert "nothing" in str(raised.value) and "\n" not in str(raised.value)
    assert isinstance(raised.value, ValueError)
    with pytest.raises(ValueError, match="no role is called 'grad', expected one of 'weight_grad', "):
        halfscope.analyze(tmp_path / "nothing", roles={"*": "grad"})


@pytest.mark.parametrize("function, argument, value, expected", [
    (halfscope.analyze, "logs", [], "a path or several"),
    (halfscope.recommend, "logs", [], "a path or several"),
    (halfscope.report, "logs", {}, "a path or several"),
    (halfscope.analyze, "logs", 3, "a path or several; arrays in memory are tensors=..."),
    (halfscope.recommend, "logs", [None], "a path or several; arrays in memory are tensors=..."),
    (halfscope.analyze, "format", 16, "the name of one, such as 'binary16'"),
    (halfscope.recommend, "target_underflow", "1%", "a share from 0 to 1"),
    (halfscope.analyze, "loss_scale", "torch", "a number"),
    (halfscope.compare, "loss_scale", "mine", "a number"),
    (halfscope.analyze, "learning_rate", "0.1", "a number"),
    (halfscope.recommend, "recorded_scale", [2], "a number, or the tag of a scalar"),
    (halfscope.recommend, "tensor", 3, "a glob, such as 'weight_grad/*'"),
    (halfscope.analyze, "roles", ["weight"], "{glob: role}")])
def test_an_argument_of_another_type_is_named(tmp_path, function, argument, value, expected):
    logs = [tmp_path] * (2 if function is halfscope.compare else argument != "logs")
    with pytest.raises((TypeError, ValueError)) as raised:
        function(*logs, **{argument: value})
    found = "empty" if argument == "logs" and not isinstance(value, int) and not value else repr(value)
    assert str(raised.value) == f"{argument} is {found}, expected {expected}"


def test_a_missing_torch_is_named_with_what_installs_it():
    code = "import sys; sys.modules['torch'] = None; import halfscope.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: halfscope.torch needs 'halfscope[torch]': pip install 'halfscope[torch]'")


def test_the_module_shows_others_nothing():
    """Another package in the process may have another protobuf."""
    shown = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=just-symbols",
                            halfscope._halfscope.__file__], check=True, capture_output=True, text=True)
    assert shown.stdout.split() == ["PyInit__halfscope"]
