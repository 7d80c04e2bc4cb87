# SPDX-License-Identifier: Apache-2.0
"""What `analyze` and `recommend` say of weight updates, and how far they say they are."""

import os
import re
import shutil
import subprocess

import numpy as np
from safetensors.numpy import save_file
from program import PROGRAM
from test_swamped import DIGITS, log_normal, run, weights_of


def text_of(tmp_path, *options, **tensors):
    save_file({name.replace("__", "/"): t for name, t in tensors.items()}, tmp_path / "p.safetensors")
    return run(tmp_path / "p.safetensors", *options)[0]


def test_the_share_that_shows_at_once_is_measured(tmp_path):
    """6 of 10 updates move the FP16 copy at the first step; then 3 of 10."""
    w = np.ones(10, np.float32)
    for at_once, more in ((6, ""), (3, ", half after 16 to 31 equal updates")):
        u = np.full(10, 2.0**-15, np.float32)
        u[:at_once] = 2.0**-9
        text = text_of(tmp_path, "--what-if", weight__w=w, update__w=u)
        row = next(line for line in text.splitlines() if line.startswith("  FP32 master weights"))
        assert row.endswith(f"{10 * at_once}.0 % of the 16-bit copies change at the first update{more}")


def test_updates_from_fp16_values_say_that_more_may_be_lost(tmp_path):
    w, u = log_normal(1000)
    u[:20] = 0
    text = text_of(tmp_path, weight__w=w, update__w=u.astype(np.float16))
    zero = int((u.astype(np.float16) == 0).sum())
    words = " ".join(text.split())
    assert "computed in FP16 (update)" in words and f"{zero} are zero, 0 hold NaN" in words
    assert "computed in FP16" not in text_of(tmp_path, weight__w=w, update__w=u)


def test_weights_in_another_format_are_named(tmp_path):
    w, u = log_normal(100)
    text = text_of(tmp_path, "--format", "bfloat16", weight__w=w.astype(np.float16), update__w=u)
    assert "1 of these weights is held in FP16: --format binary16 shows" in text
    assert "held in" not in text_of(tmp_path, weight__w=w.astype(np.float16), update__w=u)


def test_missing_updates_say_what_to_do(tmp_path):
    w, u = log_normal(100)
    text = text_of(tmp_path, "--what-if", "--format", "e4m3", weight__w=w, update__w=u)
    assert "counted in formats of 16 bits, and e4m3 has 8" in text
    assert "they need weight/X with update/X" in text_of(tmp_path, "--what-if", weight__w=w)
    bare = tmp_path / "run"
    shutil.copytree(DIGITS, bare, ignore=shutil.ignore_patterns("tensors"))
    assert "sample_every=N (docs/recording.md)" in run(bare)[0]
    assert "sample_every" not in run(DIGITS)[0]


def test_recommend_has_a_line_of_them():
    done = subprocess.run([PROGRAM, "recommend", str(DIGITS)], capture_output=True, text=True)
    total = sum(t["updates"] for t in weights_of(DIGITS).values())
    assert f" of {total:,} sampled weight updates would be lost" in done.stdout


def test_slices_of_a_large_tensor_add_up(tmp_path):
    """Twice the same pairs, more than one slice in all, count twice."""
    w, u = log_normal((1 << 20) - 3)
    save_file({"weight/w": w, "update/w": u}, tmp_path / "one.safetensors")
    save_file({"weight/w": np.tile(w, 2), "update/w": np.tile(u, 2)}, tmp_path / "two.safetensors")
    one, two = (weights_of(tmp_path / f"{n}.safetensors", "--what-if")["weight/w"] for n in ("one", "two"))
    what_if = [entry["update_detail"]["what_if"] for entry in (one, two)]
    assert two["updates"] == 2 * one["updates"] and two["swamped"] == 2 * one["swamped"]
    assert what_if[1]["kahan"]["moved"] == 2 * what_if[0]["kahan"]["moved"]
    assert what_if[1]["fp32_master"]["first_move"] == [
        [e, 2 * n] for e, n in what_if[0]["fp32_master"]["first_move"]]


def on_a_terminal(*arguments):
    """What the program writes to stderr where that is a terminal."""
    import pty

    main, other = pty.openpty()
    with subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=other) as process:
        os.close(other)
        text = b""
        while True:
            try:
                more = os.read(main, 65536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            text += more
        os.close(main)
    assert process.returncode == 0
    return text.decode()


def test_progress_within_one_tensor(tmp_path):
    """A pass over one large pair tells how far it is before it is through."""
    w, u = log_normal(1 << 20)
    save_file({"weight/w": np.tile(w, 24), "update/w": np.tile(u, 24)}, tmp_path / "p.safetensors")
    text = on_a_terminal("analyze", tmp_path / "p.safetensors", "--what-if", "--threads", 1)
    shares = [int(s) for s in re.findall(r"weight updates \[.*?\] +(\d+) %", text)]
    assert len([s for s in shares if 0 < s < 100]) >= 2 and shares == sorted(shares)
