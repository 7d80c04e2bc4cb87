# SPDX-License-Identifier: Apache-2.0
"""The page of `halfscope report` in headless Chromium.

What is drawn is read back from the Vega views and compared with `halfscope analyze --json`, count by
count; no request may leave the page and nothing may be said on its console.
"""
import json
import time
from collections import defaultdict

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from page_browser import (bounds, browser, by_exponent, drawn, logs, open_page, quiet, report,
                          requests, said_on_console, views, wait_until_copied, wait_until_drawn)
from program import json_of, stdout_of

__all__ = ["browser", "logs"]  # fixtures


def summed(tensors, role):
    """{exponent: (low, high)} over the tensors of a role, from `analyze --json`."""
    sums = defaultdict(lambda: (0, 0))
    for tensor in tensors:
        if tensor["role"] == role:
            for exponent, count in tensor["binades"]:
                low, high = bounds(count)
                sums[exponent] = (sums[exponent][0] + low, sums[exponent][1] + high)
    return dict(sums)


def of_magnitudes(browser):
    """The views of histograms, heat maps and scales: test_page_study.py has the others."""
    return [view for view in views(browser) if "/" in view]


def check_histogram(rectangles, want):
    """Bars up to the lower bound, then what lies between the bounds; exact numbers on hover."""
    solid, uncertain = rectangles[:len(want)], rectangles[len(want):]
    assert by_exponent(solid) == want
    assert by_exponent(uncertain) == want
    tallest = max(solid, key=lambda bar: bar["low"])
    pixels = tallest["height"] / tallest["low"]
    for bar in solid:
        assert bar["height"] == pytest.approx(pixels * bar["low"])
    for bar in uncertain:
        assert bar["height"] == pytest.approx(pixels * (bar["high"] - bar["low"]))
    for bar in rectangles:
        low, high = want[bar["e"]]
        assert bar["values"].startswith(f"{low:,} (" if low == high else f"{low:,} to {high:,} (")


@pytest.fixture(scope="module")
def training(browser, logs, tmp_path_factory):
    """(browser with the page, the analysis, the page)"""
    page, analysis = report(logs / "training", tmp_path_factory.mktemp("page"))
    open_page(browser, page)
    asked, said = requests(browser), said_on_console(browser)
    yield browser, analysis, page
    assert asked == [page.as_uri()]
    assert said == []


def test_island_holds_the_analysis(training):
    browser, analysis, _ = training
    assert browser.execute_script("return window.halfscope.analysis") == analysis


@pytest.mark.parametrize("role", ["weight_grad", "activation_grad", "activation", "weight",
                                  "update"])
def test_drawn_bars_are_the_counts(training, role):
    browser, analysis, _ = training
    check_histogram(drawn(browser, f"histogram/{role}"), summed(analysis["tensors"], role))


@pytest.mark.parametrize("role", ["weight_grad", "activation_grad", "activation", "weight",
                                  "update"])
def test_heat_map_holds_every_value_once(training, role):
    browser, analysis, _ = training
    cells = drawn(browser, f"heat/{role}")
    steps = defaultdict(int)
    for tensor in analysis["tensors"]:
        if tensor["role"] == role:
            for step in tensor["per_step"]:
                steps[step["step"]] += (step["total"] - step["zero"] - step["nan"] - step["inf"])
    found = defaultdict(int)
    exponents = defaultdict(int)
    for cell in cells:
        found[cell["step"]] += cell["low"]
        exponents[cell["e"]] += cell["low"]
    assert found == steps
    assert exponents == {e: low for e, (low, _) in summed(analysis["tensors"], role).items()}


def test_curves_are_by_scale(training):
    browser, analysis, _ = training
    rows = browser.execute_script("return window.halfscopeViews['scales/gradients'].data('scales')")
    gradients = [t for t in analysis["tensors"] if t["role"] in ("weight_grad", "activation_grad")]
    assert [row["log2_scale"] for row in rows] == list(range(-24, 41))
    for i, row in enumerate(rows):
        for field in ("flushed_to_zero", "subnormal", "overflow"):
            assert row[field] == sum(t["by_scale"][i][field] for t in gradients), (i, field)
        assert row["of"] == sum(t["total"] - t["zero"] - t["nan"] - t["inf"] for t in gradients)


