"""The functions of the CPU's vector math library that libdevice lacks: their formulas, written as functions of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

from genesis.codegen.cpu.vector_math import formula_of
from genesis.codegen.cpu.vector_math.number import Number
from genesis.codegen.cuda.toolchain import DTYPES, device_function, libdevice, math
from genesis.ops import PRIMITIVES

# The operations of lanes as expressions: of float64 numbers, of int64 bits, and of masks.
EXPRESSIONS = {
    "add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "divide": "{} / {}", "negate": "-{}", "absolute": "abs({})",
    "fma": "libdevice.fma({}, {}, {})", "square_root": "math.sqrt({})", "copy_sign": "math.copysign({}, {})",
    "rint": "libdevice.rint({})", "floor": "math.floor({})", "is_nan": "{0} != {0}", "select": "{1} if {0} else {2}",
    "logical_and": "{} & {}", "logical_or": "{} | {}", "logical_xor": "{} ^ {}", "logical_not": "not {}",
    "shift_left": "{} << {}", "shift_right_arithmetic": "{} >> {}",
    "bitcast_to_int": "libdevice.double_as_longlong({})", "bitcast_to_float": "libdevice.longlong_as_double({})",
}


class Lines:
    """The part of `Lanes` that formulas use, for one float64 number: each operation becomes a line of Python."""

    shared: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = "    "

    def line(self, expression: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{self.indent}{name} = {expression}")
        return name

    def __getattr__(self, operation: str) -> Callable[..., str]:
        return lambda *values: self.line(EXPRESSIONS[operation].format(*map(_spelled, values)))

    def constant(self, dtype: str, value: float) -> str:
        return f"{dtype}({_spelled(value)})"

    def compare(self, predicate: str, a: Any, b: Any, dtype: str) -> str:
        return self.line(f"{_spelled(a)} {predicate} {_spelled(b)}")

    def convert(self, x: str, source: str, dtype: str) -> str:
        return x if source == dtype else self.line(f"{dtype}({x})")

    def has_scaling(self, x: str) -> bool:
        return False

    # The C library's function of huge arguments is the device's.

    def declared(self, name: str, result: object, arguments: object) -> str:
        return f"math.{name}"

    def per_lane(self, function: str, x: str) -> str:
        return self.line(f"{function}({x})")

    def patched(self, value: str, mask: str, rare: Callable[[], str]) -> str:
        mended = self.line(value)
        with self.block(f"if {mask}:"):
            self.lines.append(f"{self.indent}{mended} = {rare()}")
        return mended

    def matched(self, *values: str | float) -> list[str]:
        return [*map(_spelled, values)]

    def repeated(self, state: Sequence[str], step: Callable[..., tuple[str, Sequence[str]]]) -> list[str]:
        names = [self.line(value) for value in state]
        with self.block("while True:"):
            goes_on, following = step(*names)
            self.lines.append(f"{self.indent}{', '.join(names)} = {', '.join(following)}")
            self.lines.append(f"{self.indent}if not {goes_on}: break")
        return names

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.lines.append(self.indent + head)
        self.indent += "    "
        yield
        self.indent = self.indent[:-4]


def _spelled(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return repr(value) if value - value == 0 else "math.nan" if value != value else "math.inf" if value > 0 else "-math.inf"


def _function(name: str) -> Any:
    """A formula as a device function of float64 numbers."""
    lines, formula = Lines(), formula_of(name)
    names = list(signature(formula).parameters)
    result = formula(*[Number(lines, x, "float64") for x in names]).value  # type: ignore[arg-type]
    text = "\n".join([f"def {name}({', '.join(names)}):", *lines.lines, f"    return {result}"])
    namespace = {**DTYPES, "libdevice": libdevice, "math": math, "__name__": __name__}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    return device_function(namespace[name])


FUNCTIONS = {row.name: _function(row.name) for row in PRIMITIVES.values() if row.vector and not row.cuda}
