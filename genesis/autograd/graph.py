"""Hooks on several gradients at once and on saved tensors: the API of `torch.autograd.graph`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from genesis.autograd.after_backward import innermost_backward, queue_callback
from genesis.autograd.graph_view import GradientNode
from genesis.autograd.hooks import RemovableHandle
from genesis.autograd.saved_tensors import save_on_cpu, saved_tensors_hooks
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tracing.state import grad_mode

__all__ = [
    "GradientEdge", "Node", "RemovableHandle", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
    "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]
__dir__ = __all__.copy

Node = GradientNode


class _Handles(RemovableHandle):
    """Hooks on several tensors, removed together."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., object], *, mode: str = "all") -> RemovableHandle:
    """Call `fn` in backward with the list of the tensors' gradients once all are computed; "any": with the first one.

    Gradients that a `backward()` does not compute are None. Raises ValueError for another mode.

    >>> x, y = genesis.ones(1, requires_grad=True), genesis.ones(1, requires_grad=True)
    >>> handle = genesis.autograd.graph.register_multi_grad_hook([x, y], print)
    >>> (x * 2 + y * 3).sum().backward()
    [tensor([2.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode is {mode!r}; want 'all' or 'any'")
    lock = threading.Lock()

    def finish() -> None:
        here = innermost_backward().found.pop(finish, {})
        if mode == "all" and here:
            fn([here.get(n) for n in range(len(tensors))])

    def seen(number: int, gradient: Tensor) -> None:
        with lock:
            queue_callback(finish)
            here = innermost_backward().found.setdefault(finish, {})
            here[number] = gradient
            first, complete = len(here) == 1, len(here) == len(tensors)
        if mode == "any" and first:
            fn(gradient)
        elif mode == "all" and complete:
            finish()

    return _Handles([tensor.register_hook(partial(seen, number)) for number, tensor in enumerate(tensors)])


class GradientEdge(NamedTuple):
    """The node that a tensor's gradient goes to, and the number of the tensor among the node's results."""

    node: GradientNode
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor: the node that computed it, a leaf's accumulation. Raises RuntimeError for one without gradient.

    >>> x = genesis.ones(1, requires_grad=True)
    >>> genesis.autograd.graph.get_gradient_edge(x * 2)
    GradientEdge(node=<MulBackward>, output_nr=0)
    """
    if not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge: the tensor requires no gradient; want one that does")
    with grad_mode(True):
        return GradientEdge(*tensor.view_as(tensor).grad_fn.next_functions[0])  # type: ignore[union-attr]


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Register a write to tensors that the library did not see: backward then refuses their saved values.

    >>> x = genesis.zeros(2)
    >>> genesis.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for each in [tensor] if isinstance(tensor, Tensor) else tensor:
        with grad_mode(False):
            write(each, each.clone())


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A context in which entering `saved_tensors_hooks` raises RuntimeError with this message."""
    before = saved_tensors_hooks.refusal
    saved_tensors_hooks.refusal = error_message
    try:
        yield
    finally:
        saved_tensors_hooks.refusal = before
