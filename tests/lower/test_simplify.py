"""Simplification, a small graph in and out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genesis import lower
from genesis.ir.dtypes import float32
from genesis.ir.graph import Graph
from genesis.lower.simplify import simplify
from genesis.ops.contraction import product, swapped
from tests.fuzz.programs import Program
from tests.fuzz.steps import STEPS
from tests.lower.text import cases, parsed, plain, shown


def simplified(text):
    graph = parsed(text)
    return shown(simplify(graph.nodes, graph.outputs))


CASES = cases("""
---- what nobody needs ----

# dead code goes
%0 = input() : float32[3]
%1 = exp(%0) : float32[3]
%2 = input() : float32[3]
%3 = mul(%1, %2) : float32[3]
%4 = neg(%0) : float32[3]
return %4
becomes
%0 = input() : float32[3]
%1 = neg(%0) : float32[3]
return %1

# a sum over axes that are one of what lies in memory is that value's, as another one is
%0 = input() : float32[6, 4]
%1 = reshape(%0, shape=(2, 3, 4), strides=(12, 4, 1), offset=0) : float32[2, 3, 4]
%2 = sum(%1, axes=(0, 1)) : float32[4]
%3 = sum(%0, axes=(0,)) : float32[4]
%4 = mul(%2, %3) : float32[4]
return %4
becomes
%0 = input() : float32[6, 4]
%1 = sum(%0, axes=(0,)) : float32[4]
%2 = mul(%1, %1) : float32[4]
return %2

# an index that nobody reads by is not checked
%0 = input() : int64[3]
%1 = check_index(%0, extent=4, wrap=True, name='index') : int64[3]
%2 = neg(%0) : int64[3]
return %2
becomes
%0 = input() : int64[3]
%1 = neg(%0) : int64[3]
return %1

# what a write has just put there is not read from behind it; what it has changed in part or left alone is
%0 = input() : float32[8]
%1 = input() : float32[2]
%2 = put(%0, %1, shape=(2,), strides=(2,), offset=3) : float32[8]
%3 = view(%2, shape=(2,), strides=(2,), offset=3) : float32[2]
%4 = view(%2, shape=(2,), strides=(1,), offset=3) : float32[2]
%5 = view(%2, shape=(2,), strides=(1,), offset=6) : float32[2]
return %3, %4, %5, %2
becomes
%0 = input() : float32[8]
%1 = input() : float32[2]
%2 = put(%0, %1, shape=(2,), strides=(2,), offset=3) : float32[8]
%3 = view(%2, shape=(2,), strides=(1,), offset=3) : float32[2]
%4 = view(%2, shape=(2,), strides=(1,), offset=6) : float32[2]
return %1, %3, %4, %2

# nothing is computed of no elements
%0 = input() : float32[0, 3]
%1 = exp(%0) : float32[0, 3]
%2 = sum(%1, axes=(0,)) : float32[3]
return %2
becomes
%0 = constant(value=0) : float32[]
%1 = expand(%0, shape=(0, 3), strides=(0, 0), offset=0) : float32[0, 3]
%2 = sum(%1, axes=(0,)) : float32[3]
return %2

---- literals ----

# arithmetic on literals is done
%0 = input() : float32[3]
%1 = constant(value=2.0) : float32[]
%2 = constant(value=9.0) : float32[]
%3 = sqrt(%2) : float32[]
%4 = mul(%1, %3) : float32[]
%5 = expand(%4, shape=(3,), strides=(0,), offset=0) : float32[3]
%6 = add(%0, %5) : float32[3]
return %6
becomes
%0 = input() : float32[3]
%1 = constant(value=6.0) : float32[]
%2 = expand(%1, shape=(3,), strides=(0,), offset=0) : float32[3]
%3 = add(%0, %2) : float32[3]
return %3

# arithmetic on literals rounds to their dtype
%0 = constant(value=0.1) : float32[]
%1 = neg(%0) : float32[]
return %1
becomes
%0 = constant(value=-0.10000000149011612) : float32[]
return %0

# numbers that come with each run are not folded
%0 = scalar(slot=0) : float32[]
%1 = constant(value=2.0) : float32[]
%2 = mul(%0, %1) : float32[]
return %2

---- what computes nothing ----

