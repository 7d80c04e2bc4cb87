# SPDX-License-Identifier: Apache-2.0
"""Pages of logs that other tools wrote, in headless Chromium: what is not known is drawn and told as
such. The studies are put together by hand (tests/reports/sample_foreign.hpp)."""

import pytest
from selenium.webdriver.common.by import By

from page_browser import (bounds, browser, by_exponent, drawn, open_page, pages, quiet,
                          said_on_console, wait_until_copied, wait_until_drawn)

__all__ = ["browser", "pages"]  # fixtures


@pytest.fixture
def tensorboard(browser, pages):
    quiet(browser, pages / "tensorboard.html")
    return browser


@pytest.fixture
def linear(browser, pages):
    quiet(browser, pages / "linear.html")
    return browser


def summed(browser):
    sums = {}
    for tensor in browser.execute_script("return window.halfscope.analysis.tensors"):
        for exponent, count in tensor["binades"]:
            low, high = sums.get(exponent, (0, 0))
            more_low, more_high = bounds(count)
            sums[exponent] = (low + more_low, high + more_high)
    return sums


def test_the_block_stands_between_answer_and_findings(tensorboard):
    block = tensorboard.find_element(By.ID, "gaps")
    places = [tensorboard.find_element(By.ID, name).location["y"]
              for name in ("summary", "gaps", "findings")]
    assert places == sorted(places)
    assert len(block.find_elements(By.CSS_SELECTOR, "ul:not(details ul) li")) == 3
    assert "lie in a bucket with zero" in block.text
    assert block.find_element(By.TAG_NAME, "summary").text == "2 more"
    button = block.find_element(By.TAG_NAME, "button")
    button.click()
    wait_until_copied(tensorboard, button)


@pytest.mark.parametrize("axis", ["linear", "log"])
def test_bars_are_solid_as_far_as_they_are_sure(tensorboard, axis):
    tensorboard.execute_script(
        "document.querySelector(`input[name=axis][value=${arguments[0]}]`).click()", axis)
    wait_until_drawn(tensorboard)
    rectangles = drawn(tensorboard, "histogram/weight_grad")
    want = summed(tensorboard)
    assert any(low < high for low, high in want.values())
    assert any(low == 0 for low, _ in want.values())
    assert by_exponent(rectangles) == want
    assert len(rectangles) == 2 * len(want)
    assert all(r["height"] == r["height"] for r in rectangles)  # none is NaN
    if axis == "linear":
        solid, perhaps = rectangles[:len(want)], rectangles[len(want):]
        tallest = max(solid, key=lambda bar: bar["low"])
        pixels = tallest["height"] / tallest["low"]
        for bar in solid:
            assert bar["height"] == pytest.approx(pixels * bar["low"])
        for bar in perhaps:
            assert bar["height"] == pytest.approx(pixels * (bar["high"] - bar["low"]))
    for bar in rectangles:
        low, high = want[bar["e"]]
        assert bar["values"].startswith(f"{low:,} (" if low == high else f"{low:,} to {high:,} (")
    assert "paler and dashed" in tensorboard.find_element(By.ID, "roles").text
    assert said_on_console(tensorboard) == []


def test_cells_that_are_hardly_sure_are_faint(tensorboard):
    cells = tensorboard.execute_script("""
        const found = [];
        const visit = (node) => {
          for (const item of node.items ?? []) {
            if (node.marktype === 'rect' && item.datum?.e !== undefined) {
              found.push([item.datum.low, item.datum.high, item.fillOpacity]);
            } else visit(item);
          }
        };
        visit(window.halfscopeViews['heat/weight_grad'].scenegraph().root);
        return found;""")
    assert {opacity for _, _, opacity in cells} == {0.35, 1}
    assert all((opacity == 1) == (2 * low >= high) for low, high, opacity in cells)


def shares(browser):
    """{(log2_scale, class): (low, high)} as the curves are drawn."""
    points = browser.execute_script("""
        const found = [];
        const visit = (node) => {
          if (node.marktype !== 'area') return (node.items ?? []).forEach(visit);
          for (const {datum: d} of node.items) {
            found.push([d.log2_scale, d.class, d.share_low, d.share_high]);
          }
        };
        visit(window.halfscopeViews['scales/gradients'].scenegraph().root);
        return found;""")
    return {(scale, kind): (low, high) for scale, kind, low, high in points}


def test_curves_are_bands_between_the_bounds(tensorboard):
    found = shares(tensorboard)
    tensors = tensorboard.execute_script("return window.halfscope.analysis.tensors")
    for (scale, kind), (low, high) in found.items():
        rows = [t["by_scale"][scale + 24] for t in tensors]
        field = "flushed_to_zero" if kind == "zero" else kind

        def total(name, end):
            return sum(bounds(r[name])[end] for r in rows)

        others = [f for f in ("flushed_to_zero", "subnormal", "normal", "overflow") if f != field]
        least, most = total(field, 0), total(field, 1)
        of_low = sum(bounds(t["finite_nonzero"])[0] for t in tensors)
        of_high = sum(bounds(t["finite_nonzero"])[1] for t in tensors)
        rest_low = max(sum(total(f, 0) for f in others), of_low - most)
        rest_high = min(sum(total(f, 1) for f in others), of_high - least)
        assert low == pytest.approx(max(1e-8, least / (least + rest_high) if least else 0))
        assert high == pytest.approx(max(1e-8, most / (most + rest_low) if most else 0))
        assert low <= high
    low, high = found[0, "zero"]
    assert 0.05 < low < high < 1
    assert "Bands lie between bounds." in tensorboard.find_element(By.ID, "scales").text


def test_wide_buckets_are_told_as_not_identifiable(linear):
    low, high = shares(linear)[0, "zero"]
    assert low <= 1e-7 and high > 0.9
    cells = [row.find_elements(By.TAG_NAME, "td")[1].text
             for row in linear.find_elements(By.CSS_SELECTOR, "#worst tbody tr")]
    assert len(cells) == 2
    assert all(cell.startswith("not identifiable (0 % to 9") for cell in cells)
    assert "not identifiable" in linear.find_element(By.ID, "summary").text
    assert "not identifiable" in linear.find_element(By.ID, "gaps").text
    assert "not identifiable" in linear.find_element(By.ID, "tensor-facts").text
    assert "not known" in linear.find_element(By.CSS_SELECTOR, "#worst tbody tr").text


def test_nothing_is_wider_than_a_telephone(browser, pages):
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        for page in ("tensorboard", "linear"):
            open_page(browser, pages / f"{page}.html")
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
