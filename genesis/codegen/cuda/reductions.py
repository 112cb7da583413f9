"""Reductions as text: identities, how a value is accumulated, how threads' results are combined."""

from __future__ import annotations

from typing import NamedTuple

from genesis.codegen.cuda.arithmetic import FLOATING, accumulated, converted, register_type, rounded

__all__ = ["Accumulator"]

IDENTITIES = {"sum": 0, "prod": 1, "any": 0, "all": 1}
OPERATIONS = {"any": "max", "all": "min"}  # of the numbers 0 and 1
# Written so that no literal exceeds int64: -9223372036854775808 is the negation of one that does.
_LIMIT = {"max": "int64(-9223372036854775807 - 1)", "min": "int64(9223372036854775807)"}


class Accumulator(NamedTuple):
    """The running result of reduction `number` over values of a dtype; of `arg` reductions, a value with its position."""

    reduction: str
    number: int
    source: str
    dtype: str

    @property
    def operation(self) -> str:
        return OPERATIONS.get(self.reduction, self.reduction)

    @property
    def type(self) -> str:
        return accumulated(self.source)

    @property
    def name(self) -> str:
        return f"{self.reduction}{self.number}"

    @property
    def position(self) -> str:
        return f"place{self.number}"

    @property
    def has_position(self) -> bool:
        return self.reduction.startswith("arg")

    @property
    def variables(self) -> dict[str, str]:
        """Its variables and their types."""
        return {self.name: self.type, self.position: "int64"} if self.has_position else {self.name: self.type}

    def begin(self) -> str:
        """The line that sets it to the identity."""
        extreme = self.operation.removeprefix("arg")
        if self.reduction in IDENTITIES:
            start = f"{self.type}({IDENTITIES[self.reduction]})"
        elif self.source in FLOATING:
            start = f"{self.type}({'-' if extreme == 'max' else ''}math.inf)"
        else:
            start = _LIMIT[extreme]
        return f"{self.name}, {self.position} = {start}, int64(-1)" if self.has_position else f"{self.name} = {start}"

    def take(self, value: str, position: str) -> str:
        """The line that accumulates a value with its position."""
        return self.merge(value if register_type(self.source) == self.type else f"{self.type}({value})", f"int64({position})")

    def merge(self, value: str, position: str = "") -> str:
        """The line that accumulates another accumulator's value."""
        if self.has_position:
            return f"{self.name}, {self.position} = {self.operation}_of({self.name}, {self.position}, {value}, {position})"
        operators = {"sum": f"{self.name} += {value}", "prod": f"{self.name} *= {value}"}
        function = {"max": "maximum", "min": "minimum"}.get(self.operation, "")
        return operators.get(self.operation) or f"{self.name} = {function}({self.name}, {value})"

    def combined(self, over: str, arrays: dict[str, str], threads: int) -> str:
        """The combined value of all threads of a warp, block or column (`over`).

        Declarations of the shared arrays that it needs go into `arrays`; `threads` is the size of a block.
        """
        types = [] if over == "warp" else [*self.variables.values()]
        shared = [_shared(dtype, "places" if n else dtype, threads, arrays) for n, dtype in enumerate(types)]
        return f"{over}_{self.operation}({', '.join([*self.variables, *shared])})"

    def result(self, over: str | None, arrays: dict[str, str], threads: int) -> str:
        """The result of all threads, or of this one alone, in its dtype. See `combined`."""
        if self.has_position:
            return self.position if over is None else f"{self.combined(over, arrays, threads)}[1]"
        result = self.name if over is None else self.combined(over, arrays, threads)
        # Sums of 16-bit floats are accumulated in float32 and rounded once.
        if self.source in FLOATING:
            return rounded(result, self.dtype) if self.type == register_type(self.dtype) else result
        return converted(result, "int64", self.dtype)


def _shared(dtype: str, use: str, threads: int, arrays: dict[str, str]) -> str:
    """A shared array with a number per thread of a block."""
    name = f"shared_{use}"
    arrays[name] = f"cuda.shared.array({threads}, {dtype})"
    return name
