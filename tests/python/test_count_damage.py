# SPDX-License-Identifier: Apache-2.0
"""Records that are cut, damaged, of other settings or being written: each is named and changes
nothing."""

import random
import signal
import subprocess

import pytest

from counted_logs import answers, count, ranks, steps
from program import PROGRAM, run

__all__ = ["ranks", "steps"]  # fixtures


def test_what_is_no_record_is_not_written_over(ranks, tmp_path):
    run("count", ranks, "--out", tmp_path / "a.hst")
    page = tmp_path / "page.html"
    page.write_text("a page")
    told = run("merge", tmp_path / "a.hst", "--out", page, expect=1)[1]
    assert "page.html: is not a record" in told
    assert page.read_text() == "a page"


def test_what_is_there_is_not_counted_again(ranks, tmp_path):
    assert "4 parts." in count(ranks, tmp_path / "all.hst")[0]
    before = (tmp_path / "all.hst").read_bytes()
    assert "4 parts, 4 of them counted before." in count(ranks, tmp_path / "all.hst")[0]
    assert (tmp_path / "all.hst").read_bytes() == before


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.999])
def test_a_stopped_job_goes_on(ranks, tmp_path, share):
    count(ranks, tmp_path / "all.hst")
    whole = (tmp_path / "all.hst").read_bytes()
    (tmp_path / "all.hst").write_bytes(whole[:int(share * len(whole))])
    cut = run("merge", tmp_path / "all.hst", "--out", tmp_path / "merged.hst", expect=1)[1]
    assert "all.hst: ends in the middle of " in cut and "count it again" in cut
    assert not (tmp_path / "merged.hst").exists()
    count(ranks, tmp_path / "all.hst")
    assert (tmp_path / "all.hst").read_bytes() == whole


