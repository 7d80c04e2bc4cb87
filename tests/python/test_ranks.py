# SPDX-License-Identifier: Apache-2.0
"""Ranks side by side: which is ill, in the terminal, the JSON, Python and on the page."""
import json
import subprocess

import pytest
from page_browser import browser, quiet
from program import PROGRAM, json_of, run, stdout_of, valid_json_of, words_of
from rank_runs import STEPS, ill, write_run
from selenium.webdriver.common.by import By

__all__ = ["browser"]  # a fixture


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    return {"clean": write_run(folder / "clean", range(8)),
            "ill": write_run(folder / "ill", range(300, 340), ill)}


def found(log):
    return valid_json_of("analyze", log)["ranks_compared"]


def test_a_clean_run_has_one_sentence_and_no_section(logs, tmp_path):
    text = stdout_of("analyze", logs["clean"])
    assert "The 8 ranks agree in their weight gradients, activation gradients and loss." in text
    assert "worst" not in text.split("The 8 ranks agree")[1]
    assert [entry["worst"] for entry in found(logs["clean"])] == [[], [], []]
    stdout_of("report", logs["clean"], "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "The 8 ranks agree in their" in page
    assert 'id="ranks"' not in page


def test_the_worst_rank_is_named(logs):
    text = words_of("analyze", logs["ill"])
    assert "Rank 317 is the worst of 40: its weight gradients reach" in text
    assert "The ranks agree in their activation gradients and loss." in text
    entry = found(logs["ill"])[0]
    assert entry["role"] == "local_weight_grad"
    assert entry["worst"] == [317]
    (rank,) = [rank for rank in entry["by_rank"] if "differs" in rank]
    assert rank["rank"] == 317
    assert rank["differs"] == ["one_step"]
    assert rank["max_abs_step"] >= 30
    assert 5 < rank["skew"] < 7
    assert rank["most_above"] > entry["limit_one_step"] >= 2
    assert [rank["rank"] for rank in entry["by_rank"]] == list(range(300, 340))


def simulated(folder, rate_of_two):
    """Five ranks of another seed each; the learning rate of rank 2."""
    for rank in range(5):
        own = folder / f"rank-{rank:04}"
        rate = ("--lr", rate_of_two) if rank == 2 and rate_of_two else ()
        stdout_of("simulate", "mlp", "--steps", 40, "--batch", 8, "--record-every", 10, "--seed",
                  rank, "--out", own, *rate)
        manifest = json.loads((own / "run.json").read_text())
        manifest.update(rank=rank, world_size=5, sharded=["weight_grad", "activation", "activation_grad"])
        (own / "run.json").write_text(json.dumps(manifest))
    return folder


def test_training_that_is_well_gets_no_alarm(tmp_path):
    entries = found(simulated(tmp_path / "run", None))
    assert {entry["role"] for entry in entries} == {"weight_grad", "activation_grad", "activation", "loss"}
    assert all(entry["worst"] == [] for entry in entries)


def test_a_rank_whose_loss_departs(tmp_path):
    entries = {entry["role"]: entry for entry in found(simulated(tmp_path / "run", 3))}
    assert entries["loss"]["worst"] == [2]
    assert entries["activation"]["worst"] == [2]
    assert entries["weight_grad"]["parts"]
    assert entries["weight_grad"]["worst"] == []
    text = words_of("analyze", tmp_path / "run")
    assert "its loss reaches" in text
    assert "agree in their weight gradients" not in text


def test_a_record_says_the_same(logs, tmp_path):
    for name, log in logs.items():
        for shard in (1, 2):
            stdout_of("count", log, "--shard", f"{shard}/2", "--out",
                      tmp_path / f"{name}-{shard}.hst")
        whole = tmp_path / f"{name}.hst"
        stdout_of("merge", tmp_path / f"{name}-2.hst", tmp_path / f"{name}-1.hst", "--out", whole)
        assert found(whole) == found(log)


def test_python_has_the_ranks(logs):
    import halfscope as package

    entry = package.analyze(str(logs["ill"])).ranks_compared[0]
    assert entry.worst == [317]
    assert entry.by_rank[17].rank == 317
    assert entry.by_rank[17].differs == ["one_step"]
    assert entry.by_rank[16].differs is None


def test_a_finding_names_it_in_the_recommendation(logs):
    advice = json_of("recommend", logs["ill"])
    (finding,) = [f for f in advice["answer"]["findings"] if f["evidence"] == "ranks"]
    assert finding["severity"] == "warning"
    assert "Rank 317 is the worst of 40" in finding["title"]


@pytest.fixture(scope="module")
def page(browser, logs, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "report.html"
    run("report", logs["ill"], "--out", out)
    quiet(browser, out)
    return browser


DRAWN = """
  const found = [];
  const visit = (node) => {
    for (const item of node.items ?? []) {
      if (item.datum?.ranks) found.push({...item.datum, mark: node.marktype, fill: item.fill});
      visit(item);
    }
  };
  visit(window.halfscopeViews[arguments[0]].scenegraph().root);
  return found;
"""


def test_the_strip_labels_the_worst_rank(page):
    drawn = page.execute_script(DRAWN, "rank-strip/local_weight_grad")
    (label,) = [item for item in drawn if item["mark"] == "text" and item["label"]]
    assert label["label"] == "317"
    bars = [item["ranks"] for item in drawn if item["mark"] == "rect"]
    assert bars == [str(rank) for rank in range(300, 340) if rank != 317]


def test_the_map_shows_when(page):
    cells = page.execute_script(DRAWN, "rank-map/local_weight_grad")
    far = [cell for cell in cells if cell["far"] in ("1 to 1.5 limits", "1.5 to 2", "2 and more")]
    assert {cell["ranks"] for cell in far} == {"317"}
    assert min(cell["step"] for cell in far) == 30
    assert max(cell["last"] for cell in far) == STEPS - 1
    assert {cell["ranks"] for cell in cells} == {str(rank) for rank in range(300, 340)}


def test_the_section_is_open_and_has_the_table(page):
    section = page.find_element(By.ID, "ranks")
    assert section.get_attribute("open")
    assert "1 of 40 ranks differs" in section.text
    assert "317" in section.find_element(By.TAG_NAME, "table").text


@pytest.mark.parametrize("command", ["analyze", "recommend"])
def test_a_gate_on_ranks(command, logs, tmp_path):
    def gate(log, condition):
        done = subprocess.run([PROGRAM, command, log, "--fail-if", condition], capture_output=True, text=True)
        return done.returncode, done.stderr

    assert gate(logs["clean"], "ranks_differ > 0") == (0, "")
    assert gate(logs["ill"], "ranks_differ > 0") == (4, f"halfscope: {logs['ill']}: ranks_differ 1 > 0\n")
    assert gate(logs["ill"], "ranks_differ > 1")[0] == 0
    few = write_run(tmp_path / "few", range(2), steps=2)
    assert "ranks_differ has no value: 'ranks_differ > 0' is undecided" in gate(few, "ranks_differ > 0")[1]
    code, told = gate(logs["clean"] / "rank-0000", "ranks_differ > 0")
    assert (code, told.splitlines()[0]) == (2, "halfscope: --fail-if 'ranks_differ > 0': ranks_differ "
                                            "needs a log of several ranks")


def test_a_recorder_has_no_gate_on_ranks():
    from halfscope import _halfscope

    with pytest.raises(ValueError, match="a recorder sees its own rank alone"):
        _halfscope.field_of_step("ranks_differ > 0")
