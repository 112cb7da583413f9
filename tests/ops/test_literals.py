"""Python numbers in graphs: equal ones are one node, others never."""

import enum

import pytest
import torch

import genesis
from genesis.ir.dtypes import float32, float64, int64
from genesis.ir.graph import Graph
from genesis.ops.registry import expand
from genesis.tensor.dispatch import array_of


class Tenths(float):
    """A number that says its tenths alone."""

    def __repr__(self):
        return f"{self:.1f}"


class Unit(int):
    __repr__ = __str__ = lambda self: "units"


def test_a_graph_names_equal_literals_once():
    graph = Graph()
    one = graph.constant(1.0, float32)
    assert graph.constant(1.0, float32).index == one.index
    assert expand(one, (2, 3)).index == expand(graph.constant(1.0, float32), (2, 3)).index
    others = [graph.constant(*of) for of in [
        (1, int64), (True, int64), (1.0, float64), (1.0, float32, True), (0.0, float32), (-0.0, float32),
        (complex(0, -0.0), float32.complex), (0j, float32.complex)]]
    assert len({one.index, *[other.index for other in others]}) == 9
    assert expand(others[1], (2, 3)).index != expand(others[2], (2, 3)).index
    assert expand(one, (3, 2)).index != expand(one, (2, 3)).index


def test_gradients_of_many_calls_read_one_literal():
    x = genesis.ones(3, requires_grad=True)
    y = x
    for _ in range(8):
        y = y.tanh().sigmoid()
    y.sum().backward()
    nodes = array_of(x.grad).trace.nodes
    assert sum(node.op == "constant" for node in nodes) < 8  # each of the 16 derivatives names 1


@pytest.mark.parametrize("kind", [Tenths, Unit])
def test_numbers_of_a_class_with_a_text_of_its_own_are_told_apart(kind):
    a, b = (Unit(2), Unit(3)) if kind is Unit else (Tenths(2.51), Tenths(2.54))
    found = []
    for library in (genesis, torch):
        x = library.tensor([-1.0, 2.0, 4.0], requires_grad=True)
        leaky = library.nn.functional.leaky_relu
        y = x * a + x * b + leaky(x, a) - leaky(x, b) + library.where(x > 2, a, b) + x.clamp(a, b)
        y.sum().backward()
        found.append((y.tolist(), x.grad.tolist(), library.full((2,), a).tolist(), library.full((2,), b).tolist()))
    for ours, theirs in zip(*found, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6)


class Places(enum.IntEnum):
    NOTHING, ONE, TWO = 0, 1, 2


def test_equal_numbers_of_classes_of_their_own_are_told_apart_from_each_other_and_from_tensors():
    found = []
    for library in (genesis, torch):
        x, y = library.tensor([1, 2]), library.tensor([3.0, -4.0])
        (x + y).sum().item()
        numbers = [Tenths(-0.0), Places.NOTHING, Tenths(0.0), Places.TWO, Tenths(2.0), Places.ONE, Tenths(1.0)]
        products = [x * number for number in numbers]
        after = [((x + y).sum() * 0 + y * y).tolist(), *[((x + y).sum() * 0 + y * number).tolist() for number in numbers]]
        found.append([
            [(y / number).tolist() for number in numbers], [product.tolist() for product in products],
            [str(product.dtype).split(".")[-1] for product in products], after])
    assert str(found[0]) == str(found[1])  # 0.0 is not -0.0
