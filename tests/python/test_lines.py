# SPDX-License-Identifier: Apache-2.0
"""--lines: a pattern with names in braces for console lines that no grammar guesses."""

import gzip

import pytest

import halfscope
from program import ROOT, json_of, run

PATTERN = "it={step}|objective {loss}|mult {loss_scale}"
OVERFLOW = "OVERFLOW! Skipping step. Attempted loss scale: 65536, reducing to 32768\n"


def lines(scales, form="2026-01-01 12:00:{step:02} W it={step:05}|objective {loss}|mult {scale}\n", **more):
    return [form.format(step=step, loss=round(3 - step / 100, 2), scale=scale, **more)
            for step, scale in enumerate(scales, 1)]


def collapsing():
    """Every step is printed, with the scale after it: from step 4 on it falls at each."""
    return lines([65536] * 3 + [2.0 ** -k for k in range(1, 30)])


def written(path, text):
    path.write_text("".join(text))
    return path


def timeline(log, *arguments, pattern=PATTERN):
    [found] = json_of("analyze", log, "--lines", pattern, *arguments)["timeline"]
    return found


def test_a_log_that_nothing_reads_is_read_by_a_pattern(tmp_path):
    log = written(tmp_path / "train.log", collapsing())
    run("analyze", log, expect=1)
    found = timeline(log)
    assert (found["first"], found["last"], found["state"]) == (1, 32, "collapsed")
    assert found["last_scale"] == 2.0 ** -29
    named = [line.replace(" W it=", ", step: ").replace("|objective ", ", loss: ").replace("|mult ", ", loss scale: ")
             for line in collapsing()]
    known = written(tmp_path / "known.log", named)
    [same] = json_of("analyze", known)["timeline"]
    assert {**found, "log": ""} == {**same, "log": ""}


def test_every_command_takes_it(tmp_path):
    log = written(tmp_path / "train.log", collapsing())
    assert run("recommend", log, "--lines", PATTERN)[0].startswith("The loss scale collapsed")
    run("report", log, "--lines", PATTERN, "--out", tmp_path / "page.html")
    assert "The loss scale collapsed" in (tmp_path / "page.html").read_text()
    told = written(tmp_path / "told.log", [f"b{step} mult {2 ** 16} bad {step == 7}\n" for step in range(1, 41)])
    [torch] = json_of("policies", told, "--lines", "b{step} mult {loss_scale} bad {overflow}",
                      "--policy", "static,scale=2^16")
    assert torch["skipped"] == [7] and len(torch["scale"]) == 40
    run("count", log, "--lines", PATTERN, "--out", tmp_path / "log.hst")
    assert run("recommend", tmp_path / "log.hst")[0].startswith("The loss scale collapsed")
    _, err = run("recommend", tmp_path / "log.hst", "--lines", PATTERN, expect=1)
    assert "is counted already, so --lines comes too late" in err
    (tmp_path / "log.gz").write_bytes(gzip.compress(log.read_bytes()))
    assert timeline(tmp_path / "log.gz")["state"] == "collapsed"
    out, _ = run("recommend", "-", "--lines", PATTERN, input=log.read_bytes())
    assert out.startswith("The loss scale collapsed")


def test_messages_of_skipped_steps_count_beside_it(tmp_path):
    text = lines([65536] * 4 + [32768] * 6)
    text.insert(4, OVERFLOW)
    found = timeline(written(tmp_path / "train.log", text))
    assert (found["skipped"], found["skipped_steps"]) == (1, [5])


def test_pairs_of_other_lines_are_not_read(tmp_path):
    text = lines([65536] * 10)
    noise = [f"step: {step}, loss: nan, grad norm: nan, loss scale: 1\n" for step in range(100, 300)]
    assert timeline(written(tmp_path / "train.log", text + noise))["last"] == 10
    assert timeline(written(tmp_path / "train.log", text + noise), pattern="step: {step}, loss: {loss},")["last"] == 299


def test_a_line_that_matches_is_read_by_the_pattern_alone(tmp_path):
    form = "it={step}|objective {loss}|mult {scale} loss nan grad_norm inf step 900 skipped 7\n"
    found = timeline(written(tmp_path / "train.log", lines([64] * 9, form)))
    assert (found["last"], found["state"], found.get("skipped")) == (9, "normal", None)


def test_lines_without_a_step_are_entries(tmp_path):
    log = written(tmp_path / "train.log", lines([65536] * 3 + [2.0 ** -k for k in range(1, 30)]))
    found = timeline(log, pattern="|objective {loss}|mult {loss_scale}")
    assert (found["first"], found["last"], found["state"]) == (0, 31, "collapsed")


