# SPDX-License-Identifier: Apache-2.0
"""Records: items of one part, in the form of fuzz_record.cpp. Field numbers: record.proto."""

import struct

from .events import double, doubles, integer, message, varint
from .tensors import part


def zigzag(values):
    return b"".join(varint(value << 1 ^ value >> 63) for value in values)


def frame(step, spans=b""):
    words = [1, 1, 1 << 51, 0, 0, 0, 0, 0, 1, 0, -3, 0, 11, -13, 1, -3, 2, 1, 1]
    return message(4, message(1, b"weight_grad/w") + message(2, b"weight_grad") + integer(4, 1) +
                   integer(5, 2 * step) + message(6, b"F16") + double(8, 1024.0) +
                   double(9, 1024.0) + message(10, b"\3") + message(11, zigzag(words)) + spans)


def items():
    first, last = integer(1, 19) + integer(2, 5), integer(1, 3)
    yield frame(0)
    yield frame(1, message(12, message(1, first) + message(2, last) + integer(4, 7)))
    yield message(5, integer(1, 2) + double(2, 0.5) + double(4, 1024.0) + integer(5, 0) +
                  message(8, b"lr") + message(9, doubles([0.1])))
    yield message(6, message(1, b"activation_grad") + integer(2, 2) + double(3, 0.25))
    yield message(7, message(1, b"console logs") + message(2, b"\4\5") + integer(5, 1) +
                  integer(7, 1))
    yield message(8, integer(1, 4) + integer(2, 8) + integer(3, 1) + integer(4, 2) +
                  message(7, doubles([512.0])))
    yield message(9, message(1, zigzag([0, 1, 2])))
    yield message(10, message(1, b"fc1") + message(2, b"gradient") + message(3, b"weight_grad") +
                  message(4, b"mxfp8") + message(7, zigzag([0, 2])) + message(8, doubles([0, 1])) +
                  message(9, doubles([0.5, 1])))
    yield integer(11, 1)
    limbs = message(1, b"") + message(3, b"\1\0") + message(4, b"\1\0\0")
    yield message(13, message(1, b"weight_grad/w") + double(3, 1024.0) + integer(4, 3) +
                  message(5, struct.pack("<Q", 1 << 51)) + message(6, limbs))
    table = message(1, b"binary16") + integer(2, 3) + message(8, zigzag([-1, -12])) + message(9, b"\3")
    yield message(14, message(1, b"weight/w") + message(3, b"update") +
                  message(4, table + message(10, b"\1")))


def seeds():
    every = list(items())
    yield "record", "items", b"I" + b"".join(map(part, every))
    for i, item in enumerate(every):
        yield "record", f"item-{i}", b"I" + part(item)
    yield "record", "raw-empty", b"R"
