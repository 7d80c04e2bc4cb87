# SPDX-License-Identifier: Apache-2.0
"""The objects in results, and their fields (docs/json.md). Written by tools/json_fields.py.

A field that a log cannot answer is None as an attribute, and no key of the mapping.
"""

from __future__ import annotations

from typing import Literal

from halfscope._records import Bounds, Record, field


class ByScale(Record):
    """The four classes at one loss scale."""

    __slots__ = ()
    log2_scale: int
    """Exponent of the loss scale."""
    flushed_to_zero: int | list[int]
    """Values that become zero."""
    subnormal: int | list[int]
    """Values that become subnormal."""
    normal: int | list[int]
    """Values that stay normal."""
    overflow: int | list[int]
    """Values that overflow."""


class PerStep(Record):
    """The counts of one step."""

    __slots__ = ()
    step: int
    """Step."""
    total: int
    """All values. It is the sum of `zero`, `nan`, `inf` and the four classes."""
    zero: int | list[int]
    """Recorded zeros of both signs."""
    nan: int | list[int] | None
    """Recorded NaN values. Absent if the log left them out without a count."""
    inf: int | list[int] | None
    """Recorded infinities. Absent if the log left them out without a count."""
    finite_nonzero: int | list[int] | None
    """Finite nonzero values as `[low, high]`. Absent if it is the rest of `total`."""
    flushed_to_zero: int | list[int]
    """Values that become zero."""
    subnormal: int | list[int]
    """Values that become subnormal."""
    normal: int | list[int]
    """Values that stay normal."""
    overflow: int | list[int]
    """Values that overflow."""


class Outcome(Record):
    """The results of adding updates to weights in one kind of arithmetic. They add up to
    `updates`."""

    __slots__ = ()
    underflow: int
    """Updates that round to zero themselves."""
    swamped: int
    """Other updates that leave the weight as it is."""
    applied: int
    """Updates that move the weight by another amount than the update."""
    exact: int
    """Updates that move the weight by exactly the update."""
    overflow: int
    """Updates whose sum with the weight overflows."""


class UpdateDetailPerStep(Record):
    """Updates of one step."""

    __slots__ = ()
    step: int
    """Step."""
    updates: int
    """Finite nonzero updates of finite weights."""
    update_underflow: int
    """Updates that round to zero themselves."""
    swamped: int
    """Other updates u for which RN(w16 + RN(u)) is w16, the weight rounded once to `format`: they
    leave the weight as it is."""
    swamped_fused: int
    """Other updates u for which RN(RN32(w16 + u32)) is w16: the weight is read in `format`,
    computed with in binary32, and stored."""
    rule_2048: int
    """Updates u that the rule of thumb abs(w16) > 2^p abs(u) calls lost, with 2048 for binary16 and
    256 for bfloat16. The other fields have the exact numbers."""
    pairs: int
    """All pairs: `updates` + `zero` + `nonfinite`."""
    zero: int
    """Updates that are exactly zero."""
    nonfinite: int
    """Pairs with an update or a weight that is infinite or NaN."""
    half: Outcome
    """Results if weight and update are rounded to `format` and added there."""
    fused: Outcome
    """Results if the weight is read in `format`, computed with in binary32, and stored in
    `format`."""
    _nested = {
        'half': Outcome,
        'fused': Outcome,
    }


class UpdateCount(Record):
    """Updates of weights, and those that are lost."""

    __slots__ = ()
    updates: int
    """Finite nonzero updates of finite weights."""
    update_underflow: int
    """Updates that round to zero themselves."""
    swamped: int
    """Other updates u for which RN(w16 + RN(u)) is w16, the weight rounded once to `format`: they
    leave the weight as it is."""
    swamped_fused: int
    """Other updates u for which RN(RN32(w16 + u32)) is w16: the weight is read in `format`,
    computed with in binary32, and stored."""
    rule_2048: int
    """Updates u that the rule of thumb abs(w16) > 2^p abs(u) calls lost, with 2048 for binary16 and
    256 for bfloat16. The other fields have the exact numbers."""
    pairs: int
    """All pairs: `updates` + `zero` + `nonfinite`."""
    zero: int
    """Updates that are exactly zero."""
    nonfinite: int
    """Pairs with an update or a weight that is infinite or NaN."""
    half: Outcome
    """Results if weight and update are rounded to `format` and added there."""
    fused: Outcome
    """Results if the weight is read in `format`, computed with in binary32, and stored in
    `format`."""
    _nested = {
        'half': Outcome,
        'fused': Outcome,
    }


class LearningRate(Record):
    """The counts with other updates."""

    __slots__ = ()
    log2_factor: int
    """Updates are multiplied by 2^`log2_factor`."""
    updates: int
    """Finite nonzero updates of finite weights."""
    update_underflow: int
    """Updates that round to zero themselves."""
    swamped: int
    """Other updates u for which RN(w16 + RN(u)) is w16, the weight rounded once to `format`: they
    leave the weight as it is."""
    swamped_fused: int
    """Other updates u for which RN(RN32(w16 + u32)) is w16: the weight is read in `format`,
    computed with in binary32, and stored."""
    rule_2048: int
    """Updates u that the rule of thumb abs(w16) > 2^p abs(u) calls lost, with 2048 for binary16 and
    256 for bfloat16. The other fields have the exact numbers."""
    pairs: int
    """All pairs: `updates` + `zero` + `nonfinite`."""
    zero: int
    """Updates that are exactly zero."""
    nonfinite: int
    """Pairs with an update or a weight that is infinite or NaN."""
    half: Outcome
    """Results if weight and update are rounded to `format` and added there."""
    fused: Outcome
    """Results if the weight is read in `format`, computed with in binary32, and stored in
    `format`."""
    _nested = {
        'half': Outcome,
        'fused': Outcome,
    }


class Stochastic(Record):
    """Results of stochastic rounding."""

    __slots__ = ()
    random_bits: int
    """Number of random bits."""
    expected_moves: float
    """Expected number of updates that move the weight."""
    never: int
    """Updates that never move the weight."""
    never_truncated: int
    """The same for hardware that adds the random bits and truncates."""


class Kahan(Record):
    """Results of Kahan's compensation."""

    __slots__ = ()
    steps: int
    """Number of equal updates."""
    moved: int
    """Weights that have moved after these, with the compensation."""
    moved_without: int
    """Weights that have moved after these, without it."""


class Fp32Master(Record):
    """Results of a binary32 master weight."""

    __slots__ = ()
    first_move: list[list[int]]
    """`[e, updates]` by e = floor(log2(n)): n is the number of equal updates to the master weight
    after which its copy in `format` first differs."""
    never: int
    """Updates whose master weight stops before."""


class WhatIf(Record):
    """Updates under other choices than the run's."""

    __slots__ = ()
    bfloat16: UpdateCount
    """The counts with weights and updates in bfloat16."""
    learning_rate: list[LearningRate]
    """The counts with larger and smaller updates."""
    stochastic: list[Stochastic]
    """Results of stochastic rounding."""
    kahan: Kahan
    """Results of Kahan's compensation."""
    fp32_master: Fp32Master
    """Results of a binary32 master weight."""
    _nested = {
        'bfloat16': UpdateCount,
        'learning_rate': LearningRate,
        'stochastic': Stochastic,
        'kahan': Kahan,
        'fp32_master': Fp32Master,
    }


class UpdateDetail(Record):
    """Updates of a weight in detail."""

    __slots__ = ()
    pairs: int
    """All pairs: `updates` + `zero` + `nonfinite`."""
    zero: int
    """Updates that are exactly zero."""
    nonfinite: int
    """Pairs with an update or a weight that is infinite or NaN."""
    half: Outcome
    """Results if weight and update are rounded to `format` and added there."""
    fused: Outcome
    """Results if the weight is read in `format`, computed with in binary32, and stored in
    `format`."""
    ratios: list[list[int]]
    """`[e, updates, lost]` by e = floor(log2(abs(u) / abs(w16))), without zero weights. Lost:
    underflow or swamped in `half`."""
    errors: list[list[int]]
    """`[e, updates]`: applied updates of `half` by e = floor(log2(relative error))."""
    cells: list[list[int | None]]
    """`[weight's binade, update's binade, updates, lost]`. The weight's binade is null if w16 is
    zero."""
    per_step: list[UpdateDetailPerStep]
    """The counts of each step."""
    what_if: WhatIf | None
    """Results under other choices. Absent without `--what-if`."""
    _nested = {
        'half': Outcome,
        'fused': Outcome,
        'per_step': UpdateDetailPerStep,
        'what_if': WhatIf,
    }


class Headroom(Record):
    """The distance between the largest magnitude and overflow, over the steps with histograms."""

    __slots__ = ()
    bits: float | None
    """Least headroom in binades. At zero or less the value overflows."""
    step: int
    """Step with the least headroom."""
    at_scale: float
    """Scale that the headroom is for."""
    censored: bool | None
    """True if an infinity computed in FP16 gives `bits`: it counts as 65520 over its scale, so the
    headroom is at most this. NaN, and infinities of wider formats, do not count. Else absent."""
    last: float | None
    """Headroom at the last step, in binades."""
    trend: float | None
    """Least-squares slope of log2 max_abs over the finite steps, in binades per 1000 steps.
    Positive numbers lead to overflow. Absent with fewer than three steps."""
    overflow_expected_at: int | None
    """Step at which the trend reaches overflow. Absent without a clear trend
    (docs/numerics/statistics.md)."""


class FormatClasses(Record):
    """The classes of finite nonzero unscaled values, times a scale, rounded to a format (ties to
    even)."""

    __slots__ = ()
    flushed_to_zero: int | list[int]
    """Values that become zero."""
    subnormal: int | list[int]
    """Values that become subnormal."""
    normal: int | list[int]
    """Values that stay normal."""
    overflow: int | list[int]
    """Values that overflow."""


class FormatFit(Record):
    """The fit of one format for a tensor."""

    __slots__ = ()
    format: Literal['e4m3', 'e5m2', 'binary16', 'bfloat16', 'tf32']
    """Format."""
    saturating: bool | None
    """True if values that overflow are clamped to the largest finite number. Absent for formats
    wider than 8 bits."""
    fits_at_1: bool | None
    """True if at scale 1 nothing overflows, and the signal-to-quantisation-noise ratio, from full
    tensors if the log has them, is 20 dB or more (`--enough-snr`): the errors, flushed values
    included, hold at most 1 % of the sum of squares. If `saturating`, at most 0.1 % of the values
    may be clamped or flushed. Always false if infinities of values computed in FP16 hide how large
    they were, except those of skipped steps (`left_out_of_formats`). Absent without finite nonzero
    values."""
    at_1: FormatClasses
    """The four classes at scale 1. If `saturating`, values that count as `overflow` are clamped."""
    best_log2_scale: int | None
    """Largest k at which no value of any step overflows at scale 2^k. Absent without finite nonzero
    values, and if every such k overflows."""
    fits_at_best: bool | None
    """The same as `fits_at_1` at the best scale, without the rule for `saturating`. Absent without
    `best_log2_scale`."""
    at_best: FormatClasses | None
    """The four classes at the best scale. Absent without `best_log2_scale`."""
    snr: Literal['exact', 'estimate'] | None
    """Source of `snr_db`. `exact` (to 1e-11 dB): the full tensors of `whole_steps`. `estimate`: the
    histograms, as if values were spread evenly between two cuts. Absent if unknown."""
    snr_db: float | None
    """Signal-to-quantisation-noise ratio at the best scale, 10 log10(sum x^2 / sum (q - x)^2), in
    dB; null if nothing is rounded. Absent if unknown."""
    snr_db_bounds: list[float | None] | None
    """True bounds of an estimated `snr_db`. An infinite upper bound is null. Absent if `snr_db` is
    exact, or if there is no lower bound."""
    _nested = {
        'at_1': FormatClasses,
        'at_best': FormatClasses,
    }


class LeftOutOfFormat(Record):
    """Values that decide no format."""

    __slots__ = ()
    nan: int
    """NaN values."""
    inf: int
    """Infinities."""


class Narrowest(Record):
    """The narrowest format that fits."""

    __slots__ = ()
    format: Literal['e4m3', 'e5m2', 'binary16', 'bfloat16', 'tf32', 'binary32', 'binary64']
    """Format; `binary32` or `binary64` if none of `formats` fits."""
    needs_scale: bool
    """True if it fits only with a scale."""


class BlockFit(Record):
    """MX blocks of one format, over the tensors of `whole_steps`."""

    __slots__ = ()
    format: Literal['mxfp8', 'mxfp6', 'mxfp4']
    """Format of the blocks."""
    element: Literal['e4m3', 'e5m2', 'e3m2', 'e2m3', 'e2m1']
    """Format of the elements."""
    values: int = field('values')  # type: ignore[assignment]
    """Finite nonzero values."""
    flushed_to_zero: int
    """Values that become zero."""
    saturated: int
    """Values that are clamped to the largest finite number."""
    in_nan_blocks: int
    """Values beside an infinity or NaN: the block is lost, and they are in no other number."""
    snr: Literal['exact'] | None
    """Source of `snr_db`. Absent if unknown."""
    snr_db: float | None
    """Signal-to-quantisation-noise ratio in dB; null if nothing is rounded. Absent if unknown."""


