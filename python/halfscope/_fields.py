# SPDX-License-Identifier: Apache-2.0
"""The objects in results, and their fields (docs/json.md). Written by tools/python_fields.py.

A field that a log cannot answer is None as an attribute, and no key of the mapping.
"""

from __future__ import annotations

from typing import Literal

from halfscope._records import Bounds, Record, field


class ByScale(Record):
    """The field `by_scale` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log2_scale: int
    flushed_to_zero: int | list[int]
    subnormal: int | list[int]
    normal: int | list[int]
    overflow: int | list[int]


class PerStep(Record):
    """The field `per_step` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    step: int
    total: int
    zero: int | list[int]
    nan: int | list[int] | None
    inf: int | list[int] | None
    finite_nonzero: int | list[int] | None
    flushed_to_zero: int | list[int]
    subnormal: int | list[int]
    normal: int | list[int]
    overflow: int | list[int]


class Outcome(Record):
    """The field `outcomes` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    underflow: int
    swamped: int
    applied: int
    exact: int
    overflow: int


class UpdateDetailPerStep(Record):
    """The field `per_step` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    step: int
    updates: int
    update_underflow: int
    swamped: int
    swamped_fused: int
    rule_2048: int
    pairs: int
    zero: int
    nonfinite: int
    half: Outcome
    fused: Outcome
    _nested = {
        'half': Outcome,
        'fused': Outcome,
    }


class UpdateCount(Record):
    """The field `update_counts` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    updates: int
    update_underflow: int
    swamped: int
    swamped_fused: int
    rule_2048: int
    pairs: int
    zero: int
    nonfinite: int
    half: Outcome
    fused: Outcome
    _nested = {
        'half': Outcome,
        'fused': Outcome,
    }


class LearningRate(Record):
    """The field `learning_rate` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log2_factor: int
    updates: int
    update_underflow: int
    swamped: int
    swamped_fused: int
    rule_2048: int
    pairs: int
    zero: int
    nonfinite: int
    half: Outcome
    fused: Outcome
    _nested = {
        'half': Outcome,
        'fused': Outcome,
    }


class Stochastic(Record):
    """The field `stochastic` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    random_bits: int
    expected_moves: float
    never: int
    never_truncated: int


class Kahan(Record):
    """The field `kahan` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    steps: int
    moved: int
    moved_without: int


class Fp32Master(Record):
    """The field `fp32_master` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    first_move: list[list[int]]
    never: int


class WhatIf(Record):
    """The field `what_if` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    bfloat16: UpdateCount
    learning_rate: list[LearningRate]
    stochastic: list[Stochastic]
    kahan: Kahan
    fp32_master: Fp32Master
    _nested = {
        'bfloat16': UpdateCount,
        'learning_rate': LearningRate,
        'stochastic': Stochastic,
        'kahan': Kahan,
        'fp32_master': Fp32Master,
    }


class UpdateDetail(Record):
    """The field `update_detail` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    pairs: int
    zero: int
    nonfinite: int
    half: Outcome
    fused: Outcome
    ratios: list[list[int]]
    errors: list[list[int]]
    cells: list[list[int | None]]
    per_step: list[UpdateDetailPerStep]
    what_if: WhatIf | None
    _nested = {
        'half': Outcome,
        'fused': Outcome,
        'per_step': UpdateDetailPerStep,
        'what_if': WhatIf,
    }


class Headroom(Record):
    """The field `headroom` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    bits: float | None
    step: int
    at_scale: float
    censored: bool | None
    last: float | None
    trend: float | None
    overflow_expected_at: int | None


class FormatClasses(Record):
    """The field `classes` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    flushed_to_zero: int | list[int]
    subnormal: int | list[int]
    normal: int | list[int]
    overflow: int | list[int]


class FormatFit(Record):
    """The field `format_fit` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    format: Literal['e4m3', 'e5m2', 'binary16', 'bfloat16', 'tf32']
    saturating: bool | None
    fits_at_1: bool | None
    at_1: FormatClasses
    best_log2_scale: int | None
    fits_at_best: bool | None
    at_best: FormatClasses | None
    snr: Literal['exact', 'estimate'] | None
    snr_db: float | None
    snr_db_bounds: list[float | None] | None
    _nested = {
        'at_1': FormatClasses,
        'at_best': FormatClasses,
    }


class LeftOutOfFormat(Record):
    """The field `left_out_of_formats` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    nan: int
    inf: int


class Narrowest(Record):
    """The field `narrowest` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    format: Literal['e4m3', 'e5m2', 'binary16', 'bfloat16', 'tf32', 'binary32', 'binary64']
    needs_scale: bool


