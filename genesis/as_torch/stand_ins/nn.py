"""Names of `torch.nn` beside layers and functions: base classes, argument types, dispatch by a flag, masks."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import genesis
from genesis.as_torch.stand_ins.settings import no, nothing
from genesis.functions.creation import ones
from genesis.ir.annotations import AnyFunction, Options
from genesis.ir.dtypes import bool_
from genesis.nn import functional, init, normalization
from genesis.nn.containers import ModuleList
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor


class BroadcastingList:
    """`BroadcastingList2[int]`, an annotation: a number, or several."""

    def __class_getitem__(cls, kind: type) -> Any:
        return kind | Sequence[kind]  # type: ignore[valid-type]


def factory_kwargs(kwargs: Options | None) -> dict[str, Any]:
    """Those of a layer's settings that are for its tensors: device, dtype and memory format.

    >>> factory_kwargs({"dtype": None, "factory_kwargs": {"device": "cpu"}})
    {'device': 'cpu', 'dtype': None}
    """
    given = dict(kwargs or {})
    inner = given.pop("factory_kwargs", {})
    known = {"device", "dtype", "memory_format"}
    if unknown := given.keys() - known:
        raise TypeError(f"factory_kwargs: {sorted(unknown)}; want device, dtype and memory_format")
    if twice := given.keys() & inner.keys():
        raise TypeError(f"factory_kwargs: {sorted(twice)} are given twice")
    return {**inner, **given}


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: AnyFunction, if_false: AnyFunction, module_name: str, func_name: str
) -> AnyFunction:
    """A function that calls one of two, selected by the argument with that name and position."""

    def function(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if len(args) > arg_index else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    function.__name__, function.__module__, function.__doc__ = func_name, module_name, inspect.getdoc(if_true)
    return function


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Raise AssertionError unless `arg` is a number, or two of them."""
    assert isinstance(arg, int) or len(arg) == 2, message.format(arg_name)


def causal_upper_left(*size: int) -> Tensor:
    """A causal mask aligned at the first query and key."""
    return ones(*size, dtype=bool_).tril()


def causal_lower_right(*size: int) -> Tensor:
    """A causal mask aligned at the last query and key."""
    queries, keys = size
    return ones(queries, keys, dtype=bool_).tril(keys - queries)


class SDPAParams:
    """The arguments of attention by which PyTorch selects a kernel."""

    def __init__(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout: float, is_causal: bool,
        enable_gqa: bool = False,
    ) -> None:
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


_note = "Results are the same at each call; see the documentation of genesis."
_types = ("any", "1", "2", "3", "4", "5", "6", "any_opt", "2_opt", "3_opt")
COMMON_TYPES: dict[str, object] = {
    **{f"_size_{name}_t": int | tuple[int, ...] for name in _types},
    **{f"_ratio_{name}_t": float | tuple[float, ...] for name in ("2", "3", "any")},
    **{f"_scalar_or_tuple_{name}_t": Any for name in _types[:7]},
    "_tensor_list_t": Tensor | tuple[Tensor, ...], "_maybe_indices_t": Tensor | tuple[Tensor, Tensor],
}
FUNCTIONAL: dict[str, object] = {
    **{f"BroadcastingList{n}": BroadcastingList for n in (1, 2, 3)},
    "GRID_SAMPLE_INTERPOLATION_MODES": {"bilinear": 0, "nearest": 1, "bicubic": 2},
    "GRID_SAMPLE_PADDING_MODES": {"zeros": 0, "border": 1, "reflection": 2},
    "assert_int_or_pair": assert_int_or_pair, "boolean_dispatch": boolean_dispatch,
    "reproducibility_notes": {"cudnn_reproducibility_note": _note, "backward_reproducibility_note": _note},
    "tf32_notes": {"tf32_note": "Products of float32 are of float32."},
}
ATTENTION: dict[str, object] = {
    "SDPAParams": SDPAParams, "WARN_FOR_UNFUSED_KERNELS": False, "can_use_efficient_attention": no,
    "can_use_flash_attention": no, "activate_flash_attention_impl": nothing, "restore_flash_attention_impl": nothing,
    "register_flash_attention_impl": nothing, "current_flash_attention_impl": nothing, "list_flash_attention_impls": lambda: [],
}


# ---- `torch.nn.modules.utils`: a number repeated into a tuple ----
def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: list[Any], defaults: list[int]) -> list[int]:
    if isinstance(out_size, int | tuple | type(None)):
        return out_size  # type: ignore[return-value]
    return [default if size is None else size for size, default in zip(out_size, defaults[-len(out_size):], strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove `prefix` from the keys that begin with it, in place."""
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix):]] = state_dict.pop(key)


# ---- base classes of layers: what is asked of a layer, and losses of one's own ----
class _Family(type):
    """The metaclass of base classes whose instances are all layers of a family, and those of derived classes."""

    members: tuple[type, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__dict__.get("members", ())) or type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__dict__.get("members", ())) or type.__subclasscheck__(cls, subclass)


def _named(pattern: str) -> tuple[type, ...]:
    kinds = [getattr(genesis.nn, name) for name in dir(genesis.nn) if name.startswith(pattern) or name.endswith(pattern)]
    return tuple(kind for kind in kinds if isinstance(kind, type))


def _family(name: str, *patterns: str) -> type:
    members = tuple(kind for pattern in patterns for kind in _named(pattern))
    return _Family(name, (Module,), {"members": members, "__module__": "torch.nn.modules"})


BASES = {
    "batchnorm._BatchNorm": normalization.BatchNorm, "batchnorm._NormBase": normalization._Norm,
    "instancenorm._InstanceNorm": normalization._InstanceNorm,
    "conv._ConvNd": _family("_ConvNd", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose"),
    "conv._ConvTransposeNd": _family("_ConvTransposeNd", "ConvTranspose"),
    "pooling._MaxPoolNd": _family("_MaxPoolNd", "MaxPool"), "pooling._AvgPoolNd": _family("_AvgPoolNd", "AvgPool"),
    "pooling._AdaptiveAvgPoolNd": _family("_AdaptiveAvgPoolNd", "AdaptiveAvgPool"),
    "pooling._AdaptiveMaxPoolNd": _family("_AdaptiveMaxPoolNd", "AdaptiveMaxPool"),
    "dropout._DropoutNd": _family("_DropoutNd", "Dropout"),
}


class _Loss(Module, metaclass=_Family):
    """The base class of losses."""

    members = _named("Loss")
    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        averaged = "mean" if size_average is None or size_average else "sum"
        old = size_average is not None or reduce is not None
        self.reduction = (averaged if reduce is None or reduce else "none") if old else reduction


class _WeightedLoss(_Loss):
    """The base class of losses with a weight for each class."""

    members = tuple(getattr(genesis.nn, name) for name in ("CrossEntropyLoss", "NLLLoss", "BCELoss", "MultiMarginLoss"))

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


def get_enum(reduction: str) -> int:
    """The number of a reduction. Raises ValueError for another name."""
    numbers = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return numbers[reduction]


def _get_clones(module: Module, N: int) -> ModuleList:
    """Copies of a layer."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Callable[..., Tensor]:
    """`relu` or `gelu` by its name. Raises RuntimeError for another."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(functional, activation)  # type: ignore[no-any-return]


_calculate_fan_in_and_fan_out = init.fans


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The fan-in or the fan-out, by name. Raises ValueError for another name."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return init.fans(tensor)[mode.lower() == "fan_out"]