class RecipeFit(Record):
    """A tensor quantised by one recipe. All fields behind `columns` are absent if the recipe does
    not allow the tensor's sizes."""

    __slots__ = ()
    asked: str
    """Name in `--recipe`."""
    recipe: str
    """The recipe: `halfscope quantise --list`."""
    columns: bool
    """True if the blocks run down the columns."""
    values: int | None = field('values')  # type: ignore[assignment]
    """Finite nonzero values."""
    flushed_to_zero: int | None
    """Values that become zero."""
    saturated: int | None
    """Values that would round to more than the largest element."""
    in_nan_blocks: int | None
    """Values that become infinity or NaN, or stand beside one in their block; they are in no other
    number."""
    snr: Literal['exact'] | None
    """Source of `snr_db`. Absent if all values are zero."""
    snr_db: float | None
    """Signal-to-quantisation-noise ratio in dB; null if nothing is rounded. Absent if all values
    are zero."""
    at_largest: int | None
    """Values that became the largest element."""
    normal_snr_db: float | None
    """The ratio that the recipe has for numbers of a normal distribution."""
    normal_zero: float | None
    """The share of these that become zero."""
    bias: float | None
    """Mean change of a value's magnitude, in gaps between elements."""
    bias_error: float | None
    """Its standard error."""


class Mass(Record):
    """Shares of a tensor's magnitudes that become zero: a number if full tensors of all steps are
    in the log, else `[low, high]` from the histograms. Zeros and infinities of values computed in
    FP16 widen it."""

    __slots__ = ()
    l1: float | Bounds
    """Share of the sum of magnitudes."""
    l2: float | Bounds
    """Share of the sum of squares."""


class LostMass(Record):
    """Shares of a tensor's magnitudes that become zero."""

    __slots__ = ()
    at_1: Mass
    """Shares at scale 1."""
    at_loss_scale: Mass | None
    """Shares at `loss_scale`. Absent if it is no power of two."""
    _nested = {
        'at_1': Mass,
        'at_loss_scale': Mass,
    }


class TensorFindings(Record):
    """Findings on one tensor of one log."""

    __slots__ = ()
    log: str
    """Path of the log."""
    name: str
    """Name as recorded, `role/path` in run logs."""
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    """Role of the tensor."""
    role_source: Literal['name', 'option', 'assumed', 'file', 'none']
    """Source of the role. `name`: the tensor's name. `option`: `--role`. `assumed`: no name in the
    file has a role, so it counts as `weight_grad`. `file`: likewise, but the file shows that it
    holds a model's weights (docs/folders.md). `none`: no role is known."""
    source_dtype: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2'] | None
    """Dtype that the values are stored in, in the names of safetensors. If steps differ, it is the
    one with the largest smallest magnitude. Absent if the log does not say."""
    computed_dtype: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2'] | Literal['suspected_fp16'] | None
    """Recorded dtype that computed the values; without a record, `source_dtype`, or
    `suspected_fp16`. If steps differ, it is the one with the largest smallest magnitude. Absent if
    the log does not say."""
    suspected_fp16: bool | None
    """True if no computed dtype is recorded, all finite values of every step, times one power of
    two, are binary16 values, and there is evidence enough (docs/numerics/statistics.md) that this
    is no accident. Else absent."""
    underflow_identifiable: bool
    """True if the values were computed in a format with smaller magnitudes than the target's, or
    none of them is zero. If false, values that underflowed are already zero, and zeros may be such
    values."""
    unscale: Literal['exact', 'interval']
    """Result of dividing by the recorded loss scale: `exact`, or `interval` if recorded values
    carry a loss scale that is no power of two and there are only histograms."""
    steps: list[int]
    """Steps with this tensor, sorted."""
    shape: list[int]
    """Shape at the last step."""
    total: int
    """All values. It is the sum of `zero`, `nan`, `inf` and the four classes."""
    zero: int | list[int]
    """Recorded zeros of both signs."""
    nan: int | list[int] | None
    """Recorded NaN values. Absent if the log left them out without a count."""
    inf: int | list[int] | None
    """Recorded infinities. Absent if the log left them out without a count."""
    finite_nonzero: int | list[int] | None
    """Finite nonzero values as `[low, high]`. Absent if it is the rest of `total`."""
    flushed_to_zero: int | list[int]
    """Values that become zero."""
    subnormal: int | list[int]
    """Values that become subnormal."""
    normal: int | list[int]
    """Values that stay normal."""
    overflow: int | list[int]
    """Values that overflow."""
    max_abs: float | None | list[float | None]
    """Largest finite unscaled magnitude; `[least, most]` if only bounds are known, null if no value
    is finite and nonzero."""
    min_abs_nonzero: float | None | list[float | None]
    """Smallest nonzero finite unscaled magnitude; `[least, most]` if only bounds are known, null if
    no value is finite and nonzero."""
    rounding_noise: int | None
    """Nonzero values, over all steps, that are no larger than the rounding errors of the sums that
    make them. They count in no target (docs/numerics/statistics.md). Absent if there are none."""
    hidden_by_buckets: bool | None
    """True if a bucket of the log holds zero and values that the format keeps: the flushed count is
    then not identifiable (docs/logs.md) and given as bounds. Else absent."""
    binades: list[list[int | list[int]]]
    """Finite nonzero unscaled values in [2^e, 2^(e+1)), as `[e, count]` in ascending order. An
    absent binade holds none. If only bounds are known, values that `zero` counts as possible may
    also lie below the lowest one, and those that `inf` and `nan` count as possible above the
    highest."""
    by_scale: list[ByScale]
    """The four classes at loss scales 2^-24 to 2^40."""
    per_step: list[PerStep]
    """The same counts for each step."""
    updates: int | None
    """Finite nonzero updates of finite weights, over the selected sampled steps. It and the next
    four are in the entry of a weight with known updates, and absent elsewhere."""
    update_underflow: int | None
    """Updates that round to zero themselves."""
    swamped: int | None
    """Other updates u for which RN(w16 + RN(u)) is w16, the weight rounded once to `format`: they
    leave the weight as it is."""
    swamped_fused: int | None
    """Other updates u for which RN(RN32(w16 + u32)) is w16: the weight is read in `format`,
    computed with in binary32, and stored."""
    rule_2048: int | None
    """Updates u that the rule of thumb abs(w16) > 2^p abs(u) calls lost, with 2048 for binary16 and
    256 for bfloat16. The other fields have the exact numbers."""
    update_source: Literal['update', 'optimizer_state', 'gradient', 'difference'] | None
    """Best source of the updates. `update`: recorded. `optimizer_state`: recomputed as
    `torch.optim`'s SGD, Adam and AdamW do. `gradient`: SGD without momentum, from gradient and
    learning rate. `difference`: `weight_after` less `weight`. Absent without updates."""
    kept_in: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2'] | None
    """Dtype that the run keeps this weight in: its master's if the log has one. If it is `format`,
    the run itself loses these updates; else the counts say how many `format` would lose. Absent if
    unknown."""
    undetermined: int | None
    """Differences that are zero: it is unknown if an update was lost there, and they are not in
    `updates`. Absent unless `update_source` is `difference`."""
    update_detail: UpdateDetail | None
    """Results of the updates. Absent without updates."""
    headroom: Headroom | None
    """Distance between the largest magnitude and overflow, details (docs/json.md). Absent if no
    step has a finite nonzero value."""
    formats: list[FormatFit] | None
    """With `--formats`: one entry for each of `e4m3` and `e5m2` (each saturating or not),
    `binary16`, `bfloat16`, `tf32`. It and the fields below are absent without `--formats`, and for
    a tensor without elements."""
    left_out_of_formats: LeftOutOfFormat | None
    """Infinities and NaN of a gradient at steps that the log says were skipped: the loss scale made
    them, and they decide no format. Absent if there are none."""
    narrowest: Narrowest | None
    """Format of fewest bits that fits without saturating; among equals without a scale first, then
    with more precision. Absent without `--formats`."""
    whole_steps: list[int] | None
    """Steps with full tensors in the log and a histogram. Absent if there are none."""
    mx_formats: list[BlockFit] | None
    """MX blocks of 32 along the last dimension, of the tensors of `whole_steps`. Absent without
    full tensors."""
    recipes: list[RecipeFit] | None
    """Recipes of block formats, of all full tensors, as recorded. Absent without `--recipe`, for a
    vector, and for roles that are no operands of products."""
    lost_mass: LostMass | None
    """Shares of the tensor's magnitudes that `format` flushes. Absent if unknown."""
    _nested = {
        'by_scale': ByScale,
        'per_step': PerStep,
        'update_detail': UpdateDetail,
        'headroom': Headroom,
        'formats': FormatFit,
        'left_out_of_formats': LeftOutOfFormat,
        'narrowest': Narrowest,
        'mx_formats': BlockFit,
        'recipes': RecipeFit,
        'lost_mass': LostMass,
    }


class PeakPerStep(Record):
    """Magnitudes of one step."""

    __slots__ = ()
    step: int
    """Step."""
    max_abs: float | None | Bounds
    """Largest magnitude; `[least, most]` if only bounds are known, null if it is infinite or
    NaN."""
    nan: bool | None
    """True if the largest magnitude is NaN. Else absent."""
    inf: bool | None
    """True if the largest magnitude is infinite. Else absent."""
    min_abs_nonzero_at_least: float | None
    """No nonzero value of the step is smaller. Absent if unknown."""


class Peak(Record):
    """Largest magnitudes of a tensor without histograms, unscaled."""

    __slots__ = ()
    log: str
    """Path of the log."""
    name: str
    """Name as recorded."""
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    """Role of the tensor."""
    max_abs: float | None | Bounds
    """Largest finite magnitude; `[least, most]` if only bounds are known, null if no step is
    finite."""
    max_abs_step: int | None
    """Step of `max_abs`. Absent if no step is finite."""
    min_abs_nonzero_at_least: float | None
    """No nonzero value of any step is smaller. Absent if unknown."""
    nan_steps: list[int]
    """Steps whose largest magnitude is NaN."""
    inf_steps: list[int]
    """Steps whose largest magnitude is infinite."""
    at_scale: float
    """Scale of the next three: `loss_scale` for gradients, 1 for everything else."""
    overflows: Literal['no', 'perhaps', 'yes']
    """Shows if some finite value overflows in `format`."""
    flushes: Literal['no', 'perhaps', 'yes']
    """Shows if some nonzero value becomes zero in `format`."""
    all_flushed: Literal['no', 'perhaps', 'yes']
    """Shows if all values become zero in `format` at some step."""
    per_step: list[PeakPerStep]
    """Magnitudes of each step."""
    _nested = {
        'per_step': PeakPerStep,
    }


class RankValues(Record):
    """One rank beside the others."""

    __slots__ = ()
    rank: int
    """Number of the rank."""
    steps: int
    """Number of steps with a value."""
    max_abs: float | None
    """Largest finite unscaled magnitude, null if there is none."""
    max_abs_step: int | None
    """Step of `max_abs`. Absent if there is none."""
    skew: float | None
    """Binades of `max_abs` above `median_max_abs`. Absent if there is none."""
    most_above: float | None
    """Most binades above the median rank at one step, null if the value is infinite or NaN. Absent
    if nothing can be compared."""
    most_above_step: int | None
    """Step of `most_above`, the first of those joined. Absent if nothing can be compared."""
    median_above: float | None
    """Median over its steps of the binades above the median rank, null (an infinite distance) if
    values are 0. Absent if nothing can be compared."""
    far_since: int | None
    """First of the steps from which on the rank is beyond the limit at half of them or more; else
    the first such step. Absent unless it differs in `one_step` or `most_steps`."""
    nonfinite_since: int | None
    """First step with an infinity or NaN that no loss scale explains. Absent if there is none."""
    nan: bool | None
    """True if the value at `nonfinite_since` is NaN. Absent without such a step."""
    overflow_since: int | None
    """First step with an infinity or NaN that may be an FP16 overflow at a loss scale. Absent if
    there is none."""
    nonfinite_steps: int | None
    """Number of steps with an infinity or NaN of either kind. Absent if there is none."""
    flushed_share: float | None
    """Share of finite nonzero values that become zero. Absent if unknown."""
    differs: list[Literal['nonfinite', 'nonfinite_often', 'one_step', 'most_steps', 'underflow']] | None
    """Reasons why the rank differs. Absent if it does not."""


class RankComparison(Record):
    """The ranks of a run side by side, in one role. Distances are in binades."""

    __slots__ = ()
    log: str
    """Path of the log."""
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    """Role: `local_weight_grad` in place of `weight_grad` if the log has magnitudes of each rank
    before the sum; `activation_grad`, `activation`, `loss`."""
    steps_joined: int | None
    """Number of steps that count as one, with their largest value. Absent if each step counts."""
    parts: bool | None
    """True if each rank has a part of its own of every tensor, so that magnitudes are not judged.
    Else absent."""
    median_max_abs: float | None
    """Largest finite unscaled magnitude of the median rank. Absent if there is none."""
    median_flushed_share: float | None
    """Share of values that become zero in `format` at `loss_scale`, of the median rank. Absent if
    there is none."""
    limit_one_step: float | None
    """A rank differs if it is further away than this at one step. Absent if it is not judged."""
    limit_most_steps: float | None
    """A rank differs if it is further away than this at most steps. Absent if it is not judged."""
    limit_underflow: float | None
    """A rank differs if its flushed share is further away than this. Absent if it is not judged."""
    worst: list[int]
    """Ranks that differ from the others, the worst first. Empty if all agree."""
    by_rank: list[RankValues]
    """One entry for each rank."""
    _nested = {
        'by_rank': RankValues,
    }