class BlockFit(Record):
    """The field `block_fit` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    format: Literal['mxfp8', 'mxfp6', 'mxfp4']
    element: Literal['e4m3', 'e5m2', 'e3m2', 'e2m3', 'e2m1']
    values: int = field('values')  # type: ignore[assignment]
    flushed_to_zero: int
    saturated: int
    in_nan_blocks: int
    snr: Literal['exact'] | None
    snr_db: float | None


class Mass(Record):
    """The field `mass` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    l1: float | Bounds
    l2: float | Bounds


class LostMass(Record):
    """The field `lost_mass` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    at_1: Mass
    at_loss_scale: Mass | None
    _nested = {
        'at_1': Mass,
        'at_loss_scale': Mass,
    }


class TensorFindings(Record):
    """The field `tensors` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    name: str
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    role_source: Literal['name', 'option', 'assumed', 'file', 'none']
    source_dtype: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2'] | None
    computed_dtype: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2'] | Literal['suspected_fp16'] | None
    suspected_fp16: bool | None
    underflow_identifiable: bool
    unscale: Literal['exact', 'interval']
    steps: list[int]
    shape: list[int]
    total: int
    zero: int | list[int]
    nan: int | list[int] | None
    inf: int | list[int] | None
    finite_nonzero: int | list[int] | None
    flushed_to_zero: int | list[int]
    subnormal: int | list[int]
    normal: int | list[int]
    overflow: int | list[int]
    max_abs: float | None | list[float | None]
    min_abs_nonzero: float | None | list[float | None]
    rounding_noise: int | None
    hidden_by_buckets: bool | None
    binades: list[list[int | list[int]]]
    by_scale: list[ByScale]
    per_step: list[PerStep]
    updates: int | None
    update_underflow: int | None
    swamped: int | None
    swamped_fused: int | None
    rule_2048: int | None
    update_source: Literal['update', 'optimizer_state', 'gradient', 'difference'] | None
    kept_in: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2'] | None
    undetermined: int | None
    update_detail: UpdateDetail | None
    headroom: Headroom | None
    formats: list[FormatFit] | None
    left_out_of_formats: LeftOutOfFormat | None
    narrowest: Narrowest | None
    whole_steps: list[int] | None
    mx_formats: list[BlockFit] | None
    lost_mass: LostMass | None
    _nested = {
        'by_scale': ByScale,
        'per_step': PerStep,
        'update_detail': UpdateDetail,
        'headroom': Headroom,
        'formats': FormatFit,
        'left_out_of_formats': LeftOutOfFormat,
        'narrowest': Narrowest,
        'mx_formats': BlockFit,
        'lost_mass': LostMass,
    }


class PeakPerStep(Record):
    """The field `per_step` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    step: int
    max_abs: float | None | Bounds
    nan: bool | None
    inf: bool | None
    min_abs_nonzero_at_least: float | None


class Peak(Record):
    """The field `peaks` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    name: str
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    max_abs: float | None | Bounds
    max_abs_step: int | None
    min_abs_nonzero_at_least: float | None
    nan_steps: list[int]
    inf_steps: list[int]
    at_scale: float
    overflows: Literal['no', 'perhaps', 'yes']
    flushes: Literal['no', 'perhaps', 'yes']
    all_flushed: Literal['no', 'perhaps', 'yes']
    per_step: list[PeakPerStep]
    _nested = {
        'per_step': PeakPerStep,
    }


class RankValues(Record):
    """The field `by_rank` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    rank: int
    steps: int
    max_abs: float | None
    max_abs_step: int | None
    skew: float | None
    most_above: float | None
    most_above_step: int | None
    median_above: float | None
    far_since: int | None
    nonfinite_since: int | None
    nan: bool | None
    overflow_since: int | None
    nonfinite_steps: int | None
    flushed_share: float | None
    differs: list[Literal['nonfinite', 'nonfinite_often', 'one_step', 'most_steps', 'underflow']] | None


class RankComparison(Record):
    """The field `ranks_compared` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    steps_joined: int | None
    parts: bool | None
    median_max_abs: float | None
    median_flushed_share: float | None
    limit_one_step: float | None
    limit_most_steps: float | None
    limit_underflow: float | None
    worst: list[int]
    by_rank: list[RankValues]
    _nested = {
        'by_rank': RankValues,
    }


class Nonfinite(Record):
    """The field `nonfinite` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    of: Literal['loss', 'gradient_norm', 'nan_iterations', 'evaluation_loss']
    first: int
    last: int
    count: int
    at_skips: int


class SkippedInVain(Record):
    """The field `skipped_in_vain` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    first: int
    last: int | None
    skipped: int | list[int]


class OtherScaler(Record):
    """The field `other_scalers` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    scaler: int
    messages: int
    last_scale: float | None


class BadLossPart(Record):
    """The field `bad_loss_part` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    step: int
    name: str
    bad: int
    of: int


