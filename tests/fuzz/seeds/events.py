# SPDX-License-Identifier: Apache-2.0
"""TensorBoard event files and run logs, in the three forms of events.hpp."""

import json
import pathlib
import struct

from .tensors import part

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "data" / "digits-cnn" / "log"


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def message(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def doubles(values):
    return struct.pack(f"<{len(values)}d", *values)


def integer(number, value):
    return varint(number << 3) + varint(value)


def double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def histogram(limits, counts, low, high):
    fields = b"".join(
        double(i + 1, x) for i, x in enumerate((low, high, sum(counts), 0.0, 0.0))
    )
    return fields + message(6, doubles(limits)) + message(7, doubles(counts))


def value(tag, payload, plugin=None):
    metadata = message(9, message(1, message(1, plugin))) if plugin else b""
    return message(1, message(1, tag) + metadata + payload)


def tensor(dtype, shape, payload):
    dims = b"".join(message(2, integer(1, size)) for size in shape)
    return message(8, integer(1, dtype) + message(2, dims) + payload)


def event(step, *values):
    return double(1, 1.7e9) + integer(2, step) + message(5, b"".join(values))


def events():
    """What torch's and TensorFlow's writers make of a small run, a payload each."""
    yield double(1, 1.7e9) + message(3, b"brain.Event:2")
    limits, counts = [1e-12, 1.1e-12, 1e-7, 2e-7, 3.0], [0.0, 3.0, 5.0, 0.0, 2.0]
    yield event(0, value(b"loss", varint(2 << 3 | 5) + struct.pack("<f", 0.5)))
    yield event(0, value(b"loss_scale", varint(2 << 3 | 5) + struct.pack("<f", 65536)))
    yield event(1, value(b"gradients/w", message(5, histogram(limits, counts, 1e-7, 2.0))))
    yield event(2, value(b"gradients/w", message(5, histogram(limits, [0, 1, 1, 1, 1], -1, 2.0))))
    rows = [-1.0, 0.0, 4.0, 0.0, 1.0, 6.0]
    yield event(
        3, value(b"weights/w", tensor(2, (2, 3), message(4, doubles(rows))), b"histograms")
    )
    yield event(3, value(b"lr", tensor(1, (), message(5, struct.pack("<f", 0.1))), b"scalars"))
    yield double(1, 1.7e9) + integer(2, 1) + message(7, integer(1, 1))
    yield event(1, value(b"half", tensor(19, (2,), varint(13 << 3) + varint(0x3C00))))


def digits(most, largest):
    """The first records of the log that is shipped: their data."""
    bytes_ = next(DIGITS.glob("events.*")).read_bytes()
    at = 0
    while most and at < len(bytes_):
        (length,) = struct.unpack_from("<Q", bytes_, at)
        if length <= largest:
            yield bytes_[at + 12 : at + 12 + length]
            most -= 1
        at += 16 + length


def raw_digits(records):
    """The beginning of that file, with its checksums."""
    bytes_ = next(DIGITS.glob("events.*")).read_bytes()
    end = 0
    for _ in range(records):
        end += 16 + struct.unpack_from("<Q", bytes_, end)[0]
    return bytes_[:end]


def built():
    """Fields in the order events.cpp builds events of."""
    limits, counts = (1e-12, 1.1e-12, 1e-7, 2e-7, 3.0), (0.0, 3.0, 5.0, 0.0, 2.0)
    pairs = b"".join(doubles(pair) for pair in zip(limits, counts))
    scalar = b"\0\1\0\1" + struct.pack("<f", 65536)  # one value, step 1: a scalar, loss_scale
    histo = b"\0\1\1\7" + doubles((1e-7, 2.0, 10, 0)) + b"\5" + pairs + b"\0"
    rows = doubles((-1.0, 0.0, 4.0, 0.0, 1.0, 6.0))
    table = b"\0\2\2\7\1histograms\2\2\2\0\3\0\0\6" + rows
    yield "scalar", b"B" + scalar
    yield "histogram", b"B" + scalar + histo
    yield "tensor", b"B" + histo + table
    yield "wide-step", b"B" + b"\1" + struct.pack("<q", 2**62) + scalar[2:] + histo


def records():
    """A run log's record: table words and statistics, as events.cpp builds it."""
    words = [1, 1, 1 << 51, 0, 0, 0, 0, 0, 1, 0, -3, 0, 11, -13, 1, -3, 2, 1, 1]
    statistics = {
        "shape": [3],
        "source_dtype": "F16",
        "state": "scaled",
        "scale": 1024.0,
        "mean": 0.5,
        "sum_squares": 1.5,
        "max_abs": 0.5,
    }
    data = struct.pack(f"<{len(words)}q", *words)
    return b"\0\2\3\6" + part(data) + part(json.dumps(statistics).encode())


def forms():
    payloads = list(events())
    framed = b"F" + b"".join(map(part, payloads))
    yield "framed", framed
    yield "framed-cut", framed[:-5]
    yield "digits", b"F" + b"".join(map(part, digits(6, 3000)))
    raw = b"R" + raw_digits(3)
    yield "raw", raw
    yield "raw-cut", raw[:-1]
    yield "raw-damaged", raw[:-9] + b"\xff" + raw[-8:] + raw[1:]
    yield "raw-empty", b"R"
    yield "record", b"B" + records()
    yield from built()


def seeds():
    manifest = {"schema": 1, "gradients": "scaled", "sharded": ["weight_grad"], "loss_dtype": "F16"}
    small = part(json.dumps(manifest).encode())
    whole = part((DIGITS / "run.json").read_bytes())
    for name, data in forms():
        for target in ("event_file", "tensorboard"):
            yield target, name, data
        yield "run_log", name, small + data
        if b"\x1e" not in data:
            yield "any_log", f"events-{name}", b"events.out.tfevents.1\n" + data
    yield "run_log", "manifest", whole + b"B" + records()
