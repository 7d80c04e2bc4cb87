# SPDX-License-Identifier: Apache-2.0
"""The program under test: where it is, how tests run it, and what they read of its answers."""

import functools
import json
import os
import pathlib
import subprocess
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HALFSCOPE_BUILD_DIR", ROOT / "build"))
PROGRAM = pathlib.Path(os.environ.get("HALFSCOPE_PROGRAM", BUILD / "halfscope"))
DIGITS = ROOT / "data/digits-cnn/log"


class Output(NamedTuple):
    stdout: str
    stderr: str


def run(*arguments, expect=0, program=PROGRAM, **how):
    """Runs the program, which must end with the exit code `expect`.

    how: for subprocess.run(); `input` may be a text.
    """
    if isinstance(how.get("input"), str):
        how["input"] = how["input"].encode()
    given = [word if isinstance(word, bytes) else str(word) for word in arguments]
    done = subprocess.run([program, *given], capture_output=True, timeout=300, **how)
    found = Output(done.stdout.decode(), done.stderr.decode())
    assert done.returncode == expect, found.stderr + found.stdout
    return found


def stdout_of(*arguments, **how):
    return run(*arguments, **how).stdout


def words_of(*arguments, **how):
    return words(stdout_of(*arguments, **how))


def json_of(command, *arguments, **how):
    return json.loads(stdout_of(command, *arguments, "--json", "-", **how))


def valid_json_of(command, *arguments, **how):
    """The command's JSON, which must follow the schema of docs/schema."""
    found = json_of(command, *arguments, **how)
    schema(command).validate(found)
    return found


@functools.cache
def schema(name):
    """A validator for the JSON of a command."""
    import jsonschema

    text = (ROOT / f"docs/schema/{name}.schema.json").read_text(encoding="utf-8")
    return jsonschema.validators.validator_for(json.loads(text))(json.loads(text))


def words(text):
    """Text with single spaces between its words: lines may break anywhere."""
    return " ".join(text.split())