class Jump(Record):
    """The field `jump` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    after: int
    by: int
    from_: float = field('from')
    to: float
    times: int
    lost: int | list[int] | None


class Rank(Record):
    """The field `ranks` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    count: int
    from_: Literal['lines', 'option'] = field('from')
    certain: bool


class SkippedBetween(Record):
    """The field `skipped_between` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    first: int
    last: int | None
    count: int | list[int]
    from_: float | None = field('from')
    to: float | None


class LossScale(Record):
    """The field `loss_scale` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    first: float | None
    last: float | None
    least: float | None
    most: float | None


class Change(Record):
    """The field `changes` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    after: int
    by: int | None
    from_: float | None = field('from')
    to: float | None


class Driver(Record):
    """The field `driver` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    tensor: str
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    step: int
    max_abs: float | None
    also_not_finite: int | None
    before: bool | None


class Fall(Record):
    """The field `falls` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    first: int
    last: int | None
    from_: float | None = field('from')
    to: float | None
    reductions: int
    driver: Driver | None
    _nested = {
        'driver': Driver,
    }


class Timeline(Record):
    """The field `timeline` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    kinds: list[str]
    numbered: bool | None
    steps: int
    first: int | None
    last: int | None
    skipped_steps: list[int]
    skipped: int | list[int] | list[int | None] | None
    state: Literal['normal', 'slow_start', 'skipping', 'collapsed', 'broken', 'not_needed', 'unknown']
    skipped_share: float | Bounds | None
    collapsed_since: int | None
    nonfinite_since: int | None
    nonfinite: list[Nonfinite] | None
    skipped_in_vain: SkippedInVain | None
    other_scalers: list[OtherScaler] | None
    ended_at_minimum: bool | None
    remarks: list[str] | None
    last_finite: int | None
    loss_missing_since: int | None
    bad_loss_part: BadLossPart | None
    last_scale: float | None
    settled_at: float | None
    growth_window: int | list[int] | None
    jump: Jump | None
    ranks: Rank | None
    skipped_between: list[SkippedBetween] | None
    loss_scale: LossScale | None
    changes: list[Change]
    falls: list[Fall]
    _nested = {
        'nonfinite': Nonfinite,
        'skipped_in_vain': SkippedInVain,
        'other_scalers': OtherScaler,
        'bad_loss_part': BadLossPart,
        'jump': Jump,
        'ranks': Rank,
        'skipped_between': SkippedBetween,
        'loss_scale': LossScale,
        'changes': Change,
        'falls': Fall,
    }


class NextTime(Record):
    """The field `next_time` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    where: str
    lines: str


class CouldNotTell(Record):
    """The field `could_not_tell` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    kind: str
    gaps: list[Literal['zeros', 'underflow', 'nonfinite', 'rounded', 'dtype', 'loss_scale', 'counts', 'tensors', 'updates', 'steps', 'every_step']]
    text: str
    next_time: NextTime
    _nested = {
        'next_time': NextTime,
    }


class SeemsScaled(Record):
    """The field `seems_scaled` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    steps: int
    of: int


class UnderflowShare(Record):
    """The field `underflow_share` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    largest: Bounds
    largest_step: int
    first_steps: int | None
    median: Bounds
    last: Bounds
    last_step: int
    steps: int
    steps_above: dict[str, int]
    above_since: dict[str, int]
    columns: list[Bounds] | None


class Fp8TensorFindings(Record):
    """The field `tensors` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    name: str
    layer: str
    tensor: str | None
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    recipe: Literal['own', 'fp8_delayed_scaling', 'fp8_current_scaling', 'fp8_block_scaling', 'mxfp8', 'nvfp4']
    columnwise: bool | None
    judged: bool
    underflow_share: UnderflowShare | None
    overflow_share_largest: Bounds | None
    overflow_share_largest_step: int | None
    scale_inv_least: Bounds | None
    scale_inv_least_step: int | None
    scale_inv_most: Bounds | None
    scale_inv_most_step: int | None
    mse_largest: Bounds | None
    mse_largest_step: int | None
    mse_last: Bounds | None
    mse_last_step: int | None
    _nested = {
        'underflow_share': UnderflowShare,
    }


class Fp8(Record):
    """The field `fp8` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    steps: int
    layers: int
    limit: float
    keep_in_bf16: list[str]
    briefly_above: list[str]
    layers_above: dict[str, int]
    columns: list[list[int]] | None
    tensors: list[Fp8TensorFindings]
    _nested = {
        'tensors': Fp8TensorFindings,
    }


