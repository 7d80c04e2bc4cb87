# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of a device as JSON files: their inputs, and how bits are stored.

Inputs are functions of an index and a seed, in integers, so that a judge can make them without
PyTorch: hashed().
"""

import base64
import ctypes
import hashlib
import json
import os
import pathlib
import zlib

from modules import device_name

_MASK = 0xFFFFFFFF


def hashed(torch, count, seed):
    """Returns 32-bit words as int64: for i = 0, 1, ... x = i + seed * 0x9E3779B9 mod 2^32, then
    x ^= x >> 16, x *= 0x7FEB352D, x ^= x >> 15, x *= 0x846CA68B, x ^= x >> 16, all mod 2^32."""
    x = (torch.arange(count) + seed * 0x9E3779B9) & _MASK
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        x = ((x ^ (x >> shift)) * factor) & _MASK
    return x


def binary32(torch, words):
    """Returns the float32 tensor of these encodings, given as int64."""
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32).view(torch.float32)


def _bytes(tensor):
    flat = tensor.detach().cpu().contiguous()
    return ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size())


def digest(tensor):
    """SHA-256 of the elements' encodings, little-endian, in C order."""
    return hashlib.sha256(_bytes(tensor)).hexdigest()


def bits(tensor):
    """Encodings as text: little-endian, in C order, compressed by zlib, in base64."""
    return {"elements": tensor.numel(), "bytes_each": tensor.element_size(),
            "zlib": base64.b64encode(zlib.compress(_bytes(tensor), 9)).decode()}


def write(torch, device, folder, name, content):
    """Writes folder/name.json as a whole, with the versions and the device."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    about = {"schema": 1, "torch": torch.__version__, "cuda": torch.version.cuda,
             "device": device_name(torch, device)}
    file = folder / f"{name}.json"
    new = file.with_suffix(".new")
    new.write_text(json.dumps({**about, **content}, indent=1) + "\n", encoding="utf-8")
    os.replace(new, file)