def test_every_tensor_can_be_chosen(training):
    browser, analysis, _ = training
    choice = Select(browser.find_element(By.ID, "tensor"))
    for index in (0, 11, len(analysis["tensors"]) - 1):
        choice.select_by_value(str(index))
        wait_until_drawn(browser)
        want = {e: bounds(n) for e, n in analysis["tensors"][index]["binades"]}
        assert by_exponent(drawn(browser, "histogram/tensor")) == want


def test_logarithmic_axis_draws_the_same_counts(training):
    browser, analysis, _ = training
    for axis in ("log", "linear"):
        browser.execute_script(
            "document.querySelector(`input[name=axis][value=${arguments[0]}]`).click()", axis)
        wait_until_drawn(browser)
        bars = drawn(browser, "histogram/weight_grad")
        assert by_exponent(bars) == summed(analysis["tensors"], "weight_grad")
    assert said_on_console(browser) == []


def test_theme_is_switched(training):
    browser, _, _ = training
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(colour)
    browser.find_element(By.ID, "theme").click()
    wait_until_drawn(browser)
    assert browser.execute_script(colour) != light
    assert len(of_magnitudes(browser)) == 14
    browser.find_element(By.ID, "theme").click()
    wait_until_drawn(browser)
    assert browser.execute_script(colour) == light


def column(browser, index):
    return browser.execute_script(
        "return [...document.querySelectorAll('#worst tbody tr:not([hidden])')]"
        ".map((tr) => tr.cells[arguments[0]].dataset.v ?? tr.cells[arguments[0]].textContent)",
        index)


def test_table_ranks_and_sorts_by_keyboard(training):
    browser, analysis, _ = training
    flushed = [float(v) for v in column(browser, 2)]
    gradients = [t for t in analysis["tensors"] if t["role"] in ("weight_grad", "activation_grad")]
    assert len(flushed) == len(gradients)
    assert flushed == sorted(flushed, reverse=True)
    assert flushed[0] == pytest.approx(max(
        t["flushed_to_zero"] / (t["total"] - t["zero"]) for t in gradients))
    heading = browser.find_elements(By.CSS_SELECTOR, "#worst thead tr:last-child th")[1]
    heading.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert heading.get_attribute("aria-sort") == "descending"
    values = [float(v) for v in column(browser, 1)]
    assert values == sorted(values, reverse=True)
    heading.find_element(By.TAG_NAME, "button").send_keys(Keys.SPACE)
    assert heading.get_attribute("aria-sort") == "ascending"
    values = [float(v) for v in column(browser, 1)]
    assert values == sorted(values)


def test_a_name_in_the_table_shows_the_tensor(training):
    browser, analysis, _ = training
    row = browser.find_element(By.CSS_SELECTOR, "#worst tbody tr:not([hidden])")
    index = int(row.get_attribute("data-tensor"))
    row.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    wait_until_drawn(browser)
    want = {e: bounds(n) for e, n in analysis["tensors"][index]["binades"]}
    assert by_exponent(drawn(browser, "histogram/tensor")) == want


def test_files_are_saved_from_the_page(training, logs, tmp_path):
    browser, analysis, page = training
    browser.execute_cdp_cmd("Browser.setDownloadBehavior",
                            {"behavior": "allow", "downloadPath": str(tmp_path)})
    for button, name in (("save-json", "halfscope-analysis.json"),
                         ("save-csv", "halfscope-analysis.csv")):
        browser.find_element(By.ID, button).click()
        end = time.monotonic() + 20
        while not (tmp_path / name).exists() and time.monotonic() < end:
            time.sleep(0.05)
    assert json.loads((tmp_path / "halfscope-analysis.json").read_text()) == analysis
    stdout_of("analyze", logs / "training", "--csv", tmp_path / "asked.csv")
    assert (tmp_path / "halfscope-analysis.csv").read_bytes() == (tmp_path / "asked.csv").read_bytes()
    assert set(requests(browser)) <= {page.as_uri()}


