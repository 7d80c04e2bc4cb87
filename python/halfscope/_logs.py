# SPDX-License-Identifier: Apache-2.0
"""The functions that analyse logs: the answers of the command line as Python objects."""

import contextlib
import os
import re
from collections.abc import Mapping
from numbers import Integral, Real

from halfscope import _halfscope
from halfscope._arguments import check_number, check_text, described, first_and_end


_LONGEST_PATH, _LONGEST_FILE_NAME = 4096, 255
_LONGEST_NAME = 256  # characters of a scalar's tag or of a name in a glob


class _PathOf(str):
    """A path. `of`: the Counts or Tensors to which it leads, kept alive here; None for other logs."""


def is_remote(path):
    """Returns True if a path is a URL."""
    scheme, found, _ = path.partition("://")
    return bool(found) and scheme.isascii() and scheme.replace("+", "").isalnum()


def require_path(path):
    """Raises BadInput for a URL with a missing slash or scheme. It may hold a password, which a
    message about a path would print."""
    if "@" in path and not is_remote(path) and re.match("//|[A-Za-z][A-Za-z0-9+.-]+:/", path) and (
            not os.path.exists(path)):
        raise _halfscope.BadInput(f"{path[:path.index('/')]}/...: is no valid URL; check it")


def _path(log):
    path = _PathOf(os.fsdecode(log))
    require_path(path)
    if len(path) > _LONGEST_PATH or (not is_remote(path) and
                                     max(map(len, path.split("/"))) > _LONGEST_FILE_NAME):
        raise _halfscope.BadInput(f"{described(str(path))}: no such file or folder: it has {len(path)} "
                                  f"characters, and Linux takes names of {_LONGEST_FILE_NAME}; check "
                                  "the path")
    path.of = log if hasattr(log, "logs") else None
    return path


def _paths(logs):
    one = isinstance(logs, (str, bytes, os.PathLike))
    try:
        if hasattr(logs, "keys") and not one and len(logs):  # iterating a dict would yield its keys
            raise TypeError
        paths = list(map(_path, [logs] if one else logs))
    except TypeError:
        raise TypeError(f"logs is {described(logs)}, expected a path or several; arrays in memory are "
                        "tensors=...") from None
    if not paths:
        raise ValueError("logs is empty, expected a path or several")
    return paths


def _check(name, value, kinds, expected):
    if value is not None and not isinstance(value, kinds):
        raise TypeError(f"{name} is {described(value)}, expected {expected}")


def _check_format(format):
    if format is not None:
        check_text("format", format, "the name of one, such as 'binary16'")


def _check_subnormals(subnormals):
    check_text("subnormals", subnormals, "'keep', 'flush', 'flush-before' or 'flush-result'")


def _is_whole(number, among):
    return isinstance(number, Real) and not isinstance(number, bool) and number in among


_READ_AS = {"bf16": "bf16", "bfloat16": "bf16", "f16": "f16", "float16": "f16", "fp16": "f16"}


def _selection(steps, tensor, roles, recorded_scale, loss_scale=1.0, learning_rate=None,
               read_as=None, ranks=None, lines=None):
    first, end = first_and_end(steps)
    if read_as is not None and not (isinstance(read_as, str) and read_as in _READ_AS):
        raise ValueError(f"read_as is {described(read_as)}, expected 'bf16' or 'f16'")
    if ranks is not None and not _is_whole(ranks, range(1, 1000001)):
        raise ValueError(f"ranks is {described(ranks)}, expected a whole number from 1 to 1000000")
    if lines is not None:
        check_text("lines", lines, "a pattern such as 'step {step}: loss {loss}'", 4 * _LONGEST_NAME)
    for name, number in (("loss_scale", loss_scale), ("learning_rate", learning_rate)):
        if number is not None:
            check_number(name, number)
    tag = recorded_scale if isinstance(recorded_scale, str) else None
    of_scale = "a number, or the tag of a scalar"
    if tag is not None:
        check_text("recorded_scale", tag, of_scale, _LONGEST_NAME)
    elif recorded_scale is not None:
        check_number("recorded_scale", recorded_scale, of_scale)
    if tensor is not None:
        check_text("tensor", tensor, "a glob, such as 'weight_grad/*'", 16 * _LONGEST_NAME)
    _check("roles", roles, Mapping, "{glob: role}")
    for glob, role in (roles or {}).items():
        check_text("a glob of roles", glob, "one such as '*.bias'", _LONGEST_NAME)
        check_text("a role of roles", role, "one such as 'weight_grad'")
    return _halfscope.Selection(first=first, end=end, tensor=tensor,
                                roles=list((roles or {}).items()),
                                recorded_scale=recorded_scale if tag is None else None, scale_tag=tag,
                                loss_scale=loss_scale, learning_rate=learning_rate,
                                read_as=_READ_AS.get(read_as), ranks=ranks, lines=lines)


