# SPDX-License-Identifier: Apache-2.0
"""Findings and evidence on the page, in headless Chromium: what is drawn is what the study holds.

The studies are put together by hand (tests/reports/sample_study.hpp): n = 100, 150 ... 450 for the
eight weights, 2,200 in all.
"""
import time

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from page_browser import (browser, open_page, pages, quiet, requests, said_on_console, views,
                          wait_until_drawn)

__all__ = ["browser", "pages"]  # fixtures
N = sum(range(100, 451, 50))


@pytest.fixture(scope="module")
def full(browser, pages):
    """The page, every section opened; it asked for nothing and said nothing."""
    page = pages / "full.html"
    open_page(browser, page)
    asked, said = requests(browser), said_on_console(browser)
    yield browser
    assert asked == [page.as_uri()]
    assert said == []


def rows(browser, view, dataset):
    return browser.execute_script(
        "return window.halfscopeViews[arguments[0]].data(arguments[1])", view, dataset)


def test_every_chart_is_drawn(full):
    assert {"update-map", "update-ratios", "update-errors", "outcomes", "rooms", "trends", "fits",
            "scales/gradients"} <= set(views(full))
    assert full.find_elements(By.CSS_SELECTOR, "figure.chart .empty") == []


def test_the_map_of_updates(full):
    cells = {(r["w"], r["u"]): (r["count"], r["lost"]) for r in rows(full, "update-map", "pairs")}
    assert cells == {(-5, -27): (N, N), (-5, -18): (3 * N, 3 * N), (-4, -16): (3 * N, 3 * N),
                     (-6, -15): (2 * N, 0)}
    ratios = {r["e"]: (r["count"], r["lost"]) for r in rows(full, "update-ratios", "ratios")}
    assert ratios == {-22: (N, N), -13: (3 * N, 3 * N), -12: (3 * N, 3 * N), -9: (2 * N, 0)}
    errors = {r["e"]: r["count"] for r in rows(full, "update-errors", "errors")}
    assert errors == {-4: N, -2: N}


def test_one_weight_can_be_chosen(full):
    choice = Select(full.find_element(By.ID, "weight"))
    assert len(choice.options) == 9
    choice.select_by_visible_text("weight/layer0.conv.weight")
    wait_until_drawn(full)
    assert sum(r["count"] for r in rows(full, "update-ratios", "ratios")) == 9 * 100
    choice.select_by_value("all")
    wait_until_drawn(full)
    assert sum(r["count"] for r in rows(full, "update-ratios", "ratios")) == 9 * N


def test_outcomes_by_weight(full):
    found = rows(full, "outcomes", "outcomes")
    assert len(found) == 8 * 5
    assert sum(r["count"] for r in found if r["outcome"] == "swamped") == 6 * N
    assert all(r["of"] == sum(o["count"] for o in found if o["name"] == r["name"]) for r in found)


def test_room_is_drawn_least_first(full):
    room = [r["room"] for r in rows(full, "rooms", "rooms")]
    assert room == [k - 0.75 for k in range(8)]
    lines = rows(full, "trends", "trends")
    assert len({r["name"] for r in lines}) == 6  # the six with the least room, ten steps each
    assert len(lines) == 60


def test_formats_by_role(full):
    found = rows(full, "fits", "fits")
    assert sum(r["as_is"] + r["scaled"] for r in found) == 40
    assert len({r["role"] for r in found}) == 5


def test_findings_lead_to_their_evidence(full):
    items = full.find_elements(By.CSS_SELECTOR, "#findings > ol > li")
    assert len(items) == 8
    kinds = [item.get_attribute("class") for item in items]
    assert kinds == sorted(kinds, key=["harm-breaks", "harm-serious", "harm-warning", "harm-note"].index)
    full.find_element(By.ID, "open-all").click()  # folds all
    assert full.find_elements(By.CSS_SELECTOR, "details.section[open]") == []
    items[0].find_element(By.TAG_NAME, "a").send_keys(Keys.ENTER)
    assert full.find_element(By.ID, "overflow").get_attribute("open") is not None
    full.find_element(By.ID, "open-all").click()
    time.sleep(0.1)
    wait_until_drawn(full)


