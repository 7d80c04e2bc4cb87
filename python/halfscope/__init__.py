# SPDX-License-Identifier: Apache-2.0
"""Measures what 16-bit floating point does to a training run.

binade_table(array)   one pass over an array; exact counts at every power-of-two scale
analyze(logs)         what `halfscope analyze --json` prints
compare(a, b)         what `halfscope compare --json` prints
recommend(logs)       what `halfscope recommend --json` prints
policies(log)         what `halfscope policies --json` prints
halfscope.torch       Recorder: records a PyTorch training run; emulate: runs it as if in 16 bits
"""

from halfscope._halfscope import BadInput, BinadeTable, __version__
from halfscope._logs import analyze, compare, policies, recommend
from halfscope._tables import binade_table

__all__ = ["BadInput", "BinadeTable", "__version__", "analyze", "binade_table", "compare",
           "policies", "recommend"]