class DelayedScalingChoice(Record):
    """Results of one length of the history."""

    __slots__ = ()
    amax_history_len: int
    """Length of the history in steps."""
    clipped: int | list[int]
    """Values that the cast clips."""
    flushed_to_zero: int | list[int]
    """Values that become zero."""
    clipped_steps: int
    """Steps of tensors in which the largest magnitude is clipped."""
    clipped_steps_by_chance: float
    """The most of these steps that magnitudes without a trend would have on average."""
    most_clipped: str | None
    """Tensor with most of these steps. Absent if there are none."""


class DelayedScaling(Record):
    """Transformer Engine's FP8 scales, replayed over a log."""

    __slots__ = ()
    log: str
    """Path of the log."""
    tensors: int
    """Number of replayed tensors."""
    steps: int
    """Steps of these tensors (one cast for each tensor and step), without those that no magnitude
    precedes."""
    left_out: int
    """Steps of tensors with NaN or infinities."""
    values: int | list[int] = field('values')  # type: ignore[assignment]
    """Finite nonzero values at `steps`."""
    default_clips: bool
    """True if `with_margin_1` clips in 5 % of the steps or more, and in more than twice as many as
    by chance: largest magnitudes are clipped by more than a factor of 2."""
    better: int | None
    """The length that loses fewest values. Absent if the default does not surely lose 2 % of all
    values more."""
    by_length: list[DelayedScalingChoice]
    """One entry for each `amax_history_len` that gives an answer of its own in this log. The last
    is the default."""
    with_margin_1: DelayedScalingChoice
    """The same for the default length with `margin=1`."""
    _nested = {
        'by_length': DelayedScalingChoice,
        'with_margin_1': DelayedScalingChoice,
    }


class Stall(Record):
    """When weights that never move would move (rules (docs/weights.md))."""

    __slots__ = ()
    weights: int
    """Weights that never move and whose values are finite: the sum of `zero_update`, `lost_update`
    and the counts in `steps`."""
    zero_update: int
    """Weights with an update of zero, which never move."""
    lost_update: int
    """Weights that never move although their update is not zero: there is no other copy in its
    direction."""
    steps: list[list[int]]
    """Pairs of k and a number of weights: these need 2^k to 2^(k+1) - 1 steps until their copy
    moves."""
    sum_update: float
    """Sum of the magnitudes of the updates a step, of all weights but those of `zero_update`.
    Approximate."""
    sum_distance: float
    """Sum of the distances of the same weights to the next copy in the direction of the update.
    Approximate."""
    median_steps: list[int] | None
    """Smallest and largest possible median of the steps until a copy moves. Absent if more than
    half of the weights never move."""


class SentBytes(Record):
    """Bytes to send the copies of each step to a receiver that has those of the step before."""

    __slots__ = ()
    copies: int
    """All copies; their XOR has the same size."""
    sparse: int
    """Changed copies, each with an index of 4 bytes (8 in tensors of more than 2^32 weights)."""
    sparse_zstd: int
    """The same, indices and values compressed apart by zstd, level 3."""
    xor_zstd: int
    """The XOR of all copies, compressed by zstd, level 3."""
    seconds: float
    """Time to build both forms."""
    zstd_seconds: float
    """Time to compress both."""


class KindMovement(Record):
    """Weights of one kind of layer."""

    __slots__ = ()
    kind: str
    """Class of the module and name of the parameter, `LayerNorm.weight`; without the network's text
    in the log the path with `*` for numbers, `layers.*.norm.weight`."""
    tensors: int
    """Number of tensors."""
    elements: int
    """Number of weights."""
    moved: int
    """Weights that move between at least two adjacent steps."""
    changed: list[int]
    """Weights that move, by pair of adjacent steps."""
    last_moved: int | None
    """Later step of the last pair between which a weight moves. Absent if none ever does."""
    stall: Stall | None
    """When the weights that never move would. Absent if every weight moves, or if weights in 16
    bits or less have no masters."""
    _nested = {
        'stall': Stall,
    }


class TensorMovement(Record):
    """The weights of one tensor."""

    __slots__ = ()
    name: str
    """Name of the tensor."""
    kind: str
    """Kind of layer, as in `kinds`."""
    dtype: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2']
    """Dtype of the weights."""
    copies: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2']
    """Format of the copies."""
    elements: int
    """Number of weights."""
    moved: int
    """Weights that move between at least two adjacent steps."""
    changed: list[int]
    """Weights that move, by pair of adjacent steps."""
    last_moved: int | None
    """Later step of the last pair between which a weight moves. Absent if none ever does."""
    stall: Stall | None
    """When the weights that never move would. Absent if every weight moves, or if weights in 16
    bits or less have no masters."""
    _nested = {
        'stall': Stall,
    }


class NarrowTensors(Record):
    """FP32 tensors that hold only numbers of a narrower format."""

    __slots__ = ()
    format: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2']
    """Format of the numbers, the one with the fewest significant bits."""
    is_fault: bool
    """True if no healthy run has such values, so that they were rounded. False for weights as they
    were loaded, and for state that a healthy optimizer may hold."""
    tensors: list[str]
    """Names of the tensors."""
    first_step: int
    """First such step."""
    last_step: int
    """Last such step."""
    values: int = field('values')  # type: ignore[assignment]
    """All values of these tensors at their first such step."""
    zero: int
    """Zeros among `values`."""


class Fp32State(Record):
    """The numbers that FP32 tensors of one kind hold. Zeros, constant tensors, and tensors of
    narrower numbers with too few distinct values are left out."""

    __slots__ = ()
    log: str
    """Path of the log."""
    kind: str
    """`weight`, `master_weight`, or the name of an optimizer's state, such as `exp_avg`."""
    tensors: int
    """Number of tensors."""
    steps: int
    """Number of steps with such tensors."""
    zero: int
    """Zeros over all steps."""
    values: int = field('values')  # type: ignore[assignment]
    """Finite nonzero values over all steps."""
    bfloat16: int
    """Values that are BF16 numbers; by chance 2^-16 of them are."""
    binary16: int
    """Values that are FP16 numbers; by chance 2^-13 of them are."""
    e4m3: int
    """Values that are FP8 (E4M3) numbers; by chance 2^-20 of them are."""
    narrow: list[NarrowTensors]
    """Tensors of which every nonzero value is a number of a narrower format."""
    _nested = {
        'narrow': NarrowTensors,
    }


class Movement(Record):
    """Weights whose copies change between two checkpoints, or over the sampled steps of a run
    log."""

    __slots__ = ()
    log: str
    """Path of the log, or of the first checkpoint."""
    other: str | None
    """Path of the second checkpoint. Absent for a run log."""
    steps: list[int]
    """Compared steps, ascending. `[0, 1]` for two checkpoints without step numbers."""
    elements: int
    """Number of weights."""
    moved: int
    """Weights that move between at least two adjacent steps."""
    changed: list[int]
    """Weights that move, by pair of adjacent steps."""
    last_moved: int | None
    """Later step of the last pair between which a weight moves. Absent if none ever does."""
    stall: Stall | None
    """When the weights that never move would. Absent if every weight moves, or if weights in 16
    bits or less have no masters."""
    bytes: SentBytes | None
    """Sizes of the ways to send the copies. Absent without `--bytes`."""
    kinds: list[KindMovement]
    """Sums by kind of layer, the largest number of weights first."""
    tensors: list[TensorMovement]
    """One entry for each weight tensor, by name."""
    fp32_state: list[Fp32State] | None
    """As in `analyze`; steps are 0 and 1 for two checkpoints. Absent with `--counts`, and in
    `analyze`, which has them beside this."""
    notes: list[str] | None
    """Notes on reading the logs. Absent if there is none."""
    _nested = {
        'stall': Stall,
        'bytes': SentBytes,
        'kinds': KindMovement,
        'tensors': TensorMovement,
        'fp32_state': Fp32State,
    }


class MxGradient(Record):
    """MXFP8's two element formats for gradients."""

    __slots__ = ()
    tensors: int
    """Number of tensors."""
    e4m3_better: int
    """Number of tensors for which E4M3 has the higher `snr_db`."""
    e5m2_better: int
    """Number of tensors for which E5M2 has the higher `snr_db`."""
    e4m3_median_db: float | None
    """Median `snr_db` of E4M3, null if nothing is rounded."""
    e5m2_median_db: float | None
    """Median `snr_db` of E5M2, null if nothing is rounded."""
    most_for_e5m2: str | None
    """Tensor that gains most by E5M2. Absent if none does."""
    gained_db: float | None
    """Gain of that tensor in dB. Absent if none gains."""


class SkippedBetween(Record):
    """Skipped steps that the log does not name."""

    __slots__ = ()
    first: int
    """First step of the range."""
    last: int | None
    """Last step of the range. Absent if the log ends first."""
    count: int | list[int]
    """Number of skipped steps in the range."""
    from_: float | None = field('from')
    """Scale before. Absent if unknown."""
    to: float | None
    """Scale after. Absent if unknown."""


class Nonfinite(Record):
    """A scalar that was NaN or infinite."""

    __slots__ = ()
    of: Literal['loss', 'gradient_norm', 'nan_iterations', 'evaluation_loss']
    """The scalar: `loss`, `gradient_norm`, `nan_iterations` (Megatron-LM's counter) or
    `evaluation_loss` (such as Hugging Face's `eval_loss`)."""
    first: int
    """First such step."""
    last: int
    """Last such step."""
    count: int
    """Number of such steps (of iterations)."""
    at_skips: int
    """Number of these steps that were skipped: there an infinite norm is expected."""


class NonfiniteLine(Record):
    """A place in a console log."""

    __slots__ = ()
    step: int
    """Step of the line."""
    line: int
    """Line of the file, from 1."""


class BadLossPart(Record):
    """A part of the loss that is not finite."""

    __slots__ = ()
    step: int
    """First step at which the part was NaN or infinite."""
    name: str
    """Name as printed."""
    bad: int
    """Number of parts that were NaN or infinite there."""
    of: int
    """Number of parts of the loss."""


class SkippedInVain(Record):
    """Steps that are skipped without an effect."""

    __slots__ = ()
    first: int
    """First step of the range."""
    last: int | None
    """Last step of the range. Absent if the log ends with these messages: they are for later steps
    than `first` - 1, perhaps with applied ones between."""
    skipped: int | list[int]
    """Number of skipped steps in the range."""


class OtherScaler(Record):
    """A loss scaler whose messages are left out."""

    __slots__ = ()
    scaler: int
    """Number of the scaler in its messages."""
    messages: int
    """Number of its messages about skipped steps."""
    last_scale: float | None
    """Its last scale. Absent if unknown."""


class Jump(Record):
    """A change of the scale that is further than growth takes it."""

    __slots__ = ()
    after: int
    """Step at which the scale is still `from`."""
    by: int
    """Step at which the scale is `to`."""
    from_: float = field('from')
    """Scale before."""
    to: float
    """Scale after."""
    times: int
    """Number of such jumps in the log."""
    lost: int | list[int] | None
    """Number of steps that were skipped after all of them until the scale was back. Absent if the
    log does not show skipped steps."""


class Rank(Record):
    """Processes that print each message."""

    __slots__ = ()
    count: int
    """Assumed number of processes."""
    from_: Literal['lines', 'option'] = field('from')
    """Source of the number: equal `lines`, or the `option` `--ranks`."""
    certain: bool
    """True if the lines leave no doubt."""


class LossScale(Record):
    """Extremes of the loss scale."""

    __slots__ = ()
    first: float | None
    """First scale."""
    last: float | None
    """Last scale."""
    least: float | None
    """Least scale."""
    most: float | None
    """Largest scale."""


class Change(Record):
    """A change of the scale."""

    __slots__ = ()
    after: int
    """Step at which the scale is still `from`. If messages show several changes between two printed
    steps, each has the `after` and `by` of all."""
    by: int | None
    """Step at which the scale is `to`. Absent if it is some later step."""
    from_: float | None = field('from')
    """Scale before."""
    to: float | None
    """Scale after."""


class Driver(Record):
    """The gradient that drove a fall of the scale."""

    __slots__ = ()
    tensor: str
    """Name of the tensor."""
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    """Role of the tensor."""
    step: int
    """Step of the magnitude."""
    max_abs: float | None
    """Unscaled largest magnitude, null if it is infinite or NaN."""
    also_not_finite: int | None
    """Number of other tensors with infinities or NaN at that step. Absent if there are none."""
    before: bool | None
    """True if these steps have no magnitudes: `step` is the last one before. Else absent."""


class Fall(Record):
    """A fall of the scale."""

    __slots__ = ()
    first: int
    """Step at which the scale is still `from`."""
    last: int | None
    """Step at which the scale is `to`. Absent if it is some later step."""
    from_: float | None = field('from')
    """Scale before."""
    to: float | None
    """Scale after."""
    reductions: int
    """Number of reductions between."""
    driver: Driver | None
    """Gradient tensor that was the first to hold infinities or NaN in these steps, else the one
    that came closest to overflow at its step's scale. Absent if the log has no magnitudes."""
    _nested = {
        'driver': Driver,
    }