def _to_read(logs, steps, tensor, roles, recorded_scale, loss_scale=1.0, tensors=None, **reading):
    """Returns (paths, selection). Logs at URLs are counted first; the paths are then those of
    records. reading: learning_rate, read_as, ranks and lines."""
    if tensors is not None:
        from halfscope._tensors import or_tensors

        logs, roles, recorded_scale = or_tensors(logs, tensors, roles, recorded_scale)
    paths = _paths(logs)
    selection = _selection(steps, tensor, roles, recorded_scale, loss_scale, **reading)
    if not any(map(is_remote, paths)):
        return paths, selection
    from halfscope._count import counted
    from halfscope._urls import shown

    wanted = _selection(steps, tensor, roles, recorded_scale, **reading)
    counts = [counted([path], wanted) for path in paths]
    for path, of_log in zip(paths, counts):
        if not of_log.logs:
            raise _halfscope.BadInput(f"{shown(path)}: no recorded step is selected by "
                                     f"steps={described(steps)}")
    return _paths(counts), _selection(steps, tensor, None, None, loss_scale)


def _found(function, logs, *arguments):
    """Calls a function of the extension and returns its result. Notes on the log go to the logger
    "halfscope", as the command line writes them to stderr."""
    owner = getattr(next(iter(logs), None), "of", None)
    with getattr(owner, "open_as_log", contextlib.nullcontext)():
        found, notes = function(logs, *arguments)
    _log_notes(notes)
    return found


def _log_notes(notes):
    """Logs the first ten different notes. Parts of a log often have the same notes."""
    if notes:
        import logging

        each, logger = list(dict.fromkeys(notes)), logging.getLogger("halfscope")
        for note in each[:10]:
            logger.warning(note)
        if len(each) > 10:
            more = "1 more note" if len(each) == 11 else f"{len(each) - 10} more notes"
            logger.warning(f"and {more}; the result's field 'notes' has all")


def _check_targets(headroom, target_underflow):
    """Raises ValueError or TypeError as the command line's parser does."""
    if not _is_whole(headroom, range(41)):
        raise ValueError(f"headroom is {described(headroom)}, expected whole binades, 0 to 40")
    _check("target_underflow", target_underflow, Real, "a share from 0 to 1")
    if not 0 <= target_underflow <= 1:
        raise ValueError(f"target_underflow is {described(target_underflow)}, expected a share from 0 to 1")


def analyze(logs=None, *, tensors=None, format="binary16", loss_scale=1.0, recorded_scale=None,
            subnormals="keep", steps=None, tensor=None, roles=None, read_as=None,
            learning_rate=None, what_if=False, formats=False, recipes=(), ranks=None, lines=None):
    """Counts what rounding to a format does to every tensor of one or several logs.

    logs: a path or several, of any kind in docs/logs.md. tensors: instead of logs, a dict or tree
    of arrays (docs/python.md); recorded_scale is then the loss scale of its gradients, and roles
    may be one role for all. loss_scale: counts are for the unscaled
    values times this. recorded_scale: the loss scale that the values carry, if the log does not say
    it, or the tag of the log's scalar that has it. subnormals: "keep", or the hardware's rule to
    make them zero: "flush" (tiny after rounding), "flush-before" (before), "flush-result" (a
    subnormal result). steps: one step, slice(first, end), or a text as of --step: "50", "10:20".
    tensor: a glob. roles: {glob: role}. read_as: "bf16" or "f16", the dtype of 2-byte NPY elements
    without a type. learning_rate: that of plain SGD, if the log does not say. what_if: also the
    effect of other arithmetic on weight updates; slower. formats: also every other format,
    including FP8 and MX, at its best scale; slower. recipes: names of recipes of block formats, as
    of --recipe, for the operands of each layer's products; implies formats. ranks: number of
    processes that print each message into a console log. lines: a pattern of a console log's lines,
    such as "iter {step}: loss {loss}" (docs/logs.md). Returns Findings, with the fields of
    `halfscope analyze --json`. Raises BadInput, and ValueError or TypeError for an argument out of
    its range.
    """
    from halfscope._results import Findings

    _check_format(format)
    _check_subnormals(subnormals)
    logs, selection = _to_read(logs, steps, tensor, roles, recorded_scale, loss_scale,
                               tensors, learning_rate=learning_rate, read_as=read_as, ranks=ranks,
                               lines=lines)
    found = _found(_halfscope.analyze, logs, format, subnormals, selection, what_if, formats,
                   _recipes(recipes))
    return found.analysis(Findings)._keep(
        found, lambda: _report(logs, selection, format, subnormals, recipes=_recipes(recipes)))


