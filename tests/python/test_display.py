# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of results: the sentences of the terminal, the charts of the page."""

import base64
import html
import json
import os
import re
import subprocess
import sys

import nbclient
import nbformat
import numpy as np
import pytest

import halfscope
from page_browser import browser, open_page, unreadable
from program import DIGITS, stdout_of
from test_notebook import kernel

vl_convert = pytest.importorskip("vl_convert")
__all__ = ["browser", "kernel"]  # fixtures


@pytest.fixture(scope="module")
def everything():
    return halfscope.report(DIGITS)


def words(text):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def test_the_display_has_the_sentences_of_the_terminal(everything):
    shown = words(re.sub(r"<style>.*?</style>", "", everything._repr_html_(), flags=re.S))
    said = stdout_of("recommend", DIGITS)
    headline = " ".join(said.split("\n\n")[0].split())
    assert headline in shown
    advice = everything.recommendation
    for finding in advice.answer.findings:
        assert finding.title in shown and (finding.action or "") in shown
    assert advice.answer.paste in html.unescape(everything._repr_html_())


def test_analyze_compare_and_policies_say_what_the_program_says(tmp_path):
    np.savez(tmp_path / "a.npz", **{"weight_grad/w": np.float32([1, 2**-14])})
    np.savez(tmp_path / "b.npz", **{"weight_grad/w": np.float32([2**-12, 2**-26])})
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    for result, command in ((halfscope.analyze(DIGITS), ["analyze", DIGITS]),
                            (halfscope.compare(a, b), ["compare", a, b]),
                            (halfscope.policies(DIGITS), ["policies", DIGITS])):
        said = " ".join(stdout_of(*command).split())
        shown = words(result._repr_html_())
        for line in str(result).splitlines():
            sentence = " ".join(line.removeprefix("* ").split())
            assert sentence.rstrip(":") in said and sentence.rstrip(":") in shown, sentence


def test_names_in_logs_are_no_markup(tmp_path):
    np.savez(tmp_path / "a.npz", **{"weight_grad/<img src=x onerror=alert(1)>": np.float32([1, 1e-9])})
    for result in (halfscope.recommend(tmp_path / "a.npz"), halfscope.analyze(tmp_path / "a.npz")):
        assert "<img src=x" not in result._repr_html_() and "&lt;img src=x" in result._repr_html_()


# What a drawn view of the page has as rows, by the chart's key there.
ROWS = """
  const spec = Object.keys(window.halfscopeViews);
  return Object.fromEntries(spec.map((key) => {
    const names = ['bars', 'cells', 'scales', 'pairs', 'ratios', 'errors', 'outcomes', 'rooms', 'trends',
                   'fits', 'policy-scales', 'policy-flushed', 'timeline'];
    for (const name of names) {
      try { return [key, window.halfscopeViews[key].data(name)]; } catch (error) {}
    }
    return [key, null];
  }));
"""
BARS = ("e", "low", "high", "values")
CELLS = (*BARS, "step", "last")
SCALES = ("log2_scale", "of", "share", *(name + end for name in ("flushed_to_zero", "subnormal", "normal",
                                                                "overflow") for end in ("", "_text")))


