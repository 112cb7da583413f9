"""Loops over time: values and derivatives are those of all steps one by one; a plan does not depend on the number of steps."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.ir import Graph
from genesis.ir.dtypes import float64
from genesis.ops.derive import derive
from genesis.ops.loop_body import multiplications, unrolled
from genesis.ops.reference import evaluate
from genesis.ops.registry import OPERATIONS
from genesis.ops.time_loop import time_loop
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
GIVEN = [RANDOM.normal(size=shape) for shape in ((3, 3), (3,), (2, 3), (2, 3), (4, 2, 3), (4, 2, 1))]


def step(constants, carries, rows):
    """Two carries, the second without a product; stacks that are carried, read, constant, and none of these."""
    (weight, bias), (h, c), (x, gate) = constants, carries, rows
    fresh = OPERATIONS["tanh"](OPERATIONS["linear"](h, weight, bias) + x * c)
    kept = c * gate + fresh
    return [fresh, kept], [OPERATIONS["sigmoid"](kept) * h * bias, fresh, gate, bias * 1]


def squares(graph, values):
    return sum([OPERATIONS["sum"](value * value) * (k + 0.5) for k, value in enumerate(values)], graph.constant(0.0, float64))


def derivatives(reverse, one_by_one):
    """A number made of all results, its derivatives by all inputs, and those of a number made of these."""
    graph = Graph()
    inputs = [graph.add("input", (), array.shape, float64, {}, True) for array in GIVEN]
    states, stacks = time_loop(step, inputs[:2], inputs[2:4], inputs[4:], reverse)
    if one_by_one:
        [loop] = [node for node in graph.nodes if node.op == "time_loop"]
        flat = unrolled(loop, *[graph.value(i) for i in loop.inputs])
        results = [flat.index if graph.nodes[i] is loop else i for i in range(len(graph))]
        moved = {}
        for index in sorted({value.index for value in (*states, *stacks)}):
            view = graph.nodes[index]
            chain = [view]
            while graph.nodes[chain[-1].inputs[0]].op == "view":
                chain.append(graph.nodes[chain[-1].inputs[0]])
            value = graph.value(results[chain[-1].inputs[0]])
            for each in reversed(chain):
                value = graph.add("view", (value,), each.shape, each.dtype, each.attrs)
            moved[index] = value
        states, stacks = [moved[v.index] for v in states], [moved[v.index] for v in stacks]
    total = squares(graph, [*states, *stacks])
    found = [total]
    for _ in range(2):
        ends, _, _ = derive([*graph.nodes], {total.index: graph.constant(1.0, float64)}, graph, graph.value)
        found += [ends[value.index] for value in inputs]
        total = squares(graph, found[-len(inputs) :])
    return evaluate(graph.nodes, [value.index for value in found], dict(enumerate(GIVEN)))


@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_of_both_orders_are_those_of_the_steps_one_by_one(reverse):
    for found, expected in zip(derivatives(reverse, False), derivatives(reverse, True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def loops_of(length):
    """The loops that the outputs of a layer over so many steps, and their derivatives, consist of, without their sizes."""
    graph = Graph()
    shapes = (length, 2, 12), (2, 3), (2, 3), (12, 3)
    given, h, c, weight = [graph.add("input", (), shape, float64, {}, True) for shape in shapes]
    output, *_ = OPERATIONS["recurrent"](given, (h, c), [weight, None, None, None], "LSTM")
    count = len(graph)
    ends, _, _ = derive(graph.nodes[:count], {output.index: graph.add("input", (), output.shape, float64)}, graph, graph.value)
    products = [(n.op, graph.nodes[n.inputs[0]].shape[1]) for n in graph.nodes[count:] if n.op == "matmul"]
    assert set(ends) == {given.index, h.index, c.index, weight.index} and products == [("matmul", length * 2)]
    return [node.attrs for node in graph.nodes if node.op == "time_loop"]


def test_steps_do_not_depend_on_their_number_and_weights_have_one_product():
    assert len(loops_of(5)) == 2 and loops_of(5) == loops_of(23)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_transformations_are_torchs(name):
    theirs = getattr(torch.nn, name)(3, 4, dtype=torch.float64)
    ours = getattr(nn, name)(3, 4, dtype=genesis.float64)
    ours.load_state_dict({key: genesis.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
    examples, direction = RANDOM.normal(size=(3, 4, 2, 3)), RANDOM.normal(size=(4, 2, 3))
    parameters = dict(ours.named_parameters())

    def loss(parameters, x):
        return (genesis.func.functional_call(ours, parameters, (x,))[0] ** 2).sum()

    each = genesis.func.vmap(genesis.func.grad(loss), (None, 0))(parameters, genesis.tensor(examples))
    for k, example in enumerate(examples):
        theirs.zero_grad()
        (theirs(torch.tensor(example))[0] ** 2).sum().backward()
        for key, parameter in theirs.named_parameters():
            assert_close(each[key][k], parameter.grad, f"{name} {key}", scale=10)
    x = examples[0]
    _, tangent = genesis.func.jvp(lambda x: ours(x)[0], (genesis.tensor(x),), (genesis.tensor(direction),))
    expected = torch.autograd.functional.jvp(lambda x: theirs(x)[0], torch.tensor(x), torch.tensor(direction))[1]
    assert_close(tangent, expected, name, scale=10)


def test_multiplications_of_all_steps_are_counted():
    trace = Graph()
    shapes = (7, 2, 12), (2, 3), (2, 3), (12, 3)
    given, h, c, weight = [trace.add("input", (), shape, float64) for shape in shapes]
    OPERATIONS["recurrent"](given, (h, c), [weight, None, None, None], "LSTM")
    assert sum(multiplications(trace.nodes, node) for node in trace.nodes) == 7 * 2 * 3 * 12


@pytest.mark.parametrize("doublings, rows", [(0, 1100), (40, 2)])
def test_cotangents_of_many_terms_are_those_of_one(doublings, rows):
    """Of rows that are read one by one, or of a sum of sums."""
    random, found = np.random.default_rng(0), []
    arrays = [random.normal(size=shape) * 0.5 for shape in ((rows, 1, 2), (1, 2), (2, 2))]
    for apart in (False, True):
        graph = Graph()
        given, h, weight = inputs = [graph.add("input", (), array.shape, float64, {}, True) for array in arrays]
        y, _ = OPERATIONS["recurrent"](given, (h,), [weight, None, None, None], "RNN_TANH")
        for _ in range(doublings if apart else 0):
            y = y + y
        terms = [OPERATIONS["select"](y, 0, k) for k in range(rows)] if apart else [y]
        total = sum([OPERATIONS["sum"](x * x) for x in terms], graph.constant(0.0, float64))
        ends, _, _ = derive([*graph.nodes], {total.index: graph.constant(1.0, float64)}, graph, graph.value)
        found.append(evaluate(graph.nodes, [ends[value.index].index for value in inputs], dict(enumerate(arrays))))
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(there, here * 4.0**doublings, rtol=1e-9)
