# SPDX-License-Identifier: Apache-2.0
"""Files that tests of single inputs share."""

import io
import json
import zipfile

from program import ROOT, run

CORPUS = ROOT / "tests/data/console"
MEGATRON = CORPUS / "megatron-restart.txt"
OVERFLOW = ("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}\n")


def analyzed(log, name, **how):
    """The JSON of analyze as text, in which the log is called `name`, without what depends on the
    file's lines: the notes on reading and the line of a NaN."""
    found = json.loads(run("analyze", log, "--json", "-", **how)[0].replace(str(log), name))
    found.pop("notes", None)
    for timeline in found.get("timeline", []):
        timeline.pop("nonfinite_line", None)
    return json.dumps(found)


def zipped(data, name="run/train.log", extra=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run/", "")
        archive.writestr(name, data)
        for other in extra:
            archive.writestr(other, "nothing")
    return file.getvalue()
