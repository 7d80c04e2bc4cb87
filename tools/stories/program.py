# SPDX-License-Identifier: Apache-2.0
"""Calls the program in a folder of its own, several runs at a time, and keeps what it was told."""

import concurrent.futures
import json
import pathlib
import shlex
import subprocess


class ProgramFailed(Exception):
    """The program ended with an error: its own words, after the command line."""


class Program:
    """Command lines are as a person would type them in `folder`, where runs have short names."""

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
        """What a command answers as JSON."""
        return json.loads(self.call(*arguments, "--json", "-"))

    def simulate(self, name, network, *options):
        """Trains; a run of that name is replaced. Returns the command line."""
        arguments = ["simulate", network, *map(str, options), "--out", name]
        self.call(*arguments, "--threads", 1, "--force")  # no result depends on either
        return command_line(arguments)

    def each(self, function, items):
        """[function(item)], several at a time, in the order of the items."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(function, items))


def command_line(arguments):
    return shlex.join(["halfscope", *arguments])


class Operation:
    """`halfscope emulate OPERATION`, asked one line at a time: {hex digits} -> hex digits."""

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
