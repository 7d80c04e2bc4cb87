# SPDX-License-Identifier: Apache-2.0
"""Histograms and scalars as Parquet files, for databases: docs/parquet.md."""

import contextlib
import os
import pathlib
import tempfile

from halfscope import _halfscope
from halfscope._parts import part as _module

_NONE = -2**63  # stands for a number that is unknown


def _numbers(pyarrow, data, kind):
    values = pyarrow.Array.from_buffers(kind, len(data) // 8, [None, pyarrow.py_buffer(data)])
    if kind != pyarrow.int64():
        return values
    import pyarrow.compute as compute

    return compute.if_else(compute.equal(values, _NONE), None, values)


def _columns(pyarrow, columns):
    doubles = ("scale", "low", "high", "value")
    return {name: pyarrow.array(data, pyarrow.string()).dictionary_encode()
            if isinstance(data, list) else
            _numbers(pyarrow, data, pyarrow.float64() if name in doubles else pyarrow.int64())
            for name, data in columns.items()}


def tables_of(pyarrow, read):
    """Returns {name of the file: pyarrow Table} for one part of a log."""
    tensors = _columns(pyarrow, read["tensors"])
    scalars = _columns(pyarrow, read["scalars"])

    def repeated(value, kind, count):
        return pyarrow.repeat(pyarrow.scalar(value, kind), count)

    def keys(count):
        return {"log": repeated(read["log"], pyarrow.string(), count).dictionary_encode(),
                "part": repeated(read["part"], pyarrow.string(), count).dictionary_encode(),
                "part_index": repeated(read["index"], pyarrow.int64(), count)}

    binades = _columns(pyarrow, read["binades"])
    row = binades.pop("row")
    of = {name: tensors[name].take(row) for name in ("step", "tensor", "role", "scale")}
    return {"tensors": pyarrow.table({**keys(len(tensors["step"])), **tensors}),
            "binades": pyarrow.table({**keys(len(row)), **of, **binades}),
            "scalars": pyarrow.table({**keys(len(scalars["step"])), **scalars})}


def write(logs, selection, folder, log_notes):
    """Writes tensors.parquet, binades.parquet and scalars.parquet into a folder, part by part.
    Files appear only when all are complete. log_notes receives the notes on the logs."""
    pyarrow = _module("pyarrow", "to_parquet()", "pyarrow")
    import pyarrow.parquet as parquet

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    reader = _halfscope.PartReader(logs, selection)
    notes = []
    with tempfile.TemporaryDirectory(dir=folder, prefix=".halfscope-") as unfinished:
        with contextlib.ExitStack() as stack:
            writers = {}
            for index in range(len(reader)):
                read = reader.read(index)
                notes += read["notes"]
                for name, table in tables_of(pyarrow, read).items():
                    if name not in writers:
                        writers[name] = stack.enter_context(parquet.ParquetWriter(
                            pathlib.Path(unfinished, f"{name}.parquet"), table.schema,
                            compression="zstd"))
                    writers[name].write_table(table)
        for name in writers:
            os.replace(pathlib.Path(unfinished, f"{name}.parquet"), folder / f"{name}.parquet")
    log_notes(notes)
