# SPDX-License-Identifier: Apache-2.0
"""The page of `halfscope compare` in headless Chromium: what is drawn is what the JSON says."""
import json

import numpy as np
import pytest
from page_browser import browser, requests, said_on_console, wait_until_drawn
from program import stdout_of
from safetensors.numpy import save_file
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

DATA = "return window.halfscopeViews[arguments[0]].data(arguments[0])"
HOSTILE = "weight_grad/<img src=x onerror=alert(1)>\"'&"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    random = np.random.default_rng(5)
    for run, width in (("a", 4), ("b", 7)):
        values = np.exp2(random.normal(-18, width, 3000)).astype(np.float32)
        save_file({HOSTILE: values, "weight_grad/none": np.zeros(9, np.float32)},
                  folder / f"{run}.safetensors")
    out = folder / "page.html"
    found = stdout_of("compare", folder / "a.safetensors", folder / "b.safetensors", "--json", "-",
                      "--out", out)
    return out, json.loads(found)


def opened(browser, page):  # noqa: F811
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(page.as_uri())
    wait_until_drawn(browser)


def rows(browser):  # noqa: F811
    return browser.find_elements(By.CSS_SELECTOR, "#worst tbody tr")


def test_the_chart_shows_both_runs(browser, page):  # noqa: F811
    out, found = page
    opened(browser, out)
    assert requests(browser) == [out.as_uri()]
    assert said_on_console(browser) == []
    tensor = found["tensors"][0]
    assert tensor["name"] == HOSTILE
    points = browser.execute_script(DATA, "binades")
    for run in ("a", "b"):
        shown = {p["e"]: p["values"] for p in points if p["run"] == run.upper() and p["values"]}
        assert shown == {e: count for e, count in tensor[run]["binades"]}


def test_the_table_sorts_and_chooses(browser, page):  # noqa: F811
    out, found = page
    opened(browser, out)
    assert [row.find_element(By.TAG_NAME, "th").text for row in rows(browser)] == \
        [t["name"] for t in found["tensors"]]
    browser.find_elements(By.CSS_SELECTOR, "#worst thead button")[10].click()  # equal elements
    assert rows(browser)[0].text.startswith("weight_grad/none")
    rows(browser)[0].find_element(By.TAG_NAME, "button").click()
    wait_until_drawn(browser)
    index = [t["name"] for t in found["tensors"]].index("weight_grad/none")
    assert Select(browser.find_element(By.ID, "tensor")).first_selected_option.get_attribute(
        "value") == str(index)
    assert "No finite nonzero values" in browser.find_element(
        By.CSS_SELECTOR, "figure[data-chart=binades]").text


def test_the_theme_changes(browser, page):  # noqa: F811
    opened(browser, page[0])
    background = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(background)
    browser.find_element(By.ID, "theme").click()
    wait_until_drawn(browser)
    assert browser.execute_script(background) != light
    assert said_on_console(browser) == []


def test_a_run_without_values_draws_the_other(browser, tmp_path):  # noqa: F811
    ones = np.full(100, 0.1, np.float32)
    for run, values in (("a", 0 * ones), ("b", ones * np.float32(np.nan)), ("c", ones)):
        save_file({"weight_grad/w": values}, tmp_path / f"{run}.safetensors")
    page = tmp_path / "page.html"
    stdout_of("compare", tmp_path / "a.safetensors", tmp_path / "c.safetensors", "--out", page)
    opened(browser, page)
    assert {p["run"] for p in browser.execute_script(DATA, "binades")} == {"B"}
    assert said_on_console(browser) == []
    stdout_of("compare", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "--out", page)
    opened(browser, page)
    assert said_on_console(browser) == []
    heading = browser.find_element(By.ID, "h-worst").text
    assert heading == "1 of 1 tensor harmed in B, worst first"
    assert "NaN" in browser.find_element(By.CSS_SELECTOR, "#worst thead").text


def test_the_verdict_comes_first(browser, page):  # noqa: F811
    opened(browser, page[0])
    answer = browser.find_element(By.CSS_SELECTOR, ".answer")
    assert answer.text.startswith("B is worse.")
    assert answer.find_element(By.TAG_NAME, "strong").text == "B is worse."
