"""Around the graph of gradients: hooks on several gradients at once, by the names of `torch.autograd.graph`.

What backward keeps is decided when a program is lowered, so `save_on_cpu` changes nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

from genesis.autograd.graph_view import GradientNode
from genesis.autograd.hooks import RemovableHandle
from genesis.tensor.handle import Tensor

__all__ = ["Node", "RemovableHandle", "disable_saved_tensors_hooks", "register_multi_grad_hook", "save_on_cpu"]

Node = GradientNode


class _Handles(RemovableHandle):
    """Hooks on several tensors, removed together."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., object], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` in backward with the list of the tensors' gradients once all are there; "any": with the first of them.

    Raises ValueError for another mode.

    >>> x, y = genesis.ones(1, requires_grad=True), genesis.ones(1, requires_grad=True)
    >>> handle = genesis.autograd.graph.register_multi_grad_hook([x, y], print)
    >>> (x * 2 + y * 3).sum().backward()
    [tensor([2.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode is {mode!r}; want 'all' or 'any'")
    lock, found = threading.Lock(), dict[int, Tensor]()

    def seen(place: int, gradient: Tensor) -> None:
        with lock:
            first = not found
            found[place] = gradient
            complete = len(found) == len(tensors)
            gradients = [found[n] for n in range(len(tensors))] if complete else []
            if complete:
                found.clear()
        if mode == "any" and first:
            fn(gradient)
        elif mode == "all" and complete:
            fn(gradients)

    def hook(place: int) -> Callable[[Tensor], None]:
        return lambda gradient: seen(place, gradient)

    return _Handles([tensor.register_hook(hook(place)) for place, tensor in enumerate(tensors)])


@contextlib.contextmanager
def save_on_cpu(pin_memory: bool = False, device_type: str = "cuda") -> Iterator[None]:
    """A context that changes nothing: what is kept for backward stays where it is computed."""
    yield


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A context that changes nothing: there are no such hooks."""
    yield
