# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of every fuzz target: small logs of each kind, whole and damaged in the
ways libFuzzer seldom finds by itself. make_seeds.py FOLDER writes FOLDER/TARGET/NAME."""

import pathlib
import sys

from seeds import events, packed, records, tensors, texts


def main():
    folder = pathlib.Path(sys.argv[1])
    for module in (events, packed, records, tensors, texts):
        for target, name, data in module.seeds():
            place = folder / target
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)


if __name__ == "__main__":
    main()
