# SPDX-License-Identifier: Apache-2.0
"""The heat map of what FP8 turned to zero, in headless Chromium: every cell against the lines of the log."""

import pytest
from page_browser import browser, quiet, wait_until_copied
from program import stdout_of
from selenium.webdriver.common.by import By

__all__ = ["browser"]  # a fixture

LAYERS = [f"model.layers.{i}.fc1" for i in range(6)]
STEPS = range(0, 3000, 3)  # 1000: three a column
CLASSES = ["below 0.5 %", "0.5 to 1 %", "1 to 2 %", "2 to 4 %", "4 % and more"]
CELLS = """
  const found = [];
  const visit = (node) => {
    if (node.marktype === 'rect') {
      for (const item of node.items) {
        if (item.datum?.layer) {
          found.push({...item.datum, fill: item.fill, width: item.width, y: item.y});
        }
      }
    } else {
      for (const item of node.items ?? []) visit(item);
    }
  };
  visit(window.halfscopeViews['fp8/gradient-own'].scenegraph().root);
  return found;
"""


def share(layer, step):
    """Percent, with four decimals."""
    return round(layer * step / 2000 + (step // 3) % 3 * 0.01, 4)


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fp8")
    line = "2026-01-13 12:00:00,123 - INFO - {} \t\t\t\t iteration={:06d} \t\t\t\t value={:.4f}\n"
    text = "".join(
        line.format(f"{name}_{kind}_underflows%", step, share(i, step) if kind == "gradient" else 0.01)
        for step in STEPS
        for i, name in enumerate(LAYERS)
        for kind in ("activation", "gradient")
    )
    (folder / "te.log").write_text(text)
    stdout_of("report", folder / "te.log", "--out", folder / "report.html")
    quiet(browser, folder / "report.html")
    return browser


def class_of(percent):
    return CLASSES[sum(percent >= limit for limit in (0.5, 1, 2, 4))]


def test_cells_have_the_largest_share_of_their_steps(page):
    cells = page.execute_script(CELLS)
    assert {cell["layer"] for cell in cells} == set(LAYERS)
    columns = [list(STEPS)[i : i + 3] for i in range(0, len(STEPS), 3)]
    assert len(columns) <= 400
    for i, layer in enumerate(LAYERS):
        own = sorted((c for c in cells if c["layer"] == layer), key=lambda c: c["step"])
        assert own[0]["step"] == STEPS[0]
        assert own[-1]["last"] == STEPS[-1]
        for cell, after in zip(own, own[1:], strict=False):
            assert cell["end"] == after["step"]
            assert cell["share"] != after["share"]
        for cell in own:
            within = [max(share(i, s) for s in c) for c in columns if cell["step"] <= c[0] <= cell["last"]]
            assert {class_of(most) for most in within} == {cell["share"]}
            assert cell["percent"] == pytest.approx(max(within), abs=1e-4)
    fills = {cell["share"]: cell["fill"] for cell in cells}
    assert len(set(fills.values())) == len(fills) == 5
    rows = [next(c["y"] for c in cells if c["layer"] == layer) for layer in LAYERS]
    assert rows == sorted(rows)  # in the order of the log


def test_the_answer_the_line_and_what_is_not_drawn(page):
    text = page.find_element(By.ID, "summary").text
    assert "4 of 6 layers lose 2 % or more of their gradients" in text
    section = page.find_element(By.ID, "fp8")
    assert "not drawn: activations" in section.text
    assert "fp8_skip_layers" in section.text
    button = section.find_element(By.CSS_SELECTOR, ".paste button")
    button.click()
    wait_until_copied(page, button)
