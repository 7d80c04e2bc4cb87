# SPDX-License-Identifier: Apache-2.0
"""Everybody's files: compressed, in other encodings, from standard input, in folders below, damaged.
What is unpacked here was packed by Python or the system's programs."""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import pty
import shutil
import subprocess

import numpy as np
import pytest
from log_inputs import CORPUS, MEGATRON, OVERFLOW, analyzed, zipped
from program import DIGITS, PROGRAM, run


def zstd(data):
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout


PACKED = {
    "gzip": gzip.compress,
    "gzip of two members": lambda data: gzip.compress(data[:99]) + gzip.compress(data[99:]),
    "xz": lzma.compress,
    "xz of two streams": lambda data: lzma.compress(data[:99]) + lzma.compress(data[99:]),
    "bzip2": bz2.compress,
    "bzip2 of two streams": lambda data: bz2.compress(data[:99]) + bz2.compress(data[99:]),
    "zstd": zstd,
    "zstd of two frames": lambda data: zstd(data[:99]) + zstd(data[99:]),
    "zip": zipped,
    "zip of macOS": lambda data: zipped(data, extra=["__MACOSX/run/._train.log", ".DS_Store"]),
    "zip of gzip": lambda data: zipped(gzip.compress(data), "train.log.gz"),
    "gzip of xz": lambda data: gzip.compress(lzma.compress(data)),
}


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("name", ["megatron-restart", "apex-every-rank", "ansi"])
def test_a_compressed_log_is_read_as_what_is_in_it(name, packing, tmp_path):
    plain = CORPUS / f"{name}.txt"
    log = tmp_path / "whatever"  # by its content, never by its name
    log.write_bytes(PACKED[packing](plain.read_bytes()))
    assert analyzed(log, "LOG") == analyzed(plain, "LOG")


def test_every_log_of_the_corpus_compressed(tmp_path):
    packings = [gzip.compress, lzma.compress, bz2.compress, zstd, zipped]
    for number, plain in enumerate(sorted(CORPUS.glob("*.txt"))[::4]):
        log = tmp_path / plain.name
        log.write_bytes(packings[number % len(packings)](plain.read_bytes()))
        wanted = subprocess.run([PROGRAM, "analyze", plain, "--json", "-"], capture_output=True)
        found = subprocess.run([PROGRAM, "analyze", log, "--json", "-"], capture_output=True)
        assert found.returncode == wanted.returncode
        for of_one, of_other in ((found.stdout, wanted.stdout), (found.stderr, wanted.stderr)):
            shown = of_one.decode().replace(str(log), "LOG")
            assert shown == of_other.decode().replace(str(plain), "LOG"), plain


def test_other_kinds_of_logs_are_unpacked_too(tmp_path):
    tensors = {"weight_grad/a": np.linspace(-1, 1, 999, dtype=np.float32)}
    from safetensors.numpy import save

    files = {
        "step.safetensors": save(tensors),
        "events": next(DIGITS.glob("events*")).read_bytes(),
        "history.jsonl": b'{"_step": 0, "loss": 2.5, "amp/scale": 65536}\n' * 3,
    }
    npz = io.BytesIO()
    np.savez(npz, **{"weight_grad.a": tensors["weight_grad/a"]})
    files["grads.npz"] = npz.getvalue()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / "packed").write_bytes(gzip.compress(data))
        assert analyzed(tmp_path / "packed", "LOG") == analyzed(tmp_path / name, "LOG"), name


def test_archives_of_numpy_and_pytorch_stay_what_they_are(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"weight_grad/w": torch.ones(3)}, tmp_path / "one.pt")
    np.savez_compressed(tmp_path / "one.npz", **{"weight_grad.w": np.ones(3, np.float32)})
    for name in ("one.pt", "one.npz"):
        tensors = json.loads(analyzed(tmp_path / name, "LOG"))["tensors"]
        assert [tensor["total"] for tensor in tensors] == [3], name


def test_compressed_files_beside_others_in_a_folder(tmp_path):
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.mkdir()
    packed.mkdir()
    log = MEGATRON.read_bytes()
    (plain / "train.log").write_bytes(log)
    (packed / "train.log").write_bytes(gzip.compress(log))
    (packed / "image.png.gz").write_bytes(gzip.compress(b"\x89PNG\r\n\x1a\n" + bytes(999)))
    assert analyzed(packed, "LOG") == analyzed(plain, "LOG")


