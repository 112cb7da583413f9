"""The gradient side of a tensor: backward, its hooks and its nodes, detach, requires_grad_, retain_grad, zero_grad."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from genesis.autograd.derivation import derived_at
from genesis.autograd.hooks import RemovableHandle
from genesis.functions.overrides import function, routed_access_method
from genesis.ir.annotations import AnyFunction
from genesis.runtime.deferred import deferred
from genesis.tensor.bare_root import update_bare_root
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, attribute, detached_root, method
from genesis.tensor.views import detach
from genesis.tracing.recording_hooks import touched_gradient
from genesis.tracing.state import grad_mode, thread_state

if TYPE_CHECKING:
    from genesis.autograd.custom import created_by
    from genesis.autograd.gradients import backward as run_backward
    from genesis.autograd.graph_view import GradientNode
else:
    created_by = deferred("genesis.autograd.custom", "created_by")
    run_backward = deferred("genesis.autograd.gradients", "backward")
    GradientNode = deferred("genesis.autograd.graph_view", "GradientNode")


@method
def backward(
    self: Tensor, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
    inputs: Sequence[Tensor] | None = None, *, strict: bool | None = None,
) -> None:
    """Add the gradients of this tensor to `.grad` of the leaves that it depends on (of `inputs` alone, if given).

    `gradient` (of the tensor's shape) may be left out for a tensor of one element. Raises RuntimeError without it for
    others, and if an earlier backward without `retain_graph` freed the graph. A tensor that depends on no leaf gives one
    warning; with `strict` it raises RuntimeError.

    >>> x = genesis.tensor([1., 2., 3.], requires_grad=True)
    >>> (x ** 2).sum().backward()
    >>> x.grad
    tensor([2., 4., 6.])
    """
    gradients = None if gradient is None else [gradient]
    run_backward(self, gradients, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs, strict=strict)


function()(routed_access_method(detach))


@method
def detach_(self: Tensor) -> Tensor:
    """Detach this tensor from the graph, in place: it becomes a leaf. Raises RuntimeError for a view.

    >>> y = genesis.ones(2, requires_grad=True) * 2
    >>> y.detach_()
    tensor([2., 2.])
    """
    if self._base is not None and (not self._detached or detached_root(self) is not self):
        raise RuntimeError("detach_: a view cannot be detached in place; use detach()")
    self._array = array_of(detach(self))
    self._requires_grad = False
    update_bare_root(self)
    return self


@method
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad`, and return the tensor.

    Raises TypeError for a tensor that is not floating, RuntimeError for setting it to False on a result.

    >>> genesis.zeros(2).requires_grad_()
    tensor([0., 0.], requires_grad=True)
    """
    self.requires_grad = requires_grad
    return self


@method
def set_creator(self: Tensor, ctx: Any, backward: AnyFunction) -> Tensor:
    """Make `backward(ctx, *grad_outputs)` the gradient rule of this tensor; returns the tensor.

    The returned gradients go to the tensors saved in `ctx` or, if there are none, to the arguments of the operation that
    computed this tensor. `Function.apply` does this for every result. `ctx` may be any object with `saved_tensors`.

    >>> x = genesis.tensor([1., 2.], requires_grad=True)
    >>> context = genesis.autograd.Context()
    >>> context.save_for_backward(x)
    >>> y = (x * 3).set_creator(context, lambda ctx, grad: grad * 10)
    >>> y.sum().backward()
    >>> x.grad
    tensor([10., 10.])
    """
    return created_by(self, ctx, backward)


@attribute
def grad_fn(self: Tensor) -> GradientNode | None:
    """The node of backward that made this tensor; None for a leaf."""
    array = array_of(self)
    if not array.node.differentiable or array.trace is None:
        return None
    return GradientNode(array.trace, array.index)


@method
def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call `hook` with the gradient of this tensor whenever backward computes it; its result, unless None, replaces it.

    Raises RuntimeError for a tensor that requires no gradient.

    >>> x = genesis.tensor([1., 2.], requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([20., 40.])
    >>> handle.remove()
    """
    if not self.requires_grad:
        raise RuntimeError("register_hook: this tensor requires no gradient, so there is none to see")
    array = array_of(self)
    if array.node.differentiable and array.trace is not None:
        trace, index = derived_at(array.trace, array.index)
        return RemovableHandle(trace.backward_state().hooks.setdefault(index, {}), hook)
    if self._hooks is None:
        self._hooks = {}
    return RemovableHandle(self._hooks, hook)


@method
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook` with this tensor, a leaf, whenever backward has added to its `.grad`.

    Raises RuntimeError for a tensor that is no leaf or requires no gradient; backward does, if the hook returns a value.

    >>> x = genesis.tensor([1., 2.], requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
    >>> (x * x).sum().backward()
    tensor([2., 4.])
    """
    if not self.requires_grad or not self.is_leaf:
        raise RuntimeError("register_post_accumulate_grad_hook: wants a leaf that requires a gradient")
    if self._post_hooks is None:
        self._post_hooks = {}
    return RemovableHandle(self._post_hooks, hook)


@attribute
def is_leaf(self: Tensor) -> bool:
    """True unless an operation that carries gradients made it."""
    return not array_of(self).node.differentiable


@method
def retain_grad(self: Tensor) -> None:
    """Make `backward` store this result's gradient in `.grad`, as for leaves.

    Raises RuntimeError for a tensor that requires no gradient.

    >>> y = genesis.ones(2, requires_grad=True) * 2
    >>> y.retain_grad()
    >>> y.sum().backward()
    >>> y.grad
    tensor([1., 1.])
    """
    if not self.requires_grad:
        raise RuntimeError("retain_grad: this tensor does not require a gradient")
    array = array_of(self)
    if array.node.differentiable and array.trace is not None:
        trace, index = derived_at(array.trace, array.index)
        trace.backward_state().retained[index] = weakref.ref(self)
        self._retains_grad = True


@attribute
def retains_grad(self: Tensor) -> bool:
    """Whether `retain_grad` was called on this result."""
    return self._retains_grad


@method
def zero_grad(self: Tensor, set_to_none: bool = True) -> None:
    """Drop the accumulated gradient: `.grad` becomes None, or zeros without gradient.

    >>> x = genesis.tensor([1., 2.], requires_grad=True)
    >>> x.sum().backward()
    >>> x.zero_grad()
    >>> print(x.grad)
    None
    """
    gradient = self._grad
    if thread_state.recorder is not None:
        touched_gradient(self, not set_to_none)
    if set_to_none or gradient is None:
        self._grad = None
    else:
        with grad_mode(False):
            (gradient if gradient.is_leaf else gradient.detach_()).zero_()


NOT_REPLAYABLE = (
    "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "retains_grad", "set_creator",
)