# a broadcast one is a one
%0 = input() : float32[2, 3]
%1 = constant(value=1.0) : float32[]
%2 = expand(%1, shape=(2, 3), strides=(0, 0), offset=0) : float32[2, 3]
%3 = mul(%0, %2) : float32[2, 3]
return %3
becomes
%0 = input() : float32[2, 3]
return %0

---- common subexpressions ----

# equal nodes become one
%0 = input() : float32[3]
%1 = exp(%0) : float32[3]
%2 = sum(%1, axes=(0,)) : float32[]
%3 = exp(%0) : float32[3]
%4 = sum(%3, axes=(0,)) : float32[]
%5 = mul(%2, %4) : float32[]
return %5
becomes
%0 = input() : float32[3]
%1 = exp(%0) : float32[3]
%2 = sum(%1, axes=(0,)) : float32[]
%3 = mul(%2, %2) : float32[]
return %3

# equal views become one whatever their names
%0 = input() : float32[2, 3]
%1 = transpose(%0, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%2 = permute(%0, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%3 = mul(%1, %2) : float32[3, 2]
return %3
becomes
%0 = input() : float32[2, 3]
%1 = transpose(%0, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%2 = mul(%1, %1) : float32[3, 2]
return %2

# two inputs are two
%0 = input() : float32[3]
%1 = input() : float32[3]
%2 = mul(%0, %1) : float32[3]
return %2

# zero and minus zero are two literals
%0 = input() : float32[]
%1 = constant(value=0.0) : float32[]
%2 = constant(value=-0.0) : float32[]
%3 = atan2(%1, %0) : float32[]
%4 = atan2(%2, %0) : float32[]
return %3, %4

# reductions of other axes are two
%0 = input() : float32[3, 3]
%1 = sum(%0, axes=(0,)) : float32[3]
%2 = sum(%0, axes=(1,)) : float32[3]
return %1, %2

---- views ----

# a view of a view is a view
%0 = input() : float32[4, 6]
%1 = slice(%0, shape=(2, 6), strides=(6, 1), offset=12) : float32[2, 6]
%2 = transpose(%1, shape=(6, 2), strides=(1, 6), offset=0) : float32[6, 2]
%3 = neg(%2) : float32[6, 2]
return %3
becomes
%0 = input() : float32[4, 6]
%1 = transpose(%0, shape=(6, 2), strides=(1, 6), offset=12) : float32[6, 2]
%2 = neg(%1) : float32[6, 2]
return %2

# a view of all elements in their order is none, whatever the strides of an axis of one
%0 = input() : float32[4, 1, 3]
%1 = reshape(%0, shape=(4, 1, 3), strides=(3, 0, 1), offset=0) : float32[4, 1, 3]
%2 = sum(%1, axes=(0,)) : float32[1, 3]
return %2
becomes
%0 = input() : float32[4, 1, 3]
%1 = sum(%0, axes=(0,)) : float32[1, 3]
return %1

# two transpositions are none
%0 = input() : float32[2, 3]
%1 = transpose(%0, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%2 = transpose(%1, shape=(2, 3), strides=(1, 2), offset=0) : float32[2, 3]
%3 = neg(%2) : float32[2, 3]
return %3
becomes
%0 = input() : float32[2, 3]
%1 = neg(%0) : float32[2, 3]
return %1

# a view that only a copy makes stays a view of a view
%0 = input() : float32[2, 3]
%1 = transpose(%0, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%2 = reshape(%1, shape=(6,), strides=(1,), offset=0) : float32[6]
return %2

---- products read transposed ----

# a product only read transposed is computed transposed
%0 = input() : float32[8, 2]
%1 = input() : float32[8, 3]
%2 = transpose(%0, shape=(2, 8), strides=(1, 2), offset=0) : float32[2, 8]
%3 = matmul(%2, %1) : float32[2, 3]
%4 = transpose(%3, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%5 = neg(%4) : float32[3, 2]
return %5
becomes
%0 = input() : float32[8, 2]
%1 = input() : float32[8, 3]
%2 = transpose(%1, shape=(3, 8), strides=(1, 3), offset=0) : float32[3, 8]
%3 = matmul(%2, %0) : float32[3, 2]
%4 = neg(%3) : float32[3, 2]
return %4

# so is one whose columns are read one after the other, also those of several matrices; what it is promised turns too
%0 = input() : float32[3, 2, 8]
%1 = input() : float32[3, 8, 5]
%2 = matmul(%0, %1, only='n<=k') : float32[3, 2, 5]
%3 = permute(%2, shape=(5, 6), strides=(1, 5), offset=0) : float32[5, 6]
%4 = neg(%3) : float32[5, 6]
return %4
becomes
%0 = input() : float32[3, 2, 8]
%1 = input() : float32[3, 8, 5]
%2 = transpose(%1, shape=(3, 5, 8), strides=(40, 1, 5), offset=0) : float32[3, 5, 8]
%3 = transpose(%0, shape=(3, 8, 2), strides=(16, 1, 8), offset=0) : float32[3, 8, 2]
%4 = matmul(%2, %3, only='m<=k') : float32[3, 5, 2]
%5 = transpose(%4, shape=(3, 2, 5), strides=(10, 1, 2), offset=0) : float32[3, 2, 5]
%6 = permute(%5, shape=(5, 6), strides=(1, 5), offset=0) : float32[5, 6]
%7 = neg(%6) : float32[5, 6]
return %7

# but if another product reads them, it reads them as they lie
%0 = input() : float32[3, 2, 8]
%1 = input() : float32[3, 8, 5]
%2 = matmul(%0, %1) : float32[3, 2, 5]
%3 = permute(%2, shape=(5, 6), strides=(1, 5), offset=0) : float32[5, 6]
%4 = input() : float32[6, 4]
%5 = matmul(%3, %4) : float32[5, 4]
return %5

# a product also read straight stays
%0 = input() : float32[2, 8]
%1 = input() : float32[8, 3]
%2 = matmul(%0, %1) : float32[2, 3]
%3 = transpose(%2, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%4 = neg(%3) : float32[3, 2]
%5 = exp(%2) : float32[2, 3]
return %4, %5

# a product that is held stays
%0 = input() : float32[2, 8]
%1 = input() : float32[8, 3]
%2 = matmul(%0, %1) : float32[2, 3]
%3 = transpose(%2, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%4 = neg(%3) : float32[3, 2]
return %2, %4

# a product of products is turned with its factors: (A B C)^T: the inner product would be read transposed by the outer one
%0 = input() : float32[2, 4]
%1 = input() : float32[4, 5]
%2 = input() : float32[5, 3]
%3 = matmul(%0, %1) : float32[2, 5]
%4 = matmul(%3, %2) : float32[2, 3]
%5 = transpose(%4, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%6 = neg(%5) : float32[3, 2]
return %6
becomes
%0 = input() : float32[2, 4]
%1 = input() : float32[4, 5]
%2 = input() : float32[5, 3]
%3 = transpose(%1, shape=(5, 4), strides=(1, 5), offset=0) : float32[5, 4]
%4 = transpose(%0, shape=(4, 2), strides=(1, 4), offset=0) : float32[4, 2]
%5 = matmul(%3, %4) : float32[5, 2]
%6 = transpose(%2, shape=(3, 5), strides=(1, 3), offset=0) : float32[3, 5]
%7 = matmul(%6, %5) : float32[3, 2]
%8 = neg(%7) : float32[3, 2]
return %8

# a product that a turned one reads transposed stays: ((A B)^T C)^T = C^T (A B)
%0 = input() : float32[2, 4]
%1 = input() : float32[4, 5]
%2 = input() : float32[2, 3]
%3 = matmul(%0, %1) : float32[2, 5]
%4 = transpose(%3, shape=(5, 2), strides=(1, 5), offset=0) : float32[5, 2]
%5 = matmul(%4, %2) : float32[5, 3]
%6 = transpose(%5, shape=(3, 5), strides=(1, 3), offset=0) : float32[3, 5]
return %6
becomes
%0 = input() : float32[2, 4]
%1 = input() : float32[4, 5]
%2 = input() : float32[2, 3]
%3 = matmul(%0, %1) : float32[2, 5]
%4 = transpose(%2, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
%5 = matmul(%4, %3) : float32[3, 5]
return %5

# a batch of products is turned
%0 = input() : float32[7, 2, 8]
%1 = input() : float32[7, 8, 3]
%2 = matmul(%0, %1) : float32[7, 2, 3]
%3 = transpose(%2, shape=(7, 3, 2), strides=(6, 1, 3), offset=0) : float32[7, 3, 2]
return %3
becomes
%0 = input() : float32[7, 2, 8]
%1 = input() : float32[7, 8, 3]
%2 = transpose(%1, shape=(7, 3, 8), strides=(24, 1, 3), offset=0) : float32[7, 3, 8]
%3 = transpose(%0, shape=(7, 8, 2), strides=(16, 1, 8), offset=0) : float32[7, 8, 2]
%4 = matmul(%2, %3) : float32[7, 3, 2]
return %4
""")


@pytest.mark.parametrize("claim", CASES)
def test_claim(claim):
    before, after = CASES[claim]
    assert simplified(before) == after


# ---- what computes nothing ----

IDENTITIES = {
    "x * 1": "%2 = constant(value=1.0) : float32[]\n%3 = mul(%1, %2) : float32[]",
    "1 * x": "%2 = constant(value=1) : float32[]\n%3 = mul(%2, %1) : float32[]",
    "x / 1": "%2 = constant(value=1.0) : float32[]\n%3 = div(%1, %2) : float32[]",
    "x - 0": "%2 = constant(value=0.0) : float32[]\n%3 = sub(%1, %2) : float32[]",
    "x ** 1": "%2 = constant(value=1.0) : float32[]\n%3 = pow(%1, %2) : float32[]",
    "cast to the same dtype": "%2 = input() : float32[]\n%3 = cast(%1, dtype='float32') : float32[]",
    "detach": "%2 = input() : float32[]\n%3 = detach(%1) : float32[]",
    "variable": "%2 = input() : float32[]\n%3 = variable(%1) : float32[]",
    "clone": "%2 = input() : float32[]\n%3 = clone(%1) : float32[]",
    "value of another": "%2 = input() : float32[]\n%3 = with_value(%2, %1) : float32[]",
    "identity view": "%2 = input() : float32[]\n%3 = reshape(%1, shape=(), strides=(), offset=0) : float32[]",
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_is_its_operand(name):
    lines = ["%0 = input() : float32[]", "%1 = exp(%0) : float32[]", *IDENTITIES[name].splitlines()]
    assert simplified("\n".join([*lines, "%4 = neg(%3) : float32[]", "return %4"])) == plain("""
        %0 = input() : float32[]
        %1 = exp(%0) : float32[]
        %2 = neg(%1) : float32[]
        return %2
    """)


NO_IDENTITIES = {
    "x * 0, for x may be NaN": "%1 = constant(value=0.0) : float32[]\n%2 = mul(%0, %1) : float32[]",
    "x + 0, for x may be -0.0": "%1 = constant(value=0.0) : float32[]\n%2 = add(%0, %1) : float32[]",
    "x - -0.0, for x may be -0.0": "%1 = constant(value=-0.0) : float32[]\n%2 = sub(%0, %1) : float32[]",
    "0 - x": "%1 = constant(value=0.0) : float32[]\n%2 = sub(%1, %0) : float32[]",
    "1 / x": "%1 = constant(value=1.0) : float32[]\n%2 = div(%1, %0) : float32[]",
    "1 ** x, for it has a NaN for no x": "%1 = constant(value=1.0) : float32[]\n%2 = pow(%1, %0) : float32[]",
    "x + -x, for x may be NaN": "%1 = neg(%0) : float32[]\n%2 = add(%0, %1) : float32[]",
    "cast to another dtype": "%1 = cast(%0, dtype='float16') : float16[]\n%2 = cast(%1, dtype='float32') : float32[]",
}


@pytest.mark.parametrize("name", NO_IDENTITIES)
def test_is_computed(name):
    graph = "\n".join(["%0 = input() : float32[]", *NO_IDENTITIES[name].splitlines(), "return %2"])
    assert simplified(graph) == graph


# ---- products read transposed ----


def test_a_long_chain_of_products_is_turned_in_one_go():
    graph = Graph()
    y, w = graph.add("input", (), (2, 3), float32), graph.add("input", (), (3, 3), float32)
    for _ in range(3000):
        y = product(y, w)
    simpler = simplify(graph.nodes, [swapped(y).index])
    assert len(simpler.nodes) == 3004  # two inputs, both turned


# ---- the whole ----


@settings(max_examples=40)
@given(st.data(), st.integers(1, 10))
def test_what_is_simple_stays_as_it_is(data, length):
    def simplify_twice(nodes, outputs):
        once = simplify(nodes, outputs)
        twice = simplify(once.nodes, once.outputs)
        assert shown(twice) == shown(once)
        return once

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lower, "simplify", simplify_twice)
        program = Program(lambda low, high: data.draw(st.integers(low, high)), gradients=True)
        program.run(length, STEPS)
        program.finish()
