# SPDX-License-Identifier: Apache-2.0
"""A run that diverges: the advice is about that, and no scale is given that only its last gradients
ask for."""

import pytest

from program import json_of, stdout_of, valid_json_of


def run_at(folder, learning_rate):
    stdout_of("simulate", "mlp", "--precision", "fp32", "--lr", learning_rate, "--steps", 40,
              "--out", folder)
    return folder


@pytest.fixture(scope="module")
def diverged(tmp_path_factory):
    """NaN from step 5 on, after gradients of 1e18."""
    return run_at(tmp_path_factory.mktemp("diverged") / "run", 50)


@pytest.fixture(scope="module")
def exploded(tmp_path_factory):
    """Gradients of 1e24 at step 6, and a finite loss at the end."""
    return run_at(tmp_path_factory.mktemp("exploded") / "run", 20)


def test_the_text_says_what_helps_and_no_scale(diverged, exploded):
    for log in (diverged, exploded):
        said = stdout_of("recommend", log)
        head, _, rest = said.partition("\n\n")
        head = " ".join(head.split())
        assert "No loss scale is recommended: the largest gradient, " in head
        assert "lower the learning rate" in head
        for absurd in ("GradScaler", "Use a loss scale", "would take a loss scale", "recommended\n",
                       "Dynamic scaling"):
            assert absurd not in said


def test_headroom_that_was_asked_for_is_no_divergence(tmp_path):
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "gradients.npy", np.array([127.5, 1.0, -3.0], np.float32))
    found = json_of("recommend", tmp_path / "gradients.npy", "--headroom", 40)
    assert found["reason"] != "diverges"
    assert found["static_scale"] == 2.0**-31  # 127.5 * 2^40 * 2^-31 = 65280 < 65520


def test_the_json_has_the_reason_and_nothing_to_paste(diverged, exploded):
    for log, exponent in ((diverged, -46), (exploded, -67)):
        found = valid_json_of("recommend", log)
        assert found["static_scale"] is None
        assert found["reason"] == "diverges"
        assert found["highest"] == 2.0**exponent
        assert found["limited_by"]["max_abs"] > 1e18
        assert not {"snippets", "dynamic", "dynamic_snippets", "skip"} & found.keys()


def test_the_page_says_it_too(diverged, tmp_path):
    stdout_of("report", diverged, "--policy", "torch", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert ("No loss scale is recommended: the largest gradient, 1.92e+18 "
            "(2^60.7) at step 4, needs one of 2^-46 or less") in page
    assert "Lost without loss scaling" not in page
    assert "The dynamic settings at the top of the page" not in page
    assert "the run itself skipped 0 and spoiled 35" in page
    assert "init_scale=2.0**-46" not in page


def test_the_steps_before_have_a_scale(diverged):
    said = stdout_of("recommend", diverged, "--step", "0:2")
    assert "diverges" not in said
    assert json_of("recommend", diverged, "--step", "0:2")["static_scale"] >= 1
