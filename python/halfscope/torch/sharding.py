# SPDX-License-Identifier: Apache-2.0
"""Parameters that are sharded over ranks: checks them and describes them for run.json."""

import dataclasses

PARAMETER_ROLES = ("weight", "weight_grad", "weight_after", "update", "optimizer_state")


@dataclasses.dataclass(frozen=True)
class Layout:
    """The sharding of a model. roles: roles whose tensors are sharded, so that histograms of ranks
    are added. about: text for run.json."""

    roles: tuple = ()
    about: dict = dataclasses.field(default_factory=dict)


def is_distributed(tensor):
    """Returns True if a tensor is a DTensor."""
    return hasattr(tensor, "to_local") and hasattr(tensor, "placements")


def layout(model, ranks):
    """Returns the Layout of a model. Raises TypeError if counts cannot be added over ranks."""
    parts = [(name, p) for name, p in model.named_parameters() if is_distributed(p)]
    if not parts:
        return Layout()
    for name, parameter in parts:
        _require_fsdp(model, name, parameter, ranks)
    whole = [name for name, p in model.named_parameters() if not is_distributed(p)]
    if whole:
        raise TypeError(f"model: parameter {whole[0]} is whole on every rank and {parts[0][0]} is "
                        "divided, so their counts cannot be added alike; shard all parameters by "
                        "fully_shard, or record a run on one rank")
    return Layout(PARAMETER_ROLES, {
        "sharding": "FSDP2: each rank records its own part of every parameter, of its gradient after "
                    "the reduction over ranks, and of its update; histograms add over the ranks",
        "local_gradients": "not seen: FSDP2 reduces them before they reach the parameters"})


def _require_fsdp(model, name, parameter, ranks):
    mesh, placements = parameter.device_mesh, parameter.placements
    managed = any(type(module).__name__.startswith("FSDP") for module in model.modules())
    if managed and mesh.ndim == 1 and mesh.size() == ranks and placements[0].is_shard():
        return
    how = ", ".join(map(str, placements))
    raise TypeError(f"model: parameter {name} is a DTensor ({how} on a mesh of shape "
                    f"{tuple(mesh.shape)}, {ranks} ranks), expected FSDP2's parts of one mesh dimension "
                    "over all ranks: with tensor parallelism a rank's activations are parts of sums "
                    "or copies, which would be counted as values; record a run with fully_shard alone")
