"""Undocumented names of PyTorch that public code imports: base classes, aliases of types, small functions."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import genesis
from genesis.as_torch.stand_ins.networks import COMMON_TYPES
from genesis.as_torch.stand_ins.settings import always
from genesis.ir.annotations import AnyFunction
from genesis.nn import functional, init, normalization
from genesis.nn.containers import ModuleList
from genesis.nn.module import Module
from genesis.nn.utils.parameters import parameters_to_vector
from genesis.optim import lbfgs
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode


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


# ---- tensors as one ----
def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of `tensors` in one vector."""
    return parameters_to_vector(tensors)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of `flat` in the shapes of `tensors`."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True))


# ---- optimizers of one's own ----
def _use_grad_for_differentiable(func: AnyFunction) -> AnyFunction:
    """An optimizer's step, recording gradients only if its setting `differentiable` is set."""
    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with grad_mode(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """The number of a tensor, or the number."""
    return x.item() if isinstance(x, Tensor) else x


OPTIMIZER: dict[str, Any] = {
    "_default_to_fused_or_foreach": always((False, False)),  # steps of single tensors are fused anyway
    "_use_grad_for_differentiable": _use_grad_for_differentiable,
    "_get_value": _get_value, "_to_scalar": lambda x: x.squeeze() if isinstance(x, Tensor) and x.ndim else x,
    "_get_scalar_dtype": lambda is_fused=None: (
        genesis.float32 if is_fused or genesis.get_default_dtype() != genesis.float64 else genesis.float64),
    "_get_capturable_supported_devices": lambda supports_xla=True: ["cuda"],
    "_get_foreach_kernels_supported_devices": lambda: ["cuda"], "_get_fused_kernels_supported_devices": lambda: ["cuda", "cpu"],
    "_disable_dynamo_if_unsupported": lambda single_tensor_fn=None: lambda func: func,
    "_foreach_supported_types": [Tensor, genesis.nn.Parameter], "_params_t": Iterable[Any],
    **{f"_{name}_doc": "" for name in ("capturable", "differentiable", "foreach", "fused", "maximize", "params")},
}


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor's class defines how it is decomposed into tensors."""
    return isinstance(t, Tensor) and all(hasattr(type(t), f"__tensor_{way}__") for way in ("flatten", "unflatten"))


@genesis.no_grad()
def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]]:
    """The lists grouped by device and dtype of the first list's tensors, with their original positions."""
    groups: dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]] = {}
    for position, first in enumerate(tensorlistlist[0]):
        assert first is not None
        lists, positions = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for grouped, given in zip(lists, tensorlistlist, strict=True):
            if given:  # an empty list stays empty, as PyTorch's
                grouped.append(given[position])
        if with_indices:
            positions.append(position)
    return groups


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, `non_blocking` and memory format among the arguments of `to`."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    flags = [arg for arg in args if isinstance(arg, bool)]
    for arg in args:
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, genesis.DType):
            dtype = arg
        elif arg is not None and not isinstance(arg, bool):
            device = arg
    return (None if device is None else genesis.device(device), dtype, bool(kwargs.get("non_blocking", flags[:1] == [True])),
            kwargs.get("memory_format"))


# ---- checks ----
def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], object] | None) -> None:
    """Raise `error_type` with the result of `message` unless `cond` is true. Raises TypeError if it is no bool."""
    if isinstance(cond, Tensor):
        raise TypeError("cond must be a bool, but got a Tensor; _check_tensor_all() takes one")
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    if not cond:
        raise error_type("Expected cond to be True, but got False." if message is None else str(message()))


def _check_tensor_all_with(
    error_type: type[Exception], cond: Tensor, message: Callable[[], object] | None = None
) -> None:
    """Raise `error_type` with the result of `message` unless all elements are true. Computes the tensor."""
    _check_with(error_type, bool(cond.all()), message)


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError with this message unless the only element is true. Computes the tensor."""
    if not bool(input):
        raise RuntimeError(assert_msg)


def _assert(condition: object, message: object) -> None:
    """As an assert statement, for functions of which graphs are made."""
    if not condition:
        raise AssertionError(message)


CHECKS: dict[str, AnyFunction] = {
    "_assert": _assert, "_assert_async": _assert_async,
    "_check_with": _check_with, "_check_tensor_all_with": _check_tensor_all_with,
    "_check_tensor_all": functools.partial(_check_tensor_all_with, RuntimeError),
    **{f"_check{name}": lambda cond, message=None, kind=kind: _check_with(kind, cond, message) for name, kind in {
        "": RuntimeError, "_index": IndexError, "_value": ValueError, "_type": TypeError,
        "_not_implemented": NotImplementedError}.items()},
}


# ---- the line search of LBFGS ----
def _strong_wolfe(
    obj_func: AnyFunction, x: Any, t: float, d: Tensor, f: Any, g: Tensor, gtd: Any, c1: float = 1e-4, c2: float = 0.9,
    tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[Any, Tensor, float, int]:
    """(the loss, its gradient, the step, the number of losses) of the search along `d`; `obj_func(x, step, d)` has both."""
    if (c1, c2, max_ls) != (lbfgs.DECREASE, lbfgs.CURVATURE, lbfgs.MOST):
        raise NotImplementedError(f"_strong_wolfe: c1={c1}, c2={c2}, max_ls={max_ls}; want the defaults")
    losses = {}

    def at(step: float) -> lbfgs.Point:
        losses[step], gradient = obj_func(x, step, d)
        return lbfgs.Point(step, float(losses[step]), gradient, float(gradient.dot(d)))

    start = lbfgs.Point(0.0, float(f), g, float(gtd))
    found, count = lbfgs.strong_wolfe(at, start, float(t), float(d.abs().max()), tolerance_change)
    return losses.get(found.step, f), found.gradient, found.step, count


def _cubic_interpolate(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None) -> float:
    """The minimum of the cubic through two points with their slopes, within bounds, by default the points."""
    a, b = (lbfgs.Point(float(x), float(f), None, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))  # type: ignore[arg-type]
    return lbfgs.cubic_minimum(a, b, *map(float, bounds or sorted((a.step, b.step))))


TYPES: dict[str, Any] = {
    "torch.optim.lbfgs._strong_wolfe": _strong_wolfe, "torch.optim.lbfgs._cubic_interpolate": _cubic_interpolate,
    "torch._vmap_internals._vmap": genesis.func.vmap,
    **{f"torch.nn.common_types.{name}": kind for name, kind in COMMON_TYPES.items()},
    "torch.types._size": Sequence[int], "torch.types._int": int, "torch.types._float": float, "torch.types._bool": bool,
    "torch.types._dtype": genesis.DType, "torch.types._device": genesis.device, "torch.types._TensorOrTensors": Tensor,
    "torch.types.Number": int | float | bool, "torch.types.Device": genesis.device | str | int | None,
    "torch.optim.optimizer.ParamsT": Iterable[Any], **{f"torch.{name}": check for name, check in CHECKS.items()},
    **{f"torch.optim.optimizer.{name}": value for name, value in OPTIMIZER.items()},
    "torch.utils._python_dispatch.is_traceable_wrapper_subclass": is_traceable_wrapper_subclass,
}


class _RequiredParameter:
    """The default of an optimizer's required settings."""

    def __repr__(self) -> str:
        return "<required parameter>"


REQUIRED = _RequiredParameter()
