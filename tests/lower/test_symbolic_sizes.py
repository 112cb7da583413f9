"""Functions of symbolic sizes are the functions of numbers, for all sizes that pass their guards."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genesis.ir.dtypes import int64
from genesis.ir.graph import Graph
from genesis.ir.symbolic_sizes import NotSymbolicError, Symbols
from genesis.ir.unguarded import computed, gcd, maximum, may_exceed, minimum, over
from genesis.lower import lower
from genesis.lower.target import Target
from genesis.ops.registry import expand

SIZES = st.tuples(st.integers(2, 40), st.integers(2, 40))
NUMBERS = st.one_of(st.sampled_from(["x", "y"]), st.integers(-3, 9))
JOINS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: a // (abs(b) + 1), "%": lambda a, b: a % (b * b + 1), "ceil": lambda a, b: -(-a // 4) + b,
    "min": minimum, "max": maximum, "gcd": lambda a, b: gcd(abs(a) + 1, abs(b) + 1),
    "over": lambda a, b: over(a, b, a + 1, b - 1),
    "if": lambda a, b: a if a > b else b, "same": lambda a, b: 3 if a == b else a,
    "ratio": lambda a, b: 1 if a / (b * b + 1) < 1.5 else b, "rounded": lambda a, b: round(a / 3) + b,
    "bits": lambda a, b: computed(lambda n, m: (n * n + m * m).bit_length(), a, b),
    "table": lambda a, b: {a: 5, b: 7}[a],
}
FUNCTIONS = st.recursive(NUMBERS, lambda part: st.tuples(st.sampled_from([*JOINS]), part, part), max_leaves=12)
ALWAYS = ["+", "-", "*", "min", "max", "over", "rounded", "ceil", "bits"]  # have no guards


def value(function, x, y):
    if isinstance(function, tuple):
        name, a, b = function
        return JOINS[name](value(a, x, y), value(b, x, y))
    return {"x": x, "y": y}.get(function, function)


def filling(function, x, y):
    """The compiled function of two sizes, made with an example."""
    symbols = Symbols()
    result = value(function, symbols.input("x", x), symbols.input("y", y))
    return symbols.compiled("x", "y", beside=range(-100, 100), result=f"({symbols.text(result)}, )")


@given(FUNCTIONS, SIZES, SIZES)
def test_what_passes_the_guards_is_what_numbers_give(function, example, other):
    fill = filling(function, *example)
    for sizes in (example, other):
        found = fill(*sizes)
        assert found.__class__ is int or found == (value(function, *sizes),)


@given(st.tuples(st.sampled_from(ALWAYS), NUMBERS, NUMBERS), SIZES, SIZES)
def test_unguarded_functions_hold_for_all_sizes(function, example, other):
    symbols = Symbols()
    result = value(function, *map(symbols.input, "xy", example))
    assert symbols.compiled("x", "y", result=symbols.text([result]))(*other) == [value(function, *other)]


def test_polynomials_are_compared_without_guards():
    symbols = Symbols()
    x, y = symbols.input("x", 7), symbols.input("y", 5)
    before = [*symbols.lines]
    assert x * 4 * y == y * x * 4 and (x * y + x) // x == y + 1 and (x * 6) % 3 == 0 and x * 2 + 1 != x * 4 + 1
    assert x > 1 and x * y >= 4 and 0 not in (x, y) and not may_exceed(3, 4) and may_exceed(x, 100)
    assert divmod(x * y + 1, y) == (x, 1) and symbols.lines == before


def test_an_integer_that_is_asked_for_is_guarded():
    symbols = Symbols()
    assert [*range(symbols.input("x", 3))] == [0, 1, 2]
    fill = symbols.compiled("x", result="'filled'")
    assert [fill(3), fill(4) == "filled"] == ["filled", False]


def test_keys_of_tables_stay_apart():
    symbols = Symbols()
    x, y = symbols.input("x", 3), symbols.input("y", 4)
    assert {x: 1}.get(y) is None
    fill = symbols.compiled("x", "y", result="'filled'")
    assert [fill(5, 6), fill(6, 6) == "filled"] == ["filled", False]


def test_names_of_numbers_stay_apart_from_those_beside_them():
    symbols = Symbols()
    scale = symbols.input("x", 1.5)
    assert {"0.5": 1}.get(repr(scale)) is None
    fill = symbols.compiled("x", beside=[0.5, 2], result="'filled'")
    assert [fill(0.25), fill(0.5) == "filled", fill(2.0)] == ["filled", False, "filled"]


def test_a_computation_that_has_ended_answers_nothing_new():
    symbols = Symbols()
    x = symbols.input("x", 5)
    symbols.compiled("x", result="'filled'")
    with pytest.raises(NotSymbolicError):
        bool(x > 3)


def test_kernels_of_other_programs_hold_no_symbolic_constants():
    for number in (Symbols().input("x", 65537), 65537):
        graph = Graph()
        x = graph.add("input", (), (7,), int64)
        y = graph.add("mul", (x, expand(graph.constant(number, int64), (7,))), (7,), int64)
        [[call]] = lower(graph.nodes, [y.index], Target(threads=1)).schedule.stages
        assert [type(word.value) for word in call.kernel.words if word.kind == "constant"] == [int]


def test_what_is_known_only_later_answers_nothing():
    symbols = Symbols()
    offset = symbols.effect("take", symbols.input("x", 4))
    assert offset + 8 - offset == 8
    with pytest.raises(NotSymbolicError):
        bool(offset > 3)
    fill = symbols.compiled("x", "take", result=symbols.text([offset + 1]))
    assert fill(6, lambda nbytes: 10 * nbytes) == [61]


def test_sizes_of_another_computation_are_refused():
    x, y = Symbols().input("x", 3), Symbols().input("x", 3)
    assert x != y and {x: 1}.get(y) is None
    with pytest.raises(NotSymbolicError):
        x + y


def test_numbers_in_floating_point_are_computed_anew():
    symbols = Symbols()
    x, scale = symbols.input("x", 4), symbols.input("y", 0.5)
    fill = symbols.compiled("x", "y", result=symbols.text(computed(math.sqrt, x * scale)))
    assert fill(9, 4.0) == 6.0


def test_sizes_of_a_computation_that_has_ended_are_told_apart_in_tables():
    symbols = Symbols()
    size = symbols.derived("5", 5)
    table = {-size: 1}
    symbols.compiled(result="None")
    other = size * -2
    assert hash(other) == hash(next(iter(table)))  # as those of -1 and -2
    assert other not in table and 5 not in table