def test_a_killed_job_goes_on(ranks, tmp_path):
    count(ranks, tmp_path / "whole.hst")
    one = count(ranks, tmp_path / "one.hst", "--shard", "1/4")[0]
    assert "1 part" in one
    least = (tmp_path / "one.hst").stat().st_size
    with subprocess.Popen([PROGRAM, "count", ranks, "--out", tmp_path / "all.hst"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
        while job.poll() is None and (not (tmp_path / "all.hst").exists()
                                      or (tmp_path / "all.hst").stat().st_size < least):
            pass
        job.send_signal(signal.SIGKILL)
    count(ranks, tmp_path / "all.hst")
    assert (tmp_path / "all.hst").read_bytes() == (tmp_path / "whole.hst").read_bytes()


def test_one_process_writes_a_file(ranks, tmp_path):
    import fcntl
    with open(tmp_path / "all.hst", "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert "another process writes it" in count(ranks, tmp_path / "all.hst", expect=1)[1]


def test_damage_is_named_and_the_rest_stays(ranks, tmp_path):
    count(ranks, tmp_path / "all.hst")
    data = bytearray((tmp_path / "all.hst").read_bytes())
    data[int(0.6 * len(data))] ^= 4
    (tmp_path / "bad.hst").write_bytes(data)
    (tmp_path / "merged.hst").write_bytes(b"was here")
    told = run("merge", tmp_path / "bad.hst", "--out", tmp_path / "merged.hst", expect=1)[1]
    assert f"bad.hst: {ranks}/rank-0002 is damaged and left out; count it again" in told
    assert (tmp_path / "merged.hst").read_bytes() == b"was here"
    told = run("analyze", tmp_path / "bad.hst")[1]
    assert "is damaged" in told and "has 3 of the 4 ranks of its manifest" in told
    refused = count(ranks, tmp_path / "bad.hst", expect=1)[1]
    assert "and count into the copy" in refused and (tmp_path / "bad.hst").read_bytes() == data


def test_no_byte_changes_an_answer_unseen(steps, tmp_path):
    count(steps, tmp_path / "all.hst")
    data = (tmp_path / "all.hst").read_bytes()
    whole = run("analyze", tmp_path / "all.hst", "--json", "-")
    bad = tmp_path / "all.hst"
    for place in random.Random(3).sample(range(len(data)), 60):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        bad.write_bytes(changed)
        done = subprocess.run([PROGRAM, "analyze", bad, "--json", "-"], capture_output=True,
                              timeout=60, text=True)
        assert done.returncode in (0, 1)
        assert len(done.stderr.splitlines()) <= 6
        if done.returncode == 0:
            assert "damaged" in done.stderr or "ends in the middle" in done.stderr, place
        assert (done.stdout, done.stderr) != whole


def test_a_damaged_record_is_copied_with_a_message(ranks, tmp_path):
    count(ranks, tmp_path / "all.hst")
    data = bytearray((tmp_path / "all.hst").read_bytes())
    data[int(0.6 * len(data))] ^= 4
    (tmp_path / "bad.hst").write_bytes(data)
    told = count(tmp_path / "bad.hst", tmp_path / "new.hst")[1]
    assert "rank-0002 is damaged and left out" in told
    count(ranks, tmp_path / "new.hst")
    run("merge", tmp_path / "new.hst", "--out", tmp_path / "new.hst")
    assert (tmp_path / "new.hst").read_bytes() == (tmp_path / "all.hst").read_bytes()


def test_merge_leaves_a_file_alone_that_is_being_written(ranks, tmp_path):
    import fcntl
    count(ranks, tmp_path / "all.hst")
    whole = (tmp_path / "all.hst").read_bytes()
    with open(tmp_path / "all.hst", "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        told = run("merge", tmp_path / "all.hst", "--out", tmp_path / "all.hst", expect=1)[1]
    assert "another process writes it" in told
    assert (tmp_path / "all.hst").read_bytes() == whole


def test_a_record_cut_in_its_first_bytes_is_begun_anew(ranks, tmp_path):
    count(ranks, tmp_path / "once.hst")
    whole = (tmp_path / "once.hst").read_bytes()
    for size in (0, 1, 20, 37):
        (tmp_path / "cut.hst").write_bytes(whole[:size])
        count(ranks, tmp_path / "cut.hst")
        assert (tmp_path / "cut.hst").read_bytes() == whole


def test_a_record_is_a_file(ranks, tmp_path):
    assert "--out: found '-', expected the path of a file" in count(ranks, "-", expect=2)[1]
    assert "expected a file to write" in count(ranks, tmp_path, expect=1)[1]


def test_hostile_parts_get_a_line_each(ranks, steps, tmp_path):
    count(ranks, tmp_path / "good.hst")
    count(steps, tmp_path / "other.hst", "--role", "*=activation")
    count(steps, tmp_path / "mine.hst")
    (tmp_path / "text.hst").write_text("no record\n")
    (tmp_path / "empty.hst").write_bytes(b"")
    data = (tmp_path / "good.hst").read_bytes()
    (tmp_path / "cut.hst").write_bytes(data[:len(data) - 7])
    names = ["text.hst", "empty.hst", "cut.hst", "other.hst", "nowhere.hst"]
    told = run("merge", tmp_path / "good.hst", tmp_path / "mine.hst",
               *(tmp_path / name for name in names), "--out", tmp_path / "all.hst", expect=1)[1]
    lines = told.splitlines()
    assert lines[-1] == f"halfscope: {tmp_path / 'all.hst'}: not written"
    for name in names:
        assert sum(f"{tmp_path / name}: " in line for line in lines) >= 1, name
    assert "counted with other options" in told
    assert not (tmp_path / "all.hst").exists()


def test_settings_of_one_file_agree(steps, tmp_path):
    count(steps, tmp_path / "all.hst", "--recorded-scale", "1024", "--shard", "1/2")
    told = count(steps, tmp_path / "all.hst", expect=1)[1]
    assert "counted with --recorded-scale 1024, and this one is to be counted without options" in told


@pytest.mark.parametrize("options, named", [
    (["--role", "*=weight"], "--role"), (["--recorded-scale", "8"], "--recorded-scale"),
    (["--as", "bf16"], "--as"), (["--ranks", "2"], "--ranks")])
def test_options_of_reading_come_too_late(steps, tmp_path, options, named):
    count(steps, tmp_path / "all.hst")
    told = run("analyze", tmp_path / "all.hst", *options, expect=1)[1]
    assert f"is counted already, so {named}" in told


def test_a_counted_record_keeps_its_options(steps, tmp_path):
    count(steps, tmp_path / "first.hst", "--recorded-scale", "1024")
    count(tmp_path / "first.hst", tmp_path / "again.hst")
    assert (tmp_path / "again.hst").read_bytes() == (tmp_path / "first.hst").read_bytes()
    told = count(tmp_path / "first.hst", tmp_path / "other.hst", "--role", "*=weight", expect=1)[1]
    assert "is counted already, so --role" in told


def test_one_file_has_one_setting_for_a_log(steps, tmp_path):
    count(steps, tmp_path / "all.hst", "--recorded-scale", "8", "--shard", "1/2")
    told = count(steps, tmp_path / "all.hst", "--shard", "2/2", expect=1)[1]
    assert f"has parts of {steps} that were counted with --recorded-scale 8, and this one" in told


def test_parts_that_do_not_belong_together_are_not_read(steps, tmp_path):
    """Files that somebody joined by hand: the same part twice is one, others are refused."""
    for name, options in (("a", ()), ("b", ("--recorded-scale", "8"))):
        count(steps, tmp_path / f"{name}.hst", *options)
    parts = {name: (tmp_path / f"{name}.hst").read_bytes() for name in "ab"}
    (tmp_path / "twice.hst").write_bytes(parts["a"] * 2)
    assert answers(tmp_path / "twice.hst") == answers(tmp_path / "a.hst")
    (tmp_path / "mixed.hst").write_bytes(parts["a"] + parts["b"])
    told = run("analyze", tmp_path / "mixed.hst", expect=1)[1]
    assert "was counted with other options (--recorded-scale 8) than in" in told
    assert len(told.splitlines()) == 1
    merged = run("merge", tmp_path / "a.hst", tmp_path / "b.hst", "--out", tmp_path / "c.hst", expect=1)[1]
    assert merged.count("count all parts of a log with the same") == 1


def test_a_log_that_is_not_there_is_refused_by_every_shard(tmp_path):
    out = tmp_path / "part.hst"
    for shard in ("1/8", "2/8"):
        told = count(tmp_path / "nowhere", out, "--shard", shard, expect=1)[1]
        assert "nowhere: no such file or folder; check the path" in told
        assert not out.exists()


def test_shards_are_checked(steps, tmp_path):
    for shard in ("0/2", "3/2", "1", "a/b", "1/2/3", "-1/2"):
        told = count(steps, tmp_path / "all.hst", f"--shard={shard}", expect=2)[1]
        assert f"--shard: found '{shard}', expected I/N" in told
    count(steps, tmp_path / "all.hst", "--shard", "9/9")
    assert "holds no part" in run("analyze", tmp_path / "all.hst", expect=1)[1]