def test_batches_of_epochs_and_counters(tmp_path):
    form = "e{epoch} b{step} obj {loss} lost {skipped}\n"
    text = [form.format(epoch=epoch, step=step, loss=1, skipped=0) for epoch in (1, 2) for step in range(1, 11)]
    log = written(tmp_path / "train.log", text)
    assert timeline(log, pattern="e{epoch} b{step} obj {loss}")["last"] == 20
    text = [form.format(epoch=1, step=10 * step, loss=1, skipped=step // 2) for step in range(1, 11)]
    found = timeline(written(tmp_path / "train.log", text), pattern="b{step} obj {loss} lost {skipped}")
    assert (found["skipped"], found["last"]) == (5, 100)
    text = [f"b{step} bad {step % 5 == 0}\n" for step in range(1, 21)]
    found = timeline(written(tmp_path / "train.log", text), pattern="b{step} bad {overflow}")
    assert (found["skipped"], found["skipped_steps"]) == (4, [5, 10, 15, 20])


def test_files_of_a_folder_that_have_no_such_line_are_left_out(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    written(folder / "train.log", collapsing())
    written(folder / "notes.txt", ["step: 1, loss: 2\n", "step: 2, loss: 2\n"])
    (folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    assert timeline(folder)["state"] == "collapsed"


LOG = "".join(collapsing()[:5])

REFUSED = [
    ("iter", "--lines 'iter': names no value of a step; put names in braces, such as 'step {step} loss {loss}'"),
    ("it={foo}", "--lines 'it={foo}': {foo} is unknown; use {global_step}, {updates}, {step}, {epoch}, {loss}, {lr}, "
     "{loss_scale}, {log2_loss_scale}, {overflow}, {grad_norm}, {evaluation_loss}, {nan_iterations}, {skipped}, {skipped_interval}, or {} for any text"),
    ("{loss}|{loss}", "--lines '{loss}|{loss}': {loss} stands twice; write {} in place of one of them"),
    ("it={step", "--lines 'it={step': a brace is opened but not closed; write {{ for one in the line"),
    ("it=step}", "--lines 'it=step}': a brace is closed but not opened; write }} for one in the line"),
    ("it={step}{loss}", "--lines 'it={step}{loss}': nothing stands between {loss} and the name before it; put text of the line there"),
    ("it:{step}|objective {loss}", "{log}: none of its 5 lines matches --lines 'it:{step}|objective {loss}'; the most similar one is "
     "'2026-01-01 12:00:01 W it=00001|objective 2.99|mult 65536'; outside braces each character must be the same"),
]


@pytest.mark.parametrize("pattern, said", REFUSED, ids=[pattern for pattern, _ in REFUSED])
def test_what_cannot_be_meant_is_refused(pattern, said, tmp_path):
    log = written(tmp_path / "train.log", LOG)
    wanted = said.replace("{log}", str(log))
    for command in (["analyze"], ["recommend"], ["policies"], ["report", "--out", tmp_path / "page.html"],
                    ["count", "--out", tmp_path / "log.hst"]):
        out, err = run(command[0], log, *command[1:], "--lines", pattern, expect=2)
        assert (out, err) == ("", f"halfscope: {wanted}\n")
    in_python = wanted.replace("--lines ", "lines=")
    for function in (halfscope.analyze, halfscope.recommend, halfscope.report, halfscope.policies, halfscope.count):
        with pytest.raises(ValueError) as error:
            function(log, lines=pattern)
        assert str(error.value) == in_python


def test_the_most_similar_line_is_cut(tmp_path):
    log = written(tmp_path / "train.log", ["nothing\n", "it " + "x" * 100 + "\n", "nothing\n"])
    _, err = run("analyze", log, "--lines", "it={loss} it", expect=2)
    assert f"the most similar one is 'it {'x' * 57}..';" in err
    _, err = run("analyze", log, "--lines", "it {loss} {{ {} }} {{", expect=2)
    assert "the most similar one is 'it xxx" in err


def test_it_is_of_text(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    _, err = run("analyze", tmp_path / "a.png", "--lines", PATTERN, expect=2)
    assert err.endswith("a.png: holds no text, and --lines names values in lines of text; leave it out\n")
    _, err = run("analyze", tmp_path / "none", "--lines", PATTERN, expect=1)
    assert "no such file or folder" in err
    _, err = run("policies", "--amax", tmp_path / "none", "--lines", PATTERN, expect=2)
    assert "--lines" in err


def test_python_takes_it(tmp_path):
    log = written(tmp_path / "train.log", collapsing())
    [found] = halfscope.analyze(log, lines=PATTERN)["timeline"]
    assert found["state"] == "collapsed"
    assert str(halfscope.recommend(log, lines=PATTERN)).startswith("The loss scale collapsed")
    assert halfscope.count(log, lines=PATTERN).logs
    with pytest.raises(TypeError, match="lines is 3, expected a pattern"):
        halfscope.analyze(log, lines=3)
    with pytest.raises(ValueError, match="lines and assume_constant_between need a log"):
        halfscope.policies(amax=[1.0], lines=PATTERN)


def test_the_page_of_logs_has_every_name():
    _, err = run("analyze", ROOT / "README.md", "--lines", "{x}", expect=2)
    names = err.split("use ")[1].split(", or")[0].split(", ")
    page = (ROOT / "docs/logs.md").read_text()
    assert len(names) == 14 and all(f"`{name}`" in page for name in names)
    assert all(name in run("analyze", "--help")[0] for name in names)


def test_the_kinds_of_logs_are_listed():
    kinds = run("logs", "--kinds")[0].splitlines()
    assert len(kinds) == 17
    assert kinds[0] == "folders of a run log for each rank" and any(kind.startswith("console logs") for kind in kinds)
    assert "--kinds" in run("logs", expect=2)[1]
