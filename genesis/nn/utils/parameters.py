"""What training loops do to parameters: clipping of their gradients, which reads no value, and one vector of them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import signature
from typing import Any, TypeVar

from genesis.functions.creation import zeros
from genesis.nn.conversion import Convertible
from genesis.ops.registry import OPERATIONS
from genesis.sparse.sparse_tensor import SparseTensor, each_once
from genesis.tensor.composite import differentiated
from genesis.tensor.dispatch import array_of, call, moved
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tracing.state import grad_mode

Kind = TypeVar("Kind", bound=Convertible)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = map(differentiated, (parameters,) if isinstance(parameters, Tensor) else parameters)
    return [each_once(t.grad) if isinstance(t.grad, SparseTensor) else t.grad for t in tensors if t.grad is not None]


def update_all(tensors: Sequence[Tensor], name: str, *arguments: object) -> list[Tensor]:
    """Run operation `name` on all `tensors` at once, on the device of the first, and put its last results into them.

    Returns the results before those.
    """
    device = array_of(tensors[0]).device
    results = call(OPERATIONS[name], (moved(tensors, device), *arguments))
    others = len(results) - len(tensors)
    for tensor, value in zip(tensors, results[others:], strict=True):
        own = array_of(tensor).device
        write(tensor, value if own is device else moved([value], own)[0])
    return [*results[:others]]


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients in place so that their norm, taken over all of them together, is at most `max_norm`.

    Args:
        parameters: a tensor, or tensors, whose `.grad` to scale.
        max_norm: the bound.
        norm_type: the p of the norm; float("inf") for the largest magnitude.
        error_if_nonfinite: raise RuntimeError for a norm of NaN or infinity, which computes it.
        foreach: of no effect; it chooses among PyTorch's ways to compute this.

    Returns the norm before scaling, a 0-d tensor.

    >>> x = genesis.tensor([0.0, 0.0], requires_grad=True)
    >>> x.grad = genesis.tensor([3.0, 4.0])
    >>> clip_grad_norm_(x, max_norm=1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    tensors = [parameters] if isinstance(parameters, Tensor) else [*parameters]
    gradients = _gradients(tensors)
    if not gradients:
        return zeros(())
    if any(getattr(tensor, "sharding", None) is not None for tensor in tensors):
        total = _norm_over_ranks(tensors, norm_type, error_if_nonfinite)
        clip_grads_with_norm_(tensors, max_norm, total)
        return total
    if error_if_nonfinite:
        get_total_norm(gradients, norm_type, True)
    with grad_mode(False):
        (total,) = update_all(gradients, "clip_to_norm", float(max_norm), float(norm_type))
    return total


def _norm_over_ranks(tensors: list[Tensor], norm_type: float, error_if_nonfinite: bool) -> Tensor:
    """The norm of gradients that are divided; see `genesis.distributed.tensor.redistribution`."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(getattr(tensor, "sharding", None), []).extend(_gradients(tensor))
    with grad_mode(False):
        norms = [norm if sharding is None else sharding.norm_of_all(norm, norm_type) for sharding, parts in groups.items()
                 for norm in [get_total_norm(parts, norm_type)]]
    return get_total_norm(norms, norm_type, error_if_nonfinite)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all elements of `tensors` together, a 0-d tensor. Arguments as those of `clip_grad_norm_`.

    >>> get_total_norm([genesis.tensor([3.0]), genesis.tensor([[4.0]])])
    tensor(5.)
    """
    listed = [tensors] if isinstance(tensors, Tensor) else [*tensors]
    if not listed:
        return zeros(())
    with grad_mode(False):
        device = listed[0].device
        norms = [call(OPERATIONS["vector_norm"], (t, float(norm_type))).to(device) for t in listed]
        total = call(OPERATIONS["vector_norm"], (call(OPERATIONS["stack"], (norms,)), float(norm_type)))
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(f"clip_grad_norm_: the norm of order {norm_type} is {total.item()}; want error_if_nonfinite=False")
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients in place as `clip_grad_norm_` does, by a norm that is known.

    >>> x = genesis.tensor([0.0, 0.0], requires_grad=True)
    >>> x.grad = genesis.tensor([3.0, 4.0])
    >>> clip_grads_with_norm_(x, 1.0, get_total_norm([x.grad]))
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    with grad_mode(False):
        share = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for gradient in _gradients(parameters):
            write(gradient, (gradient * share.to(gradient.device)).to(gradient.dtype))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value], in place. `foreach` is of no effect.

    >>> x = genesis.tensor([0.0, 0.0], requires_grad=True)
    >>> x.grad = genesis.tensor([3.0, -0.5])
    >>> clip_grad_value_(x, 1.0)
    >>> x.grad
    tensor([ 1.0000, -0.5000])
    """
    gradients = _gradients(parameters)
    if gradients:
        bound = float(clip_value)
        with grad_mode(False):
            update_all(gradients, "clip_to_value", -bound, bound)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other.

    >>> parameters_to_vector([genesis.zeros(2, 1), genesis.ones(1)])
    tensor([0., 0., 1.])
    """
    return call(OPERATIONS["cat"], ([parameter.reshape(-1) for parameter in parameters], 0))


def convert_conv2d_weight_memory_format(module: Kind, memory_format: object) -> Kind:
    """The module as it is: kernels read any strides, so the memory format of its convolutions' weights is of no effect.

    >>> convert_conv2d_weight_memory_format(genesis.nn.Conv2d(1, 1, 1), None).weight.shape
    (1, 1, 1, 1)
    """
    return module


convert_conv3d_weight_memory_format = convert_conv2d_weight_memory_format  # for volumes


def skip_init(module_cls: type[Kind], *args: Any, **kwargs: Any) -> Kind:
    """A module of that class whose parameters have not been given their first values.

    Args:
        module_cls: the class, which takes a `device`.
        args, kwargs: those of its constructor.

    Raises RuntimeError for what is no class of modules, or takes no device.

    >>> skip_init(genesis.nn.Linear, 3, 2).weight.shape
    (2, 3)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Convertible)):
        raise RuntimeError(f"skip_init: wants a class of modules, got {module_cls!r}")
    if "device" not in signature(module_cls).parameters:
        raise RuntimeError(f"skip_init: {module_cls.__name__} takes no device")
    device = kwargs.pop("device", None)
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=device)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of `vec` into the parameters, in place. Raises ValueError unless there are as many of both.

    >>> weight = genesis.zeros(2, 1)
    >>> vector_to_parameters(genesis.tensor([1.0, 2.0]), [weight])
    >>> weight.tolist()
    [[1.0], [2.0]]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: wants a tensor, got {type(vec).__name__}")
    listed = list(parameters)
    total = sum(parameter.numel() for parameter in listed)
    if vec.shape != (total,):
        raise ValueError(f"vector_to_parameters: a vector of shape {vec.shape} for {total} elements; want ({total},)")
    start = 0
    with grad_mode(False):
        for parameter in listed:
            part = vec[start : start + parameter.numel()]
            write(parameter, part.reshape(parameter.shape).to(parameter, copy=True))
            start += parameter.numel()
