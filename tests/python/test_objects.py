# SPDX-License-Identifier: Apache-2.0
"""Results in Python: mappings with the program's fields, which are attributes too; short when printed,
tables for pandas and Arrow, the program's page."""

import copy
import importlib.util
import json
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import halfscope
from halfscope import _frames
from halfscope._fields import TensorFindings
from program import DIGITS, ROOT, json_of, schema, stdout_of

HISTOGRAM = {"_step": 0, "gradients/w": {"_type": "histogram", "bins": [0.0, 2.0**-24, 1.0, 2.0],
                                         "values": [5, 7, 9]}}


@pytest.fixture(scope="module")
def advice():
    return halfscope.recommend(DIGITS)


@pytest.fixture(scope="module")
def found():
    return halfscope.analyze(DIGITS)


@pytest.fixture
def bounded(tmp_path):
    """A log of which only bounds are known."""
    log = tmp_path / "history.jsonl"
    log.write_text(json.dumps(HISTOGRAM) + "\n")
    return log


def test_what_scripts_did_with_a_dict_works(advice):
    assert isinstance(advice, dict) and "static_scale" in advice
    assert dict(advice).keys() == advice.keys() and advice.get("nothing", 3) == 3
    schema("recommend").validate(advice)
    assert json.loads(json.dumps(advice)) == json_of("recommend", DIGITS)


def test_all_results_are_the_programs(tmp_path):
    np.savez(tmp_path / "a.npz", **{"weight_grad/w": np.float32([1, 2**-14])})
    np.savez(tmp_path / "b.npz", **{"weight_grad/w": np.float32([2**-12, 2**-26])})
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    assert halfscope.analyze(DIGITS, formats=True, what_if=True) == json_of(
        "analyze", DIGITS, "--formats", "--what-if")
    assert halfscope.policies(DIGITS) == json_of("policies", DIGITS)
    assert halfscope.policies(DIGITS, policies="als") == json_of("policies", DIGITS, "--policy", "als")
    assert halfscope.compare(a, b) == json_of("compare", a, b)
    everything = halfscope.report(a)
    assert everything.recommendation == halfscope.recommend(a)
    assert everything.analysis == halfscope.analyze(a, formats=True, what_if=True)


def test_values_have_the_types_of_the_json(found):
    text = json.dumps(found)
    assert json.loads(text) == found and "NaN" not in text and "Infinity" not in text
    printed = json_of("analyze", DIGITS)

    def same(a, b):
        if isinstance(a, dict):
            return all(same(a[key], b[key]) for key in a) and list(a) == list(b)
        if isinstance(a, list):
            return len(a) == len(b) and all(map(same, a, b))
        return type(a) is type(b) and a == b

    assert same(found, printed)


def test_no_text_is_parsed(monkeypatch):
    def fails(*_, **__):
        raise AssertionError("JSON is parsed")

    for name in ("loads", "load", "JSONDecoder"):
        monkeypatch.setattr(json, name, fails)
    halfscope.recommend(DIGITS)
    halfscope.analyze(DIGITS)
    halfscope.policies(DIGITS)


