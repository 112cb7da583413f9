"""Variable: a tensor whose `grad` can be called, as in OneFlow: `y.grad()` runs backward and returns the gradient."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from genesis.autograd.derivation import leaves_of
from genesis.functions.creation import ones_like
from genesis.ir.dtypes import DType
from genesis.runtime.deferred import deferred
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, note_result_class, tensor_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from genesis.autograd.gradients import add_gradient
else:
    add_gradient = deferred("genesis.autograd.gradients", "add_gradient")


class Variable(Tensor):
    """A tensor that requires a gradient if it is floating, and whose operations return Variables.

    Args:
        array: nested lists, numbers, a NumPy array or a tensor, copied.
        requires_grad: whether gradients flow to it; by default, whether it is floating.

    `device` and `dtype` as in `genesis.Tensor`.

    >>> x = genesis.Variable([1.0, 2.0])
    >>> y = x * x
    >>> y.grad()
    tensor([2., 4.])
    >>> x.grad, x.grad()
    (tensor([2., 4.]), tensor([2., 4.]))
    """

    _gradients: Gradients = None  # the result of `grad()`

    def __new__(cls, *args: object, **kwargs: object) -> Variable:
        note_result_class(Variable)
        return object.__new__(cls)

    def __init__(
        self, array: ArrayLike, *options: DType | DeviceLike | bool, device: DeviceLike = None, dtype: DType | None = None,
        requires_grad: bool | None = None, **parameters: object,
    ) -> None:
        super().__init__(array, *options, device=device, dtype=dtype, requires_grad=bool(requires_grad), **parameters)
        if requires_grad is None and not any(isinstance(option, bool) for option in options):
            self._requires_grad = self.dtype.category >= 2

    @property
    def grad(self) -> Any:
        """A leaf's accumulated gradient, or None. For a result, a function that runs backward from it.

        `grad(retain_graph=None, create_graph=False)` starts backward with ones, adds to the leaves' gradients, and returns
        the gradient by the leaves that the result depends on: one tensor, or a tuple in the order of first use. It runs once;
        further calls return the same.
        """
        if self._grad is None:
            return None if self.is_leaf else self._run_backward
        gradient = _callable(self._grad)
        gradient._source = None if self.is_leaf else weakref.ref(self)
        return gradient

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        Tensor.grad.__set__(self, value)  # type: ignore[attr-defined]

    def _run_backward(self, retain_graph: bool | None = None, create_graph: bool = False) -> Gradients:
        if self._gradients is not None:
            return self._gradients
        leaves = leaves_of(self)
        before = [leaf._grad for leaf in leaves]
        for leaf in leaves:
            leaf._grad = None  # so that this backward's gradient is seen separately
        try:
            self.backward(ones_like(self), retain_graph, create_graph)
            found = [None if leaf._grad is None else _callable(tensor_of(array_of(leaf._grad))) for leaf in leaves]
        finally:
            for leaf, former in zip(leaves, before, strict=True):
                if former is not None:
                    new, leaf._grad = leaf._grad, former
                    if new is not None:
                        add_gradient(leaf, new, create_graph)
        self._gradients = found[0] if len(found) == 1 else tuple(found)
        return self._gradients


Variable._result_class = Variable


class Gradient(Variable):
    """The gradient of a Variable: a tensor that, called, returns itself."""

    _source: weakref.ref[Variable] | None = None  # the result whose gradient was retained

    def __call__(self, retain_graph: bool | None = None, create_graph: bool = False) -> Gradients:
        source = None if self._source is None else self._source()
        return self if source is None else source._run_backward(retain_graph, create_graph)


Gradients = Gradient | tuple[Gradient | None, ...] | None


def _callable(gradient: Tensor) -> Gradient:
    gradient.__class__ = Gradient
    assert isinstance(gradient, Gradient)
    return gradient