class AdamState(Record):
    """The field `adam_state` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    held_in: Literal['F16', 'BF16', 'F32', 'F64', 'F8_E4M3', 'F8_E5M2']
    held_in_assumed: bool
    eps: float | None
    beta2: float | None
    settings_assumed: bool
    eps_is_zero: bool
    broken_from: int | None
    second_moments: int | list[int] | None
    zero: int | list[int] | None
    lost: int | list[int] | None
    most_lost: str | None
    gradients: int | list[int] | None
    adds_nothing: int | list[int] | None
    square_is_zero: int | list[int] | None


class DelayedScalingChoice(Record):
    """The field `delayed_scaling_choice` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    amax_history_len: int
    clipped: int | list[int]
    flushed_to_zero: int | list[int]
    clipped_steps: int
    clipped_steps_by_chance: float
    most_clipped: str | None


class DelayedScaling(Record):
    """The field `delayed_scaling` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    tensors: int
    steps: int
    left_out: int
    values: int | list[int] = field('values')  # type: ignore[assignment]
    default_clips: bool
    better: int | None
    by_length: list[DelayedScalingChoice]
    with_margin_1: DelayedScalingChoice
    _nested = {
        'by_length': DelayedScalingChoice,
        'with_margin_1': DelayedScalingChoice,
    }


class MxGradient(Record):
    """The field `mx_gradients` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    tensors: int
    e4m3_better: int
    e5m2_better: int
    e4m3_median_db: float | None
    e5m2_median_db: float | None
    most_for_e5m2: str | None
    gained_db: float | None


class LayerShift(Record):
    """The field `layer_shifts` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    activation: str
    max_abs: float
    layer: str
    next: str
    log2: int
    next_max_abs: float
    flushed_to_zero: int | list[int]
    subnormal: int | list[int]
    of: int | list[int]
    in_sequence: bool
    censored: bool | None
    between: list[str] | None


class AttentionScore(Record):
    """The field `attention_scores` of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    log: str
    query: str
    key: str
    step: int
    query_norm: float
    key_norm: float
    width: int
    at_most: float
    can_overflow: bool
    head_at_most: int | None
    enough_head: int | None


class FindingsFields(Record):
    """The fields of halfscope analyze --json: docs/json.md."""

    __slots__ = ()
    schema: Literal[1]
    halfscope: str
    logs: list[str]
    format: Literal['binary16', 'bfloat16', 'tf32', 'binary32', 'binary64', 'e4m3', 'e5m2', 'e3m2', 'e2m3', 'e2m1']
    loss_scale: float
    subnormals: Literal['flush', 'flush-before', 'flush-result'] | None
    tensors: list[TensorFindings]
    tensors_left_out: int | None
    peaks_left_out: int | None
    peaks: list[Peak] | None
    ranks_compared: list[RankComparison] | None
    timeline: list[Timeline] | None
    could_not_tell: list[CouldNotTell] | None
    seems_scaled: SeemsScaled | None
    fp8: list[Fp8] | None
    adam_state: list[AdamState] | None
    delayed_scaling: list[DelayedScaling] | None
    mx_gradients: MxGradient | None
    layer_shifts: list[LayerShift] | None
    attention_scores: list[AttentionScore] | None
    notes: list[str] | None
    _nested = {
        'tensors': TensorFindings,
        'peaks': Peak,
        'ranks_compared': RankComparison,
        'timeline': Timeline,
        'could_not_tell': CouldNotTell,
        'seems_scaled': SeemsScaled,
        'fp8': Fp8,
        'adam_state': AdamState,
        'delayed_scaling': DelayedScaling,
        'mx_gradients': MxGradient,
        'layer_shifts': LayerShift,
        'attention_scores': AttentionScore,
    }


class MayUse(Record):
    """The field `may_use` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    fits: bool
    decided_by: str


class LimitedBy(Record):
    """The field `limited_by` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    name: str
    step: int
    skipped_at: float | None
    first_step: int | None
    numbered: bool | None
    nan_at: float | None
    max_abs: float | None
    censored: bool | None
    bounded: bool | None
    from_scalars: bool | None
    log: str | None


class Unread(Record):
    """The field `unread` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    role: Literal['activation_grad', 'weight_grad']
    steps: int
    of: int


class NanInModel(Record):
    """The field `nan_in_model` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    tensor: str
    step: int
    log: str | None


class FlushedAt1(Record):
    """The field `flushed_at_1` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    count: int | list[int]
    of: int | list[int]
    share: float | Bounds


class FlushedAtRecommended(Record):
    """The field `flushed_at_recommended` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    count: int | list[int]
    of: int | list[int]
    share: float | Bounds


class FlushedToZero(Record):
    """The field `flushed_to_zero` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    count: int | list[int]
    of: int | list[int]
    share: float | Bounds


class OwnScale(Record):
    """The field `own_scales` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    tensors: int
    fit: int
    flushed_to_zero: FlushedToZero
    _nested = {
        'flushed_to_zero': FlushedToZero,
    }