def recommend(logs=None, *, tensors=None, format=None, headroom=1, target_underflow=0.001,
              recorded_scale=None, steps=None, tensor=None, roles=None, read_as=None, ranks=None,
              lines=None):
    """Recommends a static loss scale: the largest power of two that leaves `headroom` binades
    unused.

    Arguments as for analyze. format: None stands for the format in which the run computed,
    "binary16" or "bfloat16". headroom: whole binades, 0 to 40. target_underflow: the share of
    finite nonzero gradients that may become zero, 0 to 1. Returns a Recommendation, with the fields
    of `halfscope recommend --json`; print() shows the answer. Raises BadInput, and ValueError or
    TypeError for an argument out of its range.
    """
    from halfscope._results import Recommendation

    _check_format(format)
    _check_targets(headroom, target_underflow)
    logs, selection = _to_read(logs, steps, tensor, roles, recorded_scale, tensors=tensors,
                               read_as=read_as, ranks=ranks, lines=lines)
    found = _found(_halfscope.recommend, logs, selection, format, headroom, target_underflow)
    return found.recommendation(Recommendation)._keep(
        found, lambda: _report(logs, selection, format, "keep", headroom, target_underflow))


def report(logs=None, *, tensors=None, title=None, format=None, loss_scale=1.0, headroom=1,
           target_underflow=0.001, policies=(), recipes=(), recorded_scale=None, subnormals="keep",
           steps=None, tensor=None, roles=None, read_as=None, learning_rate=None, ranks=None,
           lines=None):
    """Returns all results that `halfscope report` puts on one page.

    Arguments as for analyze and recommend. title: by default the logs' names. policies: texts such
    as "torch,growth_interval=500" to replay; none: every policy at its defaults. Returns a Report:
    save_html() writes the page, save_markdown() the same answer as Markdown. Raises BadInput, and
    ValueError or TypeError for an argument out of its range.
    """
    _check_format(format)
    _check_subnormals(subnormals)
    _check_targets(headroom, target_underflow)
    policies = _texts(policies)
    logs, selection = _to_read(logs, steps, tensor, roles, recorded_scale, loss_scale,
                               tensors, learning_rate=learning_rate, read_as=read_as, ranks=ranks,
                               lines=lines)
    return _report(logs, selection, format, subnormals, headroom, target_underflow,
                   policies, _recipes(recipes), title)


def _report(logs, selection, format, subnormals, headroom=1, target_underflow=0.001, policies=(),
            recipes=(), title=None):
    from halfscope._results import Report

    found = _found(_halfscope.report, logs, selection, format, subnormals, headroom,
                   target_underflow, policies, recipes)
    return Report(found, title or ", ".join(map(_title, logs)))


def _title(log):
    """Returns the last two parts of a log's path, since the last is often just "log"."""
    names = [os.path.realpath(log)] if log.of is None else log.of.logs
    return ", ".join("/".join(name.split("/")[-2:]) for name in names)


_POLICIES = "texts such as 'torch,growth_interval=500'"


def _texts(given, name="policies", wanted=_POLICIES):
    try:
        texts = [given] if isinstance(given, str) else list(given)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
    except TypeError:
        raise TypeError(f"{name} is {described(given)}, expected {wanted}") from None
    for text in texts:
        check_text(f"a text of {name}", text, wanted, parts=16)
    return texts


def _recipes(given):
    return _texts(given, "recipes", "names of recipes such as 'nvfp4'")


def compare(a, b, *, format=None, loss_scale="own", recorded_scale=None, subnormals="keep",
            steps=None, tensor=None, roles=None, read_as=None, ranks=None, sums=None):
    """Compares two runs tensor by tensor: FP32 with FP16, before with after.

    Arguments as for analyze. format: by default bfloat16 if a run computed in bfloat16 and none in
    FP16, else binary16. loss_scale: "own" counts the gradients of a step at that step's scale.
    sums: "length=K,format=F[,magnitudes=TENSOR]" if both runs computed the elements as the same
    sums in different orders; the field `sums` says whether rounding explains the difference
    (docs/compare.md). Returns a Comparison, with the fields of `halfscope compare --json`. Raises
    BadInput, and ValueError or TypeError for an argument out of its range.
    """
    from halfscope._results import Comparison

    _check_format(format)
    _check_subnormals(subnormals)
    if sums is not None:
        check_text("sums", sums, "a text such as 'length=4096,format=fp16'", _LONGEST_NAME, 3)
    own = isinstance(loss_scale, str) and loss_scale == "own"
    (a, b), selection = _to_read([a, b], steps, tensor, roles, recorded_scale,
                                 1.0 if own else loss_scale, read_as=read_as, ranks=ranks)
    found = _found(_halfscope.compare, a, b, format, subnormals, selection, own, sums)
    return found.comparison(Comparison)._keep(found)


