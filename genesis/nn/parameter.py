"""Parameter: a tensor that a module learns."""

from __future__ import annotations

from genesis.ir.replayable import replayable_module
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach


class Parameter(Tensor):
    """A leaf that requires a gradient and that modules collect.

    Args:
        data: the first value, of any shape; a floating dtype unless `requires_grad` is False.
        requires_grad: whether `backward` accumulates a gradient into it.

    Raises TypeError for what is no tensor, and when a gradient is wanted of a dtype that has none.

    >>> genesis.nn.Parameter(genesis.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: wants a tensor, got {type(data).__name__} {data!r:.40}")
        if requires_grad and not data.dtype.is_floating_point:
            raise TypeError(f"Parameter: a {data.dtype.name} tensor has no gradient; want requires_grad=False")
        self._array = array_of(detach(data) if data.requires_grad else data)
        self._requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


replayable_module(__name__)