class PerLayer(Record):
    """The field `per_layer` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    layer: str
    lowest: float | None
    highest: float | None
    of: int | list[int]
    flushed_at_static: int | list[int]
    flushed_at_highest: int | list[int]
    als: float | None


class KeepInFp32(Record):
    """The field `keep_in_fp32` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    name: str
    kind: Literal['tensor', 'softmax', 'normalization', 'loss', 'logits', 'reduction']
    why: str
    highest_without: float | None
    binades_gained: int | None


class NotMultiplesOf8(Record):
    """The field `not_multiples_of_8` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    name: str
    shape: list[int]
    why: str


class Footprint(Record):
    """The field `footprint` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    weights: int
    activations: int
    microbatches: int | None
    bytes_fp32: int
    bytes_fp16: int
    bytes_mixed: int
    not_multiples_of_8: list[NotMultiplesOf8]
    _nested = {
        'not_multiples_of_8': NotMultiplesOf8,
    }


class RecommendationFieldsHeadroom(Record):
    """The field `headroom` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    log: str | None
    name: str
    bits: float | None
    step: int
    at_scale: float
    censored: bool | None
    last: float | None
    trend: float | None
    overflow_expected_at: int | None


class Step(Record):
    """The field `steps` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    step: int
    max_abs: float | None
    nan: int | list[int]
    inf: int | list[int]
    overflow: int | list[int]


class Lead(Record):
    """The field `leads` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    name: str
    relation: Literal['itself', 'weight', 'input', 'output gradient', 'gradient', 'update']
    steps: list[Step]
    _nested = {
        'steps': Step,
    }


class OverflowEvent(Record):
    """The field `overflow_events` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    log: str | None
    kind: Literal['recorded', 'what_if']
    step: int
    last_step: int
    tensor: str
    role: Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']
    from_scalars: bool | None
    nan: int | list[int] | None
    inf: int | list[int] | None
    overflow: int | list[int] | None
    loss_scale: float | None
    cause: Literal['by_scale', 'at_scale_1', 'nan_in_model', 'undetermined']
    why: str
    safe_scale: float | None
    estimated: bool | None
    growth_probe: bool | None
    leads: list[Lead]
    _nested = {
        'leads': Lead,
    }


class LostMassMass(Record):
    """The field `mass` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    l1: float | None | list[float | None]
    l2: float | None | list[float | None]


class RecommendationFieldsLostMass(Record):
    """The field `lost_mass` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    at_1: LostMassMass
    at_recommended: LostMassMass
    _nested = {
        'at_1': LostMassMass,
        'at_recommended': LostMassMass,
    }


class Skip(Record):
    """The field `skip` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    method: Literal['binomial']
    steps: int
    exceedances: int | list[int]
    probability: float
    interval: Bounds
    confidence: float
    unread_steps: int | None


class ScaleMass(Record):
    """The field `mass` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    l1: float | None | list[float | None]
    l2: float | None | list[float | None]


class Scale(Record):
    """The field `scales` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    log2_scale: int
    flushed_to_zero: int | list[int]
    of: int | list[int]
    lost_mass: ScaleMass
    overflow_steps: int | list[int] | None
    skip: Skip | None
    _nested = {
        'lost_mass': ScaleMass,
        'skip': Skip,
    }


class Dynamic(Record):
    """The field `dynamic` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    policy: str
    init: float
    growth_interval: int
    expected_skip_rate: float | Bounds | None
    expected_skip_interval: Bounds | None
    unread_steps: int | None
    why: str


class RecommendationFieldsRank(Record):
    """The field `ranks` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    ranks: int
    of: int | list[int]
    flushed_undivided: int | list[int]
    flushed_divided_before: int | list[int]
    headroom_divided_after: float | None
    highest_divided_after: float | None


class Finding(Record):
    """The field `findings` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    severity: Literal['breaks', 'serious', 'warning', 'note']
    title: str
    action: str | None
    evidence: Literal['scales', 'timeline', 'updates', 'overflow', 'policies', 'formats', 'fp8', 'ranks', 'advice']


class Answer(Record):
    """The field `answer` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    headline: str
    action: str | None
    scale: str | None
    clear: str | None = field('clear')  # type: ignore[assignment]
    findings: list[Finding]
    paste: str | None
    severity: Literal['breaks', 'serious', 'warning', 'note'] | None
    evidence: Literal['scales', 'timeline', 'updates', 'overflow', 'policies', 'formats', 'fp8', 'ranks', 'advice'] | None
    _nested = {
        'findings': Finding,
    }


class TensorUnderflowShare(Record):
    """The field `underflow_share` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    largest: Bounds
    largest_step: int
    first_steps: int | None
    median: Bounds
    last: Bounds
    last_step: int
    steps: int
    steps_above: dict[str, int]
    above_since: dict[str, int]


