"""Optimizer hooks: functions called around steps and state dicts."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from genesis.autograd.hooks import RemovableHandle
from genesis.ir.annotations import AnyFunction
from genesis.ir.replayable import replayable

T = TypeVar("T")


class OptimizerHooks:
    """The hooks of one optimizer, by kind, in the order of their calls."""

    def __init__(self) -> None:
        self._by_kind: defaultdict[str, OrderedDict[int, AnyFunction]] = defaultdict(OrderedDict)

    def add(self, kind: str, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Add a hook, before the others with `prepend`."""
        return RemovableHandle(self._by_kind[kind], hook, prepend)

    def call(self, kind: str, optimizer: object) -> None:
        """Call the hooks of a kind with the optimizer."""
        for hook in [*self._by_kind[kind].values()]:
            hook(optimizer)

    def passed(self, kind: str, optimizer: object, value: T) -> T:
        """`value`, or its replacement by hooks of the kind."""
        for hook in [*self._by_kind[kind].values()]:
            found = hook(optimizer, value)
            value = value if found is None else found
        return value

    def around(self, optimizer: object, step: Callable[..., T]) -> Callable[..., T]:
        """The optimizer's `step`, with the step hooks around it."""

        def hooked(*args: Any, **kwargs: Any) -> T:
            given: tuple[Any, ...] = (optimizer, *args)
            for hook in [*self._by_kind["step_pre"].values()]:
                changed = hook(optimizer, given, kwargs)
                if changed is not None:
                    given, kwargs = changed
            result = step(*given, **kwargs)
            for hook in [*self._by_kind["step_post"].values()]:
                hook(optimizer, given, kwargs)
            return result

        return hooked


class Hooked:
    """Registers the hooks of an `Optimizer`."""

    hooks: OptimizerHooks | None = None
    step: Callable[..., Any]

    def register_step_pre_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; a returned pair replaces both."""
        return self._hooked("step_pre", hook, steps=True)

    def register_step_post_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._hooked("step_post", hook, steps=True)

    def register_state_dict_pre_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before a state dict is made."""
        return self._hooked("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` with each state dict; a returned one replaces it."""
        return self._hooked("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before one is loaded; a returned one is loaded instead."""
        return self._hooked("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after a state dict has been loaded."""
        return self._hooked("load_post", hook, prepend)

    def _hooked(self, kind: str, hook: AnyFunction, prepend: bool = False, steps: bool = False) -> RemovableHandle:
        if self.hooks is None:
            self.hooks = OptimizerHooks()
        if steps and "step" not in vars(self):  # an optimizer without such hooks calls `step` itself
            self.step = self.hooks.around(self, type(self).step)  # type: ignore[method-assign]
        return self.hooks.add(kind, hook, prepend)

    @replayable
    def __getstate__(self) -> dict[str, Any]:
        """Copies have no hooks."""
        return {name: value for name, value in vars(self).items() if name not in ("step", "hooks")}
