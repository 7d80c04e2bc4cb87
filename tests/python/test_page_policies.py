# SPDX-License-Identifier: Apache-2.0
"""The report's section on loss-scaling policies, in headless Chromium: what is drawn is what
`halfscope policies --json` says.

The logs are written by hand (tests/reports/sample_policies.hpp): runs under PyTorch's loss scaling.
"""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from page_browser import (browser, logs, open_page, quiet, requests, said_on_console, views,
                          wait_until_drawn)
from program import DIGITS, json_of, run, stdout_of

__all__ = ["browser", "logs"]  # fixtures
CHOSEN = ("torch", "megatron,initial_scale=4096", "static,scale=256", "chainer")


def page_of(log, folder, *arguments):
    stdout_of("report", log, "--out", folder / "report.html", *arguments)
    return folder / "report.html"


def asked(log, *names):
    """{policy: its trace} from `halfscope policies`; the run itself is "recorded"."""
    chosen = [x for name in names for x in ("--policy", name)]
    return {t["policy"]: t for t in json_of("policies", log, *chosen)}


def rows(browser, view, dataset):
    return browser.execute_script(
        "return window.halfscopeViews[arguments[0]].data(arguments[1])", view, dataset)


def of_line(rows, name):
    """The rows of the line that stands for a policy: alone, or with others that did the same."""
    names = {row["name"] for row in rows}
    found = [n for n in names if name in n.replace(" = ", ", ").split(", ")]
    assert len(found) == 1, names
    return [row for row in rows if row["name"] == found[0]]


def drawn_scales(rows, steps):
    """What a line shows at each of so many steps: it goes from point to point by steps."""
    points = sorted((r["step"], r["scale"]) for r in rows if r["kind"] == "scale")
    out = []
    for step in range(steps):
        out.append([scale for at, scale in points if at <= step][-1])
    return out


@pytest.fixture(scope="module")
def restless(browser, logs, tmp_path_factory):
    """(browser with the page of a run that skips too often, its log, the page)"""
    chosen = [x for name in CHOSEN for x in ("--policy", name)]
    page = page_of(logs / "restless", tmp_path_factory.mktemp("page"), *chosen)
    open_page(browser, page)
    assert requests(browser) == [page.as_uri()]
    assert said_on_console(browser) == []
    yield browser, logs / "restless", page


def test_drawn_scales_are_the_replay(restless):
    browser, log, _ = restless
    found = rows(browser, "policy-scales", "policy-scales")
    traces = asked(log, *CHOSEN)
    for policy, name in zip(("torch", "megatron", "static"), CHOSEN):
        trace = traces[policy]
        assert drawn_scales(of_line(found, name), 400) == trace["scale"], name
    own = asked(log)["recorded"]
    assert drawn_scales(of_line(found, "the run itself"), 400) == own["scale"]


def test_marks_are_the_skipped_steps(restless):
    browser, log, _ = restless
    found = rows(browser, "policy-scales", "policy-scales")
    traces = asked(log, *CHOSEN) | {"the run itself": asked(log)["recorded"]}
    for policy, name in (("torch", "torch"), ("megatron", CHOSEN[1]),
                         ("the run itself", "the run itself")):
        marks = [r for r in of_line(found, name) if r["kind"] == "mark"]
        for what, steps in (("unknown", traces[policy]["unknown"]),
                            ("skipped: overflow by the scale", traces[policy]["skipped"])):
            of_kind = [m for m in marks if m["what"] == what]
            assert sum(m["count"] for m in of_kind) == len(steps)
            for mark in of_kind:
                assert mark["step"] in steps
                assert mark["last"] in steps
        assert traces[policy]["skipped"]


def test_marks_lie_on_their_line(restless):
    browser, _, _ = restless
    items = browser.execute_script("""
        const found = [];
        const visit = (node) => {
          if (node.marktype !== 'symbol') return (node.items ?? []).forEach(visit);
          for (const {datum, x, y} of node.items) {
            if (datum?.kind === 'mark') found.push([datum.name, datum.step, datum.log2, x, y]);
          }
        };
        visit(window.halfscopeViews['policy-scales'].scenegraph().root);
        return found;""")
    assert items
    heights = {}
    for _, _, log2, _, y in items:
        assert heights.setdefault(log2, y) == pytest.approx(y)
    ordered = [heights[log2] for log2 in sorted(heights)]
    assert ordered == sorted(ordered, reverse=True)


