# SPDX-License-Identifier: Apache-2.0
"""Compressed files, and text in other encodings than UTF-8."""

import bz2
import gzip
import io
import lzma
import zipfile

TEXT = b"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n"
# Of the same text, by zstd 1.5.4.
ZSTD = bytes.fromhex(
    "28b52ffd045845020052c40f1690b90d8844a251d8b25f1a87bbe8c0d26f0a9ebc7c40003a065108c3f79db554cb423e"
    "3aa326d5ef5e7de0f0f5594be75241fed3ac268cccfe35cc95f8080100a9c68402967b233d")


def zipped(*members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def seeds():
    packed = gzip.compress(TEXT, mtime=0)
    for name, data in [
        ("gzip", packed),
        ("gzip-twice", packed + packed),
        ("gzip-cut", packed[:-9]),
        ("gzip-and-more", packed + b"more"),
        ("gzip-of-xz", gzip.compress(lzma.compress(TEXT), mtime=0)),
        ("gzip-of-image", gzip.compress(b"\x89PNG\r\n\x1a\n", mtime=0)),
        ("xz", lzma.compress(TEXT)),
        ("bzip2", bz2.compress(TEXT)),
        ("zstd", ZSTD),
        ("zstd-twice", ZSTD + ZSTD),
        ("zip", zipped(("train.log", TEXT))),
        ("zip-two", zipped(("a.log", TEXT), ("b.log", TEXT))),
        ("zip-macos", zipped(("train.log", TEXT), ("__MACOSX/._train.log", b"x"))),
        ("zip-cut", zipped(("train.log", TEXT))[:-10]),
        ("utf16-le", b"\xff\xfe" + TEXT.decode().encode("utf-16-le")),
        ("utf16-be", TEXT.decode().encode("utf-16-be")),
        ("utf8-mark", b"\xef\xbb\xbf" + TEXT),
        ("surrogate", b"\xff\xfea\x00\x00\xd8b\x00c"),
        ("zeros", bytes(40) + TEXT),
    ]:
        yield "unpack", name, data
