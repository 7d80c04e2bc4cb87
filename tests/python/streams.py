# SPDX-License-Identifier: Apache-2.0
"""A program that answers lines as they arrive."""

import os
import select
import subprocess


def answers_as_it_arrives(command, pieces):
    """pieces: what is written, and what must be answered before more is."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for piece, wanted in pieces:
            process.stdin.write(piece)
            process.stdin.flush()
            got = b""
            while len(got) < len(wanted):
                assert select.select([process.stdout], [], [], 30)[0], "no answer while the input is open"
                got += os.read(process.stdout.fileno(), 4096)
            assert got == wanted
        process.stdin.close()
        assert process.stdout.read() == b"" and process.wait(timeout=30) == 0
