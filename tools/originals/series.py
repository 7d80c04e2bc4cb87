# SPDX-License-Identifier: Apache-2.0
"""Random series of the largest gradient magnitude of each step: seeded, all values binary32."""

import math
import random
import struct

NAN = math.nan
INF = math.inf


def binary32(value):
    """Returns the nearest binary32, whose product with a binary32 scale is exact in binary64."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def _training(rng, steps):
    """Log-normal values around a falling, drifting level, with spikes, zeros, NaN, infinities."""
    level = math.log(2.0**-2)
    for _ in range(steps):
        level += rng.gauss(-1.0 / steps, 0.02)
        draw = rng.random()
        if draw < 0.002:
            yield NAN
        elif draw < 0.0025:
            yield INF
        elif draw < 0.0035:
            yield 0.0
        else:
            spike = 2.0 ** rng.uniform(3, 12) if draw > 0.99 else 1.0
            yield math.exp(rng.gauss(level, 0.7)) * spike


def _storms(rng, steps):
    """Training with sequences of up to 40 NaN steps, as from a model that has diverged."""
    left = 0
    for value in _training(rng, steps):
        if left == 0 and rng.random() < 0.004:
            left = rng.randint(1, 40)
        if left:
            left -= 1
            value = NAN
        yield value


def _tiny(rng, steps):
    """Gradients so small that the scale grows to its upper limit; overflow is rare."""
    for _ in range(steps):
        yield NAN if rng.random() < 0.0008 else 2.0 ** rng.uniform(-120, -100)


def _huge(rng, steps):
    """Gradients so large that the scale falls to its lower limit, with calm phases in between."""
    calm = False
    for _ in range(steps):
        if rng.random() < 0.01:
            calm = not calm
        if rng.random() < 0.05:
            yield NAN
        else:
            yield 2.0 ** (rng.uniform(-20, -4) if calm else rng.uniform(10, 100))


def _dead(rng, steps):
    """Training; only NaN until a binary64 scale without lower limit becomes 0; training."""
    for step, value in enumerate(_training(rng, steps)):
        yield NAN if 0.2 * steps <= step < 0.2 * steps + 1200 else value


def _edges(rng, steps):
    """Products on both sides of 65520, where binary16 overflows, for every scale 2^k."""
    below = 65520 - 2.0**-8  # the largest binary32 below 65520
    for _ in range(steps):
        corner = rng.choice((65520.0, below, 65504.0, 65536.0, 32760.0, 1.0))
        yield corner * 2.0 ** -rng.randint(8, 20)


KINDS = {
    "training": _training,
    "storms": _storms,
    "tiny": _tiny,
    "huge": _huge,
    "dead": _dead,
    "edges": _edges,
}


def make(kind, seed, steps):
    """Returns the magnitudes of one series."""
    return [binary32(value) for value in KINDS[kind](random.Random(f"{kind} {seed}"), steps)]
