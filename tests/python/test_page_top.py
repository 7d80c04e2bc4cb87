# SPDX-License-Identifier: Apache-2.0
"""What a page of `halfscope report` shows first and how it is packed: the picture of all gradients,
the page without scripts, its content security policy, its size."""
import re
import time

import numpy as np
import pytest
from safetensors.numpy import save_file
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from page_browser import (browser, by_exponent, drawn, logs, quiet, report, said_on_console, views,
                          wait_until_drawn)
from page_data import blocks, data_of
from program import DIGITS, stdout_of

__all__ = ["browser", "logs"]  # fixtures
PICTURE = "gradients/gradients"
LOST = ("weight_grad", "activation_grad")


@pytest.fixture(scope="module")
def shipped(browser, tmp_path_factory):
    """(browser with the page of the shipped log, its analysis, the page)"""
    page, analysis = report(DIGITS, tmp_path_factory.mktemp("page"))
    quiet(browser, page)
    return browser, analysis, page


def summed(tensors):
    sums = {}
    for tensor in tensors:
        if tensor["role"] in LOST:
            for exponent, count in tensor["binades"]:
                sums[exponent] = sums.get(exponent, 0) + count
    return sums


def saved(browser, page, button, folder):
    """The file that a button of the page saves."""
    browser.execute_cdp_cmd("Browser.setDownloadBehavior",
                            {"behavior": "allow", "downloadPath": str(folder)})
    browser.find_element(By.ID, button).click()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        files = [f for f in folder.iterdir() if f.name.startswith("halfscope-analysis")]
        # The name is there before the content is.
        if files and not files[0].name.endswith(".crdownload") and files[0].stat().st_size:
            return files[0]
        time.sleep(0.05)
    raise AssertionError(f"{button} of {page} saved nothing")


def test_bars_are_all_gradients(shipped):
    browser, analysis, _ = shipped
    bars = drawn(browser, PICTURE)
    want = summed(analysis["tensors"])
    assert {e: low for e, (low, _) in by_exponent(bars).items()} == want


def test_bars_are_coloured_by_what_is_lost(shipped):
    """FP16 without a scale makes zero of what is below 2^-25, and at 2^15 of what is below 2^-40."""
    browser, _, _ = shipped
    fates = browser.execute_script("""
        const found = {};
        const visit = (node) => {
          if (node.marktype !== 'rect') return (node.items ?? []).forEach(visit);
          for (const {datum} of node.items) {
            if (datum?.fate) found[datum.e] = [datum.fate, datum.saved, datum.now, datum.then];
          }
        };
        visit(window.halfscopeViews[arguments[0]].scenegraph().root);
        return found;""", PICTURE)
    assert {int(e): fate[:2] for e, fate in fates.items()} == {
        int(e): ["zero", int(e) >= -40] if int(e) < -25 else ["kept", False] for e in fates}
    assert fates["-30"][2:] == ["zero", "subnormal"]
    assert fates["-20"][2:] == ["subnormal", "normal"]


def test_the_caption_is_the_text_alternative(shipped):
    browser, analysis, _ = shipped
    caption = browser.find_element(By.CSS_SELECTOR, ".picture figcaption").text
    values = sum(summed(analysis["tensors"]).values())
    assert caption.startswith(f"Unscaled magnitudes of {values:,} finite nonzero values: ")
    assert "10 steps)" in caption
    assert "17.6 % become zero without loss scaling" in caption
    assert "2.05 % at the recommended 32768 (2^15)" in caption
    drawing = browser.find_element(By.CSS_SELECTOR, ".picture [role=graphics-document]")
    shown = drawing.get_attribute("aria-label")
    assert " ".join(shown.split()) == " ".join(caption.split())


def test_the_picture_stands_between_answer_and_findings(shipped):
    browser, _, _ = shipped
    places = [browser.find_element(By.CSS_SELECTOR, place).location["y"]
              for place in (".answer", ".picture", "#findings")]
    assert places == sorted(places)


def test_the_picture_is_of_the_chosen_log(browser, logs, tmp_path):
    page, analysis = report([logs / "training", logs / "no-gradients"], tmp_path)
    quiet(browser, page)
    choice = Select(browser.find_element(By.ID, "log"))
    of_first = [t for t in analysis["tensors"] if t["log"] == analysis["logs"][0]]
    figure = browser.find_element(By.CLASS_NAME, "picture")
    for log, shown in (("1", False), ("0", True)):
        choice.select_by_value(log)
        wait_until_drawn(browser)
        assert figure.is_displayed() == shown
        assert (PICTURE in views(browser)) == shown
    assert {e: low for e, (low, _) in by_exponent(drawn(browser, PICTURE)).items()} == \
        summed(of_first)
    assert said_on_console(browser) == []


def test_scripts_and_data_are_packed_and_small(shipped):
    _, _, page = shipped
    text = page.read_text()
    assert set(blocks(text)) == {"settings", "analysis", "recommendation", "charts", "vega", "script"}
    packed_vega = re.search(r'id="vega"[^>]*>([^<]*)<', text).group(1)
    assert len(text.encode()) - len(packed_vega) < 300_000
    assert b"vegaEmbed" in blocks(text)["vega"]


