"""Function: operations with user-defined gradients.

`forward` and `backward` run eagerly in Python and only extend the graph. A result of `forward` becomes a node of its own, where
the backward pass stops and calls `backward`.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABCMeta
from collections.abc import Sequence
from typing import Any

from genesis.autograd.custom import Context, plain, record_custom
from genesis.autograd.pullback import enter, handle, pull
from genesis.ir.annotations import AnyFunction, Arguments
from genesis.pytree import map_tree
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import array_of
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor, result_class
from genesis.tracing.state import grad_mode, thread_state


class Function(metaclass=ABCMeta):  # noqa: B024 - GradientNode is a virtual subclass
    """The base of operations with handwritten gradients.

    Subclasses define `forward(ctx, *args, **kwargs)`, which returns a tensor or a tuple with tensors, and
    `backward(ctx, *grad_outputs)`, also called `vjp`, which returns one gradient per argument of `forward` (None where none
    flows; a single gradient needs no tuple). A gradient with broadcast axes is summed to its argument's shape.

    >>> class Cube(genesis.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         x, = ctx.saved_tensors
    ...         return 3 * x ** 2 * grad_output
    >>> x = genesis.tensor(2., requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y.backward()
    >>> y, x.grad
    (tensor(8., grad_fn=<CubeBackward>), tensor(12.))
    """

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """The results, from the arguments."""
        raise NotImplementedError("Function: a subclass has to say what forward computes")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **none: Any) -> Any:  # so an override may have any parameters
        """The gradients of the arguments, from those of the results."""
        raise NotImplementedError("Function: a subclass has to say what backward computes")

    @staticmethod
    def setup_context(ctx: Any, inputs: Arguments, output: Any) -> None:
        """Saves for backward, in subclasses that override it: their `forward` takes no `ctx`."""
        raise NotImplementedError("Function: setup_context is the subclass's to say")

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the results from those of the arguments, linearly, in subclasses that override it.

        Forward mode (`func.jvp`, `forward_ad`) calls it; without it, tangents are the adjoint of `backward`. Arguments that are
        no tensors have None.
        """
        raise NotImplementedError("Function: a subclass has to say what jvp computes")

    @classmethod
    def apply(cls, *args: object, **kwargs: object) -> Any:
        """Run `forward` and record its results as this function's.

        Gradients flow to what `forward` may take by position. `setup_context` gets all of that, defaults included.
        """
        apart = cls.setup_context is not Function.setup_context
        if apart or kwargs:
            args, kwargs = _by_position(cls.forward, apart, args, kwargs)
        context = Context()
        context.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        given = {
            id(a): (a, array_of(a)) for a in args
            if isinstance(a, Tensor) and (a.requires_grad or not isinstance(a, CompositeTensor))}
        with grad_mode(False):
            if apart:
                results = cls.forward(*args, **kwargs)
                cls.setup_context(context, args, results)
            else:
                results = cls.forward(context, *args, **kwargs)
        if not isinstance(results, tuple | list | Tensor):
            raise TypeError(f"{cls.__name__}.forward: wants a tensor or a tuple back, got {type(results).__name__}")
        several = not isinstance(results, Tensor)
        listed = list(results) if several else [results]
        if thread_state.grad_enabled and any(context.needs_input_grad):
            if cls.jvp is not Function.jvp:
                context._pushed = functools.partial(_adjoint_of, cls.jvp, [
                    (a.shape, a.dtype, a.device, needs) if isinstance(a, Tensor) else None
                    for a, needs in zip(args, context.needs_input_grad, strict=True)])
            inputs = [given[id(a)] if needs else None for a, needs in zip(args, context.needs_input_grad, strict=True)]
            vjp = getattr(cls, "vjp", None)
            if vjp is not None and cls.backward is not Function.backward:
                raise RuntimeError(f"{cls.__name__}: defines both backward and vjp, which are names of one; want one of them")
            wrapped = record_custom(cls.__name__, vjp or cls.backward, context, inputs, listed, given)
        else:
            wrapped = [plain(r) for r in listed]
        kind = result_class(args)
        for result in wrapped if kind is not Tensor else ():
            if result.__class__ is Tensor and id(result) not in given:
                result.__class__ = kind
        return tuple(wrapped) if several else wrapped[0]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """As `apply`."""
        return self.apply(*args, **kwargs)


_signature = functools.lru_cache(inspect.signature)


def _by_position(
    forward: AnyFunction, apart: bool, args: Arguments, kwargs: dict[str, object]
) -> tuple[Arguments, dict[str, object]]:
    """The arguments of `forward`, by position where it takes them so; if it stands `apart` from its context, with defaults."""
    bound = _signature(forward).bind(*([] if apart else [None]), *args, **kwargs)
    if apart:
        bound.apply_defaults()
    return bound.args if apart else bound.args[1:], bound.kwargs


def _adjoint_of(jvp: AnyFunction, kinds: Sequence[Any], context: Context, *cotangents: Tensor | None) -> list[Tensor | None]:
    """The cotangents of arguments of these kinds: the adjoint of `jvp`, which is linear in their tangents."""
    points = [None if kind is None else enter(filled(0, *kind[:3]), False) if kind[3] else None for kind in kinds]
    rest = [None if kind is None or kind[3] or not context._materializes else filled(0, *kind[:3]) for kind in kinds]
    context._pushes = True
    try:
        with grad_mode(True):
            found = jvp(context, *[r if p is None else handle(p, p) for p, r in zip(points, rest, strict=True)])
    finally:
        context._pushes = False
    tangents = found if isinstance(found, tuple | list) else [found]
    if len(tangents) != len(cotangents):
        raise RuntimeError(f"jvp: returned {len(tangents)} tangents for {len(cotangents)} results of forward")
    pairs = [(t, c) for t, c in zip(tangents, cotangents, strict=True) if t is not None and c is not None]
    wanted = [p for p in points if p is not None]
    pulled = iter(pull([t for t, _ in pairs], [c for _, c in pairs], wanted, bool(thread_state.grad_enabled), adjoint=True))
    return [None if p is None else next(pulled) for p in points]


def once_differentiable(backward: AnyFunction) -> AnyFunction:
    """Decorator of a `backward` that is not differentiable: a second derivative raises RuntimeError.

    >>> class Square(genesis.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @genesis.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         return 2 * ctx.saved_tensors[0] * grad
    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> genesis.autograd.grad(Square.apply(x), x)
    (tensor(6.),)
    """

    @functools.wraps(backward)
    def once(ctx: Context, *grad_outputs: Tensor | None) -> object:
        with grad_mode(False):
            answers = backward(ctx, *grad_outputs)
        sources = [t for t in (*grad_outputs, *ctx.saved_tensors) if isinstance(t, Tensor) and t.requires_grad]
        if not thread_state.grad_enabled or not sources:
            return answers
        problem = RuntimeError("backward: this gradient comes from a once_differentiable function and cannot be derived again")
        return map_tree(lambda a: barred(problem, a, *sources) if isinstance(a, Tensor) else a, answers)

    return once


def barred(problem: Exception, value: Tensor, *sources: Tensor) -> Tensor:
    """A value, computed from `sources`, whose differentiation raises `problem`."""
    return _Barred.apply(problem, value, *sources)  # type: ignore[no-any-return]


class _Barred(Function):
    @staticmethod
    def forward(ctx: Context, problem: Exception, value: Tensor, *sources: Tensor) -> Tensor:
        ctx.save_variable("problem", problem)
        return value

    @staticmethod
    def backward(ctx: Context, *grad_outputs: Tensor) -> None:
        raise ctx.saved_variables["problem"]