class Tensor(Record):
    """The field `tensors` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    name: str
    layer: str
    tensor: str | None
    role: str
    recipe: Literal['own', 'fp8_delayed_scaling', 'fp8_current_scaling', 'fp8_block_scaling', 'mxfp8', 'nvfp4']
    columnwise: bool | None
    judged: bool
    underflow_share: TensorUnderflowShare | None
    overflow_share_largest: Bounds | None
    overflow_share_largest_step: int | None
    scale_inv_least: Bounds | None
    scale_inv_least_step: int | None
    scale_inv_most: Bounds | None
    scale_inv_most_step: int | None
    mse_largest: Bounds | None
    mse_largest_step: int | None
    mse_last: Bounds | None
    mse_last_step: int | None
    _nested = {
        'underflow_share': TensorUnderflowShare,
    }


class RecommendationFieldsFp8(Record):
    """The field `fp8` of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    log: str
    steps: int
    layers: int
    limit: float
    keep_in_bf16: list[str]
    briefly_above: list[str]
    layers_above: dict[str, int]
    tensors: list[Tensor]
    _nested = {
        'tensors': Tensor,
    }


class RecommendationFields(Record):
    """The fields of halfscope recommend --json: docs/json.md."""

    __slots__ = ()
    schema: Literal[1]
    halfscope: str
    logs: list[str]
    format: str | None
    may_use: MayUse | None
    static_scale: float | None
    highest: float | None
    highest_if_half: float | None
    lowest: float | None
    lowest_at_least: float | None
    lowest_if_zeros: float | None
    reason: str | None
    roles_found: list[Literal['weight_grad', 'activation_grad', 'local_weight_grad', 'activation', 'weight', 'weight_after', 'master_weight', 'update', 'optimizer_state', 'loss', 'unknown']]
    nonfinite_steps: list[int]
    overflow_without_cure: list[str] | None
    limited_by: LimitedBy | None
    underflow_not_identifiable: bool | None
    overflow_not_identifiable: bool | None
    clipped: bool | None
    incomplete_steps: int | None
    unread: Unread | None
    none_needed: bool | None
    nan_in_model: NanInModel | None
    steps_left_out: int | None
    above_target: list[str] | None
    headroom_bits: float | None
    flushed_at_1: FlushedAt1 | None
    flushed_at_recommended: FlushedAtRecommended | None
    own_scales: OwnScale | None
    snippets: dict[str, str] | None
    dynamic_snippets: dict[str, str] | None
    per_layer: list[PerLayer] | None
    keep_in_fp32: list[KeepInFp32] | None
    footprint: Footprint | None
    headroom: list[RecommendationFieldsHeadroom]
    overflow_events: list[OverflowEvent]
    lost_mass: RecommendationFieldsLostMass | None
    skip: Skip | None
    scales: list[Scale] | None
    dynamic: Dynamic | None
    ranks: RecommendationFieldsRank | None
    could_not_tell: list[CouldNotTell] | None
    timeline: list[Timeline] | None
    seems_scaled: SeemsScaled | None
    answer: Answer
    fp8: list[RecommendationFieldsFp8] | None
    adam_state: list[AdamState] | None
    layer_shifts: list[LayerShift] | None
    attention_scores: list[AttentionScore] | None
    notes: list[str] | None
    _nested = {
        'may_use': MayUse,
        'limited_by': LimitedBy,
        'unread': Unread,
        'nan_in_model': NanInModel,
        'flushed_at_1': FlushedAt1,
        'flushed_at_recommended': FlushedAtRecommended,
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
        'could_not_tell': CouldNotTell,
        'timeline': Timeline,
        'seems_scaled': SeemsScaled,
        'answer': Answer,
        'fp8': RecommendationFieldsFp8,
        'adam_state': AdamState,
        'layer_shifts': LayerShift,
        'attention_scores': AttentionScore,
    }


class TroubleTrouble(Record):
    """The field `trouble` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    tensors: int
    beside_gradients: int
    steps: int
    first_step: int
    last_step: int
    values: int | list[int] = field('values')  # type: ignore[assignment]
    most_in: str


class Trouble(Record):
    """The field `trouble` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    nan_or_infinity: TroubleTrouble | None
    overflow: TroubleTrouble | None
    loss_not_finite_from: int | None
    _nested = {
        'nan_or_infinity': TroubleTrouble,
        'overflow': TroubleTrouble,
    }


class Run(Record):
    """The field `run` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    total: int
    zero: int | list[int]
    nan: int | list[int] | None
    inf: int | list[int] | None
    finite_nonzero: int | list[int] | None
    flushed_to_zero: int | list[int]
    subnormal: int | list[int]
    normal: int | list[int]
    overflow: int | list[int]
    lost_to_zero: int | list[int]
    not_finite: int | list[int]
    underflow_identifiable: bool
    loss_scales: Bounds | None
    steps_with_scalars: int
    skipped: list[int]
    lost: int | list[int]
    not_finite_all_roles: int | list[int]
    trouble: Trouble | None
    _nested = {
        'trouble': Trouble,
    }


class UpdateSide(Record):
    """The field `a` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    updates: int
    update_underflow: int
    swamped: int
    lost: int
    pairs: int
    zero: int


