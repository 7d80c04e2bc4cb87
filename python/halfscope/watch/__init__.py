# SPDX-License-Identifier: Apache-2.0
"""`halfscope watch RUN`: the log of a running training in the terminal."""

import argparse
import contextlib
import functools
import logging
import os
import re
import select
import signal
import sys
import tempfile
import termios
import time
import tty

from halfscope._arguments import described
from halfscope._halfscope import BadInput
from halfscope._parts import part
from halfscope.watch import figures
from halfscope.watch.follow import Follower

_PAUSE = 0.5  # seconds between two looks at the files
_REST = 4  # a pause lasts this many times as long as the last update took the processor
_GONE = 5  # seconds until the command ends if the log is gone or cannot be read
_NUMBER = r"2\^.*|[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)"
_ABOUT = """Shows the log of a running training: loss, loss scale, skipped steps, gradients and weight
updates lost in FP16, the histogram of gradients, the worst tensors, and the advice so far. q ends it.
Into a pipe it writes one line for each change.

  halfscope watch runs/mine                # in a terminal, while a training writes runs/mine
  halfscope watch train.log | tee changes  # one line for each change"""


def _options(given):
    parser = argparse.ArgumentParser(prog="halfscope watch", description=_ABOUT,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="a run log, TensorBoard's folder, or a log of text")
    parser.add_argument("--once", action="store_true", help="print one screen and end")
    parser.add_argument("--lines", metavar="PATTERN", help="as for 'halfscope recommend'")
    parser.add_argument("--recorded-scale", metavar="S|TAG", help="as for 'halfscope recommend'",
                        type=_scale)
    return parser.parse_args(given)


def _scale(text):
    """Returns a loss scale, or the tag of a scalar: as 'halfscope recommend' reads --recorded-scale."""
    if not re.fullmatch(_NUMBER, text, re.ASCII | re.IGNORECASE):
        return text or None
    with contextlib.suppress(ValueError, OverflowError):
        scale = 2.0**int(text[2:]) if text.startswith("2^") else float(text)
        if 2.0**-126 <= scale < 2.0**128 and "+" not in text.lower().partition("e")[0]:
            return scale
    raise argparse.ArgumentTypeError(
        f"found {described(text)}, expected a positive number such as 1024 or 2^10")


class _Watch:
    """The figures of a log so far: `found`, or None without any, and `below`, text on them. read:
    returns the figures. keys: the standard input if it is a terminal, else nothing."""

    def __init__(self, follower, read):
        self._follower, self._read, self.keys = follower, read, []
        self.found, self.below = None, ""
        self._changed, self._next, self._there = True, 0.0, time.monotonic()

    def look(self):
        """Reads the log if it has changed, and if reading it before was long enough ago. Raises
        BadInput if the log is gone, or cannot be read, for some seconds."""
        now, used, run = time.monotonic(), time.process_time(), self._follower.run
        try:
            self._changed |= self._follower.poll()
            self._there = now
        except OSError as error:  # that of a file server may pass
            problem = f"{error.filename or run}: {error.strerror}"
            if now - self._there > _GONE:
                raise BadInput(f"{problem}; start again when there is a log") from None
            self.below = self.below or f"waiting: {problem}"
            return
        if self._changed and now >= self._next:
            self._changed = False
            try:
                self.found = self._read()
                texts = {"q ends": self.keys, f"changed {time.strftime('%X')}": True,
                         f"from step {self.found.first} on": self._follower.cut,
                         "the log was replaced": self._follower.restarts, run: True}
                self.below = "   ".join(text for text, is_shown in texts.items() if is_shown)
            except BadInput as error:  # not yet
                self.found, self.below = None, f"waiting: {error}"
            self._next = time.monotonic() + _REST * (time.process_time() - used)

    def show(self, state, draw):
        """Looks again and again, and draws state() when it differs, until q is pressed."""
        last = None
        while True:
            self.look()
            now = state()
            if now != last:
                draw(now)
            last = now
            if select.select(self.keys, [], [], _PAUSE)[0]:
                typed = os.read(self.keys[0].fileno(), 64)
                if not typed or b"q" in typed.lower():
                    return

    def show_screens(self, screen):
        """Draws on the whole terminal, which meanwhile gives each key at once and prints none."""
        self.keys = [sys.stdin] if sys.stdin and sys.stdin.isatty() else []
        with contextlib.ExitStack() as stack:
            for key in self.keys:
                stack.callback(termios.tcsetattr, key, termios.TCSADRAIN, termios.tcgetattr(key))
                tty.setcbreak(key)
            live = stack.enter_context(screen.Live(console=screen.CONSOLE, screen=True, auto_refresh=False))
            self.show(lambda: (self.found, self.below, screen.CONSOLE.size),
                      lambda state: live.update(screen.screen(*state[:2]), refresh=True))


def _run(options, folder):
    try:
        screen = part("halfscope.watch.screen", "the screen of halfscope watch", "'halfscope[watch]'")
    except ImportError as error:
        screen = None
        if sys.stdout.isatty():
            print(f"halfscope watch: {error}; it writes one line for each change", file=sys.stderr)
    follower = Follower(options.run, folder)
    read = functools.partial(figures.read, follower, lines=options.lines, recorded_scale=options.recorded_scale)
    watch = _Watch(follower, read)
    if options.once:
        follower.poll()
        found = read()
        if screen:
            screen.CONSOLE.print(screen.screen(found, follower.run))
        else:
            print(figures.line(found))
    elif screen and screen.CONSOLE.is_terminal and not screen.CONSOLE.is_dumb_terminal:
        watch.show_screens(screen)
    else:
        watch.show(lambda: figures.line(watch.found) if watch.found else watch.below,
                   lambda line: print(line, flush=True))


def main(given=None):
    """Runs the command. given: arguments, by default those of the process. Returns the exit code: 1
    for input that cannot be used."""
    options = _options(given)
    logging.getLogger("halfscope").disabled = True  # the screen shows the first note
    os.nice(5)  # the training comes first
    if sys.stdout:
        sys.stdout.reconfigure(errors="replace")  # its encoding may lack a character
    for ending in (signal.SIGHUP, signal.SIGTERM):  # so that the stack restores the terminal
        if signal.getsignal(ending) != signal.SIG_IGN:  # as after nohup
            signal.signal(ending, lambda number, _: sys.exit(128 + number))
    try:
        with tempfile.TemporaryDirectory(prefix="halfscope-") as folder:
            _run(options, folder)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:  # the reader of the lines has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"halfscope watch: {error}", file=sys.stderr)
        return 1
    return 0
