# SPDX-License-Identifier: Apache-2.0
"""The tab Halfscope in TensorBoard: which runs it lists, which pages it serves, and what a browser
shows of it."""
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait
from tensorboard.backend import application
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins import base_plugin
from tensorboard.plugins.histogram import metadata as histograms
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util import tensor_util
from werkzeug.test import Client

from entry_points import write_entry_points
from halfscope import tensorboard
from page_browser import browser, said_on_console
from program import DIGITS
from rank_runs import write_run

__all__ = ["browser"]  # a fixture
HOSTILE = "<img src=x onerror=alert(1)>"
ROUTE = "/data/plugin/halfscope"


def write_histogram(folder, tag, step=0):
    """A histogram as TensorBoard's own summaries have it: rows of left edge, right edge, count."""
    rows = tensor_util.make_tensor_proto(np.float64([[-1, 0, 5], [0, 2**-20, 3], [2**-20, 1, 9]]))
    value = summary_pb2.Summary.Value(
        tag=tag, tensor=rows, metadata=histograms.create_summary_metadata(tag, ""))
    writer = EventFileWriter(str(folder))
    writer.add_event(event_pb2.Event(step=step, wall_time=time.time(),
                                     summary=summary_pb2.Summary(value=[value])))
    writer.close()


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(DIGITS, folder / "digits")
    write_histogram(folder / "keras", "gradients/dense.weight")
    write_histogram(folder / "weights-alone", "weights/dense")
    write_histogram(folder / HOSTILE, "gradients/dense.weight")
    write_run(folder / "ranks", range(2), steps=3)
    shutil.copytree(DIGITS, folder / "broken", ignore=shutil.ignore_patterns("tensors"))
    (folder / "broken" / "run.json").write_text("{}")
    return folder


def client_of(**paths):
    """TensorBoard's own application with the tab alone, on {name: folder}; '' is --logdir."""
    runs = plugin_event_multiplexer.EventMultiplexer(
        tensor_size_guidance={"halfscope": 0, "histograms": 0})
    for name, folder in paths.items():
        runs.AddRunsFromDirectory(str(folder), name if len(paths) > 1 else None)
    runs.Reload()
    context = base_plugin.TBContext(
        data_provider=data_provider.MultiplexerDataProvider(runs, "logs"), multiplexer=runs,
        logdir=str(next(iter(paths.values()))) if len(paths) == 1 else "")
    tab = tensorboard.HalfscopePlugin(context)
    return Client(application.TensorBoardWSGI([tab], "", context.data_provider)), tab


@pytest.fixture(scope="module")
def client(logdir):
    return client_of(logdir=logdir)[0]


def page(client, run):
    return client.get(f"{ROUTE}/page", query_string={"run": run})


def test_it_lists_the_runs_that_hold_gradients_and_ranks_as_one(client):
    assert set(client.get(f"{ROUTE}/runs").json) == {"broken", "digits", "keras", HOSTILE, "ranks"}


def test_a_run_is_shown_as_the_report_shows_it(client):
    digits, keras = page(client, "digits"), page(client, "keras")
    assert "A static loss scale can be up to 32768" in digits.text
    assert "<title>keras</title>" in keras.text
    for answer in (digits, keras):
        policy = re.search("script-src ([^;]*)", answer.headers["Content-Security-Policy"])[1]
        assert policy.count("sha256") >= 3 and "unsafe-inline" not in policy
    assert "<title>ranks</title>" in page(client, "ranks").text


def test_only_listed_runs_are_read(client, logdir):
    for run in ("weights-alone", "../digits", str(logdir / "digits"), "digits/../digits", "", "."):
        answer = page(client, run)
        assert answer.status_code == 404
        assert answer.text == f"{run}: no such run with gradients"
        assert answer.mimetype == "text/plain"


def test_a_run_without_a_page_shows_the_error(client):
    answer = page(client, "broken")
    assert answer.mimetype == "text/plain"
    assert answer.text.startswith("broken: ") and "run.json" in answer.text
    assert "\n" not in answer.text


