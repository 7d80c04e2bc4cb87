# SPDX-License-Identifier: Apache-2.0
"""Prediction against measurement: `halfscope compare` of a run whose operations were checked
against their emulation. The device is an emulated one (tests/cuda/emulated), not a GPU."""
import json

import numpy as np
import pytest
from page_browser import browser, said_on_console, wait_until_drawn  # noqa: F401
from program import BUILD, run, schema, valid_json_of, words, words_of
from safetensors.numpy import save_file
from selenium.webdriver.common.by import By

EMULATED = BUILD / "bin/emulated_halfscope"
RUN = ["simulate", "lenet", "--precision", "mixed", "--loss-scale", "torch,init_scale=1048576", "--steps", 20,
       "--seed", 7, "--batch", 8, "--record-every", 1, "--threads", 1]
HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b[2J of 3, F16"


@pytest.fixture(scope="module")
def device_run(tmp_path_factory):
    """lenet on the emulated device, with a loss scale that overflows at first."""
    if not EMULATED.exists():
        pytest.skip(f"{EMULATED} is not there: build it with the CUDA toolkit's headers")
    folder = tmp_path_factory.mktemp("device") / "run"
    run(*RUN, "--backend", "cudnn", "--check-operations", "--out", folder, program=EMULATED)
    return folder


@pytest.fixture(scope="module")
def compared(device_run, tmp_path_factory):
    """The comparison with the CPU's run of the same network, seed, data and settings: text, JSON,
    page."""
    folder = tmp_path_factory.mktemp("compared")
    run(*RUN, "--backend", "cpu", "--out", folder / "cpu")
    done = run("compare", folder / "cpu", device_run, "--json", folder / "found.json",
               "--out", folder / "page.html")
    found = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    schema("compare").validate(found)
    return done.stdout, found, folder / "page.html"


def test_what_a_checked_run_writes_follows_its_schema(device_run):
    told = json.loads((device_run / "operations.json").read_text(encoding="utf-8"))
    schema("operations").validate(told)
    assert (told["first_step"], told["last_step"]) == (0, 19)
    assert {o["operation"].rsplit(", ", 1)[1] for o in told["operations"]} == {"F16", "F32"}


def test_operations_are_those_of_the_file_and_sum_up(device_run, compared):
    told = json.loads((device_run / "operations.json").read_text(encoding="utf-8"))["operations"]
    _, found, _ = compared
    assert set(found["operations"]) == {"b"}  # the CPU's run was not checked
    shown = found["operations"]["b"]

    def as_told(one):
        fields = {key: value for key, value in one.items()
                  if key not in ("format", "beyond_rounding")}
        return {**fields, "operation": f"{one['operation']}, {one['format']}"}

    def by_name(one):
        return one["operation"]

    assert sorted(map(as_told, shown["operations"]), key=by_name) == sorted(told, key=by_name)
    assert [sums["format"] for sums in shown["formats"]] == ["F16", "F32"]
    for sums in shown["formats"]:
        of_format = [o for o in told if o["operation"].endswith(", " + sums["format"])]
        for key in ("elements", "identical", "within_one_ulp", "not_finite_in_one"):
            assert sums[key] == sum(o[key] for o in of_format)
        differ = [o for o in of_format if o["identical"] != o["elements"]]
        assert sums["operations"] - sums["identical_operations"] == len(differ)
        assert sums["elements_of_different"] == sum(o["elements"] for o in differ)
        errors = [o["largest_relative_error"] for o in shown["operations"]
                  if o["format"] == sums["format"]]
        assert errors == sorted(errors, reverse=True)  # none is not finite in one alone


def test_the_terminal_sums_the_operations_up(compared):
    text, found, _ = compared
    half = found["operations"]["b"]["formats"][0]
    assert "Operations on the same inputs: B against its emulation, steps 0 to 19:" in text
    text = words(text)
    assert f"of {half['elements']:,} results identical " \
        f"({half['elements'] - half['identical']:,} not)" in text
    assert f"worst: {half['worst']}: " in text
    assert "no operation differs by more than a last rounding explains" in text
    assert "Losses " in text


def test_runs_that_only_round_differently_are_no_better_or_worse(compared):
    text, found, _ = compared
    assert "No real difference between A and B." in text
    summary = found["summary"]
    # Both hold zeros for what they flushed: bounds of what each lost, but the difference is known.
    assert isinstance(summary["b"]["lost"], list) and summary["underflow"] in ("same", "similar")


def test_scales_of_both_runs(compared):
    _, found, _ = compared
    for which in ("a", "b"):
        scales, skipped = dict(found["scales"][which]), found["summary"][which]["skipped"]
        assert sorted(scales) == list(range(20))
        assert scales[0] == 2.0**20 and len(skipped) >= 2
        # PyTorch's GradScaler halves the scale after a step it skips.
        assert all(scales[step + 1] == scales[step] / (2 if step in skipped else 1)
                   for step in range(19))


def test_where_the_losses_part(compared):
    _, found, _ = compared
    a, b = (dict(found["loss"][which]) for which in ("a", "b"))
    parting = found["summary"]["parting"]
    assert parting["steps"] == 20
    other = next((step for step in range(20) if a[step] != b[step]), None)
    apart = next((step for step in range(20)
                  if abs(a[step] - b[step]) > 0.01 * max(a[step], b[step])), None)
    assert parting.get("first_other") == other and parting.get("first_apart") == apart
    assert parting["same_until"] == (19 if other is None else other - 1)


def opened(browser, page):  # noqa: F811
    browser.get_log("browser")
    browser.get(page.as_uri())
    wait_until_drawn(browser)
    assert said_on_console(browser) == []


def test_the_page_shows_operations_and_scales(browser, compared):  # noqa: F811
    _, found, page = compared
    opened(browser, page)
    operations = found["operations"]["b"]["operations"]
    rows = browser.find_elements(By.CSS_SELECTOR, "#operations tbody tr")
    assert len(rows) == len(operations)
    cells = [cell.text for cell in rows[0].find_elements(By.CSS_SELECTOR, "th, td")]
    worst = operations[0]
    assert cells[:3] == [worst["operation"], "FP16", "rounding"]
    assert cells[3] == f"{worst['elements'] - worst['identical']:,} of {worst['elements']:,}"
    drawn = browser.execute_script("return window.halfscopeViews.scales.data('scales')")
    for which in ("a", "b"):
        points = {p["step"]: p for p in drawn if p["run"] == which.upper()}
        scales = dict(found["scales"][which])
        assert all(scales[step] == p["scale"] for step, p in points.items())
        assert [s for s, p in points.items() if p["skipped"]] == found["summary"][which]["skipped"]
        assert {0, 19} <= set(points)
    ulps = browser.find_elements(By.CSS_SELECTOR, "#operations thead button")[6]
    ulps.click()
    first = browser.find_element(By.CSS_SELECTOR, "#operations tbody tr")
    largest = max(o["largest_ulps"] for o in operations)
    assert first.find_elements(By.TAG_NAME, "td")[5].text == f"{largest:,}"


def operation(name, *, different=0, beyond=0, in_one=0, error=0.0):
    both = {"run": 5, "emulated": 7}
    return {"operation": name, "calls": 1, "elements": 1000, "identical": 1000 - different,
            "within_one_ulp": 1000 - beyond - in_one, "largest_ulps": 300 if beyond else 1,
            "not_finite_in_one": in_one, "largest_relative_error": error, "zero": both,
            "subnormal": both, "not_finite": both}


@pytest.fixture
def by_hand(tmp_path):
    """Folders of tensor files; writes A's operations.json."""
    random = np.random.default_rng(8)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        save_file({"weight_grad/w": random.normal(0, 0.01, 100).astype(np.float32)},
                  tmp_path / name / "step-000000.safetensors")

    def write(operations):
        told = {"schema": "halfscope.operations/1", "first_step": 4, "last_step": 4,
                "operations": operations}
        text = operations if isinstance(operations, str) else json.dumps(told)
        (tmp_path / "a/operations.json").write_text(text, encoding="utf-8")
        return tmp_path / "a", tmp_path / "b"
    return write


def test_cancellation_is_no_alarm_and_broken_results_are(by_hand):
    cancels = operation("cancels of 3, F16", different=90, beyond=80, error=2e-6)
    text = words_of("compare", *by_hand([cancels]))
    assert "A against its emulation, step 4:" in text
    assert "no operation differs by more than a last rounding explains" in text
    assert "up to 300 ulps in cancels of 3: where a sum cancels to nearly zero, many ulps are " \
        "next to nothing; relative error of a call 2e-06 at most" in text
    wrong = operation("wrong of 3, F16", different=9, beyond=8, error=0.02)
    broken = operation("broken of 3, F16", different=3, in_one=2)
    pair = by_hand([cancels, wrong, broken, operation("fine of 3, F32")])
    text = words_of("compare", *pair)
    assert "2 of 3 operations differ by more than a last rounding explains" in text
    assert "worst: broken of 3: 3 of 1,000 differ" in text and "2 not finite in one alone" in text
    assert "FP32: all 1,000 results of 1 operation identical" in text
    operations = valid_json_of("compare", *pair)["operations"]["a"]["operations"]
    assert [o.get("beyond_rounding") for o in operations] == [True, True, False, None]


def test_names_are_data(by_hand, tmp_path, browser):  # noqa: F811
    pair = by_hand([operation(HOSTILE, different=3)])
    page = tmp_path / "page.html"
    assert "\x1b" not in run("compare", *pair, "--out", page).stdout
    opened(browser, page)
    row = browser.find_element(By.CSS_SELECTOR, "#operations tbody th").text
    assert row == HOSTILE.removesuffix(", F16").replace("\x1b", "\\x1B")


def test_what_is_no_operations_file_is_refused(by_hand):
    message = run("compare", *by_hand("{"), expect=1).stderr
    assert "operations.json: is not JSON, expected a JSON object; remove the file" in message
    message = run("compare", *by_hand([{"operation": "x"}]), expect=1).stderr
    assert "operation 1 'operation': is \"x\", expected \"NAME of SHAPES, FORMAT\"" in message
