"""Options of models' and optimizers' state dicts, PyTorch's `StateDictOptions`, and their effect on values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from genesis.distributed.nn.functional import collective
from genesis.distributed.objects import broadcast_object_list
from genesis.distributed.process_group import get_rank, is_initialized, world
from genesis.distributed.tensor.dtensor import DTensor
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.ops import collective as rows
from genesis.pytree import map_tree
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode


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


def given_value(value: Any, options: StateDictOptions) -> Any:
    """A state value converted by the options."""
    if not isinstance(value, Tensor):
        return value
    with grad_mode(False):
        whole = value.full_tensor() if options.full_state_dict and isinstance(value, DTensor) else value
        return whole.detach().cpu() if options.cpu_offload else whole


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


def own_value(value: Any, parameter: Tensor | None, options: StateDictOptions) -> Any:
    """A value to load, of a parameter or of its optimizer's state. A tensor as large as a DTensor's part is this rank's.

    If rank 0 sends the values, all ranks must call it in the same order.
    """
    if options.broadcast_from_rank0 and world().size() > 1 and isinstance(value, Tensor | _Described):
        with grad_mode(False):
            sent = value.detach().cpu() if isinstance(value, Tensor) else filled(0, value.shape, value.dtype)
            value = collective(rows.broadcast_from, sent, 0, world().number)
    is_plain = isinstance(parameter, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor)
    if is_plain and value.shape == parameter.to_local().shape and value.shape != parameter.shape:  # type: ignore[union-attr]
        return parameter.with_elements(value)  # type: ignore[union-attr]
    return value
