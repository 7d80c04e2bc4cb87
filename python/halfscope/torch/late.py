# SPDX-License-Identifier: Apache-2.0
"""Writes attempted steps: on a GPU one step later, so that nothing waits for work just queued."""

import atexit
import weakref


class LateWriting:
    """Writes each attempt when the next one has ended, or at once. The last one is written by stop(), at
    the end of the process, or when nobody refers to this object."""

    def __init__(self, guard):
        self._guard = guard
        self._attempt = self._writer = None
        me = weakref.ref(self)
        self._at_exit = lambda: me() and me().complete()

    def start(self, writer):
        self._writer = writer
        atexit.register(self._at_exit)

    def stop(self):
        """Writes the last attempt."""
        atexit.unregister(self._at_exit)
        try:
            self.complete()
        finally:
            self._attempt = self._writer = None

    def write(self, attempt, at_once):
        earlier, self._attempt = self._attempt, attempt
        if earlier is not None:
            earlier.write(later=True)
        if at_once:
            self.flush()

    def flush(self):
        """Writes the last attempt. Raises its errors."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.write()
        self._writer.finish()

    def complete(self):
        """Writes the last attempt, also if an error has ended the recording, but not in a fork of the process."""
        if self._attempt is None or not self._guard.here():
            return
        if self._guard.error is None:
            self._guard(self.flush)
        else:
            self.flush()

    def __del__(self):
        self.complete()
