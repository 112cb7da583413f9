"""Forms of functions and nodes that traces meet, in `torch.fx` of both libraries."""

import operator
from typing import Any, NamedTuple

import pytest
import torch
import torch.fx

import genesis
from genesis.as_torch import fx

BOTH = pytest.mark.parametrize(("lib", "fx"), [(genesis, fx), (torch, torch.fx)], ids=["genesis", "torch"])


class Pair(NamedTuple):
    x: Any
    y: Any


@BOTH
def test_arguments_with_stars_are_read_and_passed_on(lib, fx):
    class Starred(lib.nn.Module):
        def forward(self, x, *args, **kwargs):
            return x + args[0] * kwargs["scale"]

    traced = fx.symbolic_trace(Starred())
    assert [node.target for node in traced.graph.nodes if node.op == "placeholder"] == ["x", "*args", "**kwargs"]
    assert traced(lib.ones(1), lib.ones(1), scale=3).tolist() == [4]


@BOTH
def test_another_method_than_forward_is_traced(lib, fx):
    class Two(lib.nn.Module):
        def forward(self, x):
            return x + 1

        def times(self, x):
            return x * 3

    tracer, module = fx.Tracer(), Two()
    tracer.traced_func_name = "times"
    assert fx.GraphModule(module, tracer.trace(module))(lib.ones(1)).tolist() == [3]


@BOTH
def test_a_proxy_without_a_tracer_appends_to_its_graph(lib, fx):
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    graph.output((lib.relu(x) + 1).node)
    assert fx.GraphModule(lib.nn.Module(), graph)(lib.tensor([-1.0, 2.0])).tolist() == [1, 3]


@BOTH
def test_a_transformer_may_call_functions_and_methods_of_its_arguments(lib, fx):
    class Swapped(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return lib.neg(*args) if target is lib.sigmoid else super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return args[0].abs() if target == "neg" else super().call_method(target, args, kwargs)

    traced = fx.symbolic_trace(lambda x: lib.sigmoid(x).neg())
    assert Swapped(traced).transform()(lib.tensor([2.0])).tolist() == [2]


@BOTH
def test_named_tuples_are_results_within_others_too(lib, fx):
    result = fx.symbolic_trace(lambda x: [Pair(x, {"twice": Pair(x + x, None)})])(lib.ones(1))[0]
    assert isinstance(result, Pair) and result.x.tolist() == [1]
    assert isinstance(result.y["twice"], Pair) and result.y["twice"].x.tolist() == [2]


@BOTH
def test_names_of_the_code_are_not_those_of_nodes(lib, fx):
    graph = fx.Graph()
    added = graph.create_node("call_function", operator.add, (graph.placeholder("x"), float("inf")), name="inf")
    graph.output((graph.create_node("call_function", operator.mul, (added, float("nan")), name="torch"), float("inf")))
    product, infinite = fx.GraphModule(lib.nn.Module(), graph)(lib.ones(1))
    assert product.isnan().all() and infinite == float("inf")


@BOTH
def test_nodes_want_targets_of_their_kind_and_may_be_moved_to_themselves(lib, fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(lib.relu, (x,))
    y.prepend(y)
    y.append(y)
    assert [*graph.nodes] == [x, y]
    with pytest.raises(ValueError, match="target"):
        graph.create_node("call_function", "relu", (x,))
    with pytest.raises(ValueError, match="target"):
        graph.create_node("call_module", lib.relu, (x,))
