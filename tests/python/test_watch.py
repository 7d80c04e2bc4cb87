# SPDX-License-Identifier: Apache-2.0
"""`halfscope watch` follows logs that grow: its figures are those of `recommend` for what is there."""
import argparse
import builtins
import json
import os
import shutil
import subprocess

import numpy
import pytest

import halfscope
from halfscope import _halfscope
from halfscope.watch import _scale, _Watch, figures, follow
from halfscope.watch.follow import Follower
from program import DIGITS, PROGRAM, ROOT, json_of

CONSOLE = ROOT / "tests/data/console/deepspeed-slow-start.txt"
STEPS = "step 1: loss 2\nstep 2: loss 1\n"


class Watched:
    def __init__(self, run, tmp_path, **options):
        self.follower = Follower(os.fspath(run), os.fspath(tmp_path / "copy"))
        self.reading = {"lines": None, "recorded_scale": None, **options}

    def look(self):
        """The figures after a look that must find something new."""
        assert self.follower.poll()
        return figures.read(self.follower, **self.reading)


@pytest.fixture
def watched(tmp_path):
    return lambda run, **options: Watched(run, tmp_path, **options)


def writer(folder, **manifest):
    about = {"scaled": False, "rank": 0, "world_size": 1, "sharded": [], "about": {}, **manifest}
    return _halfscope.RunLogWriter(os.fspath(folder), json.dumps(about))


SCALARS, RECORDS, _ = _halfscope.read_run_log(os.fspath(DIGITS))


def write(log, steps, tensors=True, scalars=True, **changed):
    for step in steps:
        here = [(r["name"], _halfscope.Gathered.of(r["table"], r["source_dtype"], r["shape"], r["mean"],
                                                   r["sum_squares"]), r["scaled"], r["scale"])
                for r in RECORDS if r["step"] == step % 901]
        if here and tensors:
            log.write_tensors(step, here)
        if scalars:
            log.write_scalars(step=step, **{**SCALARS[step % 901], **changed})


def test_figures_are_those_of_the_program(watched):
    found = watched(DIGITS).look()
    advice, counted = json_of("recommend", DIGITS), json_of("analyze", DIGITS)
    assert found.headline == advice["answer"]["headline"]
    assert (found.first, found.step, found.loss, found.scale) == (0, 900, SCALARS[900]["loss"], 1)
    assert found.skipped == 0
    assert found.flushed == f"{100 * advice['flushed_at_1']['share']:.1f} %"
    weights = [tensor for tensor in counted["tensors"] if "updates" in tensor]
    lost = sum(w["swamped"] + w["update_underflow"] for w in weights) / sum(w["updates"] for w in weights)
    assert found.lost == f"{100 * lost:.1f} %"

    shares = {t["name"]: t["flushed_to_zero"] / (t["total"] - t["zero"]) for t in counted["tensors"]
              if t["role"].endswith("_grad")}
    assert [row[0] for row in found.tensors] == sorted(shares, key=shares.get, reverse=True)[:5]
    assert sum(found.histogram.values()) == advice["flushed_at_1"]["of"]
    assert found.bands["recommended scale 2^15"][0][2] == -25 - 15


def test_a_run_log_grows(watched, tmp_path):
    run = tmp_path / "run"
    log, seen = writer(run), watched(run)
    write(log, range(100), loss_scale=4.0)
    write(log, [100], loss_scale=2.0, found_inf=True)
    found = seen.look()
    assert (found.step, found.scale, found.skipped) == (100, 2, 1)
    assert found.headline == halfscope.recommend(run).answer.headline
    assert found.sentence.startswith("FP16 at loss scale 2 (2^1):")

    write(log, [300], scalars=False)  # its scalars are still to come
    assert seen.look().sentence == found.sentence
    write(log, range(101, 301), tensors=False)
    later = seen.look()
    assert later.sentence != found.sentence
    assert later.headline == halfscope.recommend(run).answer.headline != found.headline
    assert not seen.follower.poll()


