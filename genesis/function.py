"""Function, and four example operations with gradients written by hand."""

from __future__ import annotations

from genesis.autograd import Context, Function, numerical_gradient_check
from genesis.ir.annotations import Arguments
from genesis.tensor.handle import Tensor

__all__ = ["AddFunction", "Context", "Function", "MatMulFunction", "MulFunction", "ReluFunction", "numerical_gradient_check"]
__dir__ = __all__.copy


class AddFunction(Function):
    """`a + b` for tensors or numbers that broadcast.

    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> genesis.function.AddFunction.apply(x, 3.0)
    tensor([4., 5.], grad_fn=<AddFunctionBackward>)
    """

    @staticmethod
    def forward(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
        """The sum."""
        return a + b

    @staticmethod
    def backward(ctx: Context, grad_output: Tensor) -> Arguments:
        """The gradient of both is the result's."""
        return grad_output, grad_output


class MulFunction(Function):
    """`a * b` for tensors or numbers that broadcast.

    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> genesis.function.MulFunction.apply(x, 3.0).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """

    @staticmethod
    def forward(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
        """The product."""
        tensors = [x if isinstance(x, Tensor) else None for x in (a, b)]
        ctx.save_for_backward(*tensors)
        ctx.save_variable("numbers", [x if t is None else None for x, t in zip((a, b), tensors, strict=True)])
        return a * b

    @staticmethod
    def backward(ctx: Context, grad_output: Tensor) -> Arguments:
        """The gradient times the other factor."""
        numbers = ctx.saved_variables["numbers"]
        a, b = [x if t is None else t for x, t in zip(numbers, ctx.saved_tensors, strict=True)]
        return grad_output * b, grad_output * a


class MatMulFunction(Function):
    """`a @ b` for matrices, batches of them that broadcast, and vectors.

    >>> a, x = genesis.eye(2) * 5, genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> genesis.function.MatMulFunction.apply(a, x)
    tensor([ 5., 10.], grad_fn=<MatMulFunctionBackward>)
    """

    @staticmethod
    def forward(ctx: Context, a: Tensor, b: Tensor) -> Tensor:
        """The matrix product."""
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx: Context, grad_output: Tensor) -> Arguments:
        """The gradient times the other factor, transposed; a vector is a matrix of one row, or of one column."""
        a, b = ctx.saved_tensors
        g, rows, columns = grad_output, a, b
        if b.ndim == 1:
            g, columns = g.unsqueeze(-1), b.unsqueeze(-1)
        if a.ndim == 1:
            g, rows = g.unsqueeze(-2), a.unsqueeze(0)
        by_b = rows.transpose(-2, -1) @ g
        return g @ columns.transpose(-2, -1), by_b.squeeze(-1) if b.ndim == 1 else by_b


class ReluFunction(Function):
    """`max(input, 0)`; the gradient at 0 is 0.

    >>> x = genesis.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    >>> genesis.function.ReluFunction.apply(x).sum().backward()
    >>> x.grad
    tensor([0., 0., 1.])
    """

    @staticmethod
    def forward(ctx: Context, input: Tensor) -> Tensor:
        """The positive part."""
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx: Context, grad_output: Tensor) -> Tensor:
        """The gradient where the input is positive."""
        (input,) = ctx.saved_tensors
        return grad_output * (input > 0)