def test_only_the_scripts_of_the_page_run(shipped):
    browser, _, page = shipped
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.read_text())
    assert "unsafe" not in policy.group(1) and "blob:" not in policy.group(1).split("img-src")[0]
    assert policy.group(1).count("'sha256-") == 4  # three scripts and the style
    browser.execute_script("""
        const script = document.createElement('script');
        script.textContent = 'window.broken = true';
        document.head.append(script);
        const packed = document.createElement('script');
        packed.src = URL.createObjectURL(new Blob(['window.broken = true']));
        document.head.append(packed);""")
    time.sleep(0.3)
    assert browser.execute_script("return window.broken") is None
    assert "Content Security Policy" in " ".join(said_on_console(browser))


def test_without_scripts_text_and_tables_are_there(shipped):
    browser, analysis, page = shipped
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        body = browser.find_element(By.TAG_NAME, "body").text
        assert "The charts, sorting and downloads need JavaScript" in body
        assert "become zero without loss scaling" in body  # the picture's caption
        assert "GradScaler(" in body
        assert browser.find_element(By.CSS_SELECTOR, "#findings li").is_displayed()
        rows = browser.find_elements(By.CSS_SELECTOR, "#worst tbody tr")
        assert len(rows) == len(analysis["tensors"])
        assert not any(box.is_displayed() for box in browser.find_elements(By.CLASS_NAME, "chart"))
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_browser_that_cannot_unpack_says_so(shipped):
    browser, _, page = shipped
    source = {"source": "delete window.DecompressionStream"}
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", source)
    try:
        browser.get(page.as_uri())
        assert "cannot unpack the charts" in browser.find_element(By.ID, "too-old").text
        assert browser.find_element(By.CSS_SELECTOR, ".answer").is_displayed()
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


@pytest.mark.parametrize("log", ["hostile", "intervals", "odd"])
def test_the_csv_is_that_of_analyze(browser, logs, tmp_path, log):
    page, _ = report(logs / log, tmp_path)
    quiet(browser, page)
    stdout_of("analyze", logs / log, "--csv", tmp_path / "asked.csv")
    file = saved(browser, page, "save-csv", tmp_path)
    assert file.read_bytes() == (tmp_path / "asked.csv").read_bytes()


def many_tensors(path, count):
    """Gradients of 16 values, the later the smaller."""
    random = np.random.default_rng(3)
    sizes = np.exp2(random.normal(-8, 2, (count, 16)) - 20 * np.arange(count)[:, None] / count)
    save_file({f"weight_grad/layer{i:05d}.weight": sizes[i].astype(np.float32)
               for i in range(count)}, path)
    return path


def test_of_very_many_tensors_the_worst_are_kept(browser, tmp_path):
    page, analysis = report(many_tensors(tmp_path / "many.safetensors", 1234), tmp_path)
    quiet(browser, page)
    held = browser.execute_script("return window.halfscope.analysis")
    assert held["tensors_left_out"] == 234 and len(held["tensors"]) == 1000
    by_name = {t["name"]: t for t in analysis["tensors"]}
    assert all(tensor == by_name[tensor["name"]] for tensor in held["tensors"])
    share = {name: t["flushed_to_zero"] / 16 for name, t in by_name.items()}
    kept = [share[t["name"]] for t in held["tensors"]]
    assert min(kept) >= max(share[name] for name in by_name.keys() - {t["name"] for t in
                                                                      held["tensors"]})
    all_bars = {e: low for e, (low, _) in by_exponent(drawn(browser, PICTURE)).items()}
    assert all_bars == summed(analysis["tensors"])  # sums are of all
    row = browser.find_element(By.CSS_SELECTOR, "#worst tbody tr")
    index = int(row.get_attribute("data-tensor"))
    assert row.find_element(By.TAG_NAME, "th").text == held["tensors"][index]["name"]
    notes = [note.text for note in browser.find_elements(By.CLASS_NAME, "left-out")
             if "reduce LOG" not in note.text]  # sums: two a tensor
    assert len(notes) >= 3  # worst tensors, headroom, formats
    assert all(note.startswith("234 more rows are left out here. halfscope ") for note in notes)
    commands = " ".join(notes)
    assert "recommend LOG --json FILE" in commands  # headroom
    assert "analyze LOG --formats --json FILE" in commands
    assert [note for note in notes if note.endswith("--csv FILE or --json FILE writes all.")] == \
        notes[-1:]
    assert browser.find_element(By.ID, "save-csv").text == "CSV (worst 1,000 of 1,234 tensors)"
    file = saved(browser, page, "save-csv", tmp_path)
    assert file.name == "halfscope-analysis-worst-1000-of-1234-tensors.csv"
    assert len(file.read_text().splitlines()) == 1001


def test_a_page_of_thirty_thousand_tensors_is_small(tmp_path):
    many = many_tensors(tmp_path / "many.safetensors", 30_000)
    stdout_of("report", many, "--out", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 5_000_000
    text = (tmp_path / "page.html").read_text()
    assert "29,000 more rows are left out here" in text
    advice = data_of(text, "recommendation")
    assert advice["headroom_left_out"] == 29_000
    bits = [entry["bits"] for entry in advice["headroom"]]
    assert len(bits) == 1000 and bits == sorted(bits)