def test_what_is_there_is_not_read_again(watched, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(DIGITS, run)
    seen = watched(run)
    assert seen.follower.poll()
    monkeypatch.setattr(builtins, "open", lambda *_: pytest.fail("opened"))
    assert not seen.follower.poll()
    monkeypatch.undo()
    events = next(run.glob("*tfevents*"))
    read = []
    monkeypatch.setattr(follow, "open", lambda *how: read.append(how[0]) or open(*how), raising=False)
    with open(events, "ab") as file:
        file.write(b"\x10")
    assert seen.follower.poll()
    assert [os.path.basename(path) for path in read] == [events.name] * 2  # the log, and its copy


def test_a_large_log_is_read_from_its_end(watched, tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "MOST", 400_000)
    run = tmp_path / "run"
    log = writer(run)
    write(log, range(850))
    write(log, range(850, 901), found_inf=True)
    seen = watched(run)
    found = seen.look()
    copy = sum(file.stat().st_size for file in (tmp_path / "copy").rglob("*tfevents*"))
    assert seen.follower.cut and 99_000 < copy < 101_000
    assert 0 < found.first and found.step == 900
    assert found.headline == halfscope.recommend(run, steps=slice(found.first + 1, None)).answer.headline

    compared, skipped = 0, found.skipped
    assert 0 < skipped <= 51
    for begin in range(901, 2703, 100):  # cut again and again
        write(log, range(begin, begin + 100))
        found = seen.look()
        copy = sum(file.stat().st_size for file in (tmp_path / "copy").rglob("*tfevents*"))
        assert copy < 401_000
        assert (found.step, found.skipped) == (begin + 99, skipped)  # also when these steps are cut off
        if any(found.first < record["step"] + 901 * k < begin + 100 for record in RECORDS for k in range(4)):
            compared += 1
            assert found.headline == halfscope.recommend(
                run, steps=slice(found.first + 1, None)).answer.headline
    assert compared > 10


def test_a_record_that_is_half_written(watched, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(DIGITS, run)
    events = next(run.glob("*tfevents*"))
    data = events.read_bytes()
    seen = watched(run)
    events.write_bytes(data[:400_000])
    first = seen.look()
    for end in range(400_001, 400_200, 37):
        with open(events, "ab") as file:
            file.write(data[events.stat().st_size:end])
        seen.look()
    with open(events, "ab") as file:
        file.write(data[events.stat().st_size:])
    assert seen.look().headline == halfscope.recommend(DIGITS).answer.headline
    assert first.step < 900


def test_a_folder_of_tensorboard_grows(watched, tmp_path):
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    run = tmp_path / "tb"
    seen, log = None, EventFileWriter(str(run / "train"))
    histogram = HistogramProto(min=-2**-10, max=2**-10, num=20, sum=0, sum_squares=1e-6,
                               bucket_limit=[-2**-26, 2**-26, 2**-9], bucket=[8, 3, 9])
    for step in range(0, 30, 10):
        value = Summary.Value
        log.add_event(Event(step=step, summary=Summary(value=[
            value(tag="train/loss", simple_value=2 - step / 16), value(tag="loss_scale", simple_value=1024),
            value(tag="grad/conv1.weight", histo=histogram)])))
        log.flush()
        seen = seen or watched(run)
        found = seen.look()
        assert (found.step, found.loss, found.scale, found.skipped) == (step, 2 - step / 16, 1024, None)
    assert found.flushed.startswith("0 % to ")  # a bucket hides what becomes zero
    assert f" {found.flushed} become zero" in found.sentence
    assert found.headline == halfscope.recommend(run).answer.headline
    assert found.note.startswith(f"{run}: is no log itself")


def test_a_console_log_grows_by_parts_of_lines(watched, tmp_path):
    run, data = tmp_path / "train.log", CONSOLE.read_bytes()
    run.write_bytes(b"")
    seen = watched(run)
    with pytest.raises(halfscope.BadInput, match="train.log: is empty"):
        seen.look()
    third = len(data) // 3
    for end in (third, 2 * third, len(data)):
        run.write_bytes(data[:end])  # the same file, as long as before or longer
        found = seen.look()
        whole = tmp_path / "whole.log"
        whole.write_bytes(data[:data.rfind(b"\n", 0, end) + 1])
        assert found.headline == halfscope.recommend(whole).answer.headline
    assert (found.step, found.scale, found.skipped) == (60, 32768, 17)
    with open(run, "a") as file:
        file.write("step 70: loss 2.")
        file.flush()
        assert not seen.follower.poll()
        file.write("25\n")
    assert seen.look().loss == 2.25
    assert seen.follower.restarts == 0
    assert found.flushed is found.lost is found.sentence is None


def test_a_long_console_log_is_read_from_a_line_on(watched, tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "MOST", 4000)
    run = tmp_path / "train.log"
    run.write_text("".join(f"step {step}: loss {step / 1000}\n" for step in range(1000)))
    seen = watched(run)
    found = seen.look()
    assert (found.step, found.loss) == (999, 0.999)
    assert 900 < found.first
    assert (tmp_path / "copy/train.log").read_text().startswith(f"step {found.first}: ")


def test_histograms_alone(watched, tmp_path, monkeypatch):
    """A log of TensorBoard without scalars. When it is cut, its first step may be half there."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    log = EventFileWriter(str(tmp_path / "tb"))
    histogram = HistogramProto(min=-2**-10, max=2**-10, num=20, sum=0, sum_squares=1e-6,
                               bucket_limit=[-2**-26, 2**-26, 2**-9], bucket=[8, 3, 9])
    for step in range(100, 200):
        log.add_event(Event(step=step, summary=Summary(value=[
            Summary.Value(tag="weights/conv1", histo=histogram)])))
    log.close()
    assert (whole := watched(tmp_path / "tb").look()).step == 199
    assert whole.first == 100 and whole.loss is None
    monkeypatch.setattr(follow, "MOST", 4000)
    seen = watched(tmp_path / "tb")
    found = seen.look()
    assert seen.follower.cut and 100 < found.first < found.step == 199
    assert figures._complete(seen.follower, [], {150, 151}) == slice(151, None)


def test_the_share_that_becomes_zero_at_any_scale(watched, tmp_path):
    log, seen = writer(tmp_path / "run"), watched(tmp_path / "run")
    for begin, scale in ((0, 3.0), (301, 768.0), (602, 1e-9)):  # no powers of two
        write(log, range(begin, begin + 301), loss_scale=scale)
        found = seen.look()
        assert found.scale == scale
        assert f", {found.flushed} become zero, " in found.sentence


@pytest.mark.parametrize("how", ["truncated", "replaced", "rewritten", "made anew"])
def test_a_log_that_is_replaced(watched, tmp_path, how):
    run = tmp_path / "train.log"
    lines = [f"step {step}: loss {step / 1000}\n" for step in range(300)]
    run.write_text("".join(lines[:100]))
    seen = watched(run)
    assert (seen.look().first, seen.follower.restarts) == (0, 0)
    if how == "replaced":
        (tmp_path / "new").write_text("".join(lines[200:]))
        os.replace(tmp_path / "new", run)
    elif how == "rewritten":  # and longer than before
        run.write_text("".join(lines[150:]))
    elif how == "truncated":
        run.write_text("".join(lines[200:250]))
    else:
        run.unlink()
        with pytest.raises(FileNotFoundError):
            seen.follower.poll()
        run.write_text("".join(lines[200:]))
    found = seen.look()
    assert seen.follower.restarts == 1
    assert (found.first, found.step) == (150 if how == "rewritten" else 200, 249 if how == "truncated" else 299)


def test_a_log_that_becomes_binary(watched, tmp_path):
    run = tmp_path / "train.log"
    run.write_text(STEPS)
    seen = watched(run)
    assert seen.look().step == 2
    run.write_bytes(b"PK\0" * 7)
    with pytest.raises(halfscope.BadInput, match="train.log: holds no event file"):
        seen.look()
    run.write_bytes(bytes(30) + STEPS.encode())  # its writer goes on after `> train.log`
    assert seen.look().step == 2


def test_json_is_written_whole(watched, tmp_path):
    """Also with as many bytes as before."""
    run = tmp_path / "run"
    run.mkdir()
    watched_copy = tmp_path / "copy/run/state.json"
    seen = watched(run)
    for text in ('{"a": 1' + " " * 300 + "}", '{"a": 2' + " " * 300 + "}", '{"a": 3' + " " * 400 + "}"):
        (run / "state.json").write_text(text)
        assert seen.follower.poll()
        assert watched_copy.read_text() == text
    assert seen.follower.restarts == 0


def test_a_folder_is_made_anew_between_two_looks(watched, tmp_path):
    run = tmp_path / "run"
    write(writer(run), range(50), found_inf=True)
    seen = watched(run)
    assert seen.look().skipped == 50
    shutil.rmtree(run)
    log = writer(run)
    write(log, range(100, 120), found_inf=True)
    assert seen.look().skipped == 20
    assert seen.follower.restarts == 1
    write(log, range(120, 130), found_inf=True)
    assert seen.look().skipped == 30
    assert seen.follower.restarts == 1


def test_an_error_between_two_files_loses_no_change(watched, tmp_path, monkeypatch):
    run = tmp_path / "run"
    run.mkdir()
    for name in "ab":
        (run / f"{name}.log").write_text(STEPS)
    seen = watched(run)
    seen.look()
    for name in "ab":
        (run / f"{name}.log").write_text(f"{STEPS}step 3: loss 1\n")

    def opened(path, how):
        if path == os.fspath(run / "a.log"):  # the second one: the last by name is the first
            raise OSError(116, "Stale file handle")
        return open(path, how)

    monkeypatch.setattr(follow, "open", opened, raising=False)
    with pytest.raises(OSError, match="Stale"):
        seen.follower.poll()
    (run / "a.log").write_text(STEPS)
    monkeypatch.undo()
    assert seen.look().step == 3
    assert not seen.follower.poll()


def test_an_error_that_passes(watched, tmp_path, monkeypatch):
    """Others end the command after some seconds."""
    run = tmp_path / "train.log"
    run.write_text(STEPS)
    shown = _Watch(Follower(os.fspath(run), os.fspath(tmp_path)), lambda: None)
    monkeypatch.setattr(shown._follower, "poll", lambda: os.stat(run / "none"))
    shown._changed = False
    shown.look()
    shown._there -= 6
    with pytest.raises(halfscope.BadInput, match="train.log/none: Not a directory; start again"):
        shown.look()


@pytest.mark.parametrize("text", [
    "1024", "1e4", "+1024", "-1", "0", ".5", "1.", "1e+4", "1E4", "1e50", "1e-45", "inf", "NaN", "1e400", "2^16",
    "2^-3", "2^", "2^x", "2^999999", "0x10", " 5", "5 ", "train/scale", "scale 2", "1,024", "1024.0.0", "e4"])
def test_a_scale_is_read_as_by_the_program(text):
    ran = subprocess.run([PROGRAM, "recommend", DIGITS, "--recorded-scale", text], capture_output=True, text=True)
    try:
        scale = _scale(text)
    except argparse.ArgumentTypeError as error:
        assert f"--recorded-scale: {str(error).split(', ')[0]}" in ran.stderr and ran.returncode
    else:
        assert ("has no scalar" in ran.stderr) == isinstance(scale, str), (scale, ran.stderr)
        assert (ran.returncode == 0) == isinstance(scale, float)


def test_a_folder_that_is_emptied(watched, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(DIGITS, run)
    seen = watched(run)
    seen.look()
    shutil.rmtree(run)
    run.mkdir()
    with pytest.raises(halfscope.BadInput, match=r"run: holds no file"):
        seen.look()
    write(writer(run), range(20))
    found = seen.look()
    assert (found.step, found.lost) == (19, None)


def test_files_of_a_folder(watched, tmp_path, monkeypatch):
    """Binary files and hidden ones are left out, the last event files count first."""
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.setattr(follow, "MOST", 4000)
    (run / "weights.bin").write_bytes(b"PK\0" * 2000)
    (run / ".hidden.log").write_text("step 7: loss 1\n")
    os.mkfifo(run / "pipe")
    (run / "train.log").write_text("step 1: loss 2\nstep 2: loss 1\n")
    seen = watched(run)
    found = seen.look()
    assert (found.step, found.loss, seen.follower.cut) == (2, 1, False)
    assert sorted(os.listdir(tmp_path / "copy/run")) == ["train.log"]


def test_the_newest_event_files_count(watched, tmp_path, monkeypatch):
    run = tmp_path / "run"
    write(writer(run), range(901))
    first = next(run.glob("*tfevents*"))
    monkeypatch.setattr(follow, "MOST", first.stat().st_size - 1000)
    first.rename(run / "events.out.tfevents.1.first.1.0")
    other = tmp_path / "other"
    write(writer(other), range(901, 1802))
    next(other.glob("*tfevents*")).rename(run / "events.out.tfevents.2.second.1.0")
    seen = watched(run)
    found = seen.look()
    assert found.first > 901 and found.step == 1801
    assert seen.follower.cut
    assert not seen.follower.poll()


def test_samples_and_ranks(watched, tmp_path, monkeypatch):
    run = tmp_path / "run"
    for rank in range(2):
        shutil.copytree(DIGITS, run / f"rank-{rank:04}")
        manifest = run / f"rank-{rank:04}/run.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "rank": rank, "world_size": 2}))
    tensors = run / "rank-0000/tensors"
    (tensors / "step-000900.safetensors").rename(tmp_path / "later")
    seen = watched(run)
    found = seen.look()
    assert found.headline == halfscope.recommend(run).answer.headline
    os.rename(tmp_path / "later", tensors / "step-000900.safetensors")
    assert seen.look().lost == watched(DIGITS).look().lost != found.lost

    monkeypatch.setattr(follow, "MOST", 1000)  # less than a sample: the newest alone
    seen.follower.poll()
    assert os.listdir(tmp_path / "copy/run/rank-0000/tensors") == ["step-000900.safetensors"]


@pytest.mark.parametrize("name", ["two-engines", "apex-at-minimum", "megatron-nan-norm", "deepspeed-clean"])
def test_the_headline_is_the_program_s(watched, name):
    log = ROOT / f"tests/data/console/{name}.txt"
    advice = halfscope.recommend(log)
    found = watched(log).look()
    assert found.headline == advice.answer.headline and found.action == (advice.answer.action or "")
    counts = advice.timeline[0].skipped
    assert found.skipped == (f"{counts[0]} to {counts[1]}" if isinstance(counts, list) else counts)


def test_options_reach_the_reader(watched, tmp_path):
    run = tmp_path / "own.log"
    run.write_text("".join(f"it={step}|objective {1 / step}|mult 512\n" for step in range(1, 20)))
    with pytest.raises(halfscope.BadInput, match="own.log"):
        watched(run).look()
    found = watched(run, lines="it={step}|objective {loss}|mult {loss_scale}").look()
    assert (found.step, found.scale) == (19, 512)


def test_names_from_a_log_cannot_steer_the_terminal(watched, tmp_path):
    run = tmp_path / "run"
    log = writer(run)
    for step in range(3):
        for role, values in (("weight", [float("nan"), 1]), ("weight_grad", [float("nan"), 1e-9])):
            table = halfscope.binade_table(numpy.float32(values))
            log.write_tensors(step, [(f"{role}/\x1b[2J\u202e", _halfscope.Gathered.of(
                table, "F32", [2], 0.5, 1.0), False, 1.0)])
        log.write_scalars(step=step, **SCALARS[0])
    found = watched(run).look()
    assert "[2J" in found.headline and "[2J" in str(found.tensors)
    shown = repr(vars(found))
    assert "\\x1b" not in shown and "\\u202e" not in shown