def test_damaged_names_read_as_in_the_json(tmp_path):
    """Bytes that are no UTF-8 become U+FFFD, as many as in the program's JSON."""
    for at, damaged in enumerate([b"\xff", b"a\xe2\x82z", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xed\xa0\x80x"]):
        folder = tmp_path / str(at)
        folder.mkdir()
        file = os.fsencode(folder) + b"/w" + damaged + b".npy"
        with open(file, "wb") as out:
            np.save(out, np.ones(3, np.float32))
        printed = json_of("analyze", file)
        assert halfscope.analyze(os.fsdecode(file)) == printed


def test_fields_are_attributes(advice, found):
    assert advice.static_scale == advice["static_scale"]
    assert advice.limited_by.name == advice["limited_by"]["name"]
    assert advice.answer.clear == advice["answer"].get("clear")  # dict has a method of that name
    tensor = found.tensors[0]
    assert isinstance(tensor, TensorFindings) and tensor.per_step[0].step == tensor["steps"][0]
    assert found.tensor(tensor.name) is tensor
    assert {"static_scale", "answer"} <= set(dir(advice))


def test_what_a_log_cannot_answer_is_none(advice):
    assert "clipped" not in advice and advice.clipped is None
    with pytest.raises(AttributeError, match="Recommendation has no field 'statc_scale'; it has schema"):
        advice.statc_scale
    with pytest.raises(KeyError):
        advice["clipped"]
    assert not hasattr(advice, "_ipython_canary_method_should_not_exist_")


def test_schemas_tables_and_classes_are_those_of_docs_fields():
    subprocess.run([sys.executable, ROOT / "tools/json_fields.py", "--check"], check=True)


def test_objects_in_results_have_classes(advice, found):
    """Only maps from names to values, which have no fixed fields, are plain."""
    maps = {"snippets", "dynamic_snippets", "settings"}

    def plain(value, path=()):
        if type(value) is dict and not maps & set(path):
            yield path
        parts = value.items() if isinstance(value, dict) else (
            enumerate(value) if isinstance(value, list) else ())
        for name, part in parts:
            yield from plain(part, (*path, name))

    for result in (advice, found, halfscope.policies(DIGITS, framework="torch"),
                   halfscope.compare(DIGITS, DIGITS)):
        assert list(plain(result)) == []


def test_printed_they_are_short(advice, found):
    results = [advice, found, halfscope.policies(DIGITS), halfscope.compare(DIGITS, DIGITS),
               halfscope.report(DIGITS)]
    for result in results:
        assert len(repr(result)) < 300 and "\n" not in repr(result)
    assert len(repr(found.tensors[0])) < 300
    assert len(repr(advice.limited_by)) < 300
    assert len(str(advice)) > 300  # the answer with its findings
    assert str(results[4]).splitlines()[0] == str(advice).splitlines()[0]


def test_copies_keep_the_fields(advice):
    for copied in (pickle.loads(pickle.dumps(advice)), copy.deepcopy(advice), copy.copy(advice)):
        assert copied == advice and type(copied) is halfscope.Recommendation
        assert copied.limited_by.name == advice.limited_by.name
        assert str(copied) == str(advice)
        assert copied._repr_html_() is None
        with pytest.raises(RuntimeError, match="a copy that has its fields alone"):
            copied.charts
    policies = halfscope.policies(DIGITS, policies="torch")
    assert pickle.loads(pickle.dumps(policies)) == policies


@pytest.mark.parametrize("ending", ["pdf", "txt", "md", "html.gz"])
def test_a_page_of_an_unknown_ending_is_refused(ending, tmp_path, advice):
    """As by --out of the program."""
    path = tmp_path / f"page.{ending}"
    for result in (advice, halfscope.report(DIGITS), halfscope.compare(DIGITS, DIGITS)):
        with pytest.raises(ValueError) as refused:
            result.save_html(path)
        assert str(refused.value) == f"found '{path}', expected a name that ends in .html, .htm"
    assert not list(tmp_path.iterdir())


def test_other_files_of_an_unknown_ending_are_refused(tmp_path, advice):
    with pytest.raises(ValueError, match="ends in .md, .markdown"):
        halfscope.report(DIGITS).save_markdown(tmp_path / "page.html")
    with pytest.raises(ValueError, match="ends in .svg"):
        advice.save_svg(tmp_path / "chart.pdf")
    with pytest.raises(ValueError, match="ends in .png"):
        advice.save_png(tmp_path / "chart.svg")
    assert not list(tmp_path.iterdir())


def test_save_html_is_the_programs_page(tmp_path, advice):
    stdout_of("report", DIGITS, "--out", tmp_path / "program.html")
    expected = (tmp_path / "program.html").read_bytes()
    for result in (advice, halfscope.report(DIGITS)):
        result.save_html(tmp_path / "python.html")
        assert (tmp_path / "python.html").read_bytes() == expected
    stdout_of("compare", DIGITS, DIGITS, "--out", tmp_path / "program.html")
    halfscope.compare(DIGITS, DIGITS).save_html(tmp_path / "python.html")
    assert (tmp_path / "python.html").read_bytes() == (tmp_path / "program.html").read_bytes()
    with pytest.raises(ValueError, match="a page needs a log"):
        halfscope.policies(amax=[1.0, 2.0]).save_html(tmp_path / "python.html")
    with pytest.raises(halfscope.BadInput):
        advice.save_html(tmp_path / "no folder" / "x.html")


def test_markdown_is_the_programs(tmp_path):
    stdout_of("report", DIGITS, "--out", tmp_path / "program.md", "--title", "T")
    halfscope.report(DIGITS, title="T").save_markdown(tmp_path / "python.md")
    assert (tmp_path / "python.md").read_text() == (tmp_path / "program.md").read_text()


def test_columns_follow_from_the_class(found, bounded):
    exact = _frames.columns_of(found.tensors, TensorFindings)
    bounds = _frames.columns_of(halfscope.analyze(bounded).tensors, TensorFindings)
    assert {name: kind for name, (kind, _) in exact.items()} == \
        {name: kind for name, (kind, _) in bounds.items()}
    assert {"flushed_to_zero", "flushed_to_zero_low", "flushed_to_zero_high", "headroom_bits", "max_abs",
            "shape"} <= exact.keys()
    assert exact["flushed_to_zero"] == exact["flushed_to_zero_low"] == exact["flushed_to_zero_high"]
    assert bounds["flushed_to_zero"][1] == [None]  # between two bounds, which are not dropped
    (low,), (high,) = bounds["flushed_to_zero_low"][1], bounds["flushed_to_zero_high"][1]
    assert low < high


def test_bounds_are_columns_of_numbers(advice):
    """What JSON always has as [low, high], exact or not."""
    policies = halfscope.policies(DIGITS)
    columns = policies._columns("policies")
    rows = zip(*(columns[f"mean_flushed_share{end}"][1] for end in ("", "_low", "_high")))
    assert [*rows] == [(low if low == high else None, low, high)
                       for low, high in (trace.mean_flushed_share or (None, None) for trace in policies)]
    interval = {name: values for name, (_, values) in advice._columns("scales").items()
                if name.startswith("skip_interval")}
    assert interval == {"skip_interval": [None] * len(advice.scales),
                        "skip_interval_low": [row.skip.interval[0] for row in advice.scales],
                        "skip_interval_high": [row.skip.interval[1] for row in advice.scales]}


def test_formats_are_rows():
    pytest.importorskip("pandas")
    result = halfscope.analyze(DIGITS, formats=True)
    for field in ("formats", "mx_formats"):
        frame = result.to_pandas(field)
        entries = [(t.name, entry.format, entry.snr_db) for t in result.tensors for entry in t.get(field, [])]
        assert list(zip(frame["name"], frame["format"])) == [entry[:2] for entry in entries]
        assert frame["snr_db"].dropna().tolist() == [snr for *_, snr in entries if snr is not None]


def test_every_table_has_columns_of_one_length(advice, found):
    seen = set()
    for result in (advice, found, halfscope.policies(DIGITS), halfscope.compare(DIGITS, DIGITS),
                   halfscope.report(DIGITS)):
        assert result.tables[0] == result._pandas_table
        for table in result.tables:
            columns = result._columns(table)
            assert columns and len({len(values) for _, values in columns.values()}) == 1, table
            seen.add(table)
    assert {"tensors", "per_step", "by_scale", "binades", "findings", "headroom", "scales", "policies",
            "steps", "loss"} <= seen
    with pytest.raises(KeyError, match="no table is called 'tensor'; there are tensors, per_step"):
        found.to_pandas("tensor")


def test_pandas(found):
    pandas = pytest.importorskip("pandas")
    frame = found.to_pandas()
    assert len(frame) == len(found.tensors)
    assert frame["flushed_to_zero"].sum() == sum(t["flushed_to_zero"] for t in found.tensors)
    assert str(frame["total"].dtype) == "Int64" and str(frame["suspected_fp16"].dtype) == "boolean"
    steps = found.to_pandas("per_step")
    assert isinstance(steps, pandas.DataFrame)
    assert steps.groupby("name")["total"].sum().to_dict() == {t.name: t.total for t in found.tensors}
    traces = halfscope.policies(DIGITS, policies=["torch", "static,scale=1"])
    assert traces.to_pandas("steps").groupby("policy").size().to_dict() == {
        t.policy: len(t.scale) for t in traces}
    assert traces.to_pandas()["lost_share"].tolist() == [t.lost_share for t in traces]


def test_arrow(found, bounded):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.RecordBatchReader.from_stream(found).read_all()  # by __arrow_c_stream__
    assert table.num_rows == len(found.tensors) and table.schema.field("total").type == pyarrow.int64()
    assert table == found.to_arrow()
    assert halfscope.analyze(bounded).to_arrow().schema == table.schema
    for name in found.tables:
        assert found.to_arrow(name).num_columns > 1


@pytest.mark.parametrize("package, call", [
    ("pandas", "found.to_pandas()"), ("pyarrow", "found.to_arrow()"),
    ("pyarrow", "found.__arrow_c_stream__()"), ("altair", "found.charts['gradients'].altair()"),
    ("vl_convert", "found.save_svg('x.svg')")])
def test_a_missing_package_is_named(package, call):
    code = (f"import sys; sys.modules[{package!r}] = None\nimport halfscope\n"
            f"found = halfscope.analyze({str(DIGITS)!r})\n{call}")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    name = package.replace("vl_convert", "vl-convert-python")
    assert done.stderr.splitlines()[-1].startswith("ImportError: ") and done.returncode == 1
    assert f"needs {name}: pip install {name}" in done.stderr.splitlines()[-1]


def test_import_needs_nothing_and_is_quick():
    code = ("import sys\nbefore = set(sys.modules)\nimport halfscope\n"
            "print([m for m in ('torch', 'numpy', 'pandas', 'pyarrow', 'altair', 'vl_convert', 'json', "
            "'logging', 'tempfile', 'halfscope._results', 'halfscope._fields') "
            "if m in sys.modules and m not in before])")
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True,
                          text=True).stdout.strip() == "[]"
    times = []
    for _ in range(5):
        said = subprocess.run([sys.executable, "-X", "importtime", "-c", "import halfscope"], check=True,
                              capture_output=True, text=True).stderr
        (line,) = [line for line in said.splitlines() if line.split("|")[-1].strip() == "halfscope"]
        times.append(int(line.split("|")[1]) / 1e6)
    assert min(times) < 0.1


def test_stubs_name_what_the_module_has():
    import ast

    folder = pathlib.Path(halfscope.__file__).resolve().parent
    package = pathlib.Path(halfscope._halfscope.__file__).parent
    assert (package / "py.typed").exists() or (folder / "py.typed").exists()
    stub = package / "_halfscope.pyi"
    if not stub.exists():
        pytest.skip("no stub: build the target _halfscope_stub")
    told = {node.name for node in ast.parse(stub.read_text()).body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    public = {name for name, value in vars(halfscope._halfscope).items()
              if not name.startswith("__") and callable(value)}
    assert told == public


def test_every_public_name_has_a_docstring():
    for name in set(halfscope.__all__) - {"__version__"}:
        assert getattr(halfscope, name).__doc__, name
    for result in (halfscope.Findings, halfscope.Recommendation, halfscope.Comparison,
                   halfscope.Policies, halfscope.Report):
        for name in vars(result):
            if not name.startswith("_") and callable(getattr(result, name)):
                assert getattr(result, name).__doc__, (result, name)


def test_the_wheel_has_what_the_package_reads():
    spec = importlib.util.find_spec("halfscope")
    charts = pathlib.Path(spec.submodule_search_locations[0]) / "charts"
    assert {path.name for path in charts.iterdir()} >= {"page", "compare", "shared", "axes"}


@pytest.mark.parametrize("amax", ["12", b"12", 3])
def test_a_series_of_magnitudes_is_no_text_and_no_number(amax):
    with pytest.raises(TypeError, match="amax is .*, expected a magnitude per step"):
        halfscope.policies(amax=amax)
