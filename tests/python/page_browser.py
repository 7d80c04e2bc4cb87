# SPDX-License-Identifier: Apache-2.0
"""Pages of `halfscope report` in headless Chromium: how tests open them and read what is drawn."""
import json
import shutil
import subprocess
import time

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from program import BUILD, stdout_of


# The rectangles on the screen that carry an exponent: bars of a histogram, cells of a heat map.
DRAWN_RECTANGLES = """
  const found = [];
  const visit = (node) => {
    if (node.marktype === 'rect') {
      for (const item of node.items) {
        if (item.datum && item.datum.e !== undefined) {
          const {e, low, high, step, values} = item.datum;
          found.push({e, low, high, step, values, height: Math.abs(item.height)});
        }
      }
    } else {
      for (const item of node.items ?? []) visit(item);
    }
  };
  visit(window.halfscopeViews[arguments[0]].scenegraph().root);
  return found;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    profile = tmp_path_factory.mktemp("profile")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900",
                     f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options,
                              service=Service(shutil.which("chromedriver") or "chromedriver"))
    driver.execute_cdp_cmd("Network.enable", {})
    yield driver
    driver.quit()


def written_by(name, tmp_path_factory):
    """The folder that a program of the tests (tests/CMakeLists.txt) fills."""
    writer = BUILD / "bin" / name
    assert writer.exists(), f"{writer} is missing: build the target {name} first"
    folder = tmp_path_factory.mktemp(name)
    subprocess.run([writer, folder], check=True)
    return folder


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Run logs of tests/reports/sample.hpp and sample_policies.hpp."""
    return written_by("write_sample_logs", tmp_path_factory)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of studies put together by hand: tests/reports/sample_study.hpp, sample_foreign.hpp."""
    return written_by("write_sample_pages", tmp_path_factory)


def wait_until_drawn(browser):
    """Every chart is there; fails with what the page says when it is not."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if browser.execute_script("return document.documentElement.dataset.drawn") == "yes":
            return
        time.sleep(0.05)
    raise AssertionError(f"not drawn: {browser.get_log('browser')}")


def open_page(browser, page):
    """The page with every folded section opened: only then its charts are drawn."""
    browser.get_log("browser"), browser.get_log("performance")  # what earlier pages left
    browser.get(page.as_uri())
    wait_until_drawn(browser)
    browser.find_element(By.ID, "open-all").click()
    time.sleep(0.1)  # `toggle` events come a frame later
    wait_until_drawn(browser)


def wait_until_copied(browser, button):
    """It says so for two seconds, when the clipboard has the text."""
    WebDriverWait(browser, 20, poll_frequency=0.05).until(lambda _: button.text == "Copied")


def said_on_console(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def requests(browser):
    """Addresses asked for, but those of data and blobs inside the page."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    addresses = [message["params"]["request"]["url"] for message in messages
                 if message["method"] == "Network.requestWillBeSent"]
    return [address for address in addresses if not address.startswith(("data:", "blob:"))]


def bounds(count):
    return tuple(count) if isinstance(count, list) else (count, count)


def drawn(browser, view):
    return browser.execute_script(DRAWN_RECTANGLES, view)


def by_exponent(rectangles):
    return {r["e"]: (r["low"], r["high"]) for r in rectangles}


def views(browser):
    return browser.execute_script("return Object.keys(window.halfscopeViews)")


def report(log, folder, *arguments):
    page = folder / "report.html"
    logs = log if isinstance(log, list) else [log]
    stdout_of("report", *logs, "--out", page, *arguments)
    asked = stdout_of("analyze", *logs, "--formats", "--what-if", "--json", "-")
    return page, json.loads(asked)  # what the page holds


def quiet(browser, page):
    """Opens a page that must ask for nothing and say nothing."""
    open_page(browser, page)
    assert requests(browser) == [page.as_uri()]
    assert said_on_console(browser) == []


# Of every picture: text that is cut at its edge, and pairs of texts that lie upon each other.
UNREADABLE = """
  const found = [];
  for (const svg of document.querySelectorAll('svg')) {
    const edge = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')]
      .filter((text) => text.textContent.trim() && text.getAttribute('opacity') !== '0')
      .map((text) => [text.textContent, text.getBoundingClientRect()]);
    texts.forEach(([word, box], i) => {
      if (box.left < edge.left || box.right > edge.right || box.top < edge.top - 1 ||
          box.bottom > edge.bottom + 1) found.push('cut: ' + word);
      for (const [other, its] of texts.slice(0, i)) {
        const width = Math.min(box.right, its.right) - Math.max(box.left, its.left);
        const height = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
        if (width > 0 && height > 2) found.push(other + ' upon ' + word);
      }
    });
  }
  return found;
"""


def unreadable(browser, pictures, page):
    """What cannot be read of pictures (SVG), in a wide font. page: a file to show them in."""
    page.write_text("<!doctype html><meta charset=utf-8><style>text {font-family: 'DejaVu Sans'}</style>"
                    + "<hr>".join(pictures), encoding="utf-8")
    browser.get(page.as_uri())
    assert browser.execute_script("return document.querySelectorAll('svg').length") == len(pictures) > 0
    return browser.execute_script(UNREADABLE)
