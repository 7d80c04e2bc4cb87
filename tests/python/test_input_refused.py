# SPDX-License-Identifier: Apache-2.0
"""A file that is no log is refused in one line that says what it is and what to do."""

import gzip
import io
import re
import shlex
import shutil
import subprocess
import tarfile

import pytest

import halfscope
from log_inputs import OVERFLOW, zipped
from program import json_of, run


def picture():
    return b"\x89PNG\r\n\x1a\n" + bytes(64)


def tarred():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("train.log")
        entry.size = len(OVERFLOW)
        archive.addfile(entry, io.BytesIO(OVERFLOW.encode()))
    return file.getvalue()


REFUSED = [
    (tarred(), "is a tar archive; unpack it"),
    (picture(), "is a PNG image; name the log itself"),
    (gzip.compress(picture()), "is gzip of a PNG image"),
    (zipped(picture(), "a.png"), "is a ZIP archive of a PNG image"),
    (zipped(b"x", "a.log", extra=["b.log", "c/d.log"]), "is a ZIP archive of 3 files ('a.log', 'b.log', 'c/d.log')"),
    (b"%PDF-1.7\n", "is a PDF document"),
    (b"\x7fELF\x02\x01\x01" + bytes(99), "is an ELF program"),
    (b"<!DOCTYPE html><html><body>log</body></html>", "is an HTML page; save the log itself"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer without its file; fetch the file: git lfs pull"),
    (b"SQLite format 3\0" + bytes(99), "is an SQLite database"),
    (b"PAR1" + bytes(99), "is a Parquet file"),
    (b":W&B\x1a\xbe\x00", "is a run file of Weights & Biases"),
    (b"", "is empty"),
    (gzip.compress(b""), "is empty"),
    (bytes(4096), "is nothing but zeros"),
    (b"all done\n" * 9, "is text without any line that Halfscope knows: 9 lines, none with a name and a number, such as 'all done'; check that this file has the run's output; 'halfscope logs --kinds' lists"),
    (b"id,loss\n1,2.5\n2,2.25\n", "is a CSV file without a column 'step'; name the column of the steps 'step'"),
    (b"step,foo,bar\n1,2.5,1\n", "is a CSV file of which no column but 'step' has a name that Halfscope knows"),
    (gzip.compress(tarred()), "is gzip of a tar archive; unpack it"),
    (gzip.compress(gzip.compress(gzip.compress(b"loss: 1\n"))), "is gzip of text"),
]

KNOWS_NONE = "and no loss, gradient norm or loss scale that Halfscope knows"
TO_CHOOSE = "with {loss}, {grad_norm} or {loss_scale} in place of the {} that you mean"

# Text, what is seen in it, the pattern that is suggested for it as a shell takes it, and what of it is left to choose.
TEXTS = [
    ("it={}|objective 2.31|mult 65536\n", f"9 lines, 9 with a name and a number, such as 'it=1|objective 2.31|mult 65536', {KNOWS_NONE};",
     "'it={step}|objective {}|mult {}'", ", " + TO_CHOOSE),
    ("step {}  packet loss 0.5\n", f"such as 'step 1  packet loss 0.5', {KNOWS_NONE};", "'step {step} packet loss {}'", ", " + TO_CHOOSE),
    ('{{"epoch": {}, "xy": 2}}\n', KNOWS_NONE, """'epoch": {epoch}, "xy": {}'""", ", with {step} and {loss}, {grad_norm} or {loss_scale} in place of the {} that you mean"),
    ("round {} of 9: loss=2.5\n", "and no two with a step beside a loss, a gradient norm or a loss scale;",
     "'round {} of {}: loss={loss}'", ", with {step} in place of the {} that you mean"),
    ("2026-01-0{} 12:00:01 [worker's log] round {} cost 1e-5\n", "and no two with a step beside", "'round {} cost {loss}'", ", with {step} in place of the {} that you mean"),
    ("{{'it': {}, 'obj': 2.5}}\n", KNOWS_NONE, '"it\': {step}, \'obj\': {}"', ", " + TO_CHOOSE),
    ("{{'it': {}, 'o\"bj': 2.5}}\n", KNOWS_NONE, r"""'it'\'': {step}, '\''o"bj'\'': {}'""", ", " + TO_CHOOSE),
    ("it={} {{obj {{2.5}}}}\n", KNOWS_NONE, "'it={step} {{obj {{{}'", ", " + TO_CHOOSE),
    ('{{\n  "runs": [\n    {{"step": {}, "loss": 2.5}}\n]}}\n', "lines, 9 with a name and a number, such as '{\"step\": 1, \"loss\": 2.5}';",
     """'step": {step}, "loss": {loss}'""", ""),
]


@pytest.mark.parametrize("line, seen, pattern, choice", TEXTS, ids=[text[2] for text in TEXTS])
def test_a_refused_text_ends_with_a_pattern_that_reads_it(line, seen, pattern, choice, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("".join(line.format(*[step] * line.count("{}")) for step in range(1, 10)))
    _, err = run("analyze", log, expect=1)
    assert err.startswith(f"halfscope: {log}: is text without any line that Halfscope knows: ") and seen in err
    assert err.endswith(f"; if these are the run's output, name the values: --lines {pattern}{choice}\n"), err
    [_, given] = shlex.split(f"--lines {pattern}")
    filled = given if "loss}" in given else "{loss}".join(given.rsplit("{}", 1))
    [timeline] = json_of("analyze", log, "--lines", filled)["timeline"]
    assert timeline["last"] is not None
    with pytest.raises(halfscope.BadInput) as error:
        halfscope.analyze(log)
    assert eval(re.search(r"name the values: lines=(.*?)(, with|$)", str(error.value))[1]) == given


@pytest.mark.parametrize("data, message", REFUSED, ids=[message for _, message in REFUSED])
def test_a_refusal_says_what_the_file_is(data, message, tmp_path):
    (tmp_path / "file").write_bytes(data)
    _, err = run("analyze", tmp_path / "file", expect=1)
    assert f"{tmp_path / 'file'}: {message}" in err and err.count("\n") == 1, err
    assert "'halfscope logs --kinds' lists what it reads" in err


def test_a_pickle_is_named(tmp_path):
    import pickle

    (tmp_path / "file").write_bytes(pickle.dumps({"loss": [1.0, 2.0]}))
    _, err = run("analyze", tmp_path / "file", expect=1)
    assert "is a pickle of Python" in err and "safetensors" in err


def test_encrypted_archives_say_so(tmp_path):
    if shutil.which("zip") is None:
        pytest.skip("zip is not installed")
    (tmp_path / "a.log").write_text(OVERFLOW.format(2, 1))
    subprocess.run(["zip", "-q", "-P", "secret", "a.zip", "a.log"], cwd=tmp_path, check=True)
    _, err = run("analyze", tmp_path / "a.zip", expect=1)
    assert "encrypted" in err
