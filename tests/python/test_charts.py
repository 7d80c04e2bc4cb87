# SPDX-License-Identifier: Apache-2.0
"""The specifications of charts (reports/assets/charts): every name is supplied, every supplied one is
used, and Vega-Lite compiles them without a warning."""
import importlib.util
import json
import subprocess

import numpy as np
import pytest
from safetensors.numpy import save_file
from selenium.webdriver.common.by import By

from page_browser import browser, open_page, quiet, said_on_console, wait_until_drawn
from page_data import data_of
from program import BUILD, ROOT, stdout_of
from rank_runs import ill, write_run

vl_convert = pytest.importorskip("vl_convert")
__all__ = ["browser"]  # a fixture

ASSETS = ROOT / "reports/assets"
found = importlib.util.spec_from_file_location("assemble", ASSETS / "assemble.py")
assemble = importlib.util.module_from_spec(found)
found.loader.exec_module(assemble)
PAGE, COMPARE, SHARED, AXES = (assemble.read_all(ASSETS / "charts" / folder)
                               for folder in ("page", "compare", "shared", "axes"))
PIECES = SHARED["pieces"]
SERIES = {"scaled": ["histogram", "heat", "scales"], "unscaled": ["histogram", "heat", "scales"],
          "gradients": ["gradients"]}
CONSOLE = """ iteration 1/ 9 | lm loss: 9.1E+00 | loss scale: 65536.0 | number of skipped iterations: 0 |
 iteration 2/ 9 | lm loss: 9.0E+00 | loss scale: 65536.0 | number of skipped iterations: 1 |
 iteration 3/ 9 | lm loss: 8.0E+00 | loss scale: 32768.0 | number of skipped iterations: 0 |
"""


def filled(part, values):
    """As filled() of draw.js."""
    if isinstance(part, list):
        out = []
        for element in part:
            value = filled(element, values)
            names_list = isinstance(element, dict) and "$" in element and isinstance(value, list)
            out += value if names_list else [value]
        return out
    if not isinstance(part, dict):
        return part
    own = {key: filled(value, values) for key, value in part.items() if key != "$"}
    if "$" not in part:
        return own
    value = filled(values[part["$"]], values)
    return {**value, **own} if isinstance(value, dict) else value


def names_of(charts):
    """Parameters of the charts: names that are neither a piece nor an axis's."""
    used = set()
    for chart in charts:
        pieces = assemble.needed(PIECES | AXES["linear"] | AXES["log"], PAGE[chart])
        used |= set(assemble.names_in([PAGE[chart], pieces]))
    return used - PIECES.keys() - AXES["linear"].keys() - AXES["log"].keys()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("charts")
    for writer, to in (("write_sample_pages", "pages"), ("write_sample_logs", "logs")):
        (out / to).mkdir()
        subprocess.run([BUILD / "bin" / writer, out / to], check=True)
    (out / "train.log").write_text(CONSOLE)
    (out / "fp8.log").write_text("INFO - fc1_gradient_underflows% iteration=000002 value=3.0000\n")
    return out


@pytest.fixture(scope="module")
def supplied(folder):
    """What pages supply that together have every chart: [the block "charts" of each]"""
    pages = [folder / "pages/full.html", folder / "restless.html", folder / "console.html",
             folder / "fp8.html", folder / "ranks.html", folder / "recipes.html"]
    stdout_of("report", folder / "logs/restless", "--out", pages[1])
    stdout_of("report", folder / "train.log", "--out", pages[2])
    stdout_of("report", folder / "fp8.log", "--out", pages[3])
    stdout_of("report", write_run(folder / "ranks", range(315, 320), ill), "--out", pages[4])
    save_file({"weight/a.weight": np.eye(16, dtype=np.float32) / 3}, folder / "eye.safetensors")
    stdout_of("report", folder / "eye.safetensors", "--recipe", "nvfp4", "--out", pages[5])
    return [data_of(page.read_text(), "charts") for page in pages]


def test_every_parameter_is_supplied_and_used(supplied):
    seen = {chart for charts in SERIES.values() for chart in charts}
    for page in supplied:
        assert {window: set(values) for window, values in page["parameters"].items()} == \
            {window: names_of(charts) for window, charts in SERIES.items()}
        for chart, own in page["own"].items():
            assert set(own["parameters"]) == names_of([chart]), chart
            seen.add(chart)
    assert seen == PAGE.keys()


def test_every_piece_is_used():
    all_parts = [PAGE, COMPARE, SHARED["theme"], AXES]
    assert assemble.needed(PIECES, all_parts).keys() == PIECES.keys()
    names = set(assemble.names_in([all_parts, PIECES]))
    assert AXES["linear"].keys() <= AXES["log"].keys()  # those are what specifications name
    assert AXES["log"].keys() <= names
    colours = set(assemble.names_in(SHARED["theme"])) | set(assemble.names_in(PIECES["theme-text"]))
    assert SHARED["light"].keys() == SHARED["dark"].keys() == colours - PIECES.keys()