class Timeline(Record):
    """Loss scales, skipped steps and losses over the steps of a log."""

    __slots__ = ()
    log: str
    """Path of the log."""
    kinds: list[str]
    """Kinds that the log was read as."""
    numbered: bool | None
    """True if the log has no steps: its entries are numbered from 0. Else absent."""
    steps: int
    """Number of steps with scalars."""
    first: int | None
    """First step with scalars. Absent without steps."""
    last: int | None
    """Last step with scalars. Absent without steps."""
    skipped_steps: list[int]
    """Skipped steps that the log names."""
    skipped_between: list[SkippedBetween] | None
    """Other skipped steps, by the range that they lie in. Absent if there are none."""
    skipped: int | list[int] | list[int | None] | None
    """All skipped steps. `[low, high]` if lines of several processes cannot be separated for
    certain, or some steps may have no message; `high` is null if the log does not number its steps.
    Absent if the log says nothing about skipped steps: no counter, no message, no such scalar."""
    state: Literal['normal', 'slow_start', 'skipping', 'collapsed', 'broken', 'not_needed', 'unknown']
    """State of the loss scale. `slow_start`: most skipped steps are the first ones, three at least.
    `skipping`: more than 5 % of the steps were skipped, and three at least, or some at a scale of 1
    or less. `collapsed`: see `collapsed_since`. `broken`: steps are skipped in vain, or NaN or
    infinities last to the end. `not_needed`: a loss scale of 1 throughout and no skipped step.
    `unknown`: the log has no loss scale and no skipped step, or does not show if more than 5 % of
    the steps were skipped. `normal`: none of these. The reason for 5 %: docs/logs.md."""
    skipped_share: float | Bounds | None
    """`skipped` over the steps from the first to the last in the log. The first value of a counter
    covers the steps from 1 on or, if it counts since the line before, as many steps as lie between
    lines. Absent without steps or without `skipped`."""
    collapsed_since: int | None
    """Step from which the scale collapsed (docs/logs.md), the earliest possible one if lines do not
    show each step. Absent without a collapse."""
    nonfinite: list[Nonfinite] | None
    """Scalars that were NaN or infinite. Absent if there were none."""
    nonfinite_since: int | None
    """First step with NaN or infinity that no skipped step explains. If some last to the end of the
    log, the first of these: one that finite values follow may be a skipped step. Evaluations do not
    count. Absent if there is none."""
    last_finite: int | None
    """Last step with a finite loss and gradient norm, if they are NaN or infinite from then on to
    the end: a checkpoint from before it has finite weights. Absent without such an end, or without
    such a step."""
    remarks: list[str] | None
    """Sentences on how the lines of a console log were read, if that decides these fields. Absent
    if there are none."""
    nonfinite_line: NonfiniteLine | None
    """Place in a console log of one file where its losses or gradient norms last became NaN or
    infinite. Absent if they never did."""
    loss_missing_since: int | None
    """From this step on lines have a learning rate and no loss, although each line before has one:
    some programs leave out a loss that is NaN. Absent if there are fewer than three such steps."""
    bad_loss_part: BadLossPart | None
    """Part of the loss (`loss_ctc`, `critic/vf_loss`) that was NaN or infinite first. Absent if
    there was none."""
    skipped_in_vain: SkippedInVain | None
    """A range in which at least half of the steps, and ten, were skipped at a scale of 1 or less,
    or at one that comes no further down. Absent without one."""
    other_scalers: list[OtherScaler] | None
    """Loss scalers whose messages are left out. Absent if there is one scaler."""
    ended_at_minimum: bool | None
    """True if the run ended because its scale was at the minimum. Else absent."""
    last_scale: float | None
    """Last loss scale in the log, in `loss_scale` too. Absent if the log has no scale."""
    settled_at: float | None
    """Scale that most steps were applied at; if it changed between two lines, the smaller one
    counts. Absent if it is constant and no step was skipped, if no scale was tried and held, and if
    it only grew and may go on to grow."""
    growth_window: int | list[int] | None
    """Clean steps after which the scale doubled, `[low, high]` as far as the lines show. Absent if
    they do not show it."""
    jump: Jump | None
    """First change of the scale that is further than growth takes it. Absent without one."""
    ranks: Rank | None
    """Processes that print each message, as assumed. Absent if each line counts."""
    loss_scale: LossScale | None
    """Extremes of the loss scale. Absent if the log has no scale."""
    changes: list[Change]
    """Changes of the scale. A first scale that is shown without the one before is no change."""
    falls: list[Fall]
    """At most five falls of the scale, the deepest first: by a factor of 4 or more without growth
    between."""
    _nested = {
        'skipped_between': SkippedBetween,
        'nonfinite': Nonfinite,
        'nonfinite_line': NonfiniteLine,
        'bad_loss_part': BadLossPart,
        'skipped_in_vain': SkippedInVain,
        'other_scalers': OtherScaler,
        'jump': Jump,
        'ranks': Rank,
        'loss_scale': LossScale,
        'changes': Change,
        'falls': Fall,
    }


class NextTime(Record):
    """Lines that record missing data."""

    __slots__ = ()
    where: str
    """Place for the lines."""
    lines: str
    """Lines of Python."""


class CouldNotTell(Record):
    """Data that a log of another tool lacks."""

    __slots__ = ()
    log: str
    """Path of the log."""
    kind: str
    """Kind that the log was read as, in words."""
    gaps: list[Literal['zeros', 'underflow', 'nonfinite', 'rounded', 'dtype', 'loss_scale', 'counts', 'tensors', 'updates', 'steps', 'every_step']]
    """Missing data, the most important first: `tensors` (only scalars), `counts` (only extremes or
    sums), `underflow` (buckets hold zero and kept values), `zeros` (zeros mixed with the smallest
    values), `rounded` (printed digits), `nonfinite` (infinities and NaN not counted), `loss_scale`
    (the scale of the gradients), `dtype` (the dtype that computed the values), `steps` (entries
    without a step), `every_step` (steps between those recorded), `updates` (weights beside their
    updates). A gap without a consequence for this log is left out."""
    text: str
    """One sentence for each gap: the missing data and the consequence, with this log's numbers."""
    next_time: NextTime
    """Lines of Python that record the missing data."""
    _nested = {
        'next_time': NextTime,
    }


class SeemsScaled(Record):
    """Gradients that seem to carry the loss scale."""

    __slots__ = ()
    log: str
    """Path of the log."""
    steps: int
    """Number of steps whose gradients would overflow."""
    of: int
    """Number of steps with such gradients and a loss scale."""


class UnderflowShare(Record):
    """The share of elements that become zero, over the steps."""

    __slots__ = ()
    largest: Bounds
    """Largest share of the steps that count."""
    largest_step: int
    """Step of `largest`."""
    first_steps: int | None
    """Number of steps at the beginning (docs/logs.md) that do not count. Absent if all count."""
    median: Bounds
    """Median of the steps that count."""
    last: Bounds
    """Share at the last step."""
    last_step: int
    """Step of `last`."""
    steps: int
    """Number of steps that have the share."""
    steps_above: dict[str, int]
    """Number of steps that count at each limit or above."""
    above_since: dict[str, int]
    """Step from which all are at each limit or above. A limit is absent if the last step is below
    it."""
    columns: list[Bounds] | None
    """Largest share of each column of the heat map, `[column, share]`. Present in `analyze --json`
    alone."""


class Fp8TensorFindings(Record):
    """Statistics of one tensor in one recipe. A statistic that the log does not have is absent."""

    __slots__ = ()
    name: str
    """Name as recorded."""
    layer: str
    """Layer of the tensor."""
    tensor: str | None
    """Kind of the tensor, such as `gradient`. Absent if the name does not say."""
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    """Role of the tensor."""
    recipe: Literal['own', 'fp8_delayed_scaling', 'fp8_current_scaling', 'fp8_block_scaling', 'mxfp8', 'nvfp4']
    """Scaling recipe: `fp8_delayed_scaling`, `fp8_current_scaling`, `fp8_block_scaling`, `mxfp8`,
    `nvfp4`, or `own` if the log does not name it."""
    columnwise: bool | None
    """True if the statistics are for the transposed tensor. Else absent."""
    judged: bool
    """True if this recipe counts."""
    underflow_share: UnderflowShare | None
    """Share of elements that become zero. Absent if it is not in the log."""
    overflow_share_largest: Bounds | None
    """Largest share of elements that overflow, over the steps that count. Absent if it is not in
    the log."""
    overflow_share_largest_step: int | None
    """Step of `overflow_share_largest`."""
    scale_inv_least: Bounds | None
    """Least inverse scale over the steps. Absent if it is not in the log."""
    scale_inv_least_step: int | None
    """Step of `scale_inv_least`."""
    scale_inv_most: Bounds | None
    """Largest inverse scale over the steps. Absent if it is not in the log."""
    scale_inv_most_step: int | None
    """Step of `scale_inv_most`."""
    mse_largest: Bounds | None
    """Largest mean squared error over the steps. Absent if it is not in the log."""
    mse_largest_step: int | None
    """Step of `mse_largest`."""
    mse_last: Bounds | None
    """Last mean squared error. Absent if it is not in the log."""
    mse_last_step: int | None
    """Step of `mse_last`."""
    _nested = {
        'underflow_share': UnderflowShare,
    }


class Fp8(Record):
    """Statistics of tensors in FP8 or FP4. Shares are fractions of all elements of a tensor.
    Shares, `mse` and `scale_inv` are `[least, most]`: the range that the printed decimal stands
    for."""

    __slots__ = ()
    log: str
    """Path of the log."""
    steps: int
    """Number of steps with such statistics."""
    layers: int
    """Number of layers with shares."""
    limit: float
    """Share that decides, 0.02."""
    keep_in_bf16: list[str]
    """Layers to keep in BF16, in the order of the log."""
    briefly_above: list[str]
    """Layers that reach the limit at a few steps only."""
    layers_above: dict[str, int]
    """Number of layers at each share or above, for more than a few steps."""
    columns: list[list[int]] | None
    """First and last step of each column of the heat map. Present in `analyze --json` alone."""
    tensors: list[Fp8TensorFindings]
    """One entry for each tensor, recipe and orientation."""
    _nested = {
        'tensors': Fp8TensorFindings,
    }


class AdamState(Record):
    """State of Adam or AdamW in 16 bits."""

    __slots__ = ()
    log: str
    """Path of the log."""
    held_in: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2']
    """Format of the state."""
    held_in_assumed: bool
    """True if no state is recorded: `held_in` is then the format of the weights."""
    eps: float | None
    """The optimizer's eps."""
    beta2: float | None
    """The optimizer's beta2."""
    settings_assumed: bool
    """True if eps or beta2 is PyTorch's default."""
    eps_is_zero: bool
    """True if eps rounds to 0 in that format."""
    broken_from: int | None
    """Step from which weights of this state hold NaN or infinities, if `eps_is_zero` and these are
    the log's first. Else absent."""
    second_moments: int | list[int] | None
    """Recorded second moments over all recorded steps. Absent without recorded state."""
    zero: int | list[int] | None
    """Second moments that are 0. Absent without recorded state."""
    lost: int | list[int] | None
    """Second moments that are 0 although the first moment is not. Absent without recorded state."""
    most_lost: str | None
    """Tensor with the largest share of `lost`. Absent if there is none."""
    gradients: int | list[int] | None
    """Finite nonzero weight gradients. Absent without gradients."""
    adds_nothing: int | list[int] | None
    """Gradients g for which (1 - beta2) g^2 rounds to 0. Absent without gradients."""
    square_is_zero: int | list[int] | None
    """Gradients g for which g^2 rounds to 0. Absent without gradients."""


class LayerShift(Record):
    """A power of two that can be moved from a layer to the next one."""

    __slots__ = ()
    log: str
    """Path of the log."""
    activation: str
    """Largest activation between the layers."""
    max_abs: float
    """Largest magnitude of `activation`."""
    layer: str
    """Layer whose weights and bias are made smaller."""
    next: str
    """Layer whose weights are made larger."""
    log2: int
    """Exponent of the power of two."""
    next_max_abs: float
    """Largest weight of `next` after the shift."""
    flushed_to_zero: int | list[int]
    """Weights and biases of `layer`, over all recorded steps, that the shift makes 0."""
    subnormal: int | list[int]
    """Weights and biases of `layer` that are subnormal after the shift."""
    of: int | list[int]
    """Weights and biases of `layer` over all recorded steps."""
    in_sequence: bool
    """True if the network's text shows that the network computes the same after the shift."""
    censored: bool | None
    """True if infinities hide how large the activation was: `max_abs` and `log2` are then the least
    that they can be. Else absent."""
    between: list[str] | None
    """Modules between the two whose class is unknown. Absent if there are none."""


class AttentionScore(Record):
    """A bound on the scores of an attention, at the step with the largest bound."""

    __slots__ = ()
    log: str
    """Path of the log."""
    query: str
    """Activation that is the query."""
    key: str
    """Activation that is the key."""
    step: int
    """Step with the largest bound."""
    query_norm: float
    """Norm of the longest row of the query, rounded up."""
    key_norm: float
    """Norm of the longest row of the key, rounded up."""
    width: int
    """Elements of a row of `query`."""
    at_most: float
    """Product of the norms, rounded up: no score is larger."""
    can_overflow: bool
    """True if `at_most` overflows in `format`."""
    head_at_most: int | None
    """Most elements of a head for which the bound holds. Absent if no row can hold several
    heads."""
    enough_head: int | None
    """Least head size for which a division by its root before the product is enough. Absent if
    `at_most` does not overflow."""


