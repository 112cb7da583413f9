"""`torch._dynamo.eval_frame.OptimizedModule`: the result of `torch.compile` for a module."""

from __future__ import annotations

import functools
from collections.abc import Sized
from typing import Any

import genesis
from genesis.ir.annotations import AnyFunction, Attributes
from genesis.nn.module import Module

_OWN = frozenset({"_orig_mod", "_run", "_settings"})  # attributes of its own; all others are the module's


class OptimizedModule(Module):
    """A wrapper of a compiled module, its only child `_orig_mod`, with that module's attributes and methods."""

    def __init__(self, mod: Module, settings: Attributes) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod
        vars(self)["_settings"] = settings
        vars(self)["_run"] = functools.partial(genesis.compile(mod, **settings).__call__)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        self._orig_mod.training = mode

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's call, compiled."""
        return self._run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = vars(self)
        return found[name] if name in found else getattr(found["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name) or name in _OWN:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in vars(self):
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self) -> int:
        if isinstance(self._orig_mod, Sized):
            return len(self._orig_mod)
        raise TypeError(f"{type(self._orig_mod).__name__} has no len()")

    def __bool__(self) -> bool:
        return True

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce_ex__(self, protocol: Any) -> tuple[AnyFunction | type, tuple[Any, ...]]:
        return type(self), (self._orig_mod, self._settings)


OptimizedModule.__module__ = "torch._dynamo.eval_frame"
