# SPDX-License-Identifier: Apache-2.0
"""Logs made by hand, so that every field of them can be wrong."""

import json
import struct
import zlib

import numpy as np

CASTAGNOLI = 0x82F63B78


def _crc_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ CASTAGNOLI, table >> 1).astype(np.uint32)
    return table


TABLE = _crc_table()


def masked_crcs(rows):
    """TFRecord's checksums of the rows of a 2-D array of bytes."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in np.asarray(rows, np.uint8).T:
        crc = TABLE[(crc ^ column) & 255] ^ crc >> 8
    crc = ~crc
    return (crc >> 15 | crc << 17) + np.uint32(0xA282EAD8)


def records(rows):
    """An event file's records, of messages that are all as long."""
    rows = np.asarray(rows, np.uint8)
    length = np.frombuffer(struct.pack("<Q", rows.shape[1]), np.uint8)
    head = np.concatenate([length, masked_crcs(length[None]).view(np.uint8)])
    heads = np.broadcast_to(head, (len(rows), len(head)))
    tails = masked_crcs(rows).view(np.uint8).reshape(len(rows), 4)
    return np.concatenate([heads, rows, tails], axis=1).tobytes()


def masked_crc(message):
    """The same of one message, faster where it is long."""
    table, crc = TABLE.tolist(), 0xFFFFFFFF
    for byte in message:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(message):
    length = struct.pack("<Q", len(message))
    return length + masked_crc(length) + message + masked_crc(message)


def field(number, data):
    """A length-delimited field of a protobuf message."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def event(step, value):
    return b"\x10" + _varint(step) + field(5, field(1, value))


VERSION = record(field(3, b"brain.Event:2"))


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(shape, data, descr="<f4"):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data


def zip_entry(name, packed, unpacked=None, crc=None, method=0, offset=None):
    """A member; `unpacked` bytes are claimed, `offset` is where the directory says that it lies."""
    return {
        "name": name.encode(),
        "packed": packed,
        "size": len(packed) if unpacked is None else unpacked,
        "crc": zlib.crc32(packed) if crc is None else crc,
        "method": method,
        "offset": offset,
    }


def archive(entries):
    """A ZIP archive whose sizes are in ZIP64 fields, so that they can claim anything."""
    local, directory = b"", b""
    for e in entries:
        sizes = struct.pack("<HHQQ", 1, 16, e["size"], len(e["packed"]))
        fields = struct.pack("<HHHIIIIHH", 45, 0, e["method"], 0, e["crc"], 0xFFFFFFFF,
                             0xFFFFFFFF, len(e["name"]), len(sizes))
        offset = len(local) if e["offset"] is None else e["offset"]
        directory += (b"PK\1\2" + struct.pack("<H", 45) + fields + struct.pack("<HHHI", 0, 0, 0, 0)
                      + struct.pack("<I", offset) + e["name"] + sizes)
        if e["offset"] is None:
            local += b"PK\3\4" + fields + e["name"] + sizes + e["packed"]
    count = min(len(entries), 0xFFFF)
    return local + directory + b"PK\5\6" + struct.pack(
        "<HHHHIIH", 0, 0, count, count, len(directory), len(local), 0)


def torch_archive(pickle, storages=()):
    members = [("data.pkl", pickle), ("version", b"3\n"), ("byteorder", b"little")]
    members += [(f"data/{i}", bytes_) for i, bytes_ in enumerate(storages)]
    return archive([zip_entry(f"archive/{name}", data) for name, data in members])
