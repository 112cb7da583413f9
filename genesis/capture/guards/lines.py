"""The lines of a generated check, their labels and constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.capture.guards.check_function import COMPARISONS, check_function
from genesis.ir.annotations import AnyFunction

LIMIT = 20_000  # guards; a call with more is not replayed


class Lines:
    """The lines of guards, such as `if g['scale'] is not k: return 7`, at about 30 ns each."""

    def __init__(self, refuse: Callable[[str], None]) -> None:
        self.lines: list[str] = []
        self.labels: list[str] = []
        self.constants: dict[str, object] = {**COMPARISONS}
        self._refuse = refuse
        self._is_full = False
        self._name_of: dict[int, str] = {}

    def constant(self, value: object) -> str:
        """The name of `value` in the function."""
        name = self._name_of.get(id(value))
        if name is None:
            name = self._name_of[id(value)] = f"k{len(self._name_of)}"
            self.constants[name] = value
        return name

    def fail_if(self, condition: str, label: str) -> None:
        """Add a guard called `label`, which fails if `condition` holds."""
        if len(self.labels) < LIMIT:
            self.lines.append(f"if {condition}: return {len(self.labels)}")
            self.labels.append(label)
        elif not self._is_full:
            self._is_full = True
            self._refuse(f"more than {LIMIT} values are read")

    def function(self, head: str, lines: Sequence[str], last: Sequence[str]) -> AnyFunction:
        """The function: `lines`, which return the number of the guard that fails, then `last`, which may fail in its own
        way."""
        return check_function(head, lines, last, {**self.constants})
