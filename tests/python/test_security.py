# SPDX-License-Identifier: Apache-2.0
"""What SECURITY.md promises: nothing is executed, fetched, or written outside the output."""

import os
import pickle
import re
import shutil
import subprocess

import numpy as np
import pytest
from hostile_bytes import torch_archive
from program import DIGITS, PROGRAM, run

CALL = re.compile(r'^\d+\s+(\w+)\((.*)\)\s+= (-?\d+)', re.M)
MADE = re.compile(r'"([^"]*)".*\bO_(?:WRONLY|RDWR|CREAT)\b')


def can_trace():
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-f", "-qq", "true"], capture_output=True).returncode == 0


def calls(arguments, kinds, tmp_path):
    """(name, arguments, result) of the system calls of these kinds; the program succeeds."""
    out = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-qq", "-e", f"trace={kinds}", "-o", out, PROGRAM,
                           *map(str, arguments)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return CALL.findall(out.read_text())


class Touches:
    """Its pickle makes a file when it is executed."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch '{self.path}'",))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["archive", "old", "npy", "pickle"])
def test_no_pickle_is_executed(kind, protocol, tmp_path):
    made = tmp_path / "executed"
    data = pickle.dumps({"w": Touches(made)}, protocol)
    log = tmp_path / {"archive": "m.pt", "old": "m.pth", "npy": "m.npy", "pickle": "m.pkl"}[kind]
    if kind == "archive":
        log.write_bytes(torch_archive(data))
    elif kind == "npy":
        np.save(log, np.array([Touches(made)], object), allow_pickle=True)
    else:
        magic = pickle.dumps(0x1950A86A20F9469CFC6C, 2) if kind == "old" else b""
        log.write_bytes(magic + data)
    for command in (["analyze"], ["recommend"], ["report", "--out", tmp_path / "page.html"]):
        run(command[0], log, *command[1:], expect=1)
    assert not made.exists()
    pickle.loads(data)  # the judge: Python does execute it
    assert made.exists()


@pytest.mark.skipif(not can_trace(), reason="strace is missing, or may not trace here")
def test_no_socket_is_opened(tmp_path):
    for command in (["analyze", DIGITS], ["policies", DIGITS], ["info"],
                    ["report", DIGITS, "--out", tmp_path / "page.html"]):
        assert calls(command, "network", tmp_path) == []


def test_a_page_loads_nothing(tmp_path):
    """Its tags name no other file; links, which a reader may follow, are no loads."""
    page = tmp_path / "page.html"
    run("report", DIGITS, "--out", page)
    text = page.read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|link|img|iframe|object|embed|base|source|video|audio)\b[^>]*>",
                      re.sub(r"(<script\b[^>]*>).*?</script>", r"\1", text, flags=re.S))
    assert tags and not [tag for tag in tags if re.search(r"\b(?:src|href|data)\s*=", tag)], tags
    styles = "".join(re.findall(r"<style\b[^>]*>(.*?)</style>", text, re.S))
    assert styles and "@import" not in styles and "url(" not in styles


@pytest.mark.skipif(not can_trace(), reason="strace is missing, or may not trace here")
def test_the_output_alone_is_written(tmp_path):
    npz = tmp_path / "large.npz"  # one that is unpacked to a file without a name
    np.savez_compressed(npz, w=np.zeros(17 << 20, np.float32))
    for log in (DIGITS, npz):
        page, json = tmp_path / "page.html", tmp_path / "out.json"
        for command, own in ((["report", log, "--out", page], {page}),
                             (["analyze", log, "--json", json], {json})):
            opened = calls(command, "open,openat,creat,mkdir,mkdirat,rename,unlink", tmp_path)
            for call, arguments, result in opened:
                found = MADE.search(arguments)
                if result.startswith("-") or (call.startswith("open") and not found):
                    continue
                path = re.search(r'"([^"]*)"', arguments)[1]
                nameless = "O_TMPFILE" in arguments or path.startswith(("/dev/", "/proc/"))
                partial = path.startswith(f"{tmp_path}/.halfscope-")  # renamed to the output
                beside = partial or path in map(str, own)
                assert nameless or beside, (call, arguments)