class Update(Record):
    """The field `updates` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    a: UpdateSide
    b: UpdateSide
    _nested = {
        'a': UpdateSide,
        'b': UpdateSide,
    }


class LastLoss(Record):
    """The field `last_loss` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    step: int
    a: float | None
    b: float | None


class UpdatesLost(Record):
    """The field `updates_lost` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    a: int
    b: int


class WeightsKeptIn(Record):
    """The field `weights_kept_in` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    a: str | None
    b: str | None


class NewZerosInWholeTensor(Record):
    """The field `new_zeros_in_whole_tensors` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    steps: int
    elements: int
    new_zeros: int


class Parting(Record):
    """The field `parting` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    steps: int
    same_until: int | None
    first_other: int | None
    first_apart: int | None
    first_other_scale: int | None


class Summary(Record):
    """The field `summary` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    gradients: int
    underflow: Literal['less', 'same', 'similar', 'more', 'unknown']
    overflow: Literal['less', 'same', 'more', 'unknown']
    a: Run
    b: Run
    zero_difference: int
    new_zeros: int | list[int] | None
    updates: Update | None
    last_loss: LastLoss | None
    not_finite: Literal['less', 'same', 'more', 'unknown']
    updates_lost: UpdatesLost | None
    weights_kept_in: WeightsKeptIn | None
    unmoved: Literal['less', 'same', 'similar', 'more', 'unknown'] | None
    new_zeros_in_whole_tensors: NewZerosInWholeTensor | None
    parting: Parting | None
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


class Side(Record):
    """The field `side` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    total: int
    zero: int | list[int]
    nan: int | list[int] | None
    inf: int | list[int] | None
    finite_nonzero: int | list[int] | None
    flushed_to_zero: int | list[int]
    subnormal: int | list[int]
    normal: int | list[int]
    overflow: int | list[int]
    max_abs: float | None
    steps_left_out: list[int]
    binades: list[list[int | list[int]]]


class Element(Record):
    """The field `elements` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    steps: list[int]
    unscale: Literal['exact', 'rounded']
    elements: int
    equal: int
    became_zero: int
    became_nonzero: int
    became_subnormal: int
    became_infinite: int
    became_nan: int
    became_finite: int
    largest_relative_error: float | None
    largest_ulps: float | None


class Lost(Record):
    """The field `lost` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    a: int | list[int]
    b: int | list[int]


class ComparedTensor(Record):
    """The field `tensors` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    name: str
    role: str
    steps: list[int]
    a: Side
    b: Side
    zero_difference: int
    new_zeros: int | list[int] | None
    max_abs_shift: float | None
    median_shift: int | None
    largest_share_difference: float | None
    updates: Update | None
    elements: Element | None
    lost: Lost
    harmed: bool
    _nested = {
        'a': Side,
        'b': Side,
        'updates': Update,
        'elements': Element,
        'lost': Lost,
    }


class Loss(Record):
    """The field `loss` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    a: list[list[int | float | None]]
    b: list[list[int | float | None]]


class ComparisonFieldsScale(Record):
    """The field `scales` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    a: list[list[int | float | None]]
    b: list[list[int | float | None]]


class OrderVerdict(Record):
    """The field `by_tensor` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    name: str
    steps: list[int]
    verdict: Literal['within', 'above', 'cannot tell']
    elements: int
    within: int
    between: int
    above: int
    nonfinite: int
    worst: int
    worst_step: int
    worst_ratio: float | None
    magnitudes_missing: bool | None


class ComparedSums(Record):
    """The field `sums` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    length: int
    format: str
    magnitudes: str | None
    by_tensor: list[OrderVerdict]
    _nested = {
        'by_tensor': OrderVerdict,
    }


class Format(Record):
    """The field `formats` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    format: Literal['F16', 'BF16', 'F32']
    operations: int
    identical_operations: int
    elements: int
    identical: int
    within_one_ulp: int
    not_finite_in_one: int
    elements_of_different: int
    beyond_rounding: int | None
    worst: str | None


class RunAndEmulation(Record):
    """The field `run_and_emulation` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    run: int
    emulated: int


class Operation(Record):
    """The field `operations` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    operation: str
    format: Literal['F16', 'BF16', 'F32']
    calls: int
    elements: int
    identical: int
    within_one_ulp: int
    largest_ulps: int
    not_finite_in_one: int
    largest_relative_error: float
    zero: RunAndEmulation
    subnormal: RunAndEmulation
    not_finite: RunAndEmulation
    beyond_rounding: bool | None
    _nested = {
        'zero': RunAndEmulation,
        'subnormal': RunAndEmulation,
        'not_finite': RunAndEmulation,
    }