def test_tables_sort(full):
    table = full.find_element(By.CSS_SELECTOR, "#updates table.data")
    heading = table.find_elements(By.CSS_SELECTOR, "thead th")[1]
    heading.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    cells = table.find_elements(By.CSS_SELECTOR, "tbody tr td:nth-child(2)")
    shares = [float(cell.get_attribute("data-v")) for cell in cells]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.9 and shares[-1] == 0.1


def test_long_tables_show_more_on_demand(full):
    shown = "return [...arguments[0].tBodies[0].rows].filter(r => !r.hidden).length"
    table = full.find_elements(By.CSS_SELECTOR, "#formats table.data")[-1]
    assert full.execute_script(shown, table) == 12
    button = full.find_elements(By.CSS_SELECTOR, "#formats button.more")[-1]
    assert button.text == "Show all 40"
    button.send_keys(Keys.ENTER)
    assert full.execute_script(shown, table) == 40


def test_the_recommended_scale_is_among_the_rows_shown(full):
    table = full.find_element(By.CSS_SELECTOR, "#scales table.data")
    rows = table.find_elements(By.CSS_SELECTOR, "tbody tr")
    shown = [row for row in rows if row.is_displayed()]
    assert len(rows) == 20 and len(shown) == 12
    assert "recommended" in rows[18].text and rows[18] in shown


def test_lines_at_zero_do_not_lie_on_one_another(full):
    points = full.execute_script("""
        const found = [];
        const visit = (node) => {
          if (node.marktype !== 'area') return (node.items ?? []).forEach(visit);
          for (const {datum} of node.items) found.push([datum.class, datum.share_high]);
        };
        visit(window.halfscopeViews['scales/gradients'].scenegraph().root);
        return found;""")
    for kind in ("zero", "subnormal", "overflow"):
        shares = [share for name, share in points if name == kind]
        assert max(shares) > 0.1
        assert sum(share < 1e-7 for share in shares) <= 2, kind  # the feet of the line


def test_settings_by_framework(full):
    paste = full.find_element(By.ID, "paste")
    first = paste.text
    assert "GradScaler(" in first
    choice = Select(full.find_element(By.ID, "framework"))
    seen = set()
    for option in choice.options:
        choice.select_by_visible_text(option.text)
        seen.add(paste.text)
    assert len(seen) == len(choice.options) > 4
    choice.select_by_visible_text("PyTorch")
    full.execute_script("document.querySelector('input[name=kind][value=dynamic]').click()")
    assert "growth_interval=1000" in paste.text
    choice.select_by_visible_text("NNabla")  # the sample has no dynamic lines for it
    state = "const kind = document.querySelector('input[name=kind][value=dynamic]');"
    assert full.execute_script(state + "return [kind.disabled, kind.checked]") == [True, False]
    choice.select_by_visible_text("PyTorch")  # what was wanted is shown again
    assert "growth_interval=1000" in paste.text
    full.execute_script("document.querySelector('input[name=kind][value=static]').click()")
    assert paste.text == first


def test_nothing_is_wider_than_a_telephone(full, pages):
    try:
        full.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        open_page(full, pages / "full.html")
        assert full.execute_script("return document.documentElement.scrollWidth") <= 400
        formats = full.find_elements(By.CSS_SELECTOR, "#formats .scroll")[-1]
        hint = full.find_elements(By.CSS_SELECTOR, "#formats .hint")[-1]
        assert hint.is_displayed() and "cut" in formats.get_attribute("class")
        full.execute_script("arguments[0].scrollLeft = 1e6", formats)
        time.sleep(0.2)
        assert "cut" not in formats.get_attribute("class")
        # A name breaks between its words: no line begins within one.
        name = formats.find_element(By.CSS_SELECTOR, "tbody th")
        assert name.size["width"] < 200
        assert "<wbr>" in name.get_attribute("innerHTML")
    finally:
        full.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        open_page(full, pages / "full.html")


def test_names_are_text_everywhere(browser, pages):
    page = pages / "hostile.html"
    quiet(browser, page)
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    text = browser.execute_script("return document.body.innerText")
    assert "<img src=x onerror=alert(1)>" in text
    assert "\x1b" not in text and "\u202e" not in text