def close(a, b):
    """Numbers of the script and of the library, whose last bits may differ."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == pytest.approx(b, rel=1e-12) if isinstance(a, float) else a == b


@pytest.mark.parametrize("log", ["digits", "bounded"])
def test_rows_are_those_of_the_page(browser, tmp_path, log):  # noqa: F811
    path = DIGITS
    if log == "bounded":
        path = tmp_path / "history.jsonl"
        path.write_text("".join(json.dumps({"_step": step, "gradients/w": {
            "_type": "histogram", "bins": [0.0, 2.0**-24, 2.0**-9, 3.0], "values": [5, 7, 9 + step]}}) + "\n"
            for step in range(3)))
    result = halfscope.report(path)
    result.save_html(tmp_path / "page.html")
    open_page(browser, tmp_path / "page.html")
    drawn = browser.execute_script(ROWS)
    compared = 0
    for name, chart in result.charts.items():
        key = "gradients/gradients" if name == "gradients" else name
        if key not in drawn or drawn[key] is None or chart._chart in ("policy-scales", "policy-flushed"):
            continue
        fields = {"histogram": BARS, "gradients": BARS, "heat": CELLS, "scales": SCALES}.get(
            chart._chart, tuple(chart.rows[0]))

        def of(rows):
            return [{field: row.get(field) for field in fields} for row in rows]

        assert close(of(chart.rows), of(drawn[key])), name
        compared += 1
    assert compared >= (15 if log == "digits" else 3)


def test_charts_have_no_warning(everything, capfd):
    for chart in everything.charts.values():
        for axis in ("linear", "log"):
            spec = chart.spec(axis=axis)
            vl_convert.vegalite_to_vega(spec, show_warnings=True)
            assert capfd.readouterr().err == "", chart.name
        assert chart.title and str(len(chart.rows)) in repr(chart)


def test_altair_takes_every_chart(everything):
    altair = pytest.importorskip("altair")
    for chart in everything.charts.values():
        assert isinstance(chart.altair(), altair.TopLevelMixin)


def test_a_chart_is_displayed_as_a_picture_without_a_script(everything, monkeypatch):
    chart = everything.charts["gradients"]
    shown = chart._repr_mimebundle_()
    assert set(shown) == {"image/svg+xml", "text/plain"} and "<script" not in shown["image/svg+xml"]
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # not installed
    shown = chart._repr_mimebundle_()
    assert set(shown) == {"text/plain"} and "pip install vl-convert-python" in shown["text/plain"]


def test_texts_do_not_meet_in_a_wide_font(browser, everything, tmp_path):  # noqa: F811
    pictures = [chart.svg() for chart in everything.charts.values()]
    assert unreadable(browser, pictures, tmp_path / "pictures.html") == []


def test_shares_are_of_all_values_and_zeros_have_a_bar(tmp_path, capfd):
    np.savez(tmp_path / "a.npz", **{"activation_grad/w": np.float32([0, 0, 0, 2**-27, 2**-15, 1, 1.5, 2**17])})
    rows = halfscope.analyze(tmp_path / "a.npz").charts["shares/activation_grad"].rows
    assert [(row["magnitude"], row["share"], row["class"]) for row in rows] == [
        ("0", 3 / 8, "kept"), ("2^-27 to 2^-26", 1 / 8, "zero"), ("2^-15 to 2^-14", 1 / 8, "subnormal"),
        ("2^0 to 2^1", 2 / 8, "normal"), ("2^17 to 2^18", 1 / 8, "overflow")]
    charts = halfscope.analyze([DIGITS, tmp_path / "a.npz"]).charts
    drawn = [chart for chart in charts.values() if chart.name.startswith("shares/")]
    assert [chart.name.removeprefix("shares/") for chart in drawn] == [
        "weight_grad", "activation_grad", "activation_grad"]
    for chart in drawn:
        assert sum(row["share"] for row in chart.rows) == pytest.approx(1)
        vl_convert.vegalite_to_vega(chart.spec(), show_warnings=True)
        assert capfd.readouterr().err == ""


def test_charts_of_one_tensor(everything, tmp_path):
    charts = everything.charts.of("weight_grad/conv1.weight")
    assert list(charts) == ["histogram", "heat", "scales"]
    tensor = everything.analysis.tensor("weight_grad/conv1.weight")
    assert [[row["e"], row["low"]] for row in charts["histogram"].rows] == tensor.binades
    with pytest.raises(KeyError, match="a tensor 'nothing'"):
        everything.charts.of("nothing")
    with pytest.raises(KeyError, match="no chart is called 'x'; there are gradients, "):
        everything.charts["x"]
    runs = halfscope.compare(DIGITS, DIGITS)
    assert list(runs.charts) == ["loss"]
    assert runs.charts["loss"].title == f"Loss of {DIGITS} (dashed) and {DIGITS} (line)"
    runs.charts.of("weight_grad/conv1.weight")["binades"].save(tmp_path / "x.svg")


def limits_drawn(svg):
    return set(re.findall(r">([^<>]*2\^-?\d+|65520[^<>]*)<", svg))


def test_plot_draws_the_histogram_with_the_limits(tmp_path):
    def plot(*arguments):
        return subprocess.run([sys.executable, "-m", "halfscope.plot", *map(str, arguments)],
                              capture_output=True, text=True)

    done = plot(DIGITS, "--out", tmp_path / "x.svg")
    assert done.returncode == 0 and done.stdout.strip() == str(tmp_path / "x.svg"), done.stderr
    svg = (tmp_path / "x.svg").read_text()
    assert {"2^-25", "2^-14", "65520", "2^-40", "2^-29", "65520/2^15"} <= limits_drawn(svg)
    assert plot(DIGITS, "--out", tmp_path / "x.png", "--axis", "log").returncode == 0
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert plot(DIGITS, "--out", tmp_path / "y.svg", "--tensor", "weight/conv1.weight").returncode == 0
    assert plot(DIGITS, "--out", tmp_path / "z.svg", "--chart", "fits").returncode == 0
    for arguments, said in ((("--out", "x.gif"), "ends in .svg or .png"),
                            (("--out", "x.svg", "--chart", "pie"), "no chart is called 'pie'"),
                            (("--out", "x.svg", "--tensor", "w"), "a tensor 'w'")):
        failed = plot(DIGITS, *arguments)
        assert failed.returncode == 1 and said in failed.stderr and "Traceback" not in failed.stderr
    failed = plot(tmp_path / "nothing", "--out", tmp_path / "x.svg")
    assert failed.returncode == 1 and "nothing" in failed.stderr and "Traceback" not in failed.stderr


@pytest.mark.parametrize("call", ["recommend", "analyze", "policies", "report"])
def test_a_kernel_displays_it(tmp_path, kernel, browser, call):  # noqa: F811
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(
        f"import halfscope\nhalfscope.{call}({os.fspath(DIGITS)!r})")])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name=kernel).execute()
    (output,) = [o for o in notebook.cells[0].outputs if o.output_type == "execute_result"]
    assert len(output.data["text/plain"]) < 400
    page = tmp_path / "output.html"
    page.write_text("<!doctype html><meta charset=utf-8>" + output.data["text/html"], encoding="utf-8")
    browser.get(page.as_uri())
    widths = browser.execute_script("return [...document.images].map((image) => image.naturalWidth)")
    assert widths and all(width >= 600 for width in widths)
    assert browser.execute_script("return document.body.innerText.length") > 300
    assert browser.execute_script("return document.body.scrollWidth <= window.innerWidth")


def test_pictures_are_whole(everything):
    """Nothing of a chart is cut off: its texts lie inside of the picture."""
    for name in ("gradients", "scales/gradients", "policy-flushed"):
        svg = everything.charts[name].svg()
        width = float(re.search(r'<svg[^>]* width="([\d.]+)"', svg).group(1))
        assert 600 <= width <= 680
    data = re.search(r'base64,([^"]+)"', everything._repr_html_()).group(1)
    assert base64.b64decode(data).startswith(b"<svg")
