"""Hooks, which see and may replace gradients, and observers, which see every step of backward."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self, TypeVar, cast

from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode, thread_state

Hook = Callable[..., object]
Hooks = dict[int, Hook]
Gradients = Sequence[Tensor | None]
O = TypeVar("O")  # a class of observers

_numbers = itertools.count()


class RemovableHandle:
    """A registered hook: `remove()`, or leaving it as a context, unregisters it."""

    def __init__(self, hooks: Hooks, hook: Hook, prepend: bool = False) -> None:
        if not callable(hook):
            raise TypeError(f"hook: wants a function, got {type(hook).__name__} {hook!r}")
        self.id = next(_numbers)
        self._hooks = hooks
        hooks[self.id] = hook
        if prepend:
            cast("OrderedDict[int, Hook]", hooks).move_to_end(self.id, last=False)

    def remove(self) -> None:
        """Unregister the hook."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Self: return self
    def __exit__(self, *problem: object) -> None: self.remove()


class NodeHooks:
    """The hooks of one call: `pre` hooks see the gradients of its results, `post` hooks also those of its arguments."""

    __slots__ = ("post", "pre")

    def __init__(self) -> None:
        self.pre: Hooks = {}
        self.post: Hooks = {}

    def before(self, gradients: Gradients, create_graph: bool) -> Gradients:
        """The results' gradients after the `pre` hooks."""
        for hook in [*self.pre.values()]:
            gradients = _replaced(hook, gradients, (tuple(gradients),), create_graph)
        return gradients

    def after(self, passed: Gradients, gradients: Gradients, create_graph: bool) -> Gradients:
        """The arguments' gradients after the `post` hooks."""
        for hook in [*self.post.values()]:
            passed = _replaced(hook, passed, (tuple(passed), tuple(gradients)), create_graph)
        return passed


def _replaced(hook: Hook, gradients: Gradients, arguments: tuple[object, ...], create_graph: bool) -> Gradients:
    with grad_mode(create_graph):
        answer = hook(*arguments)
    if answer is None:
        return gradients
    if not isinstance(answer, tuple):
        raise TypeError(f"hook: wants a tuple of {len(gradients)} gradients back, or None, got {type(answer).__name__}")
    if len(answer) != len(gradients):
        raise RuntimeError(f"hook: wants {len(gradients)} gradients back, or None, got {len(answer)}")
    return [new if new is None or old is None else _like(new, old) for new, old in zip(answer, gradients, strict=True)]


def hooked(gradient: Tensor, hooks: Hooks | None, create_graph: bool) -> Tensor:
    """`gradient` after a tensor's hooks, called in the order of registration."""
    for hook in [*hooks.values()] if hooks else ():
        with grad_mode(create_graph):
            answer = hook(gradient)
        if answer is not None:
            gradient = _like(answer, gradient)
    return gradient


def _like(answer: object, gradient: Tensor) -> Tensor:
    """A hook's result, after checking that it can replace `gradient`."""
    if not isinstance(answer, Tensor):
        met = f"{type(answer).__name__} {answer!r}"
        raise TypeError(f"hook: wants a gradient of shape {gradient.shape} back, or None, got {met}")
    if answer.shape != gradient.shape:
        raise RuntimeError(f"hook: wants a gradient of shape {gradient.shape} back, or None, got one of shape {answer.shape}")
    return answer if answer.dtype is gradient.dtype else answer.to(gradient.dtype)


# ---- observers ----
class GradientEvent(NamedTuple):
    """A call's step of backward: the gradients of its results, and those of its arguments.

    `line` is the file and line of the call.
    """

    name: str
    line: tuple[str, int] | None
    gradients: tuple[Tensor | None, ...]
    passed: tuple[Tensor | None, ...]


class Observer(Protocol):
    """Gets every step of a backward pass, last call first, and then its end."""

    def observe(self, event: GradientEvent) -> None: ...

    def finish(self) -> None: ...


def observers(kind: type[O]) -> list[O]:
    """The observers of this thread's backward passes that are of that class, outermost first."""
    return [observer for observer in thread_state.observers if isinstance(observer, kind)]


def add_observer(observer: Observer) -> None:
    """Add an observer of this thread's backward passes."""
    thread_state.observers += (observer,)


def remove_observer(observer: Observer) -> None:
    """Remove an observer; one that was added twice stays once."""
    remaining = [*thread_state.observers]
    remaining.remove(observer)
    thread_state.observers = tuple(remaining)
