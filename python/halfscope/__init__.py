# SPDX-License-Identifier: Apache-2.0
"""Measures what 16-bit floating point does to a training run.

binade_table(array)   one pass over an array; exact counts at every power-of-two scale
analyze(logs)         Findings: what rounding does to every tensor
recommend(logs)       Recommendation: the loss scale, and what it rests on
reduce(log)           Reductions: what sums over ranks, microbatches and elements lose
weights(a, b)         Movement: which weights move, and which never do
policies(log)         Policies: every framework's loss scaling, replayed
compare(a, b)         Comparison: two runs tensor by tensor
report(logs)          Report: everything on one page
count(logs)           Counts: logs, or parts of them, as a small record; Counts add
RunLog(folder)        the writer of a run log, for any training loop
halfscope.distributed  count and analyze, by the workers of a Dask cluster
halfscope.arrays      the emulator on arrays: rounding, conversions, sums, products, block formats
halfscope.optimizer   steps of SGD, Adam and AdamW, bit for bit; which BF16 copies the next step changes
halfscope.torch       Recorder: records a PyTorch training run; record: finds what to record; emulate: runs it
                      as if in 16 bits
halfscope.wandb       log: puts a result into a run of Weights & Biases
halfscope.lightning, halfscope.transformers   RecorderCallback: the Recorder for these trainers
halfscope.jax, halfscope.keras   record: gradients of JAX loops; RecorderCallback: fit() of Keras 3

The results are mappings with the fields of docs/json.md, which are attributes too. They have
to_pandas(), to_arrow(), charts, save_html(), save_svg(), save_png(), and a display of their own in
Jupyter: docs/python.md.
"""

from halfscope._halfscope import BadInput, BinadeTable, __version__
from halfscope._logs import analyze, compare, policies, recommend, reduce, report
from halfscope._weights import weights
from halfscope._tables import binade_table

# Imported at their first use. A script that only counts arrays needs none of them.
_LATER = {"Comparison": "_results", "Counts": "_count", "Findings": "_results", "Policies": "_results",
          "PolicyTrace": "_results", "Recommendation": "_results", "Reduction": "_results", "Reductions": "_results",
          "Report": "_results", "RunLog": "_run_log",
          "arrays": None, "optimizer": None, "count": "_count", "distributed": None, "load_ipython_extension": "jupyter"}

__all__ = ["BadInput", "BinadeTable", "Comparison", "Counts", "Findings", "Policies", "PolicyTrace",
           "Recommendation", "Reduction", "Reductions", "Report", "RunLog", "__version__", "analyze", "arrays", "binade_table", "compare",
           "count", "optimizer", "policies", "recommend", "reduce", "report", "weights"]


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'halfscope' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"halfscope.{_LATER[name] or name}")
    return getattr(module, name) if _LATER[name] else module


def __dir__():
    return sorted({*globals(), *_LATER})
