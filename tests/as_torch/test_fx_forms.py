"""Forms of functions and nodes that traces meet, in `torch.fx` of both libraries."""

import operator
from typing import Any, NamedTuple

import pytest
import torch
import torch.fx

import genesis
from genesis.as_torch import fx
from genesis.as_torch.stand_ins._utils import _assert

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


# ---- patterns ----
class Scaled(NamedTuple):
    """A replacement with a layer of its own."""

    lib: Any

    def module(self):
        lib = self.lib

        class Module(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.own = lib.nn.Threshold(0.0, 5.0)

            def forward(self, x):
                return self.own(x)

        return Module()


PATTERNS = {  # a function, what is replaced, by what, and how often
    "lists": lambda lib: (lambda x: lib.cat([x, x]).sum() + lib.cat([x, x]).max(), lambda x: lib.cat([x, x]),
                          lambda x: lib.stack([x, x + 1]), 2),
    "slices": lambda lib: (lambda x: x[1:].exp() + x[:1].exp(), lambda x: x[1:].exp(), lambda x: x[1:] * 2, 1),
    "one after another": lambda lib: (lambda x: x.exp().exp().exp().exp(), lambda x: x.exp().exp(), lambda x: x.neg() + 1, 2),
    "layers": lambda lib: (lambda x: lib.relu(x) + 1, lambda x: lib.relu(x), Scaled(lib).module(), 1),
    "constants": lambda lib: (lambda x: lib.relu(x) + lib.tensor([1.0, 2.0]), lambda x: lib.relu(x),
                              lambda x: x * lib.tensor([3.0, 4.0]), 1),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_replaced_as_pytorchs(name):
    results = []
    for lib, of in ((genesis, fx), (torch, torch.fx)):
        function, pattern, replacement, times = PATTERNS[name](lib)
        traced = of.symbolic_trace(function)
        assert len(of.replace_pattern(traced, pattern, replacement)) == times
        traced.graph.lint()
        results.append(traced(lib.tensor([-1.0, 2.0])).tolist())
    want = [-2.0, 10.0] if name == "constants" else results[1]  # PyTorch's has both read one constant
    assert results[0] == want


def test_patterns_have_one_result():
    traced = fx.symbolic_trace(lambda x: x.exp() + x.abs())
    with pytest.raises(ValueError, match="want one computed value"):
        fx.replace_pattern(traced, lambda x: (x.exp(), x.abs()), lambda x: (x, x))


@BOTH
def test_numbers_in_patterns_match_equal_ones_of_their_type(lib, fx):
    traced = fx.symbolic_trace(lambda x: lib.add(x + 1, 3) * 3)
    assert not fx.replace_pattern(traced, lambda x: x + True, lambda x: x)
    assert len(fx.replace_pattern(traced, lambda x, k: lib.add(x, k) * k, lambda x, k: x - k)) == 1
    assert traced(lib.ones(1)).tolist() == [-1]


# ---- assumptions ----
@BOTH
def test_values_of_arguments_that_a_trace_assumes_are_asserted(lib, fx):
    traced = fx.symbolic_trace(lambda x, flag, *, none=None: x if flag else -x, concrete_args={"flag": False, "none": None})
    assert [node.target for node in traced.graph.nodes if node.op == "placeholder"] == ["x", "flag_1", "none_1"]
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert traced(lib.ones(1), False).tolist() == [-1]
    with pytest.raises(AssertionError):
        traced(lib.ones(1), True)


@pytest.mark.parametrize("fx", [fx, torch.fx], ids=["genesis", "torch"])
def test_assertions_become_nodes(fx):
    lib, check = (torch, torch._assert) if fx is torch.fx else (genesis, _assert)

    def function(x):
        check(x.shape[0] == 2, "want two")
        return x + 1

    traced = fx.symbolic_trace(function)
    assert traced(lib.ones(2)).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="want two"):
        traced(lib.ones(3))
