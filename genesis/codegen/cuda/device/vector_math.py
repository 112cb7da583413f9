"""The functions of the CPU's vector math library that libdevice lacks: their formulas, written as functions of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.codegen.cpu.vector_math import formula_of
from genesis.codegen.cpu.vector_math.number import Number
from genesis.codegen.cuda.toolchain import DTYPES, device_function, libdevice, math
from genesis.ops import PRIMITIVES

# The operations of lanes as expressions: of float64 numbers, of int64 bits, and of masks.
EXPRESSIONS = {
    "add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "divide": "{} / {}", "negate": "-{}", "absolute": "abs({})",
    "fma": "libdevice.fma({}, {}, {})", "square_root": "math.sqrt({})", "copy_sign": "math.copysign({}, {})",
    "rint": "libdevice.rint({})", "is_nan": "{0} != {0}", "select": "{1} if {0} else {2}",
    "logical_and": "{} & {}", "logical_or": "{} | {}", "logical_xor": "{} ^ {}", "logical_not": "not {}",
    "shift_left": "{} << {}", "shift_right_arithmetic": "{} >> {}",
    "bitcast_to_int": "libdevice.double_as_longlong({})", "bitcast_to_float": "libdevice.longlong_as_double({})",
}


class Lines:
    """The part of `Lanes` that formulas use, for one float64 number: each operation becomes a line of Python."""

    shared: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, expression: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"    {name} = {expression}")
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
        return f"{function}({x})"

    def patched(self, value: str, mask: str, rare: Callable[[], str]) -> str:
        return self.line(f"{rare()} if {mask} else {value}")


def _spelled(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return repr(value) if value - value == 0 else "math.nan" if value != value else "math.inf" if value > 0 else "-math.inf"


def _function(name: str) -> Any:
    """A formula as a device function of a float64 number."""
    lines = Lines()
    result = formula_of(name)(Number(lines, "x", "float64")).value  # type: ignore[arg-type]
    text = "\n".join([f"def {name}(x):", *lines.lines, f"    return {result}"])
    namespace = {**DTYPES, "libdevice": libdevice, "math": math, "__name__": __name__}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    return device_function(namespace[name])


FUNCTIONS = {row.name: _function(row.name) for row in PRIMITIVES.values() if row.vector and not row.cuda}