class OperationOperation(Record):
    """The field `operations` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    first_step: int
    last_step: int
    formats: list[Format]
    operations: list[Operation]
    _nested = {
        'formats': Format,
        'operations': Operation,
    }


class ComparisonFieldsOperation(Record):
    """The field `operations` of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    a: OperationOperation | None
    b: OperationOperation | None
    _nested = {
        'a': OperationOperation,
        'b': OperationOperation,
    }


class ComparisonFields(Record):
    """The fields of halfscope compare --json: docs/json.md."""

    __slots__ = ()
    schema: Literal[1]
    halfscope: str
    logs: list[str]
    format: str
    subnormals: Literal['flush', 'flush-before', 'flush-result'] | None
    own_format: bool | None
    loss_scale: float | Literal['own']
    summary: Summary
    tensors: list[ComparedTensor]
    only_a: list[str]
    only_b: list[str]
    loss: Loss | None
    scales: ComparisonFieldsScale | None
    sums: ComparedSums | None
    operations: ComparisonFieldsOperation | None
    notes: list[str] | None
    _nested = {
        'summary': Summary,
        'tensors': ComparedTensor,
        'loss': Loss,
        'scales': ComparisonFieldsScale,
        'sums': ComparedSums,
        'operations': ComparisonFieldsOperation,
    }


class Error(Record):
    """The field `error` of halfscope policies --json: docs/json.md."""

    __slots__ = ()
    message: str
    step: int


class Part(Record):
    """The field `parts` of halfscope policies --json: docs/json.md."""

    __slots__ = ()
    name: str
    scale: list[float | None]


class Trap(Record):
    """The field `traps` of halfscope policies --json: docs/json.md."""

    __slots__ = ()
    id: str
    text: str
    step: int | None


class Paste(Record):
    """The field `paste` of halfscope policies --json: docs/json.md."""

    __slots__ = ()
    where: str
    lines: str
    note: str | None


class Tuned(Record):
    """The field `tuned` of halfscope policies --json: docs/json.md."""

    __slots__ = ()
    policy: str
    text: str
    settings: dict[str, float | bool | str | None]
    skipped: int
    kept: bool
    stopped_by: str | None
    within_target: bool
    tried: int
    paste: Paste | None
    mean_flushed_share: Bounds | None
    worst_flushed_share: Bounds | None
    worst_flushed_step: int | None
    _nested = {
        'paste': Paste,
    }


class FirstDifference(Record):
    """The field `first_difference` of halfscope policies --json: docs/json.md."""

    __slots__ = ()
    step: int
    replayed_scale: float | None
    recorded_scale: float | None
    replayed_skip: bool
    recorded_skip: bool


class Replay(Record):
    """The field `replay` of halfscope policies --json: docs/json.md."""

    __slots__ = ()
    policy: str
    steps: int
    equal: bool
    first_difference: FirstDifference | None
    _nested = {
        'first_difference': FirstDifference,
    }


class PolicyTrace(Record):
    """The fields of halfscope policies --json: docs/json.md."""

    __slots__ = ()
    policy: str
    log: str | None
    settings: dict[str, float | bool | str | None] | None
    first_step: int | None
    scale: list[float | None] | None
    skipped: list[int] | None
    overflow: list[int] | None
    unknown: list[int] | None
    applied_nonfinite: list[int] | None
    attempts: list[int] | None
    final: float | None
    final_text: Literal['inf', 'nan'] | None
    error: None | Error
    fate: Literal['ran', 'error', 'floor', 'zero', 'infinity'] | None
    skipped_in_model: int | None
    mean_flushed_share: Bounds | None
    worst_flushed_share: Bounds | None
    worst_flushed_step: int | None
    parts: list[Part] | None
    traps: list[Trap] | None
    tuned: Tuned | None
    replay: Replay | None
    lost_share: float | None
    unavailable: str | None
    _nested = {
        'error': Error,
        'parts': Part,
        'traps': Trap,
        'tuned': Tuned,
        'replay': Replay,
    }


class Reduction(Record):
    """The fields of halfscope reduce --json: docs/json.md."""

    __slots__ = ()
    log: str
    name: str
    sum: Literal['gradient', 'bias_gradient', 'mean', 'variance', 'mean_square', 'softmax', 'gradient_norm']
    over: Literal['ranks', 'microbatches', 'elements']
    count: int
    format: str
    order: Literal['sequential', 'ring', 'tree', 'pairwise']
    additions: int
    lost: int | list[int]
    lost_share: float | Bounds
    relative_l2: float | None | list[float | None]
    mean_error_ulp: float | None
    mean_error_se: float | None
    overflow: int | list[int]
    flushed: int | None
    predicted: bool
    recorded: int | None
    sums: int | None
    nonfinite: int | None