def test_flushed_shares_are_the_replay(restless):
    """A row a policy, or those that did the same; the run and what is advised among them."""
    browser, log, _ = restless
    traces = asked(log, *CHOSEN)
    found = rows(browser, "policy-flushed", "policy-flushed")
    for policy, name in zip(("torch", "megatron", "static"), CHOSEN):
        (row,) = of_line(found, name)
        assert [row["low"], row["high"]] == pytest.approx(traces[policy]["mean_flushed_share"])
        assert row["worst"] == pytest.approx(traces[policy]["worst_flushed_share"][1])
        assert " at step " in row["worst_text"]
    assert {"the run itself", "recommended static scale"} <= {row["name"] for row in found}
    assert [row["high"] for row in found] == sorted(row["high"] for row in found)
    assert len({row["name"] for row in found}) == len(found) <= 16


def test_flushed_bars_are_as_long_as_the_shares(restless):
    """Solid up to what is surely flushed, paler from there: on a logarithmic axis."""
    browser, _, _ = restless
    bars = browser.execute_script("""
        const found = [];
        const visit = (node) => {
          if (node.marktype !== 'rect') return (node.items ?? []).forEach(visit);
          for (const {datum, x, width} of node.items) {
            if (datum?.mean_text) found.push([datum.low, datum.high, x, x + width]);
          }
        };
        const view = window.halfscopeViews['policy-flushed'];
        visit(view.scenegraph().root);
        return found.map((bar) => [...bar, view.scale('x')(Math.max(1e-7, bar[0])),
                                   view.scale('x')(Math.max(1e-7, bar[1]))]);""")
    solid, paler = bars[:len(bars) // 2], bars[len(bars) // 2:]
    assert len(solid) == len(paler) > 3
    for (_, _, start, end, low, _) in solid:
        assert (start, end) == pytest.approx((0, low), abs=0.6)
    for (_, _, start, end, low, high) in paler:
        assert (start, end) == pytest.approx((low, high), abs=0.6)


def test_a_policy_without_shares_has_a_line_and_no_row(browser, logs, tmp_path):
    """DeepSpeed ends training before any table."""
    dies = "deepspeed,init_scale=65536,min_scale=65536"
    page = page_of(logs / "restless", tmp_path, "--policy", dies, "--policy", "torch")
    quiet(browser, page)
    assert dies in {row["name"] for row in rows(browser, "policy-scales", "policy-scales")}
    assert dies not in {row["name"] for row in rows(browser, "policy-flushed", "policy-flushed")}


def test_table_is_ranked_and_sorts(restless):
    browser, log, _ = restless
    section = browser.find_element(By.ID, "policies")
    body = "table.data tbody tr"
    names = [row.find_element(By.TAG_NAME, "th").text
             for row in section.find_elements(By.CSS_SELECTOR, body)]
    assert names[0] == "the run itself"
    assert names[1] == "recommended static scale"
    assert names[2].startswith("best found: torch")
    lost = [float(row.find_elements(By.TAG_NAME, "td")[0].get_attribute("data-v"))
            for row in section.find_elements(By.CSS_SELECTOR, body)]
    assert lost[3:] == sorted(lost[3:])
    traces = asked(log, *CHOSEN)
    skipped = [float(row.find_elements(By.TAG_NAME, "td")[1].get_attribute("data-v"))
               for row in section.find_elements(By.CSS_SELECTOR, body)]
    by_name = dict(zip(names, skipped))
    assert by_name["torch"] == len(traces["torch"]["skipped"]) + len(traces["torch"]["unknown"])
    heading = section.find_elements(By.CSS_SELECTOR, "table.data thead th")[1]
    heading.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    lost = [float(row.find_elements(By.TAG_NAME, "td")[0].get_attribute("data-v"))
            for row in section.find_elements(By.CSS_SELECTOR, body)]
    assert lost == sorted(lost, reverse=True)


def test_settings_are_copied(restless):
    browser, _, _ = restless
    paste = browser.find_element(By.CSS_SELECTOR, "#policies .paste")
    copied = browser.execute_async_script("""
        const [button, done] = arguments;
        navigator.clipboard.writeText = (text) => { done(text); return Promise.resolve(); };
        button.click();""", paste.find_element(By.TAG_NAME, "button"))
    assert copied.startswith('scaler = torch.amp.GradScaler("cuda", init_scale=')
    assert "For PyTorch:" in browser.find_element(By.ID, "policies").text


def test_the_legend_has_the_marks_that_occur(restless):
    browser, _, _ = restless
    found = rows(browser, "policy-scales", "policy-scales")
    shapes = browser.execute_script(
        "return window.halfscopeViews['policy-scales'].scale('shape').domain()")
    assert set(shapes) == {row["what"] for row in found if row["kind"] == "mark"}
    assert "tried again" not in shapes


def test_the_best_settings_are_a_line(restless):
    browser, _, _ = restless
    names = {row["name"] for row in rows(browser, "policy-scales", "policy-scales")}
    assert len([name for name in names if "best found: torch" in name]) == 1


def test_both_themes_and_a_telephone(restless):
    browser, _, page = restless
    before = len(views(browser))
    browser.find_element(By.ID, "theme").click()
    wait_until_drawn(browser)
    assert len(views(browser)) == before
    browser.find_element(By.ID, "theme").click()
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        open_page(browser, page)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
        assert {"policy-scales", "policy-flushed"} <= set(views(browser))
        assert said_on_console(browser) == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        open_page(browser, page)


def findings_of(browser):
    return browser.find_element(By.ID, "findings").text


def test_a_run_that_skips_too_often_is_a_finding(restless):
    browser, _, _ = restless
    assert "to overflow by the loss scale" in findings_of(browser)
    links = browser.find_elements(By.CSS_SELECTOR, "#findings a[href='#policies']")
    assert links


def test_nan_in_the_model_is_told_from_overflow(browser, logs, tmp_path):
    page = page_of(logs / "broken", tmp_path)
    quiet(browser, page)
    found = rows(browser, "policy-scales", "policy-scales")
    own = asked(logs / "broken")["recorded"]
    marks = [r for r in of_line(found, "the run itself") if r["kind"] == "mark"]
    assert {m["what"] for m in marks} == {"skipped: NaN in the model"}
    assert len(own["skipped"]) == 180
    shown = sum(own["scale"][step] > 0 for step in own["skipped"])  # a line ends at 0
    assert 120 < shown <= sum(m["count"] for m in marks) < shown + 4
    assert len(marks) < 180  # together where they would lie on one another
    assert "that no loss scale cures" in browser.find_element(By.ID, "summary").text
    text = browser.find_element(By.ID, "policies").text
    assert "NaN or infinity in the model, which no scale cures" in text
    assert "Marks that would overlap are drawn as one" in text


def test_nothing_is_said_where_nothing_is_wrong(browser, logs, tmp_path):
    page = page_of(logs / "calm", tmp_path)
    quiet(browser, page)
    assert browser.find_elements(By.CSS_SELECTOR, "#findings a[href='#policies']") == []
    assert browser.find_elements(By.ID, "policies")
    drawn = {r["name"] for r in rows(browser, "policy-scales", "policy-scales")}
    assert 2 < len(drawn) <= 6
    assert any("recommended static" in name for name in drawn)


def test_missing_steps_are_said(browser, logs, tmp_path):
    page = page_of(logs / "gap", tmp_path)
    quiet(browser, page)
    text = browser.find_element(By.ID, "policies").text
    assert "holds step 49 and then step 60" in text and "--assume-constant-between" in text
    assert "policy-scales" not in views(browser)


def test_logs_without_scalars_have_no_such_section(browser, logs, tmp_path):
    quiet(browser, page_of(logs / "training", tmp_path))
    assert browser.find_elements(By.ID, "policies") == []


def test_a_long_run_is_thinned_and_says_so(browser, logs, tmp_path):
    page = page_of(logs / "long", tmp_path)
    assert page.stat().st_size < 4 << 20
    quiet(browser, page)
    found = rows(browser, "policy-scales", "policy-scales")
    for name in {r["name"] for r in found}:
        line = [r for r in found if r["name"] == name]
        assert sum(r["kind"] == "scale" for r in line) <= 2000
        assert sum(r["kind"] == "mark" for r in line) <= 400
    own = asked(logs / "long")["recorded"]
    marks = [r for r in of_line(found, "the run itself") if r["kind"] == "mark"]
    assert sum(m["count"] for m in marks) == len(own["skipped"]) > 100
    assert "Marks that would overlap are drawn as one" in browser.find_element(
        By.ID, "policies").text


def test_an_unknown_policy_lists_the_known_ones(logs, tmp_path):
    done = run("report", logs / "calm", "--out", tmp_path / "x.html", "--policy", "torhc", expect=2)
    assert "torhc" in done.stderr and "megatron" in done.stderr
    assert not (tmp_path / "x.html").exists()


def test_the_shipped_log(browser, tmp_path):
    quiet(browser, page_of(DIGITS, tmp_path))
    assert {"policy-scales", "policy-flushed"} <= set(views(browser))
