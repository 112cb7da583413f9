"""Options of models' and optimizers' state dicts, PyTorch's `StateDictOptions`, and their effect on values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from genesis.distributed.nn.functional import collective
from genesis.distributed.objects import broadcast_object_list
from genesis.distributed.process_group import is_initialized, world
from genesis.distributed.ranks import get_rank
from genesis.distributed.tensor.dtensor import DTensor
from genesis.distributed.tensor.sharded_parameter import as_dtensor, part_of_whole, whole_of
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.ops import collective as rows
from genesis.pytree import map_tree
from genesis.tensor.dispatch import filled
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording


@dataclass(frozen=True)
class StateDictOptions:
    """Options of `get_state_dict`, `set_state_dict` and the related functions.

    Attributes:
        full_state_dict: whole tensors instead of DTensors and parts.
        cpu_offload: tensors in CPU memory; with `full_state_dict` only rank 0 gets them, other ranks an empty dict.
        ignore_frozen_params: omit parameters that require no gradients.
        keep_submodule_prefixes: full names for `submodules=`, otherwise names relative to the submodule.
        strict: whether missing and unexpected names raise on loading.
        broadcast_from_rank0: rank 0 has the whole tensors and sends them; other ranks' values are ignored.
        flatten_optimizer_state_dict: one flat dict, with keys such as `state.0.weight.exp_avg` and `param_groups.0.weight.lr`.
        dsd_fqn_modifiers: the name of a method that returns the names, as a dict's values, of children that the module omits
            from state dict keys.

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
    """A state value converted by the options; it is sharded like the leaf `parameter` if it has the same shape."""
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
    """This rank's part as a DTensor."""
    sharding: Any = parameter.sharding  # type: ignore[attr-defined]
    return as_dtensor(value, sharding)


def is_left_out(options: StateDictOptions) -> bool:
    """Whether this rank gets an empty state dict."""
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() > 0


# ---- loading ----


@dataclass(frozen=True)
class _Described:
    """The shape and dtype of a tensor on rank 0."""

    shape: tuple[int, ...]
    dtype: DType


def sent_by_rank0(state: Any, options: StateDictOptions) -> Any:
    """`state`; with `broadcast_from_rank0`, rank 0's, with tensors described by shape and dtype on other ranks."""
    if not options.broadcast_from_rank0 or world().size() == 1:
        return state
    described: list[Any] = [None]
    if world().rank() == 0:
        described = [map_tree(lambda x: _Described(tuple(x.shape), x.dtype) if isinstance(x, Tensor) else x, state)]
    broadcast_object_list(described, 0)
    return state if world().rank() == 0 else described[0]


def own_value(value: Any, parameter: Tensor | None, name: str, options: StateDictOptions) -> Any:
    """This rank's part of a value to load. If rank 0 sends the values, all ranks must call it in the same order."""
    if isinstance(value, DTensor):
        return value.to_local()
    if options.broadcast_from_rank0 and world().size() > 1 and isinstance(value, Tensor | _Described):
        with recording(False) as again, again:
            sent = value.detach().cpu() if isinstance(value, Tensor) else filled(0, value.shape, value.dtype)
            value = collective(rows.broadcast_from, sent, 0, world().number)
    if options.full_state_dict and isinstance(value, Tensor) and getattr(parameter, "sharding", None) is not None:
        assert parameter is not None
        if tuple(value.shape) == parameter.sharding.shape:  # type: ignore[attr-defined]
            with recording(False) as again, again:
                return part_of_whole(value.to(parameter.device), parameter, name)
    return value


def loadable(value: Any, parameter: Tensor | None, name: str, options: StateDictOptions) -> Any:
    """A value for `load_state_dict` of a module: for a sharded parameter, given by its leaf, a DTensor or the whole."""
    if isinstance(value, DTensor):
        return value
    own = own_value(value, parameter, name, options)
    is_part = isinstance(own, Tensor) and getattr(parameter, "sharding", None) is not None and (
        parameter is not None and own.shape == parameter.shape)
    return _held(own, parameter) if is_part else own  # type: ignore[arg-type]