def test_a_cut_or_damaged_file_is_read_as_far_as_it_goes(tmp_path):
    lines = "".join(OVERFLOW.format(2**k, 2 ** (k - 1)) for k in range(16, 6, -1)) * 2000
    for pack in (gzip.compress, lzma.compress, bz2.compress, zstd):
        data = pack(lines.encode() + random.Random(1).randbytes(300_000).hex().encode())
        cut = tmp_path / "cut"
        cut.write_bytes(data[: len(data) - 40])
        out, err = run("analyze", cut)
        assert "ends too early" in err and err.count(str(cut)) >= 1, pack
        broken = bytearray(data)
        broken[len(data) - 2000] ^= 0xFF
        (tmp_path / "broken").write_bytes(broken)
        out, err = run("analyze", tmp_path / "broken")
        assert "is damaged" in err and "bytes that it holds" in err, (pack, err)
    (tmp_path / "head").write_bytes(gzip.compress(lines.encode())[:12])
    _, err = run("analyze", tmp_path / "head", expect=1)
    assert "is gzip that ends before anything could be unpacked" in err and "copy the file" in err


def test_bombs_are_refused(tmp_path):
    bomb = tmp_path / "bomb.gz"
    inner = gzip.compress(b"loss: 1\n" * (1 << 17), 9)
    bomb.write_bytes(inner * 1100)  # some 1.1 GiB of about 1.1 MiB
    _, err = run("analyze", bomb, expect=1)
    assert "unpacks to more than" in err and "HALFSCOPE_UNPACK_LIMIT" in err and "unpack it yourself" in err


def test_no_room_is_said(tmp_path):
    log = tmp_path / "log.gz"
    log.write_bytes(gzip.compress(OVERFLOW.format(2, 1).encode()))
    nowhere = dict(os.environ, TMPDIR="/proc")
    _, err = run("analyze", log, expect=1, env=nowhere)
    assert "TMPDIR" in err and err.count("\n") == 1


def test_nothing_is_left_behind(tmp_path):
    room = tmp_path / "room"
    room.mkdir()
    log = tmp_path / "log.gz"
    log.write_bytes(gzip.compress(MEGATRON.read_bytes()))
    run("analyze", log, env=dict(os.environ, TMPDIR=str(room)))
    assert list(room.iterdir()) == []


