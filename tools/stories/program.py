# SPDX-License-Identifier: Apache-2.0
"""Calls the program in a folder of its own, several runs at a time, and keeps the command lines."""

import concurrent.futures
import json
import pathlib
import shlex
import subprocess


class ProgramFailed(Exception):
    """Raised if the program ended with an error. Has the command line and the program's message."""


class Program:
    """Runs the program in `folder`, so that command lines have short names of runs."""

    def __init__(self, path, folder, jobs=1):
        self.path = pathlib.Path(path).resolve()
        self.folder = pathlib.Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.jobs = jobs

    def call(self, *arguments):
        arguments = [str(argument) for argument in arguments]
        done = subprocess.run([self.path, *arguments], cwd=self.folder, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise ProgramFailed(f"{command_line(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def ask(self, *arguments):
        """Returns the JSON output of a command."""
        return json.loads(self.call(*arguments, "--json", "-"))

    def simulate(self, name, network, *options):
        """Trains a run, replacing one of the same name. Returns the command line."""
        arguments = ["simulate", network, *map(str, options), "--out", name]
        self.call(*arguments, "--threads", 1, "--force")  # neither option affects results
        return command_line(arguments)

    def each(self, function, items):
        """Returns [function(item)] in the order of the items. Runs several at a time."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(function, items))


def command_line(arguments):
    return shlex.join(["halfscope", *arguments])


class Operation:
    """Runs `halfscope emulate OPERATION` line by line: hex operands -> hex result."""

    def __init__(self, program, name):
        self.process = subprocess.Popen([program.path, "emulate", name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def __call__(self, *operands):
        self.process.stdin.write(" ".join(operands) + "\n")
        return self.process.stdout.readline().split()[-2]  # operands, result, flags

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