class FindingsFields(Record):
    """The JSON of `halfscope analyze`."""

    __slots__ = ()
    schema: Literal[1]
    """Version of the JSON."""
    halfscope: str
    """Version of Halfscope."""
    logs: list[str]
    """Paths of the logs."""
    format: Literal['binary16', 'bfloat16', 'tf32', 'binary32', 'binary64', 'e4m3', 'e5m2', 'e3m2', 'e2m3', 'e2m1']
    """Target format, which the values are counted in."""
    loss_scale: float
    """Loss scale that gradients are counted at."""
    subnormals: Literal['flush', 'flush-before', 'flush-result'] | None
    """Rule for subnormals (flushing rules (docs/numerics/emulator.md)). Absent if they are kept."""
    tensors: list[TensorFindings]
    """One entry for each log and tensor, over the selected steps."""
    tensors_left_out: int | None
    """Number of tensors that are not in `tensors`. Only the JSON inside a page has it: there
    `tensors` has the worst ones. Else absent."""
    peaks_left_out: int | None
    """Number of entries that are not in `peaks`, the worst being there. Only the JSON inside a page
    has it. Else absent."""
    peaks: list[Peak] | None
    """One entry for each log and tensor with largest magnitudes and no histogram (docs/logs.md).
    Absent without such tensors."""
    ranks_compared: list[RankComparison] | None
    """One entry for each role that two ranks or more of a log have (the rule
    (docs/numerics/statistics.md)). Absent for logs of one rank."""
    delayed_scaling: list[DelayedScaling] | None
    """Transformer Engine's FP8 scales, replayed, one entry for each log
    (docs/numerics/counting.md). Absent if no tensor is recorded at consecutive steps."""
    weights_moved: list[Movement] | None
    """One entry for each log with weights of several steps in full (docs/weights.md). Absent
    without such a log."""
    mx_gradients: MxGradient | None
    """MXFP8's two element formats, compared over the gradients in `mx_formats` (of activations, or
    of weights if no others have full tensors). Absent without such gradients."""
    timeline: list[Timeline] | None
    """One entry for each log of another tool that has loss scales, skipped steps (or the fact that
    no step was skipped), or scalars that are NaN or infinite (docs/logs.md). Absent without such a
    log."""
    could_not_tell: list[CouldNotTell] | None
    """One entry for each log of another tool that lacks something. Absent if none does."""
    seems_scaled: SeemsScaled | None
    """Gradients that count as unscaled but seem to carry the loss scale: times the scale of their
    step they would overflow, and these steps were not skipped. Absent if there are none."""
    fp8: list[Fp8] | None
    """One entry for each log with statistics of tensors in FP8 or FP4 (docs/logs.md). Absent
    without such a log."""
    adam_state: list[AdamState] | None
    """One entry for each format of a log of Adam or AdamW with its state in 16 bits
    (docs/numerics/counting.md). Absent without such state."""
    fp32_state: list[Fp32State] | None
    """One entry for each log and kind of weights and optimizer state in FP32 that are recorded as
    whole tensors (docs/numerics/counting.md). Absent without such tensors."""
    layer_shifts: list[LayerShift] | None
    """One entry for each layer, in the order of computation, whose activations overflow without a
    loss scale, and hold if the layer's weights and bias are multiplied by 2^-`log2` and the weights
    of `next` by 2^`log2` (docs/numerics/statistics.md). Absent without such activations."""
    attention_scores: list[AttentionScore] | None
    """One entry for each attention whose query and key are recorded as whole activations
    (docs/numerics/statistics.md). Absent without one."""
    notes: list[str] | None
    """Every note on reading the logs, one sentence each; stderr shows the first ten. The words may
    change. Absent if there is none."""
    _nested = {
        'tensors': TensorFindings,
        'peaks': Peak,
        'ranks_compared': RankComparison,
        'delayed_scaling': DelayedScaling,
        'weights_moved': Movement,
        'mx_gradients': MxGradient,
        'timeline': Timeline,
        'could_not_tell': CouldNotTell,
        'seems_scaled': SeemsScaled,
        'fp8': Fp8,
        'adam_state': AdamState,
        'fp32_state': Fp32State,
        'layer_shifts': LayerShift,
        'attention_scores': AttentionScore,
    }


class MayUse(Record):
    """Use of a format of less range for a run in bfloat16."""

    __slots__ = ()
    fits: bool
    """True if the format fits at `static_scale`."""
    decided_by: str
    """Tensor that decides: the one with the largest gradient; or the first that overflows at every
    scale; or the one that loses most of its sum of squares, if the loss is not negligible."""


class LimitedBy(Record):
    """The magnitude that limits `highest`."""

    __slots__ = ()
    name: str
    """Name of the tensor, or its role with `from_scalars`."""
    step: int
    """Step of the magnitude."""
    skipped_at: float | None
    """Loss scale, if the only known fact is that a step was skipped at it or at a smaller one. Else
    absent."""
    first_step: int | None
    """With `skipped_at`: the skipped step is one of those from here to `step`. Absent if it is
    `step`."""
    numbered: bool | None
    """True if the log has no steps and `step` is an entry. Else absent."""
    nan_at: float | None
    """Loss scale of a NaN that the magnitude stands for. Else absent."""
    max_abs: float | None
    """Unscaled magnitude."""
    censored: bool | None
    """True if the magnitude stands for an infinity. Else absent."""
    bounded: bool | None
    """True if it is the most that the magnitude can be, as of a bucket. Else absent."""
    from_scalars: bool | None
    """True if no histogram of the step holds it. Else absent."""
    log: str | None
    """Path of the log. Absent if one log was given."""


class Unread(Record):
    """Steps without gradients of one role."""

    __slots__ = ()
    role: Literal['activation_grad', 'weight_grad']
    """Role that the log lacks, though other steps have it."""
    steps: int
    """Number of steps without gradients of this role."""
    of: int
    """Number of steps that have a gradient."""


class NanInModel(Record):
    """The first infinity or NaN of the model."""

    __slots__ = ()
    tensor: str
    """Name of the tensor."""
    step: int
    """Step."""
    log: str | None
    """Path of the log. Absent if one log was given."""


class FlushedShare(Record):
    """Values that become zero. They are intervals if zeros may be flushed values."""

    __slots__ = ()
    count: int | list[int]
    """Values that become zero."""
    of: int | list[int]
    """All finite nonzero values."""
    share: float | Bounds
    """`count` over `of`."""


class OwnScale(Record):
    """Each tensor with a scale of its own."""

    __slots__ = ()
    tensors: int
    """Number of tensors."""
    fit: int
    """Number of tensors that fit the format (`fits_at_best` of `analyze --formats`)."""
    flushed_to_zero: FlushedShare
    """The gradients' values that become zero."""
    _nested = {
        'flushed_to_zero': FlushedShare,
    }


class PerLayer(Record):
    """The scales of one layer's gradients."""

    __slots__ = ()
    layer: str
    """Name of the layer."""
    lowest: float | None
    """Lowest scale of its own gradients."""
    highest: float | None
    """Highest scale of its own gradients."""
    of: int | list[int]
    """Its finite nonzero values."""
    flushed_at_static: int | list[int]
    """Values that become zero at `static_scale`."""
    flushed_at_highest: int | list[int]
    """Values that become zero at its own `highest`."""
    als: float | None
    """Factor that adaptive loss scaling (arXiv 1910.12385) would give the gradient that leaves the
    layer. Absent unless the log has statistics of its weight and of the gradient that enters it."""


class KeepInFp32(Record):
    """A tensor that FP16 cannot hold."""

    __slots__ = ()
    name: str
    """Name of the tensor."""
    kind: Literal['tensor', 'softmax', 'normalization', 'loss', 'logits', 'reduction']
    """Kind of the tensor."""
    why: str
    """The reason, as a sentence."""
    highest_without: float | None
    """Scale that the others allow without it and those before it. Absent if it does not hold the
    scale of the others down."""
    binades_gained: int | None
    """Binades that the scale gains so. Absent without `highest_without`."""


class NotMultiplesOf8(Record):
    """A weight with an extent that Tensor Cores cannot use well."""

    __slots__ = ()
    name: str
    """Name of the weight."""
    shape: list[int]
    """Its shape."""
    why: str
    """The reason, as a sentence."""


class Footprint(Record):
    """Memory of weights and activations."""

    __slots__ = ()
    weights: int
    """Elements of weights."""
    activations: int
    """Elements of the activations of one step, or of one of its microbatches: one is held at a
    time."""
    microbatches: int | None
    """Number of microbatches, if the scalars show that there are several. Else absent."""
    bytes_fp32: int
    """Bytes in FP32."""
    bytes_fp16: int
    """Bytes in FP16."""
    bytes_mixed: int
    """Bytes in FP16 with FP32 master weights."""
    not_multiples_of_8: list[NotMultiplesOf8]
    """Weights whose input or output extent is 1024 or more and no multiple of 8, as Tensor Cores
    need it, and whose other extent is 128 or more."""
    _nested = {
        'not_multiples_of_8': NotMultiplesOf8,
    }


class RecommendationFieldsHeadroom(Record):
    """Headroom of one tensor."""

    __slots__ = ()
    log: str | None
    """Path of the log. Absent if one log was given."""
    name: str
    """Name of the tensor."""
    bits: float | None
    """Least headroom in binades. At zero or less the value overflows."""
    step: int
    """Step with the least headroom."""
    at_scale: float
    """Scale that the headroom is for."""
    censored: bool | None
    """True if an infinity computed in FP16 gives `bits`: it counts as 65520 over its scale, so the
    headroom is at most this. NaN, and infinities of wider formats, do not count. Else absent."""
    last: float | None
    """Headroom at the last step, in binades."""
    trend: float | None
    """Least-squares slope of log2 max_abs over the finite steps, in binades per 1000 steps.
    Positive numbers lead to overflow. Absent with fewer than three steps."""
    overflow_expected_at: int | None
    """Step at which the trend reaches overflow. Absent without a clear trend
    (docs/numerics/statistics.md)."""


class Step(Record):
    """Values of a tensor at one step."""

    __slots__ = ()
    step: int
    """Step."""
    max_abs: float | None
    """Largest finite unscaled magnitude."""
    nan: int | list[int]
    """NaN values."""
    inf: int | list[int]
    """Infinities."""
    overflow: int | list[int]
    """Finite values that overflow in the target format."""


class Lead(Record):
    """A tensor that may explain an overflow."""

    __slots__ = ()
    name: str
    """Name of the tensor."""
    relation: Literal['itself', 'weight', 'input', 'output gradient', 'gradient', 'update']
    """Relation to the tensor that overflows."""
    steps: list[Step]
    """Values at the step and at the last three recorded before it."""
    _nested = {
        'steps': Step,
    }


class OverflowEvent(Record):
    """A run of consecutive recorded steps with infinities, NaN or overflow."""

    __slots__ = ()
    log: str | None
    """Path of the log. Absent if one log was given."""
    kind: Literal['recorded', 'what_if']
    """`recorded`: infinities and NaN in the log. `what_if`: activations and weights that would
    overflow without a loss scale, or gradients that would overflow at the loss scale of the
    counts."""
    step: int
    """First step."""
    last_step: int
    """Last step."""
    tensor: str
    """First tensor in the order of computation: weights; activations in the order of their records;
    the loss; gradients backward through that order; results of the optimizer. With `from_scalars`
    it is the role."""
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    """Role of the tensor."""
    from_scalars: bool | None
    """True if only the step's scalars show it: there are no counts. Else absent."""
    nan: int | list[int] | None
    """NaN of that tensor at the first step. Absent with `from_scalars`."""
    inf: int | list[int] | None
    """Infinities of that tensor at the first step. Absent with `from_scalars`."""
    overflow: int | list[int] | None
    """Finite values of that tensor at the first step that overflow in the target format. Absent
    with `from_scalars`."""
    loss_scale: float | None
    """For gradients, the scale that their values carried; for a `what_if`, the scale asked about.
    Absent if unknown."""
    cause: Literal['by_scale', 'at_scale_1', 'nan_in_model', 'undetermined']
    """`by_scale`: a smaller loss scale avoids it. `at_scale_1`: it overflows without a loss scale,
    and a wider format for that tensor helps. `nan_in_model`: NaN or infinity that no rounding to
    FP16 made, and no loss scale helps; for gradients, how far from the scale
    (docs/numerics/statistics.md) they must be. `undetermined`: `why` says what is missing."""
    why: str
    """A sentence with the numbers that the cause rests on."""
    safe_scale: float | None
    """Largest power of two that would have held at all of the event's steps. Absent unless the
    cause is `by_scale`."""
    estimated: bool | None
    """True if `safe_scale` is an estimate: infinities hide how large the gradients were, so it
    comes from up to three finite steps on either side, and is below every scale that failed. Else
    absent."""
    growth_probe: bool | None
    """True if a dynamic loss scale had grown to where it overflows, and skipped the step: it finds
    its limit so. Absent unless the cause is `by_scale`."""
    leads: list[Lead]
    """The tensor itself and the tensors that it is computed from."""
    _nested = {
        'leads': Lead,
    }


class ScaleMass(Record):
    """Shares of magnitudes that become zero: a number if full tensors of all steps are in the log,
    else `[low, high]` from the histograms."""

    __slots__ = ()
    l1: float | None | list[float | None]
    """Share of the sum of magnitudes."""
    l2: float | None | list[float | None]
    """Share of the sum of squares."""


class RecommendationFieldsLostMass(Record):
    """Shares of the counted gradients' magnitudes that become zero."""

    __slots__ = ()
    at_1: ScaleMass
    """Shares at scale 1."""
    at_recommended: ScaleMass
    """Shares at `static_scale`."""
    _nested = {
        'at_1': ScaleMass,
        'at_recommended': ScaleMass,
    }