def test_line_to_paste_is_the_recommended_one(training, logs):
    browser, _, _ = training
    advice = json_of("recommend", logs / "training")
    shown = browser.find_element(By.ID, "paste").text
    assert shown == advice["snippets"]["pytorch"]
    browser.find_element(By.ID, "copy").click()
    wait_until_copied(browser, browser.find_element(By.ID, "copy"))


def test_nothing_is_wider_than_a_telephone(training):
    browser, _, page = training
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        open_page(browser, page)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        open_page(browser, page)


def test_names_are_text(browser, logs, tmp_path):
    page, analysis = report(logs / "hostile", tmp_path, "--title", "<img src=x onerror=alert(4)>")
    quiet(browser, page)
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert browser.title == "<img src=x onerror=alert(4)>"
    assert "<!--halfscope:" not in page.read_text()  # every marker is filled
    names = browser.execute_script(
        "return [...document.querySelectorAll('#worst tbody th')].map((th) => th.textContent)")
    assert "weight_grad/<script>alert(1)</script>" in names
    assert not any(ord(c) < 32 for name in names for c in name)
    assert {t["name"] for t in analysis["tensors"]} == {
        "weight_grad/<script>alert(1)</script>",
        "weight_grad/</script><img src=x onerror=alert(2)>",
        "weight_grad/\x1b[31mred\u202e"}
    bars = drawn(browser, "histogram/weight_grad")
    assert by_exponent(bars) == summed(analysis["tensors"], "weight_grad")


def test_the_policy_stops_foreign_scripts(browser, logs, tmp_path):
    """What holds when some text slipped through all the same."""
    page, _ = report(logs / "hostile", tmp_path)
    bad = tmp_path / "bad.html"
    bad.write_text(page.read_text().replace(
        "</body>", "<script>window.broken = true</script><img src=http://127.0.0.1:9/x></body>"))
    open_page(browser, bad)
    assert browser.execute_script("return window.broken") is None
    assert "Content Security Policy" in " ".join(said_on_console(browser))


@pytest.mark.parametrize("log, charts", [("odd", 6), ("no-gradients", 4), ("all-zero", 0)])
def test_empty_cases(browser, logs, tmp_path, log, charts):
    page, analysis = report(logs / log, tmp_path)
    quiet(browser, page)
    assert len(of_magnitudes(browser)) == charts
    for index in range(len(analysis["tensors"])):
        Select(browser.find_element(By.ID, "tensor")).select_by_value(str(index))
        wait_until_drawn(browser)
        want = {e: bounds(n) for e, n in analysis["tensors"][index]["binades"]}
        if want:
            assert by_exponent(drawn(browser, "histogram/tensor")) == want
        else:
            assert "histogram/tensor" not in views(browser)
    assert said_on_console(browser) == []


def test_bounds_are_drawn_as_bounds(browser, logs, tmp_path):
    page, analysis = report(logs / "intervals", tmp_path)
    quiet(browser, page)
    want = summed(analysis["tensors"], "weight_grad")
    assert any(low != high for low, high in want.values())
    check_histogram(drawn(browser, "histogram/weight_grad"), want)


def test_several_logs_stay_apart(browser, logs, tmp_path):
    both = [logs / "training", logs / "odd"]
    page, analysis = report(both, tmp_path)
    quiet(browser, page)
    choice = Select(browser.find_element(By.ID, "log"))
    for i, log in enumerate(analysis["logs"]):
        choice.select_by_value(str(i))
        wait_until_drawn(browser)
        tensors = [t for t in analysis["tensors"] if t["log"] == log]
        assert by_exponent(drawn(browser, "histogram/weight_grad")) == summed(tensors,
                                                                              "weight_grad")
    assert said_on_console(browser) == []


def test_a_thousand_tensors(browser, logs, tmp_path):
    page, analysis = report(logs / "large", tmp_path)
    assert page.stat().st_size < 3_000_000
    start = time.monotonic()
    quiet(browser, page)
    assert time.monotonic() - start < 20
    assert browser.execute_script("return window.halfscope.analysis") == analysis
    assert len(of_magnitudes(browser)) == 6
    assert len(column(browser, 0)) == 50
    browser.find_element(By.ID, "all-rows").send_keys(Keys.ENTER)
    assert len(column(browser, 0)) == 1000
