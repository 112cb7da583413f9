"""What state dicts of models and optimizers are to hold: PyTorch's `StateDictOptions`, and what follows for a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from genesis.distributed.checkpoint.layout import Part, part_of
from genesis.distributed.messages import broadcast_object_list
from genesis.distributed.nn.functional import collective
from genesis.distributed.process_group import get_rank, is_initialized, world
from genesis.distributed.sharded_rows import ShardedParameter, part_of_whole, whole_of
from genesis.distributed.tensor.dtensor import DTensor
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.ops import collective as rows
from genesis.pytree import map_tree
from genesis.tensor.dispatch import filled
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording


@dataclass(frozen=True)
class StateDictOptions:
    """What `get_state_dict` and its kin give, and what `set_state_dict` and its kin are given.

    Attributes:
        full_state_dict: whole tensors instead of DTensors and parts.
        cpu_offload: tensors in the CPU's memory; with `full_state_dict` rank 0 alone gets them, and other ranks an empty one.
        ignore_frozen_params: without parameters that need no gradients.
        keep_submodule_prefixes: the whole names of what `submodules=` says, else those that it has there.
        strict: whether missing and unexpected names raise when they are set.
        broadcast_from_rank0: rank 0 is given the whole tensors, and sends them; what other ranks give does not count.
        flatten_optimizer_state_dict: one level, with keys such as `state.0.weight.exp_avg` and `param_groups.0.weight.lr`.
        dsd_fqn_modifiers: the name of a method of modules whose hooks leave children out of state dicts' keys: a dict whose
            values are the names of these children.

    Raises ValueError for `broadcast_from_rank0` without `full_state_dict`.

    >>> genesis.distributed.checkpoint.state_dict.StateDictOptions(full_state_dict=True).strict
    True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ArgumentError("StateDictOptions: broadcast_from_rank0=True; want full_state_dict=True with it")


DEFAULT = StateDictOptions()


def given_value(value: Any, parameter: Tensor, options: StateDictOptions) -> Any:
    """A part of the state as the options want it, which is cut as `parameter` is if it has its shape."""
    if isinstance(value, DTensor):
        value = value.to_local()
    if not isinstance(value, Tensor):
        return value
    is_cut = getattr(parameter, "sharding", None) is not None and value.shape == parameter.shape
    if options.full_state_dict:
        with recording(False) as again, again:
            value = whole_of(value, parameter) if is_cut else value
    if options.cpu_offload:
        value = value.detach().cpu()
    return value if options.full_state_dict or not is_cut else _held(value, parameter)


def _held(value: Tensor, parameter: Tensor) -> Any:
    """This rank's part, as what ranks hold together."""
    sharding: Any = parameter.sharding  # type: ignore[attr-defined]
    if isinstance(parameter, ShardedParameter):  # rows, of any number on each rank
        shape = sum(parameter.sizes), *value.shape[1:]
        start, whole = ([0] * len(shape), [*shape]) if sharding.within is None else sharding.within.span_of(shape)
        start[0] += parameter.start
        return Part(value, tuple(start), tuple(whole))
    return sharding.as_dtensor(value)


def is_left_out(options: StateDictOptions) -> bool:
    """Whether this rank gets an empty state dict."""
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() > 0


# ---- what is set ----


@dataclass(frozen=True)
class _Described:
    """A tensor that rank 0 has."""

    shape: tuple[int, ...]
    dtype: DType


def sent_by_rank0(state: Any, options: StateDictOptions) -> Any:
    """`state`; with `broadcast_from_rank0` rank 0's, of which other ranks learn the shapes and dtypes of tensors."""
    if not options.broadcast_from_rank0 or world().size() == 1:
        return state
    told: list[Any] = [None]
    if world().rank() == 0:
        told = [map_tree(lambda x: _Described(tuple(x.shape), x.dtype) if isinstance(x, Tensor) else x, state)]
    broadcast_object_list(told, 0)
    return state if world().rank() == 0 else told[0]


def own_value(value: Any, parameter: Tensor | None, name: str, options: StateDictOptions) -> Any:
    """This rank's part of a value that is set. All ranks call it in one order where rank 0 sends what is set."""
    if isinstance(value, DTensor | Part):
        return part_of(value).local
    if options.broadcast_from_rank0 and world().size() > 1 and isinstance(value, Tensor | _Described):
        with recording(False) as again, again:
            sent = value.detach().cpu() if isinstance(value, Tensor) else filled(0, value.shape, value.dtype)
            value = collective(rows.broadcast_from, sent, 0, world().number)
    if options.full_state_dict and isinstance(value, Tensor) and getattr(parameter, "sharding", None) is not None:
        assert parameter is not None
        if tuple(value.shape) == tuple(_held(parameter.detach(), parameter).shape):
            with recording(False) as again, again:
                return part_of_whole(value.to(parameter.device), parameter, name)
    return value
