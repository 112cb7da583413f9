"""Gradients of convolutions by input and weight, as functions: PyTorch's `nn.grad`."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.autograd.gradients import grad
from genesis.functions.creation import zeros
from genesis.ir.annotations import AnyFunction
from genesis.ops.registry import OPERATIONS
from genesis.ops.window import PerAxis
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]
__dir__ = __all__.copy


def _gradient(axes: int, of: Tensor, input: Tensor, weight: Tensor, grad_output: Tensor, settings: Sequence[PerAxis]) -> Tensor:
    with grad_mode(True):
        output = call(OPERATIONS[f"conv{axes}d"], (input, weight, None, *settings))
        (found,) = grad([output], [of], [grad_output])
    return found


def _gradient_of(operand: str, axes: int) -> AnyFunction:
    """The function `conv{axes}d_input` or `conv{axes}d_weight`."""

    def of_input(
        input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: PerAxis = 1, padding: PerAxis = 0,
        dilation: PerAxis = 1, groups: int = 1,
    ) -> Tensor:
        input = zeros(*input_size, dtype=weight.dtype, device=weight.device, requires_grad=True)
        return _gradient(axes, input, input, detach(weight), grad_output, (stride, padding, dilation, groups))

    def of_weight(
        input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: PerAxis = 1, padding: PerAxis = 0,
        dilation: PerAxis = 1, groups: int = 1,
    ) -> Tensor:
        weight = zeros(*weight_size, dtype=input.dtype, device=input.device, requires_grad=True)
        return _gradient(axes, weight, detach(input), weight, grad_output, (stride, padding, dilation, groups))

    gradient: AnyFunction = of_input if operand == "input" else of_weight
    image, point = f"1, 1{', 3' * axes}", f"1, 1{', 1' * axes}"
    arguments = f"({image}), genesis.ones({point})" if operand == "input" else f"genesis.ones({image}), ({point})"
    gradient.__name__ = gradient.__qualname__ = f"conv{axes}d_{operand}"
    gradient.__doc__ = f"""The gradient of `conv{axes}d` by its {operand}, of shape `{operand}_size`, from that of its result.

    >>> conv{axes}d_{operand}({arguments}, genesis.ones({image})).sum()
    tensor({3**axes}.)
    """
    return gradient


conv1d_input, conv2d_input, conv3d_input = (_gradient_of("input", axes) for axes in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_gradient_of("weight", axes) for axes in (1, 2, 3))