@pytest.mark.parametrize("dtype", ["<f2", ">f2"])
def test_ones_in_fp16_are_no_text(dtype, tmp_path):
    """Their bytes are those of "<<<<" in UTF-16."""
    ones = np.ones(4096, dtype)
    np.save(tmp_path / "ones.npy", ones)
    header = b'{"weight/w":{"dtype":"F16","shape":[4096],"data_offsets":[0,8192]}}'
    (tmp_path / "ones.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header + ones.tobytes())
    for name in ("ones.npy", "ones.safetensors"):
        (tensor,) = json.loads(analyzed(tmp_path / name, "LOG"))["tensors"]
        assert tensor["total"] == 4096


@pytest.mark.parametrize("encoding, mark", [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"),
                                            ("utf-16-le", b""), ("utf-16-be", b""),
                                            ("utf-8", b"\xef\xbb\xbf")])
def test_text_of_other_encodings(encoding, mark, tmp_path):
    text = "Überschrift 😀\n" + OVERFLOW.format(65536, 32768) * 3
    (tmp_path / "plain").write_text(text)
    (tmp_path / "coded").write_bytes(mark + text.encode(encoding))
    assert analyzed(tmp_path / "coded", "LOG") == analyzed(tmp_path / "plain", "LOG")
    (tmp_path / "packed").write_bytes(gzip.compress(mark + text.encode(encoding)))
    assert analyzed(tmp_path / "packed", "LOG") == analyzed(tmp_path / "plain", "LOG")


def test_csv_behind_a_byte_order_mark(tmp_path):
    text = "step,Train/Samples/loss_scale\n1,65536\n2,32768\n3,32768\n"
    (tmp_path / "plain.csv").write_text(text)
    (tmp_path / "marked.csv").write_text(text, encoding="utf-8-sig")
    assert analyzed(tmp_path / "marked.csv", "LOG") == analyzed(tmp_path / "plain.csv", "LOG")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(pack, tmp_path):
    plain = MEGATRON
    data = pack(plain.read_bytes())
    wanted = analyzed(plain, "standard input")
    assert analyzed("-", "-", input=data) == wanted
    (tmp_path / "file").write_bytes(data)
    with open(tmp_path / "file", "rb") as file:
        assert analyzed("-", "-", stdin=file) == wanted
    (tmp_path / "file").write_bytes(b"before" + data)
    with open(tmp_path / "file", "rb") as file:  # what was read already is not of the log
        os.lseek(file.fileno(), len(b"before"), os.SEEK_SET)
        assert analyzed("-", "-", stdin=file) == wanted
    out, _ = run("recommend", "-", input=data)
    page = tmp_path / "page.html"
    run("report", "-", "--out", page, input=data)
    assert "standard input" in page.read_text()


def test_standard_input_of_tensors(tmp_path):
    from safetensors.numpy import save

    data = save({"weight_grad/a": np.linspace(-1, 1, 99, dtype=np.float32)})
    (tmp_path / "a.safetensors").write_bytes(data)
    found = json.loads(analyzed("-", "-", input=data))["tensors"]
    wanted = json.loads(analyzed(tmp_path / "a.safetensors", "LOG"))["tensors"]
    for tensor in found + wanted:
        tensor.pop("log", None)
    assert found == wanted
    run("compare", "-", tmp_path / "a.safetensors", input=data)


def test_standard_input_that_is_none(tmp_path):
    _, err = run("analyze", "-", "-", expect=2, input=b"")
    assert "only once" in err
    parent, child = pty.openpty()
    try:
        _, err = run("analyze", "-", expect=1, stdin=child)
    finally:
        os.close(parent)
        os.close(child)
    assert "standard input: is a terminal" in err and "COMMAND | halfscope analyze -" in err
    _, err = run("analyze", "-", expect=1, input=b"")
    assert "standard input: is empty" in err
    _, err = run("analyze", "-", expect=1, input=b"nothing of interest\n" * 9)
    assert err.startswith("halfscope: standard input: is text") and err.count("\n") == 1
    (tmp_path / "standard input").write_text(OVERFLOW.format(2, 1) * 2)  # a file of that name
    run("analyze", "standard input", cwd=tmp_path)
    (tmp_path / "-").write_text(OVERFLOW.format(2, 1) * 2)
    run("analyze", "./-", cwd=tmp_path)


def but_notes(text):
    """Notes say how the file was read, which differs here."""
    return {field: value for field, value in json.loads(text).items() if field != "notes"}


def test_zeros_in_a_text(tmp_path):
    lines = [OVERFLOW.format(2**k, 2 ** (k - 1)) for k in range(16, 8, -1)]
    log = tmp_path / "log"
    log.write_bytes("".join(lines[:4]).encode() + bytes(5000) + "".join(lines[4:]).encode())
    (tmp_path / "plain").write_text("".join(lines))
    found = analyzed(log, "LOG")
    assert but_notes(found) == but_notes(analyzed(tmp_path / "plain", "LOG"))
    # A number before the zeros may be cut: 3276 of 32768 is none.
    log.write_bytes(lines[0].rstrip()[:-1].encode() + bytes(512) + b"\n" + lines[1].encode())
    assert "3276," not in run("analyze", log, "--json", "-")[0].replace("32768", "")
    # A log that was emptied while the program wrote on.
    log.write_bytes(bytes(1 << 20) + "".join(lines).encode())
    assert but_notes(analyzed(log, "LOG")) == but_notes(found)


def test_lines_of_interest_in_the_middle(tmp_path):
    noise = "2024-01-01 00:00:00,000 importing a module of no interest whatsoever\n" * 20_000
    lines = "".join(OVERFLOW.format(2**k, 2 ** (k - 1)) for k in range(16, 8, -1))
    (tmp_path / "plain").write_text(lines)
    (tmp_path / "long").write_text(noise + lines + noise)
    assert analyzed(tmp_path / "long", "LOG") == analyzed(tmp_path / "plain", "LOG")


def test_a_log_in_a_folder_below(tmp_path):
    plain = MEGATRON
    below = tmp_path / "job" / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "job" / "notes.txt").write_text("nothing\n")
    (tmp_path / "job" / "empty").mkdir()
    shutil.copy(plain, below / "train.log")
    out, err = run("analyze", tmp_path / "job", "--json", "-")
    assert but_notes(out) == but_notes(run("analyze", below, "--json", "-")[0])
    assert f"{tmp_path / 'job'}: is no log itself; the one log in it is read, {below} (console logs" in err
    shutil.copytree(DIGITS, tmp_path / "job" / "run")
    _, err = run("analyze", tmp_path / "job", expect=1)
    assert f"'{below}' (console logs" in err and f"'{tmp_path / 'job' / 'run'}' (run logs" in err
    for i in range(20):
        (tmp_path / "job" / f"r{i:02}").mkdir()
        shutil.copy(plain, tmp_path / "job" / f"r{i:02}" / "train.log")
    _, err = run("analyze", tmp_path / "job", expect=1)
    assert "and 10 more; name one" in err and err.count("\n") == 1


def test_of_two_logs_in_folders_one_is_to_be_named(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text(OVERFLOW.format(65536, 32768))
    _, err = run("analyze", tmp_path, expect=1)
    assert err.startswith(f"halfscope: {tmp_path}: is no log itself; the logs in it are '{tmp_path}/a' (")
    assert err.endswith("; name one\n")
    assert "that Halfscope can read" not in err and "expected" not in err


def test_json_that_is_cut_is_said_where(tmp_path):
    (tmp_path / "trainer_state.json").write_text('{"global_step": 1,\n "log_history": [{"loss": 1.0, "step": 1}, {"ste')
    _, err = run("analyze", tmp_path / "trainer_state.json")
    assert "in line 2, byte " in err
