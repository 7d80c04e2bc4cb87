# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save are read as PyTorch itself reads them, without running what they hold. The
hostile ones are put together opcode by opcode."""
import collections
import json
import os
import pathlib
import struct
import subprocess
import time
import zipfile

import numpy as np
import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HALFSCOPE_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin" / "write_tensors"
NAMES = {torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32",
         torch.float64: "F64"}


def run(path):
    assert PROGRAM.exists(), f"{PROGRAM} is missing: build the target write_tensors first"
    return subprocess.run([PROGRAM, path], capture_output=True, text=True, timeout=60)


def read(path):
    """What the program says of a file: rows of tensors, and reasons by name."""
    done = run(path)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return ({row["name"]: row for row in rows if "bytes" in row},
            {row["name"]: row["skipped"] for row in rows if "skipped" in row})


def refused(path):
    done = run(path)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith(f"{path}: ") and done.stderr.count("\n") == 1
    return done.stderr[len(f"{path}: "):]


def seen(name, tensor):
    """What the program should say of it."""
    plain = tensor.detach().contiguous()
    wide = plain.view(torch.int16) if plain.dtype == torch.bfloat16 and plain.dim() else plain
    if plain.dtype == torch.bfloat16 and not plain.dim():
        wide = plain.reshape(1).view(torch.int16)
    return {"name": name, "dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
            "bytes": wide.numpy().tobytes().hex()}


def check(path, named):
    """Every tensor of `named`, and nothing else."""
    found, skipped = read(path)
    assert found == {name: seen(name, tensor) for name, tensor in named.items()}
    return skipped


def views():
    base = torch.randn(6, 8)
    return {
        "whole": base, "transposed": base.t(), "slice": base[1:4, 2:7], "column": base[:, 3],
        "every other": base.flatten()[::2], "expanded": base[:1].expand(5, 8),
        "scalar": torch.tensor(2.5), "of one": base[2, 3], "empty": torch.empty(0, 3),
        "permuted": torch.randn(2, 3, 4).permute(2, 0, 1),
        "unfolded": torch.arange(9.).unfold(0, 4, 2),
        "channels last": torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        "é.層": torch.ones(2),
    }


@pytest.mark.parametrize("dtype", NAMES)
def test_views_of_shared_storages(tmp_path, dtype):
    torch.manual_seed(1)
    named = {name: view.to(dtype) for name, view in views().items()}
    named |= {"row": named["whole"][2], "back": named["whole"].t()}
    torch.save(named, tmp_path / "m.pt")
    assert not check(tmp_path / "m.pt", torch.load(tmp_path / "m.pt"))


def test_checkpoint_of_a_training_run(tmp_path):
    """Names are keys joined by dots; what holds no tensor is skipped without a word, except
    objects."""
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).square().sum().backward()
    optimizer.step()
    path = tmp_path / "c.pth"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
                "losses": [0.5, 0.25], "name": "run", "best": None, "big": 1 << 80,
                "args": pathlib.PurePosixPath("x"), "set": {1, 2}, "bytes": b"x" * 300,
                "list": [torch.ones(2), {"w": torch.zeros(1)}], "size": torch.Size([2]),
                "device": torch.device("cpu"), "dtype": torch.float16,
                "parameter": torch.nn.Parameter(torch.ones(3))}, path)
    wanted = {f"model.{name}": value for name, value in model.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            wanted[f"optimizer.state.{index}.{name}"] = torch.as_tensor(value)
    counter = wanted.pop("model.1.num_batches_tracked")
    assert counter.dtype == torch.int64
    wanted |= {"list.0": torch.ones(2), "list.1.w": torch.zeros(1), "parameter": torch.ones(3)}
    skipped = check(path, wanted)
    assert skipped == {
        "args": "is a Python object (pathlib.PurePosixPath), which is not read",
        "set": "is a Python object (__builtin__.set), which is not read",
        "model.1.num_batches_tracked": "dtype int64 is not a floating-point type"}


@pytest.mark.parametrize("saved, name", [(torch.ones(3), "only"), ([torch.ones(3)], "0"),
                                         ((torch.ones(3), 1), "0")])
def test_what_is_no_dictionary(tmp_path, saved, name):
    torch.save(saved, tmp_path / "only.bin")
    check(tmp_path / "only.bin", {name: torch.ones(3)})


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(tmp_path, protocol):
    named = collections.OrderedDict(a=torch.ones(2), b={"c": torch.zeros(300)})
    named["long"] = {i: torch.full((1,), float(i)) for i in range(600)}
    torch.save(named, tmp_path / "m.pt", pickle_protocol=protocol)
    check(tmp_path / "m.pt", {"a": torch.ones(2), "b.c": torch.zeros(300)} | {
        f"long.{i}": torch.full((1,), float(i)) for i in range(600)})


def test_other_tensors_are_skipped(tmp_path):
    torch.save({"w": torch.ones(1), "b": torch.ones(2, dtype=torch.bool),
                "c": torch.ones(2, dtype=torch.complex64), "i": torch.ones(2, dtype=torch.uint8),
                "q": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
                "s": torch.eye(2).to_sparse(), "storage": torch.ones(2).storage(),
                (1, 2): torch.ones(1)}, tmp_path / "m.pt")
    skipped = check(tmp_path / "m.pt", {"w": torch.ones(1)})
    assert skipped["b"] == "dtype bool is not a floating-point type"
    assert skipped["c"] == "dtype complex64 is complex"
    assert skipped["i"] == "dtype uint8 is not a floating-point type"
    for name, function in (("q", "_rebuild_qtensor"), ("s", "_rebuild_sparse_tensor")):
        assert skipped[name] == f"is a Python object (torch._utils.{function}), which is not read"
    assert skipped["storage"] == "is a storage without a tensor's shape"
    assert skipped["m"] == "has an item whose key is neither text nor a whole number"


def test_older_and_scripted_files_are_refused_with_the_way_out(tmp_path):
    torch.save({"w": torch.ones(1)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    message = refused(tmp_path / "old.pt")
    assert message.startswith("is a file of torch.save from before PyTorch 1.6")
    line = message[message.index("safetensors.torch"):].strip()
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(tmp_path / "script.pt"))
    message = refused(tmp_path / "script.pt")
    assert message.startswith("is a program of TorchScript")
    script = message[message.index("safetensors.torch"):].strip()
    import safetensors.torch  # noqa: F401, pylint: disable=unused-import
    # torch 1.13 does not allow weights_only for such files; the line is for the torch of today.
    eval(line.replace(", weights_only=True", ""))  # pylint: disable=eval-used
    eval(script)  # pylint: disable=eval-used
    found, _ = read(tmp_path / "old.safetensors")
    assert found == {"w": seen("w", torch.ones(1))}
    found, _ = read(tmp_path / "script.safetensors")
    assert found.keys() == {"weight", "bias"}


# What follows is written by hand. A module that says whether it was ever run:
CANARY = "halfscope_canary"


def archive(path, pickled, storages=(), extra=(), compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("archive/data.pkl", pickled)
        file.writestr("archive/version", b"3\n")
        for key, value in dict(storages).items():
            file.writestr(f"archive/data/{key}", value)
        for name, value in dict(extra).items():
            file.writestr(name, value)
    return path


def text(value):
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def whole(value):
    return b"\x8a\x08" + struct.pack("<q", value)


def tensor(offset=0, size=(2,), stride=(1,), storage="FloatStorage", key="0", count=2):
    numbers = [b"(" + b"".join(map(whole, row)) + b"t" for row in (size, stride)]
    return (name("torch._utils", "_rebuild_tensor_v2") + b"((" + text("storage") +
            name("torch", storage) + text(key) + text("cpu") + whole(count) + b"tQ" +
            whole(offset) + b"".join(numbers) + b"\x89" + name("collections", "OrderedDict") +
            b")RtR")


def dictionary(**items):
    return b"\x80\x02}(" + b"".join(text(key) + value for key, value in items.items()) + b"u."


TWO = {"0": struct.pack("<2f", 1, 2)}
W = {"name": "w", "dtype": "F32", "shape": [2], "bytes": TWO["0"].hex()}


def touch(path):
    return name("os", "system") + text(f"touch {path}")


def test_written_by_hand(tmp_path):
    """So that the hostile ones differ from this in one thing alone."""
    path = archive(tmp_path / "m.pt", dictionary(w=tensor()), TWO)
    assert torch.equal(torch.load(path)["w"], torch.tensor([1., 2.]))
    assert read(path) == ({"w": W}, {})
    swapped = archive(tmp_path / "big.pt", dictionary(w=tensor()),
                      {"0": struct.pack(">2f", 1, 2)}, {"archive/byteorder": b"big"})
    assert read(swapped) == ({"w": W}, {})


@pytest.mark.parametrize("what", ["reduce", "reduce twice", "stack_global", "newobj", "newobj_ex",
                                  "build", "build newobj", "eval", "append", "key"])
def test_objects_are_opaque_and_nothing_runs(tmp_path, what):
    """Beside a tensor, which is read all the same."""
    mark = tmp_path / "ran"
    command = text(f"touch {mark}")
    hostile = {
        "reduce": name("os", "system") + command + b"\x85R",
        "reduce twice": name("builtins", "getattr") + name("os", "path") + command + b"\x86R" +
        command + b"\x85R",
        "stack_global": text("os") + text("system") + b"\x93" + command + b"\x85R",
        "newobj": name("subprocess", "Popen") + command + b"\x85\x81",
        "newobj_ex": name("subprocess", "Popen") + command + b"\x85}\x92",
        "build": name("collections", "OrderedDict") + b")R" + name("os", "system") + command +
        b"\x85Rb",
        "build newobj": name("os", "system") + b")\x81}" + command + command + b"sb",
        "eval": name("builtins", "eval") + text("__import__('os').system('x')") + b"\x85R",
        "append": name("builtins", "list") + b")R" + name("os", "system") + command + b"\x85Ra",
        "key": b"}" + name("os", "system") + command + b"\x85R" + command + b"s",
    }[what]
    found, skipped = read(archive(tmp_path / "m.pt", dictionary(bad=hostile, w=tensor()), TWO))
    assert found == {"w": W}
    assert not mark.exists()
    if what not in ("build", "key"):
        assert skipped["bad"].startswith("is a Python object (")


@pytest.mark.parametrize("what, body, found", [
    ("INST", b"(" + text("x") + b"ios\nsystem\n.", "opcode 0x69 (INST)"),
    ("OBJ", b"(" + name("os", "system") + text("x") + b"o.", "opcode 0x6F (OBJ)"),
    ("EXT1", b"\x82\x01.", "opcode 0x82 (EXT1)"),
    ("PERSID", b"Pstorage\n.", "opcode 0x50 (PERSID)"),
    ("an opcode there is none of", b"\xff.", "opcode 0xFF"),
    ("protocol 0", b"I1\n.", "opcode 0x49"),
    ("protocol 6", b"\x80\x06N.", "protocol 6"),
    ("LONG4 of 2 GiB", b"\x8b\xff\xff\xff\x7f\x01.", "2147483647 bytes of data, more than follow"),
    ("LONG4 of negative length", b"\x8b\xff\xff\xff\xff\x01.", "4294967295 bytes of data"),
    ("text of 2^63 bytes", b"\x8d" + b"\xff" * 7 + b"\x7fx.", "9223372036854775807 bytes"),
    ("memo index 2^32 - 1", b"Nr\xff\xff\xff\xff.", "memo index 4294967295, beyond its length"),
    ("a memo that is not there", b"h\x07.", "memo index 7, under which nothing was kept"),
    ("an empty stack", b".", "an opcode that needs more values than there are"),
    ("a mark too few", b"Nt.", "needs a mark, but there is none"),
    ("a mark left over", b"(N.", "opcode STOP inside a container"),
    ("values below a mark", b"N(\x85.", "needs more values than there are"),
    ("a key without value", b"}(Nu.", "key without value"),
    ("an item of a number", b"NNNs.", "adds to something that is not a container of its kind"),
    ("no end", b"N", "no opcode STOP, and ends"),
    ("a name without end", b"cos", "a name that does not end"),
    ("a name of numbers", b"K\x01K\x02\x93.", "a name that is not text"),
    ("nothing", b"", "no opcode STOP"),
])
def test_pickles_that_cannot_be_followed_are_refused(tmp_path, what, body, found):
    path = archive(tmp_path / "m.pt", (b"\x80\x02" if body[:1] != b"\x80" else b"") + body)
    message = refused(path)
    assert message.startswith("member 'archive/data.pkl' holds ") and found in message, what
    assert " at byte " in message and "safetensors.torch.save_file(torch.load(" in message


def test_deep_nesting(tmp_path):
    deep = archive(tmp_path / "deep.pt", b"\x80\x02" + b"]" * 1_000_000 + b"a" * 999_999 + b".")
    assert "containers in each other 201 deep" in refused(deep)
    itself = archive(tmp_path / "itself.pt", b"\x80\x02]q\x00h\x00a.")
    assert "containers in each other 201 deep" in refused(itself)


def test_billion_laughs(tmp_path):
    """Ten lists, each of a hundred times the one before: 10^20 values in a few kilobytes."""
    body = b"\x80\x02]q\x00"
    for level in range(1, 11):
        body += b"](" + bytes([ord("h"), level - 1]) * 100 + b"eq" + bytes([level])
    start = time.monotonic()
    assert "the same values again and again" in refused(archive(tmp_path / "m.pt", body + b"."))
    assert time.monotonic() - start < 5


def test_a_small_file_of_many_large_views(tmp_path):
    once = tensor(size=(250_000,), count=250_000)
    body = b"\x80\x02}" + text("w") + once + b"q\x05s("
    body += b"".join(text(str(i)) + b"h\x05" for i in range(100_000)) + b"u."
    start = time.monotonic()
    message = refused(archive(tmp_path / "m.pt", body, {"0": bytes(1_000_000)}))
    assert "views of the same values again and again" in message
    assert time.monotonic() - start < 5


def test_expanded_views_are_no_bomb(tmp_path):
    torch.save({"w": torch.ones(1).expand(1 << 40), "v": torch.ones(1).expand(3, 4)},
               tmp_path / "m.pt")
    skipped = check(tmp_path / "m.pt", {"v": torch.ones(3, 4)})
    assert skipped["w"].startswith("is 1099511627776 elements of a file that holds fewer")


@pytest.mark.parametrize("wrong", [
    {"size": (3,)}, {"offset": 1}, {"stride": (2,)}, {"size": (1 << 40,)}, {"offset": 1 << 62},
    {"size": (1 << 32, 1 << 32), "stride": (1, 1)}, {"size": (2, 2), "stride": (1 << 62, 1 << 62)},
    {"storage": "DoubleStorage"},
])
def test_tensors_that_leave_their_storage_are_refused(tmp_path, wrong):
    message = refused(archive(tmp_path / "m.pt", dictionary(w=tensor(**wrong)), TWO))
    assert message.startswith("tensor 'w' of shape [") and "leaves its storage '0'" in message


@pytest.mark.parametrize("wrong", [{"size": (-2,)}, {"offset": -1}, {"stride": (-1,)},
                                   {"size": (1,) * 65, "stride": (1,) * 65},
                                   {"size": (2, 1)}, {"count": -2}])
def test_odd_tensors_are_skipped(tmp_path, wrong):
    path = archive(tmp_path / "m.pt", dictionary(w=tensor(**wrong), v=tensor()), TWO)
    found, skipped = read(path)
    assert found == {"v": W | {"name": "v"}}
    assert skipped == {"w": "is a tensor that is described in an unknown way"}


@pytest.mark.parametrize("what, path, found", [
    ("a storage that is missing", {"storages": {}}, "storage '0', which the file lacks"),
    ("a byte order", {"extra": {"archive/byteorder": b"middle"}}, "says 'middle', expected little or"),
    ("packed", {"compression": zipfile.ZIP_DEFLATED}, "is packed, expected it stored"),
    ("two pickles", {"extra": {"other/data.pkl": b"N."}}, "expected one pickle of torch.save"),
    ("a program", {"extra": {"archive/code/x.py": b""}}, "is a program of TorchScript"),
])
def test_archives_that_are_damaged_are_refused(tmp_path, what, path, found):
    arguments = {"storages": TWO} | path
    assert found in refused(archive(tmp_path / "m.pt", dictionary(w=tensor()), **arguments)), what


def test_a_key_is_no_path(tmp_path):
    """A storage is a member of the archive by its name, whatever that looks like."""
    (tmp_path / "secret").write_bytes(struct.pack("<2f", 3, 4))
    for key in ("../../secret", str(tmp_path / "secret"), "../data/0"):
        path = archive(tmp_path / "m.pt", dictionary(w=tensor(key=key)), TWO)
        assert "which the file lacks" in refused(path)
    path = archive(tmp_path / "m.pt", dictionary(w=tensor(key="../0")), {"../0": TWO["0"]})
    assert read(path) == ({"w": W}, {})


def test_every_cut_and_every_changed_byte(tmp_path):
    """Of a small pickle: read or refused in a line, and never anything else."""
    whole_pickle = dictionary(w=tensor(), x=name("os", "system") + text("true") + b"\x85R")
    rng = np.random.default_rng(3)
    for _ in range(150):
        body = bytearray(whole_pickle)
        if rng.integers(2):
            del body[rng.integers(len(body)):]
        else:
            body[rng.integers(len(body))] = rng.integers(256)
        done = run(archive(tmp_path / "m.pt", bytes(body), TWO))
        assert done.returncode in (0, 1) and done.stderr.count("\n") == done.returncode