def test_a_page_is_made_again_when_the_run_has_newer_tensors(tmp_path, monkeypatch):
    made = []

    def report(folder, title):
        made.append(title)
        return original(folder, title=title)

    original = tensorboard.report
    monkeypatch.setattr(tensorboard, "report", report)
    write_histogram(tmp_path / "run", "gradients/w")
    client, tab = client_of(logdir=tmp_path)
    first = page(client, "run").text
    assert page(client, "run").text == first and made == ["run"]
    write_histogram(tmp_path / "run", "gradients/v", step=7)
    tab._context.multiplexer.AddRunsFromDirectory(str(tmp_path))
    tab._context.multiplexer.Reload()
    assert page(client, "run").text != first and made == ["run"] * 2


def test_several_log_folders_with_names(logdir, tmp_path):
    write_histogram(tmp_path, "gradients/w")
    client, _ = client_of(a=logdir / "digits", b=tmp_path)
    assert set(client.get(f"{ROUTE}/runs").json) == {"a/.", "b/."}
    assert page(client, "a/.").mimetype == page(client, "b/.").mimetype == "text/html"


def test_the_tab_is_active_if_a_run_holds_gradients(logdir):
    assert client_of(logdir=logdir)[1].is_active()
    assert not client_of(logdir=logdir / "weights-alone")[1].is_active()


@pytest.fixture(scope="module")
def address(logdir, tmp_path_factory):
    """The address of a TensorBoard that finds the tab as it finds every installed one."""
    installed = write_entry_points(tmp_path_factory.mktemp("installed"))
    path = os.pathsep.join([str(installed), os.environ["PYTHONPATH"]])
    with subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", "--logdir", ".", "--port", "0", "--reload_interval", "1"],
            cwd=logdir, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield next(re.search(r"http://\S+", line)[0] for line in server.stderr if " at http" in line)
        finally:
            server.terminate()
            server.communicate(timeout=30)


def wait(browser, condition):  # noqa: F811
    return WebDriverWait(browser, 60, poll_frequency=0.1).until(lambda _: condition())


def enter_tab(browser, address):  # noqa: F811
    browser.get(f"{address}#halfscope")
    tab = wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "iframe[src*='name=halfscope']"))
    browser.switch_to.frame(tab[0])
    return Select(wait(browser, lambda: browser.find_elements(By.TAG_NAME, "select"))[0])


def shown(browser, script):  # noqa: F811
    """A value in the page that is shown; None while another is loaded."""
    return browser.execute_script(
        "const [frame, ...more] = document.querySelectorAll('iframe');"
        f"if (more.length || !frame) return null; const page = frame.contentDocument; {script}")


def wait_for_run(browser, name):  # noqa: F811
    wait(browser, lambda: shown(browser, "return page.title") == name and
         shown(browser, "return page.documentElement.dataset.drawn") == "yes")


SCROLL = "frame.contentWindow.scrollTo(0, 400); page.getElementById('tensors').open = true;"
STATE = "return [frame.contentWindow.scrollY, page.getElementById('tensors').open]"


def test_in_a_browser_runs_are_chosen(browser, address):  # noqa: F811
    choice = enter_tab(browser, address)
    wait(browser, lambda: len(choice.options) == 5)
    choice.select_by_value("digits")
    wait_for_run(browser, "digits")
    if picture := os.environ.get("HALFSCOPE_PICTURE"):  # docs/images/tensorboard.png
        browser.save_screenshot(picture)
    choice.select_by_value("ranks")
    choice.select_by_value(HOSTILE)  # while the first is loaded
    wait_for_run(browser, HOSTILE)
    choice.select_by_value("broken")
    wait(browser, lambda: "run.json" in (shown(browser, "return page.body.textContent") or ""))
    assert not [said for said in said_on_console(browser) if "plugin" in said]


@pytest.mark.exhaustive  # TensorBoard reads again late on a machine with other work
def test_in_a_browser_a_run_is_refreshed(browser, address, logdir):  # noqa: F811
    enter_tab(browser, address).select_by_value("digits")
    wait_for_run(browser, "digits")
    shown(browser, SCROLL)
    before = shown(browser, "return page.body.textContent.length")
    write_histogram(logdir / "digits", "activation_grad/added", step=901)

    def grown():  # many looks would delay TensorBoard
        time.sleep(1)
        browser.execute_script("document.querySelector('select').onchange()")
        return (shown(browser, "return page.body?.textContent.length") or before) != before

    wait(browser, grown)
    assert shown(browser, STATE) == [400, True]
