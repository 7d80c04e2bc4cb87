# SPDX-License-Identifier: Apache-2.0
"""A file system of gradients that are generated when they are read: no disk, no network."""

import json

import fsspec
import numpy as np

MIB = 1 << 20


class Made(fsspec.AbstractFileSystem):
    """made://GB: safetensors files of 256 MiB, one per step. The values repeat after 32 MiB."""

    protocol = "made"
    size = 256 * MIB
    tensors = 8

    def __init__(self, **more):
        super().__init__(**more)
        values = np.random.default_rng(1).standard_normal(32 * MIB // 4).astype(np.float32)
        self._block = (values * np.float32(2.0**-18)).tobytes()
        each = self.size // self.tensors
        header = {f"weight_grad/layer{i}": {"dtype": "F32", "shape": [each // 4],
                                            "data_offsets": [i * each, (i + 1) * each]}
                  for i in range(self.tensors)}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self._header = len(text).to_bytes(8, "little") + text

    @staticmethod
    def names(path):
        return [f"{path}/step-{step}.safetensors" for step in range(int(path) * 4)]

    def info(self, path, **more):
        path = self._strip_protocol(path)
        if path.endswith(".safetensors"):
            return {"name": path, "type": "file", "size": len(self._header) + self.size}
        return {"name": path, "type": "directory", "size": 0}

    def ls(self, path, detail=True, **more):
        names = self.names(self._strip_protocol(path))
        return [self.info(name) for name in names] if detail else names

    def cat_file(self, path, start=0, end=None, **more):
        parts = [self._header[start:end]]
        at, end = max(0, start - len(self._header)), end - len(self._header)
        while at < end:
            inside = at % len(self._block)
            parts.append(self._block[inside:inside + end - at])
            at += len(parts[-1])
        return b"".join(parts)


def register():
    fsspec.register_implementation("made", Made, clobber=True)