def reduce(logs, *, over=None, format=None, order=None, counts=(), recorded_scale=None, steps=None,
           tensor=None, roles=None, read_as=None, ranks=None):
    """Computes the error of sums in FP16 and BF16: over ranks, microbatches and elements of
    tensors.

    over: "ranks", "microbatches" or "elements"; by default all that the log has. format: format of
    the accumulator; by default binary16, bfloat16 and binary32. order: "sequential", "ring", "tree"
    or "pairwise"; by default each. counts: numbers of ranks or microbatches to predict. Other
    arguments as for analyze. Returns Reductions, a list of Reduction, with the fields of `halfscope
    reduce --json`. Raises BadInput, and ValueError or TypeError for an argument out of its range.
    """
    from halfscope._results import Reduction, Reductions

    for name, given in (("over", over), ("format", format), ("order", order)):
        if given is not None:
            check_text(name, given, "a name")
    counts = [counts] if isinstance(counts, Real) else list(counts)
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, Integral) or not 0 <= count < 2**63:
            raise ValueError(f"counts has {described(count)}, expected whole numbers")
    logs, selection = _to_read(logs, steps, tensor, roles, recorded_scale, read_as=read_as, ranks=ranks)
    found, text = _found(_halfscope.reduce, logs, selection, over or "", format, order or "",
                         [int(count) for count in counts], Reduction)
    return Reductions(found, text)




def policies(log=None, *, amax=None, policies=(), assume_constant_between=False, framework=None,
             headroom=1, target_underflow=0.001, recorded_scale=None, steps=None, roles=None,
             lines=None):
    """Replays every framework's loss scaling over a recorded run.

    log: the path of a run log. amax, instead of log: the largest unscaled gradient magnitude of
    every step, a list or a one-dimensional array; nan and inf are allowed. policies: texts such as
    "torch,growth_interval=500"; none: every policy at its defaults, and the run's own scale.
    assume_constant_between: treat missing steps as equal to the step before; otherwise they are an
    error. framework: searches the best dynamic settings of this framework; settings after its name
    are fixed, "deepspeed,hysteresis=2". Other arguments as for recommend. Returns Policies, a list
    of PolicyTrace with the fields of `halfscope policies --json`. Raises BadInput, and ValueError
    for an unknown policy or setting.
    """
    policies = _texts(policies)
    if framework is not None:
        check_text("framework", framework, "the name of one, such as 'deepspeed'")
    _check_targets(headroom, target_underflow)
    replay = _halfscope.Replay(policies=policies, assume_constant=assume_constant_between,
                               framework=framework or "", headroom_bits=headroom,
                               target_underflow=target_underflow)
    if amax is not None:
        of_logs = (steps, recorded_scale, roles, lines, assume_constant_between or None, log)
        if any(given is not None for given in of_logs):
            raise ValueError("amax is a plain series: log, steps, recorded_scale, roles, lines and "
                             "assume_constant_between need a log; leave them out")
        if isinstance(amax, (str, bytes)) or not hasattr(amax, "__iter__"):
            raise TypeError(f"amax is {described(amax)}, expected a magnitude per step")
        return _replayed(_found(_halfscope.policies_of, [float(x) for x in amax], replay), _no_page)
    if not isinstance(log, (str, os.PathLike)):
        raise TypeError(f"log is a {type(log).__name__}, expected the path of a run log; a series of "
                        "magnitudes is amax=[...]")
    (log,), selection = _to_read(log, steps, None, roles, recorded_scale, lines=lines)
    return _replayed(_found(_halfscope.policies, log, selection, replay),
                     lambda: _report([log], selection, None, "keep", headroom, target_underflow,
                                     policies))


def _replayed(found, again):
    from halfscope._results import Policies, PolicyTrace

    return Policies(found.traces(PolicyTrace))._keep(found, again)


def _no_page():
    raise ValueError("a page needs a log, and amax is a plain series: use save_svg() or to_pandas()")
