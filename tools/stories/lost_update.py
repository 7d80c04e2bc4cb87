# SPDX-License-Identifier: Apache-2.0
"""(a) A weight of 1 and updates of 1e-4: lost in binary16, kept by a master copy in binary32."""

import shutil
import struct

import numpy
from program import Operation

TITLE = "An update that is lost"
PAGE = ("lost-update",)
SIZES = {"full": {"steps": 1000, "exponents": (-6, 4)},
         "short": {"steps": 20, "exponents": (-1, 2)}}
UPDATE = 1e-4
PAGE_STEPS = 20


def half(number):
    return struct.pack(">e", number).hex()


def single(number):
    return struct.pack(">f", number).hex()


def value(digits):
    return struct.unpack(">e" if len(digits) == 4 else ">f", bytes.fromhex(digits))[0]


class Arithmetic:
    """The operations of an optimizer's update, each computed by the emulator."""

    def __init__(self, program):
        self.half_add = Operation(program, "f16_add")
        self.single_add = Operation(program, "f32_add")
        self.copy = Operation(program, "f32_to_f16")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for operation in (self.half_add, self.single_add, self.copy):
            operation.__exit__()


def train(arithmetic, start, update, steps):
    """Updates a weight kept only in binary16, and a binary32 master with its binary16 copy."""
    alone, master = half(start), single(start)
    track = []
    for step in range(1, steps + 1):
        alone = arithmetic.half_add(alone, half(update))
        master = arithmetic.single_add(master, single(update))
        track.append([step, value(alone), value(master), value(arithmetic.copy(master))])
    return track


def wait(arithmetic, start, update):
    """Returns the steps until the binary16 copy of a master weight changes, and whether a weight
    kept only in binary16 changes in one step."""
    alone = value(arithmetic.half_add(half(start), half(update)))
    master, steps = single(start), 0
    while value(arithmetic.copy(master)) == start:
        master = arithmetic.single_add(master, single(update))
        steps += 1
    return {"weight": start, "update": update, "alone_changes": alone != start,
            "copy_changes": steps}


def write_log(folder, tracks):
    """Writes the first steps as tensor files, for `analyze` and `report`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for i in range(PAGE_STEPS):
        tensors = {}
        for name, (update, track) in tracks.items():
            before = track[i - 1][2] if i else 1.0
            tensors[f"weight/{name}"] = numpy.array([before], numpy.float32)
            tensors[f"update/{name}"] = numpy.array([update], numpy.float32)
        numpy.savez(folder / f"step-{i:06}.npz", **tensors)


def tracks_of(arithmetic, steps):
    return {name: (update, train(arithmetic, 1.0, update, steps))
            for name, update in (("up", UPDATE), ("down", -UPDATE))}


def write_page_log(program):
    """Writes only the log of the page."""
    with Arithmetic(program) as arithmetic:
        write_log(program.folder / "lost-update", tracks_of(arithmetic, PAGE_STEPS))


def tell(program, size):
    with Arithmetic(program) as arithmetic:
        tracks = tracks_of(arithmetic, size["steps"])
        waits = [wait(arithmetic, sign * 2.0 ** exponent, UPDATE)
                 for exponent in range(*size["exponents"]) for sign in (1, -1)]
    write_log(program.folder / "lost-update", tracks)
    analysis = program.ask("analyze", "lost-update")
    weights = [tensor for tensor in analysis["tensors"] if "updates" in tensor]
    fields = ("updates", "update_underflow", "swamped")
    return {
        "commands": ["halfscope emulate f16_add", "halfscope emulate f32_add",
                     "halfscope emulate f32_to_f16", "halfscope analyze lost-update"],
        "settings": {"weight": 1.0, "update": UPDATE, "steps": size["steps"]},
        "runs": [{
            "name": name, "update": update, "steps": len(track),
            "alone_unchanged": sum(row[1] == 1 for row in track),
            "copy_first_changes": next(row[0] for row in track if row[3] != 1),
            "end": dict(zip(("alone", "master", "copy"), track[-1][1:])),
            "track": [dict(zip(("step", "alone", "master", "copy"), row)) for row in track[:40]],
        } for name, (update, track) in tracks.items()],
        "waits": waits,
        "analysis": {tensor["name"]: {field: tensor[field] for field in fields}
                     for tensor in weights},
    }
