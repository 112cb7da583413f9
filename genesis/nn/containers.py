"""Modules that hold modules by position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from genesis.nn.module import Module

__all__ = ["ModuleList", "Sequential"]


class _Positional(Module):
    """Modules named "0", "1", .. in their order."""

    def __init__(self, modules: Iterable[Module]) -> None:
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> Self:
        """Add `module` at the end. Raises TypeError for what is no module."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: wants modules, got {type(module).__name__}")
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add `modules` at the end."""
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self.children())

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int | slice) -> Any:
        chosen = list(self.children())[index]
        return self._of(chosen) if isinstance(chosen, list) else chosen

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(range(len(self))[index]), module)

    def _of(self, modules: list[Module]) -> Module:
        raise NotImplementedError


class Sequential(_Positional):
    """Modules called one after the other.

    >>> from genesis import nn
    >>> nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *modules: Module | dict[str, Module]) -> None:
        super().__init__(())
        for module in modules:
            if isinstance(module, dict):
                for name, named in module.items():
                    self.add_module(name, named)
            else:
                self.append(module)

    def forward(self, input: Any) -> Any:
        """The last module's result."""
        for module in self.children():
            input = module(input)
        return input

    def _of(self, modules: list[Module]) -> Module:
        return Sequential(*modules)


class ModuleList(_Positional):
    """A list whose modules belong to the module that holds it.

    >>> from genesis import nn
    >>> len(nn.ModuleList(nn.Linear(2, 2) for _ in range(3)))
    3
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__(modules)

    def _of(self, modules: list[Module]) -> Module:
        return ModuleList(modules)