def compiled(spec, values, theme):
    """What Vega-Lite says of a chart as a page draws it."""
    spec = filled(spec, {**PIECES, **values})
    spec["datasets"] = {spec["data"]["name"]: []}
    if isinstance(spec["height"], dict):
        spec["height"] = 100  # draw() of charts.js gives it the height of its rows
    config = filled(SHARED["theme"], {**PIECES, **SHARED[theme]})
    vl_convert.vegalite_to_vega(spec, config=config, show_warnings=True)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_vega_lite_has_no_warning(supplied, theme, capfd):
    for page in supplied:
        chosen = [(chart, page["parameters"][window]) for window, charts in SERIES.items()
                  for chart in charts]
        chosen += [(chart, own["parameters"]) for chart, own in page["own"].items()]
        for chart, parameters in chosen:
            for axis in ("linear", "log"):
                compiled(PAGE[chart], {**AXES[axis], **parameters}, theme)
                assert capfd.readouterr().err == "", (chart, axis)
    for chart, spec in COMPARE.items():
        compiled(spec, {}, theme)
        assert capfd.readouterr().err == "", chart


def test_a_warning_would_be_seen(capfd):
    vl_convert.vegalite_to_vega({"data": {"name": "x"}, "mark": "bar", "encoding": {
        "nothing": {"field": "a"}}}, show_warnings=True)
    assert "nothing" in capfd.readouterr().err


def test_a_timeline_without_skipped_steps_is_drawn(browser, folder, tmp_path):  # noqa: F811
    (tmp_path / "train.log").write_text(CONSOLE.replace("iterations: 1", "iterations: 0"))
    stdout_of("report", tmp_path / "train.log", "--out", tmp_path / "page.html")
    quiet(browser, tmp_path / "page.html")
    rows = browser.execute_script("return window.halfscopeViews.timeline.data('timeline')")
    assert len(rows) == 3 and not any(row["skipped"] for row in rows)


DEEPSPEED = "[Rank 0] step={}, skipped={}, lr=[0.0003], mom=[(0.9, 0.95)]\n"
OVERFLOW = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}\n"


def test_a_scale_is_drawn_to_the_end_of_its_log(browser, tmp_path):  # noqa: F811
    falls = [OVERFLOW.format(2**k, 2 ** (k - 1)) for k in range(16, 0, -1)]
    text = DEEPSPEED.format(10, 0) + "".join(falls[:9]) + DEEPSPEED.format(20, 9) + "".join(falls[9:])
    (tmp_path / "train.log").write_text(text)
    stdout_of("report", tmp_path / "train.log", "--out", tmp_path / "page.html")
    quiet(browser, tmp_path / "page.html")
    view = "window.halfscopeViews.timeline"
    rows = browser.execute_script(f"return {view}.data('timeline')")
    assert rows[0]["scale"] == 65536 and rows[-1]["scale"] == 1 and rows[-1]["step"] >= 27
    assert browser.execute_script(f"return {view}.scale('y').domain()[0]") < 0  # above the axis
    assert "Triangles" not in (tmp_path / "page.html").read_text()


def test_a_log_without_a_scale_has_no_chart_of_it(browser, tmp_path):  # noqa: F811
    (tmp_path / "loss.csv").write_text("step,loss\n" + "".join(f"{n},{3 - n / 50}\n" for n in range(100)))
    stdout_of("report", tmp_path / "loss.csv", "--out", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert 'data-chart="timeline"' not in text and "Loss scale of the run" not in text


def test_a_missing_parameter_is_said(browser, folder):  # noqa: F811
    page = folder / "pages/full.html"
    open_page(browser, page)
    said_on_console(browser)
    browser.execute_script("delete window.halfscope.charts.parameters.scaled.window;"
                           "document.querySelector('input[name=axis][value=log]').click()")
    wait_until_drawn(browser)
    figure = browser.find_element(By.CSS_SELECTOR, "[data-series=weight_grad][data-chart=histogram]")
    assert figure.text == 'This chart could not be drawn: the parameter "window" is missing'
    assert json.dumps(said_on_console(browser)).count("is missing") > 0


def test_the_rule_is_that_of_the_page(browser, supplied):  # noqa: F811
    """filled() here and in draw.js."""
    browser.get("about:blank")
    script = (ASSETS / "draw.js").read_text() + "return filled(arguments[0], arguments[1]);"
    for page in supplied:
        values = {**PIECES, **AXES["log"], **page["parameters"]["scaled"],
                  **page["parameters"]["gradients"]}
        for _, own in page["own"].items():
            values |= own["parameters"]
        for chart in [*(chart for charts in SERIES.values() for chart in charts), *page["own"]]:
            assert browser.execute_script(script, PAGE[chart], values) == \
                filled(PAGE[chart], values), chart
