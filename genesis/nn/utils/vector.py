"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tracing.state import recording


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other.

    >>> parameters_to_vector([genesis.zeros(2, 1), genesis.ones(1)])
    tensor([0., 0., 1.])
    """
    return call(OPERATIONS["cat"], ([parameter.reshape(-1) for parameter in parameters], 0))


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of `vec` into the parameters, in place. Raises ValueError unless there are as many of both.

    >>> weight = genesis.zeros(2, 1)
    >>> vector_to_parameters(genesis.tensor([1.0, 2.0]), [weight])
    >>> weight.tolist()
    [[1.0], [2.0]]
    """
    listed = list(parameters)
    total = sum(parameter.numel() for parameter in listed)
    if vec.shape != (total,):
        raise ValueError(f"vector_to_parameters: a vector of shape {vec.shape} for {total} elements; want ({total},)")
    start = 0
    with recording(False) as again, again:
        for parameter in listed:
            part = vec[start : start + parameter.numel()]
            write(parameter, part.reshape(parameter.shape).to(parameter, copy=True))
            start += parameter.numel()