class Skip(Record):
    """The probability that a step's largest magnitude reaches overflow. For several logs, the one
    with the highest upper end."""

    __slots__ = ()
    method: Literal['binomial']
    """Method: `binomial`, from counting alone (docs/numerics/statistics.md)."""
    steps: int
    """Recorded steps whose gradients were all read, or that the run itself found clean at this
    scale or a larger one."""
    exceedances: int | list[int]
    """Steps of these that overflow at this scale; `[low, high]` if infinities of values computed in
    FP16 may stand for more."""
    probability: float
    """The estimate."""
    interval: Bounds
    """Interval that holds the true probability with this confidence."""
    confidence: float
    """Confidence of the interval."""
    unread_steps: int | None
    """Further recorded steps, whose gradients were not all read (`unread` (docs/json.md),
    `incomplete_steps`). If some of them overflow by the gradients that were read, `probability` and
    `interval` are no less than those of all steps. Absent if there are none."""


class Scale(Record):
    """The evidence at one scale."""

    __slots__ = ()
    log2_scale: int
    """Exponent of the scale."""
    flushed_to_zero: int | list[int]
    """Values that become zero."""
    of: int | list[int]
    """All finite nonzero values."""
    lost_mass: ScaleMass
    """Shares of the magnitudes that become zero."""
    overflow_steps: int | list[int] | None
    """Recorded steps, with or without histograms, whose largest magnitude overflows; `[low, high]`
    if infinities hide it, or if not all gradients of a step were read. Absent if no step counts."""
    skip: Skip | None
    """Probability that a step overflows. Absent if no step counts."""
    _nested = {
        'lost_mass': ScaleMass,
        'skip': Skip,
    }


class Dynamic(Record):
    """Settings of dynamic loss scaling."""

    __slots__ = ()
    policy: str
    """The run's own policy, if some setting of it makes a step, else `torch`."""
    init: float
    """Initial scale: for one run that can be replayed, that of the settings that lose the fewest
    gradients; otherwise twice `static_scale`."""
    growth_interval: int
    """Growth interval: for one run that can be replayed, that of the settings that lose the fewest
    gradients; otherwise the framework's."""
    expected_skip_rate: float | Bounds | None
    """Share of the steps that these settings skip, over the steps whose gradients were all read;
    `[low, high]` if some steps are unknown. Absent unless every run log among the logs can be
    replayed."""
    expected_skip_interval: Bounds | None
    """Interval of that share (Clopper and Pearson, 95 %). Absent unless every run log among the
    logs can be replayed."""
    unread_steps: int | None
    """Further recorded steps, as in `skip` (docs/json.md). Absent if there are none."""
    why: str
    """The reason, as a sentence."""


class RecommendationFieldsRank(Record):
    """Sums over ranks. For a role that the manifest calls sharded the parts may be different
    elements: then these are bounds."""

    __slots__ = ()
    ranks: int
    """Number of ranks."""
    of: int | list[int]
    """Values of all ranks."""
    flushed_undivided: int | list[int]
    """Values that become zero at `static_scale` as they are."""
    flushed_divided_before: int | list[int]
    """Values that become zero at `static_scale`, divided by the smallest power of two that is at
    least `ranks`."""
    headroom_divided_after: float | None
    """Binades between the largest possible sum and overflow if the sum is formed first."""
    highest_divided_after: float | None
    """Largest scale at which no sum can overflow, in any order of additions that round."""


class Finding(Record):
    """One finding."""

    __slots__ = ()
    severity: Literal['breaks', 'serious', 'warning', 'note']
    """Severity, the worst first: `breaks` (no loss scale brings it back), `serious`, `warning`,
    `note`."""
    title: str
    """The sentence."""
    action: str | None
    """Action. Absent if there is none."""
    evidence: Literal['scales', 'timeline', 'updates', 'overflow', 'policies', 'formats', 'fp8', 'ranks', 'weights', 'advice']
    """Section of the page with the evidence."""


class Answer(Record):
    """The answer in sentences."""

    __slots__ = ()
    headline: str
    """The main sentence."""
    action: str | None
    """Action for the headline. Absent if the headline is the sentence on the scale."""
    scale: str | None
    """Sentence on the scale. Absent if the headline says all."""
    clear: str | None = field('clear')  # type: ignore[assignment]
    """Sentence that nothing harms. Absent if something harms."""
    findings: list[Finding]
    """Findings in order of harm."""
    paste: str | None
    """Lines to paste that are shown. Absent if there are none."""
    severity: Literal['breaks', 'serious', 'warning', 'note'] | None
    """Severity of the headline. Absent if the headline is the sentence on the scale."""
    evidence: Literal['scales', 'timeline', 'updates', 'overflow', 'policies', 'formats', 'fp8', 'ranks', 'weights', 'advice'] | None
    """Section of the page for the headline. Absent if the headline is the sentence on the scale."""
    _nested = {
        'findings': Finding,
    }


