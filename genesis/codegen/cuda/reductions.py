"""Reductions as text: what an accumulator starts from, how it takes in a value, how those of many threads become one."""

from __future__ import annotations

from typing import NamedTuple

from genesis.codegen.cuda.registers import FLOATING, accumulated, converted, register_type, rounded

__all__ = ["Accumulator"]

NOTHING = {"sum": 0, "prod": 1, "any": 0, "all": 1}
FOLDS = {"any": "max", "all": "min"}  # of the numbers 0 and 1
_LIMIT = {"max": "int64(-9223372036854775807 - 1)", "min": "int64(9223372036854775807)"}


class Accumulator(NamedTuple):
    """The running result of reduction `number` over values of a dtype; of `arg` reductions, a value with its place."""

    reduction: str
    number: int
    source: str
    dtype: str

    @property
    def fold(self) -> str:
        return FOLDS.get(self.reduction, self.reduction)

    @property
    def type(self) -> str:
        return accumulated(self.source)

    @property
    def name(self) -> str:
        return f"{self.reduction}{self.number}"

    @property
    def place(self) -> str:
        return f"place{self.number}"

    @property
    def has_place(self) -> bool:
        return self.reduction.startswith("arg")

    @property
    def variables(self) -> dict[str, str]:
        """What it consists of, and the types."""
        return {self.name: self.type, self.place: "int64"} if self.has_place else {self.name: self.type}

    def begin(self) -> str:
        """Nothing taken in yet."""
        extreme = self.fold.removeprefix("arg")
        if self.reduction in NOTHING:
            start = f"{self.type}({NOTHING[self.reduction]})"
        elif self.source in FLOATING:
            start = f"{self.type}({'-' if extreme == 'max' else ''}math.inf)"
        else:
            start = _LIMIT[extreme]
        return f"{self.name}, {self.place} = {start}, int64(-1)" if self.has_place else f"{self.name} = {start}"

    def take(self, value: str, place: str) -> str:
        """Take in a value, which has a place."""
        return self.taking(value if register_type(self.source) == self.type else f"{self.type}({value})", f"int64({place})")

    def taking(self, value: str, place: str = "") -> str:
        """Take in what another has found."""
        if self.has_place:
            return f"{self.name}, {self.place} = {self.fold}_of({self.name}, {self.place}, {value}, {place})"
        operators = {"sum": f"{self.name} += {value}", "prod": f"{self.name} *= {value}"}
        join = {"max": "maximum", "min": "minimum"}.get(self.fold, "")
        return operators.get(self.fold) or f"{self.name} = {join}({self.name}, {value})"

    def joined(self, over: str, arrays: dict[str, str], threads: int) -> str:
        """What all threads of a warp, block or column (`over`) have found.

        `arrays` collects the shared arrays that are wanted, as they are made; a block has so many `threads`.
        """
        types = [] if over == "warp" else [*self.variables.values()]
        shared = [_shared(dtype, "places" if n else dtype, threads, arrays) for n, dtype in enumerate(types)]
        return f"{over}_{self.fold}({', '.join([*self.variables, *shared])})"

    def folded(self, over: str | None, arrays: dict[str, str], threads: int) -> str:
        """The result of all threads, or of this one alone, in its dtype. See `joined`."""
        if self.has_place:
            return self.place if over is None else f"{self.joined(over, arrays, threads)}[1]"
        result = self.name if over is None else self.joined(over, arrays, threads)
        if self.source in FLOATING:
            return rounded(result, self.dtype) if self.type == register_type(self.dtype) else result
        return converted(result, "int64", self.dtype)


def _shared(dtype: str, use: str, threads: int, arrays: dict[str, str]) -> str:
    """A number for each thread of a block, in memory that they share."""
    name = f"shared_{use}"
    arrays[name] = f"cuda.shared.array({threads}, {dtype})"
    return name
