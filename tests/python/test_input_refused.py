# SPDX-License-Identifier: Apache-2.0
"""A file that is no log is refused in one line that says what it is and what to do."""

import gzip
import io
import shutil
import subprocess
import tarfile

import pytest
from log_inputs import OVERFLOW, run, zipped


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
    (b"epoch 1 done\n" * 9, "is text without any line that Halfscope knows; its most frequent line is like 'epoch 1 done', and no two lines have a step beside a loss, a gradient norm or a loss scale; check that "
     "this file has the run's output, or write its values as a CSV file with the columns step, loss and loss_scale"),
    (b'{"epoch": 1, "xy": 2}\n' * 9, "is text without any line that Halfscope knows"),
    (b'{\n  "runs": [\n' + b'    {"step": 1, "loss": 2.5},\n' * 9 + b"  ]\n}\n", "is text without any line"),
    (b"id,loss\n1,2.5\n2,2.25\n", "is a CSV file without a column 'step'; name the column of the steps 'step'"),
    (b"step,foo,bar\n1,2.5,1\n", "is a CSV file of which no column but 'step' has a name that Halfscope knows"),
    (gzip.compress(tarred()), "is gzip of a tar archive; unpack it"),
    (gzip.compress(gzip.compress(gzip.compress(b"loss: 1\n"))), "is gzip of text"),
]


@pytest.mark.parametrize("data, message", REFUSED, ids=[message for _, message in REFUSED])
def test_a_refusal_says_what_the_file_is(data, message, tmp_path):
    (tmp_path / "file").write_bytes(data)
    _, err = run("analyze", tmp_path / "file", expect=1)
    assert f"{tmp_path / 'file'}: {message}" in err and err.count("\n") == 1, err
    assert "console logs" in err


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