class RecommendationFields(Record):
    """The JSON of `halfscope recommend`."""

    __slots__ = ()
    schema: Literal[1]
    """Version of the JSON."""
    halfscope: str
    """Version of Halfscope."""
    logs: list[str]
    """Paths of the logs."""
    format: str | None
    """Format of the answer: `--format`; without it the format that the run computed its gradients
    in: `bfloat16` if in every log some were computed in it and none in FP16, else `binary16`."""
    may_use: MayUse | None
    """Answer for a run in bfloat16 and a format of less range, such as FP16. Else absent."""
    static_scale: float | None
    """Scale to use: `highest`; 1 if `none_needed` in a format of binary32's exponent range; null
    with a `reason`."""
    highest: float | None
    """Largest 2^k, k at most 40, with max_abs * 2^(k + headroom) < 65520 at every selected step,
    details (docs/json.md). Null if unknown."""
    highest_if_half: float | None
    """`highest` if parameters, and so the sums over microbatches, are FP16 themselves
    (`model.half()`). Absent if that is no less."""
    lowest: float | None
    """Smallest 2^k from 2^-24 at which the flushed share of every counted tensor is at most the
    target. Null if there is none up to 2^40, or with `underflow_not_identifiable`."""
    lowest_at_least: float | None
    """No smaller power of two serves. Absent unless buckets of the log hide the flushed count, so
    that `lowest` is unknown."""
    lowest_if_zeros: float | None
    """Power of two that serves if all values which the log cannot tell from zero are zeros. Absent
    unless buckets of the log hide the flushed count."""
    reason: str | None
    """Reason why there is no scale, or why it loses values, details (docs/json.md). Null if there
    is no such reason."""
    roles_found: list[Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']]
    """Every role in the log."""
    nonfinite_steps: list[int]
    """Steps with NaN or infinity in a counted role."""
    overflow_without_cure: list[str] | None
    """Tensors of role `activation` or `weight` that overflow at scale 1. Absent if there are
    none."""
    limited_by: LimitedBy | None
    """The magnitude that limits `highest`. Absent if nothing does."""
    underflow_not_identifiable: bool | None
    """True if zeros of the log may be values that underflowed. Absent if it would be false and
    there is no `static_scale`."""
    overflow_not_identifiable: bool | None
    """True if `static_scale` is an upper bound: infinities of values computed in FP16 hide how
    large gradients were, or there is NaN that is inferred to be an overflow (docs/json.md), or
    clipping (`clipped`), or gradients that the log does not have (`incomplete_steps`, `unread`).
    Else absent."""
    clipped: bool | None
    """True if the weight gradients were clipped before they were recorded, details (docs/json.md):
    their largest magnitudes are lower bounds. Else absent."""
    incomplete_steps: int | None
    """Number of steps whose optimizer used gradients that the log does not have
    (`gradients_missing` (docs/run-log.md)). Absent if there are none."""
    unread: Unread | None
    """Role whose gradients the log lacks at some steps, so that the largest gradient of these steps
    is unknown. With several logs, the one that lacks the most. Absent if there is none."""
    none_needed: bool | None
    """True if scale 1 leaves the requested headroom below overflow, and every counted tensor is
    within the target there. In a format of binary32's exponent range, zeros that may be underflow
    do not count against it. Absent without `static_scale`."""
    nan_in_model: NanInModel | None
    """First infinity or NaN that no rounding made: no loss scale helps. Absent if there is none."""
    steps_left_out: int | None
    """Number of steps in neither `skip` nor `overflow_steps`: they hold an infinity or NaN that was
    there before any rounding (or that no rounding to FP16 is known to have made), that smaller
    scales did not cure, or whose loss scale is unknown. Absent if there are none."""
    above_target: list[str] | None
    """Counted tensors whose flushed share at `static_scale` is above the target (as the binary64
    number that the target parses to). Absent without `static_scale`."""
    headroom_bits: float | None
    """log2(65520 / (max_abs * static_scale)), with the largest magnitude of all steps. Absent
    without `static_scale`."""
    flushed_at_1: FlushedShare | None
    """Values of all counted tensors that become zero at scale 1. Absent without `static_scale`."""
    flushed_at_recommended: FlushedShare | None
    """Values of all counted tensors that become zero at `static_scale`. Absent without
    `static_scale`."""
    own_scales: OwnScale | None
    """Result if each tensor has a scale of its own, as FP8's recipes have: the largest power of two
    at which it does not overflow. With one loss scale for all gradients `flushed_at_recommended`
    becomes zero. Absent unless `format` has 8 bits."""
    snippets: dict[str, str] | None
    """Lines to paste for a static scale, by framework, details (docs/json.md). Absent if infinities
    hide the largest gradients of every recorded step, and if no framework has lines."""
    dynamic_snippets: dict[str, str] | None
    """Lines to paste for dynamic scaling, by framework. Absent if no framework has lines."""
    per_layer: list[PerLayer] | None
    """One entry for each layer. Absent unless no single scale serves every tensor, and zeros hide
    no underflow (no `lowest` would be known)."""
    keep_in_fp32: list[KeepInFp32] | None
    """Tensors that FP16 cannot hold on the recorded values: tensors that overflow at every scale;
    softmax, normalization and reductions whose inner values would; logits and loss; and, if zeros
    hide no underflow, layers whose gradients hold the scale of all others down. Absent if there are
    none."""
    footprint: Footprint | None
    """Memory of weights and activations of the first log. Absent if unknown."""
    headroom: list[RecommendationFieldsHeadroom]
    """Headroom of every tensor, the least first, details (docs/json.md)."""
    overflow_events: list[OverflowEvent]
    """Places where infinities, NaN and overflow first appear, with the causes, details
    (docs/json.md)."""
    lost_mass: RecommendationFieldsLostMass | None
    """Shares of the counted gradients' magnitudes that become zero. Absent if unknown."""
    skip: Skip | None
    """Probability that a step overflows at `static_scale`, details (docs/json.md). Absent if
    unknown."""
    scales: list[Scale] | None
    """The evidence at each scale around the range of good scales. Absent if there is none."""
    dynamic: Dynamic | None
    """Dynamic loss scaling, with the reasons in docs/numerics/statistics.md. Absent if there is no
    advice."""
    ranks: RecommendationFieldsRank | None
    """Sums over ranks. Absent unless the log is a folder of all ranks whose weight gradients
    differ, so that they were recorded before their sum."""
    answer: Answer
    """The sentences that the terminal, the page and Markdown show. The words may change, so read
    the other fields in programs."""
    timeline: list[Timeline] | None
    """One entry for each log of another tool that has loss scales, skipped steps (or the fact that
    no step was skipped), or scalars that are NaN or infinite (docs/logs.md). Absent without such a
    log."""
    could_not_tell: list[CouldNotTell] | None
    """One entry for each log of another tool that lacks something. Absent if none does."""
    seems_scaled: SeemsScaled | None
    """Gradients that count as unscaled but seem to carry the loss scale: times the scale of their
    step they would overflow, and these steps were not skipped. Absent if there are none."""
    fp8: list[Fp8] | None
    """One entry for each log with statistics of tensors in FP8 or FP4 (docs/logs.md). Absent
    without such a log."""
    adam_state: list[AdamState] | None
    """One entry for each format of a log of Adam or AdamW with its state in 16 bits
    (docs/numerics/counting.md). Absent without such state."""
    fp32_state: list[Fp32State] | None
    """One entry for each log and kind of weights and optimizer state in FP32 that are recorded as
    whole tensors (docs/numerics/counting.md). Absent without such tensors."""
    layer_shifts: list[LayerShift] | None
    """One entry for each layer, in the order of computation, whose activations overflow without a
    loss scale, and hold if the layer's weights and bias are multiplied by 2^-`log2` and the weights
    of `next` by 2^`log2` (docs/numerics/statistics.md). Absent without such activations."""
    attention_scores: list[AttentionScore] | None
    """One entry for each attention whose query and key are recorded as whole activations
    (docs/numerics/statistics.md). Absent without one."""
    notes: list[str] | None
    """Every note on reading the logs, one sentence each; stderr shows the first ten. The words may
    change. Absent if there is none."""
    _nested = {
        'may_use': MayUse,
        'limited_by': LimitedBy,
        'unread': Unread,
        'nan_in_model': NanInModel,
        'flushed_at_1': FlushedShare,
        'flushed_at_recommended': FlushedShare,
        'own_scales': OwnScale,
        'per_layer': PerLayer,
        'keep_in_fp32': KeepInFp32,
        'footprint': Footprint,
        'headroom': RecommendationFieldsHeadroom,
        'overflow_events': OverflowEvent,
        'lost_mass': RecommendationFieldsLostMass,
        'skip': Skip,
        'scales': Scale,
        'dynamic': Dynamic,
        'ranks': RecommendationFieldsRank,
        'answer': Answer,
        'timeline': Timeline,
        'could_not_tell': CouldNotTell,
        'seems_scaled': SeemsScaled,
        'fp8': Fp8,
        'adam_state': AdamState,
        'fp32_state': Fp32State,
        'layer_shifts': LayerShift,
        'attention_scores': AttentionScore,
    }


class TroubleTrouble(Record):
    """Values that are not finite, over all tensors and steps of the run."""

    __slots__ = ()
    tensors: int
    """Number of tensors."""
    beside_gradients: int
    """Number of these tensors that no loss scale acts on."""
    steps: int
    """Number of steps."""
    first_step: int
    """First step."""
    last_step: int
    """Last step."""
    values: int | list[int] = field('values')  # type: ignore[assignment]
    """Number of values."""
    most_in: str
    """Tensor with most of them."""


class Trouble(Record):
    """Signs of a broken run."""

    __slots__ = ()
    nan_or_infinity: TroubleTrouble | None
    """Values that are NaN or infinite. Absent if there are none."""
    overflow: TroubleTrouble | None
    """Values that overflow. Absent if there are none."""
    loss_not_finite_from: int | None
    """First step with a loss that is not finite. Absent if there is none."""
    _nested = {
        'nan_or_infinity': TroubleTrouble,
        'overflow': TroubleTrouble,
    }


class Run(Record):
    """Counts of one run over the gradients that both runs have."""

    __slots__ = ()
    total: int
    """All values. It is the sum of `zero`, `nan`, `inf` and the four classes."""
    zero: int | list[int]
    """Recorded zeros of both signs."""
    nan: int | list[int] | None
    """Recorded NaN values. Absent if the log left them out without a count."""
    inf: int | list[int] | None
    """Recorded infinities. Absent if the log left them out without a count."""
    finite_nonzero: int | list[int] | None
    """Finite nonzero values as `[low, high]`. Absent if it is the rest of `total`."""
    flushed_to_zero: int | list[int]
    """Values that become zero."""
    subnormal: int | list[int]
    """Values that become subnormal."""
    normal: int | list[int]
    """Values that stay normal."""
    overflow: int | list[int]
    """Values that overflow."""
    lost_to_zero: int | list[int]
    """`zero` + `flushed_to_zero`."""
    not_finite: int | list[int]
    """`nan` + `inf` + `overflow`."""
    underflow_identifiable: bool
    """False if zeros of the run may be values that underflowed."""
    loss_scales: Bounds | None
    """Least and largest scale that counts are for. Absent without gradients."""
    steps_with_scalars: int
    """Number of steps with scalars."""
    skipped: list[int]
    """Skipped steps (with found_inf)."""
    lost: int | list[int]
    """Values lost to zero (definition (docs/compare.md))."""
    not_finite_all_roles: int | list[int]
    """`not_finite` of the tensors of every role."""
    trouble: Trouble | None
    """Signs of a broken run, common steps or not. Absent if there are none."""
    _nested = {
        'trouble': Trouble,
    }


class UpdateSide(Record):
    """Updates of one run over the common steps (docs/numerics/counting.md), in the 16-bit format
    that the run keeps the weight in, else in `format`."""

    __slots__ = ()
    updates: int
    """Finite nonzero updates."""
    update_underflow: int
    """Updates that round to zero themselves."""
    swamped: int
    """Other updates that leave the weight as it is."""
    lost: int
    """`update_underflow` + `swamped`."""
    pairs: int
    """All pairs of a weight and its update."""
    zero: int
    """Updates that are exactly zero."""


class Update(Record):
    """Updates of both runs."""

    __slots__ = ()
    a: UpdateSide
    """Updates of A."""
    b: UpdateSide
    """Updates of B."""
    _nested = {
        'a': UpdateSide,
        'b': UpdateSide,
    }


class LastLoss(Record):
    """Losses of both runs at one step."""

    __slots__ = ()
    step: int
    """Last step at which both runs have a loss."""
    a: float | None
    """Loss of A."""
    b: float | None
    """Loss of B."""


class UpdatesLost(Record):
    """Lost updates of both runs."""

    __slots__ = ()
    a: int
    """Lost updates of A."""
    b: int
    """Lost updates of B."""


class WeightsKeptIn(Record):
    """Formats of the weights of both runs, in the names of safetensors."""

    __slots__ = ()
    a: str | None
    """Format of A, null if unknown."""
    b: str | None
    """Format of B, null if unknown."""


class NewZerosInWholeTensor(Record):
    """New zeros of gradients that both runs have whole."""

    __slots__ = ()
    steps: int
    """Number of steps."""
    elements: int
    """Number of elements."""
    new_zeros: int
    """Elements zero in B and not in A."""


class Parting(Record):
    """Steps at which the losses begin to differ."""

    __slots__ = ()
    steps: int
    """Number of steps at which both runs have a loss."""
    same_until: int | None
    """The losses are the same number from the first of these steps to here. Absent if they differ
    at the first step."""
    first_other: int | None
    """First step at which the losses are not the same number. Absent without one."""
    first_apart: int | None
    """First step at which the losses differ by more than 1 %. Absent without one."""
    first_other_scale: int | None
    """First step at which the loss scales differ. Absent without one."""


class Summary(Record):
    """The two runs, over the tensors that a loss scale acts on."""

    __slots__ = ()
    gradients: int
    """Number of such tensors that both runs have."""
    underflow: Literal['less', 'same', 'similar', 'more', 'unknown']
    """Verdict on `lost`, B against A."""
    overflow: Literal['less', 'same', 'more', 'unknown']
    """Verdict on `not_finite`, B against A; with `own_format` without the overflow of tensors
    computed in a wider format."""
    a: Run
    """Counts of A."""
    b: Run
    """Counts of B."""
    zero_difference: int
    """Sum over the tensors: zeros of B less zeros of A."""
    new_zeros: int | list[int] | None
    """Sum over the tensors: elements zero in B and not in A. Absent if unknown."""
    updates: Update | None
    """Updates of all weights. Absent unless both logs have updates."""
    last_loss: LastLoss | None
    """Losses at the last step at which both runs have one. Absent without such a step."""
    not_finite: Literal['less', 'same', 'more', 'unknown']
    """Verdict on `not_finite` of the tensors of every role, B against A."""
    updates_lost: UpdatesLost | None
    """Updates that are not zero and leave their weight as it is, judged in the format described
    here (docs/compare.md): `unmoved` compares these, with zero updates if underflow may have made
    them. Absent without updates."""
    weights_kept_in: WeightsKeptIn | None
    """Narrowest format that each run keeps weights with updates, or their masters, in. Absent if
    updates of both are counted in `format`."""
    unmoved: Literal['less', 'same', 'similar', 'more', 'unknown'] | None
    """Verdict on lost updates, B against A. Absent without updates."""
    new_zeros_in_whole_tensors: NewZerosInWholeTensor | None
    """Part of `new_zeros` that is known exactly: gradients that both runs have whole. Absent if
    there are none."""
    parting: Parting | None
    """Steps at which the losses begin to differ. Absent without `last_loss`."""
    _nested = {
        'a': Run,
        'b': Run,
        'updates': Update,
        'last_loss': LastLoss,
        'updates_lost': UpdatesLost,
        'weights_kept_in': WeightsKeptIn,
        'new_zeros_in_whole_tensors': NewZerosInWholeTensor,
        'parting': Parting,
    }


class BlockLoss(Record):
    """Blocks of a tensor that a run stores as codes with scales, against the other run."""

    __slots__ = ()
    element: str
    """Format of the codes, such as `E2M1`."""
    scale: str
    """Format of the scales, such as `E4M3`."""
    block: list[int]
    """Rows and columns of a block."""
    blocks: int
    """Number of blocks."""
    vanished: int
    """Blocks whose values are all zero, and not all zero in the other run."""
    clipped: int
    """Blocks with a value at the block's largest magnitude that in the other run is larger by more
    than half the distance between the two largest."""
    signal_to_noise: float | None
    """Sum of the other run's squared values over the sum of squared differences, in dB. Null if no
    element differs, or all values are zero."""


class Side(Record):
    """Counts of a tensor in one run."""

    __slots__ = ()
    total: int
    """All values. It is the sum of `zero`, `nan`, `inf` and the four classes."""
    zero: int | list[int]
    """Recorded zeros of both signs."""
    nan: int | list[int] | None
    """Recorded NaN values. Absent if the log left them out without a count."""
    inf: int | list[int] | None
    """Recorded infinities. Absent if the log left them out without a count."""
    finite_nonzero: int | list[int] | None
    """Finite nonzero values as `[low, high]`. Absent if it is the rest of `total`."""
    flushed_to_zero: int | list[int]
    """Values that become zero."""
    subnormal: int | list[int]
    """Values that become subnormal."""
    normal: int | list[int]
    """Values that stay normal."""
    overflow: int | list[int]
    """Values that overflow."""
    max_abs: float | None
    """Largest finite unscaled magnitude, null if there is none."""
    steps_left_out: list[int]
    """Steps of this run alone."""
    binades: list[list[int | list[int]]]
    """Finite nonzero unscaled values by binade, as in `analyze` (docs/json.md)."""
    stored: BlockLoss | None
    """What the run lost by storing the tensor as codes with scales (definitions (docs/compare.md)).
    Absent unless it stores it so."""
    _nested = {
        'stored': BlockLoss,
    }


class Element(Record):
    """Full tensors of both runs, element by element."""

    __slots__ = ()
    steps: list[int]
    """Steps at which both have the full tensor."""
    unscale: Literal['exact', 'rounded']
    """`exact`, or `rounded` if a scale is no power of two and unscaled values are rounded to
    binary64."""
    elements: int
    """Number of elements at these steps."""
    equal: int
    """Elements with the same value and sign, NaN with NaN too."""
    became_zero: int
    """Elements from finite nonzero to zero."""
    became_nonzero: int
    """Elements from zero to finite nonzero."""
    became_subnormal: int
    """Elements that are normal in the format A computed in, and subnormal in the format B computed
    in."""
    became_infinite: int
    """Elements from finite to infinite."""
    became_nan: int
    """Elements from finite to NaN."""
    became_finite: int
    """Elements from infinite or NaN to finite."""
    largest_relative_error: float | None
    """Largest magnitude of (b - a) / a, both finite, a nonzero. Absent without such elements."""
    largest_ulps: float | None
    """Largest magnitude of b - a, in ulps that the target has at a times the scale B's values
    carry; FP16 rounding to nearest gives at most 0.5. Absent without such elements."""


class Lost(Record):
    """Values lost to zero in both runs."""

    __slots__ = ()
    a: int | list[int]
    """Values lost in A."""
    b: int | list[int]
    """Values lost in B."""


class ComparedTensor(Record):
    """One tensor in both runs."""

    __slots__ = ()
    name: str
    """Name, as role/path."""
    role: str
    """Role of the tensor."""
    steps: list[int]
    """Common steps. All numbers are over these."""
    a: Side
    """Counts of A."""
    b: Side
    """Counts of B."""
    zero_difference: int
    """Zeros of B less zeros of A, of either sign."""
    new_zeros: int | list[int] | None
    """Elements zero in B and not in A: exact for steps whose full tensors are in both logs.
    Otherwise bounds: with zA and zB zeros among n elements, max(0, zB - zA) to min(zB, n - zA),
    summed over steps. If A is FP32 and B the same step in FP16, it is the underflow that happened.
    Absent if the sizes differ."""
    max_abs_shift: float | None
    """log2 of B's largest finite magnitude over A's. Absent if a run has none."""
    median_shift: int | None
    """Binades that the lower median of the finite nonzero magnitudes moved by. Absent if a run has
    none."""
    largest_share_difference: float | None
    """Largest difference between the runs in the share of finite values (zeros included) below some
    power of two: the Kolmogorov-Smirnov distance on the binades. Absent if a run has none."""
    updates: Update | None
    """Updates of the weight. Absent unless both logs have them."""
    elements: Element | None
    """Full tensors of both, element by element, unscaled. Absent unless both logs have full
    tensors."""
    lost: Lost
    """Values lost to zero; from 0 if zeros are most likely no underflow."""
    harmed: bool
    """True if B surely does worse (verdicts (docs/compare.md))."""
    _nested = {
        'a': Side,
        'b': Side,
        'updates': Update,
        'elements': Element,
        'lost': Lost,
    }


class Loss(Record):
    """Losses of both runs."""

    __slots__ = ()
    a: list[list[int | float | None]]
    """`[step, loss]` of A."""
    b: list[list[int | float | None]]
    """`[step, loss]` of B."""


class ComparisonFieldsScale(Record):
    """Loss scales of both runs."""

    __slots__ = ()
    a: list[list[int | float | None]]
    """`[step, loss scale]` of A."""
    b: list[list[int | float | None]]
    """`[step, loss scale]` of B."""


class OrderVerdict(Record):
    """The verdict on the sums of one tensor."""

    __slots__ = ()
    name: str
    """Name of the tensor."""
    steps: list[int]
    """Common steps."""
    verdict: Literal['within', 'above', 'cannot tell']
    """Verdict: `within`, `above` or `cannot tell` (their meaning (docs/compare.md))."""
    elements: int
    """Number of elements."""
    within: int
    """Elements within the limit for random orders."""
    between: int
    """Elements between the limit and the bound for any order."""
    above: int
    """Elements above the bound for any order."""
    nonfinite: int
    """Elements of `between` with one result that is infinite or NaN, and another that differs."""
    worst: int
    """Index of the worst element."""
    worst_step: int
    """Step of the worst element."""
    worst_ratio: float | None
    """Difference of the worst element over the limit or bound, null if that is 0."""
    magnitudes_missing: bool | None
    """True if the sums of magnitudes are missing. Else absent."""


class ComparedSums(Record):
    """Verdicts on sums, as `--sums` asks."""

    __slots__ = ()
    length: int
    """Number of addends."""
    format: str
    """Format that sums are computed in."""
    magnitudes: str | None
    """Tensor of A with the sums of the addends' magnitudes. Absent if none was named."""
    by_tensor: list[OrderVerdict]
    """One entry for each tensor."""
    _nested = {
        'by_tensor': OrderVerdict,
    }


class Format(Record):
    """Sums over the operations with results in one format."""

    __slots__ = ()
    format: Literal['F16', 'BF16', 'F32']
    """Format of the results."""
    operations: int
    """Number of operations."""
    identical_operations: int
    """Number of operations with identical results."""
    elements: int
    """Number of results."""
    identical: int
    """Results with the same bits, NaN being NaN."""
    within_one_ulp: int
    """Results at most one ulp apart, identical ones included."""
    not_finite_in_one: int
    """Results that are infinite or NaN in one, and not the same in the other."""
    elements_of_different: int
    """Results of the operations that are not identical."""
    beyond_rounding: int | None
    """Number of operations that differ by more than rounding. Absent for F32."""
    worst: str | None
    """First operation that differs. Absent if none does."""


class RunAndEmulation(Record):
    """Results of a run and of its emulation."""

    __slots__ = ()
    run: int
    """Results of the run."""
    emulated: int
    """Results of the emulation."""


class Operation(Record):
    """One operation at one combination of shapes."""

    __slots__ = ()
    operation: str
    """Name with the shapes."""
    format: Literal['F16', 'BF16', 'F32']
    """Format of the results."""
    calls: int
    """Number of calls."""
    elements: int
    """Results of all calls."""
    identical: int
    """Results with the same bits, NaN being NaN."""
    within_one_ulp: int
    """Results at most one ulp apart, identical ones included."""
    largest_ulps: int
    """Largest distance in ulps of results that are finite in both."""
    not_finite_in_one: int
    """Results that are infinite or NaN in one, and not the same in the other."""
    largest_relative_error: float
    """Largest relative error of one call's results together: |run - emulation| / |emulation|,
    Euclidean."""
    zero: RunAndEmulation
    """Results that are zero."""
    subnormal: RunAndEmulation
    """Results that are subnormal."""
    not_finite: RunAndEmulation
    """Results that are infinite or NaN."""
    beyond_rounding: bool | None
    """True if the results differ by more than rounding. Absent for F32."""
    _nested = {
        'zero': RunAndEmulation,
        'subnormal': RunAndEmulation,
        'not_finite': RunAndEmulation,
    }


class OperationOperation(Record):
    """The operations of one run beside their emulation."""

    __slots__ = ()
    first_step: int
    """First checked step."""
    last_step: int
    """Last checked step."""
    formats: list[Format]
    """Sums over the operations, one entry for each format of results."""
    operations: list[Operation]
    """One entry for each operation at each combination of shapes, the worst first."""
    _nested = {
        'formats': Format,
        'operations': Operation,
    }


class ComparisonFieldsOperation(Record):
    """Operations of the runs that have `operations.json`."""

    __slots__ = ()
    a: OperationOperation | None
    """Operations of A. Absent if A has none."""
    b: OperationOperation | None
    """Operations of B. Absent if B has none."""
    _nested = {
        'a': OperationOperation,
        'b': OperationOperation,
    }


class ComparisonFields(Record):
    """The JSON of `halfscope compare`."""

    __slots__ = ()
    schema: Literal[1]
    """Version of the JSON."""
    halfscope: str
    """Version of Halfscope."""
    logs: list[str]
    """Paths of A and B."""
    format: str
    """Format of the counts. With `own_format` it is the one that one of the runs computed in."""
    subnormals: Literal['flush', 'flush-before', 'flush-result'] | None
    """Rule for subnormals (flushing rules (docs/numerics/emulator.md)). Absent if they are kept."""
    own_format: bool | None
    """True if each run is judged in its own format. Else absent."""
    loss_scale: float | Literal['own']
    """Scale that gradients are counted at: one number, or `own`, the scale of their step."""
    summary: Summary
    """Sums over the tensors that a loss scale acts on."""
    tensors: list[ComparedTensor]
    """One entry for each common tensor, the worst first: by the share of values that are newly not
    finite, then newly lost to zero, then of updates that newly leave their weight as it is; tensors
    that are not harmed by `largest_share_difference`."""
    only_a: list[str]
    """Tensors of A alone."""
    only_b: list[str]
    """Tensors of B alone."""
    loss: Loss | None
    """Loss of each step. Absent if no run has it."""
    scales: ComparisonFieldsScale | None
    """Loss scale of each step. Absent if no run has it."""
    sums: ComparedSums | None
    """Verdicts on sums. Absent without `--sums`."""
    operations: ComparisonFieldsOperation | None
    """Operations beside their emulation. Absent if no run has `operations.json`."""
    notes: list[str] | None
    """Every note on reading the logs, one sentence each. The words may change. Absent if there is
    none."""
    _nested = {
        'summary': Summary,
        'tensors': ComparedTensor,
        'loss': Loss,
        'scales': ComparisonFieldsScale,
        'sums': ComparedSums,
        'operations': ComparisonFieldsOperation,
    }


class Error(Record):
    """An error that ends training."""

    __slots__ = ()
    message: str
    """The framework's message."""
    step: int
    """Step at which training ends."""


class Part(Record):
    """The scale of one tensor or layer."""

    __slots__ = ()
    name: str
    """Name of the tensor or layer."""
    scale: list[float | None]
    """Scale of each step."""


class Trap(Record):
    """A pitfall."""

    __slots__ = ()
    id: str
    """Name of the pitfall."""
    text: str
    """Sentences on what happens and the way out."""
    step: int | None
    """Step at which it happens. Absent if it has none."""


class Paste(Record):
    """Lines to paste."""

    __slots__ = ()
    where: str
    """Place for the lines."""
    lines: str
    """The lines."""
    note: str | None
    """A note on them. Absent if there is none."""


class Tuned(Record):
    """The best settings that a search found."""

    __slots__ = ()
    policy: str
    """Name of the policy."""
    text: str
    """The settings as `--policy` accepts them."""
    settings: dict[str, float | bool | str | None]
    """The settings, by the framework's names."""
    skipped: int
    """Number of skipped steps with them."""
    kept: bool
    """True if these are the policy's own settings, since none does better or they do no harm."""
    stopped_by: str | None
    """Sentences on what keeps every setting from skipping nothing within the target. Absent if
    nothing does."""
    within_target: bool
    """True if the flushed share is within the target."""
    tried: int
    """Number of combinations that were tried."""
    paste: Paste | None
    """Lines of the framework for these settings. Absent if it has none."""
    mean_flushed_share: Bounds | None
    """Mean share, `[low, high]`. Absent if no step has histograms."""
    worst_flushed_share: Bounds | None
    """Largest share, `[low, high]`. Absent if no step has histograms."""
    worst_flushed_step: int | None
    """Step of the largest share. Absent if no step has histograms."""
    _nested = {
        'paste': Paste,
    }


class FirstDifference(Record):
    """The first step at which the replay differs from the run."""

    __slots__ = ()
    step: int
    """Step."""
    replayed_scale: float | None
    """Scale in the replay."""
    recorded_scale: float | None
    """Scale in the run."""
    replayed_skip: bool
    """True if the replay skips the step."""
    recorded_skip: bool
    """True if the run skipped the step."""


class Replay(Record):
    """The run's own policy, replayed."""

    __slots__ = ()
    policy: str
    """The policy with its settings."""
    steps: int
    """Number of compared steps."""
    equal: bool
    """True if the replay is equal to the run."""
    first_difference: FirstDifference | None
    """First difference. Absent if there is none."""
    _nested = {
        'first_difference': FirstDifference,
    }


class PolicyTrace(Record):
    """One policy replayed over one log."""

    __slots__ = ()
    policy: str
    """Name of the policy; `recorded` for the run itself."""
    log: str | None
    """Path of the log. Absent with `--amax`."""
    settings: dict[str, float | bool | str | None] | None
    """All settings, by the framework's names. Absent for `recorded`."""
    first_step: int | None
    """Step of the first number in `scale` and `attempts`; 0 with `--amax`. Absent without steps."""
    scale: list[float | None] | None
    """Scale of the first attempt of each step, null if it is infinite. For policies that keep
    several, see `parts`."""
    skipped: list[int] | None
    """Skipped steps."""
    overflow: list[int] | None
    """Steps with an attempt that surely overflowed."""
    unknown: list[int] | None
    """Steps with an unknown outcome at this scale: they overflowed in the run at a larger scale, or
    their gradients are not all recorded, or zeros were made by FP16. The input of a policy that
    follows magnitudes is then unknown, too. They are in no other list, and the policy's state
    passes them unchanged."""
    applied_nonfinite: list[int] | None
    """Steps whose infinity or NaN went into the weights."""
    attempts: list[int] | None
    """Attempts of each step; above 1 only for policies that try a step again."""
    final: float | None
    """Scale that the next step would use, null if it is not finite."""
    final_text: Literal['inf', 'nan'] | None
    """`inf` or `nan` if `final` is null. Else absent."""
    error: None | Error
    """Error of the framework that ends training, null without one. The trace ends with that
    step."""
    fate: Literal['ran', 'error', 'floor', 'zero', 'infinity'] | None
    """Outcome: `ran`, `error`, `floor` (at its least scale in the end, and still overflowing),
    `zero`, `infinity`."""
    skipped_in_model: int | None
    """Number of `skipped` steps that no scale would have saved: NaN or infinity in the model."""
    mean_flushed_share: Bounds | None
    """Mean share, `[low, high]`. Absent if no step has histograms."""
    worst_flushed_share: Bounds | None
    """Largest share, `[low, high]`. Absent if no step has histograms."""
    worst_flushed_step: int | None
    """Step of the largest share. Absent if no step has histograms."""
    parts: list[Part] | None
    """Scales of policies with a scale for every tensor or layer. Absent for other policies."""
    traps: list[Trap] | None
    """Known pitfalls of this policy that affect this run. Absent if there are none."""
    tuned: Tuned | None
    """Best settings of the policy that was searched (`--framework`). Absent for other policies."""
    replay: Replay | None
    """Comparison of the run's own policy, replayed, with the run. Absent except for `recorded`."""
    lost_share: float | None
    """Share of all gradient values that the weights never see, at most. Policies are ranked by it.
    It counts all values of a step that is skipped or unknown, all from the step on at which an
    error ends training or an infinity goes into the weights, and of the others those that become
    zero (the mean's upper end, but no less than the steps at which even the largest gradient
    does)."""
    unavailable: str | None
    """Data that the log lacks for this policy, as `needs ...`. The entry then has no further
    fields, and other entries lack this one."""
    _nested = {
        'error': Error,
        'parts': Part,
        'traps': Trap,
        'tuned': Tuned,
        'replay': Replay,
    }


class Reduction(Record):
    """One sum in one format and order."""

    __slots__ = ()
    log: str
    """Path of the log."""
    name: str
    """Tensor whose elements are added; `*`: all gradients of the log together."""
    sum: Literal['gradient', 'bias_gradient', 'mean', 'variance', 'mean_square', 'softmax', 'gradient_norm']
    """Kind of the sum (kinds (docs/reduce.md)): `gradient` over ranks or microbatches; over
    elements `bias_gradient`, `mean`, `variance`, `mean_square`, `softmax`, `gradient_norm`."""
    over: Literal['ranks', 'microbatches', 'elements']
    """The addends: `ranks`, `microbatches` or `elements`."""
    count: int
    """Addends of each sum."""
    format: str
    """Format of the accumulator."""
    order: Literal['sequential', 'ring', 'tree', 'pairwise']
    """Order of the additions: `sequential`, `ring`, `tree` or `pairwise`."""
    additions: int
    """Number of additions."""
    lost: int | list[int]
    """Additions that change nothing."""
    lost_share: float | Bounds
    """`lost` over `additions`."""
    relative_l2: float | None | list[float | None]
    """The error, null if it is infinite, or if every sum overflows."""
    mean_error_ulp: float | None
    """Mean signed error in ulps (definition (docs/numerics/reductions.md)), null if every sum
    overflows."""
    mean_error_se: float | None
    """Standard error of `mean_error_ulp`, null if every sum overflows."""
    overflow: int | list[int]
    """Sums that are infinite."""
    flushed: int | None
    """Nonzero addends that become zero when they are rounded to the format, before they are added.
    Absent in a prediction."""
    predicted: bool
    """True for a prediction for `count` addends, from the `recorded` ones of the last step, whose
    sums `additions` counts. `lost`, `lost_share`, `relative_l2` and `overflow` are then `[low,
    high]`, and the mean errors null."""
    recorded: int | None
    """Recorded addends that a prediction rests on. Absent without one."""
    sums: int | None
    """Number of sums over all steps, without `nonfinite` ones. Absent in a prediction."""
    nonfinite: int | None
    """Number of sums with an addend that is infinite or NaN. Absent if there are none."""
