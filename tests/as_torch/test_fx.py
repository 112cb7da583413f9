"""Modules traced into graphs: the graphs, their text and what they compute are PyTorch's."""

import copy
import gc
import importlib
import pickle

import numpy as np
import pytest
import torch
import torch.fx

import genesis
from genesis.as_torch import fx
from genesis.as_torch.fx.tracer import GraphAppendingTracer
from genesis.ir.library import Library
from genesis.tensor.call_modes import OVERRIDES


def network(lib):
    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1 = lib.nn.Linear(3, 4)
            self.weight = lib.nn.Parameter(lib.ones(4))
            self.layers = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Linear(4, 3))
            self.register_buffer("shift", lib.zeros(3))

        def forward(self, x, scale=2):
            y = self.linear1(x)
            z = lib.nn.functional.relu(y) * self.weight + lib.sin(y)
            a, b = z.chunk(2, dim=-1)
            w = lib.cat([a, b], dim=-1).view(x.shape[0], -1)
            return self.layers(w)[:, :2].sum(1, keepdim=True) / scale - self.shift[0], -w

    lib.manual_seed(0)
    made = Block()
    with lib.no_grad():
        for n, p in enumerate(made.parameters()):
            p.copy_(lib.tensor(np.random.RandomState(n).randn(*p.shape).astype(np.float32)))
    return made


LIBRARIES = [(genesis, fx), (torch, torch.fx)]
X = np.random.RandomState(9).randn(2, 3).astype(np.float32)


def described(graph):
    return [(n.op, n.name, n.target if isinstance(n.target, str) else n.target.__name__, str(n.args),
             {key: value for key, value in n.kwargs.items() if key != "inplace"}) for n in graph.nodes]


def test_graphs_are_pytorchs_node_by_node():
    traced = [module.symbolic_trace(network(lib)) for lib, module in LIBRARIES]
    assert described(traced[0].graph) == described(traced[1].graph)
    for graph in (traced[0].graph, traced[1].graph):
        graph.lint()
    assert [*map(str, traced[0].graph.find_nodes(op="call_module"))] == ["linear1", "layers_0", "layers_1"]


def annotated(lib):
    class Annotated(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = lib.nn.Linear(2, 2)

        def forward(self, x: lib.Tensor, k: int = 2, *args, flag: bool = False, s: str = "a", **more) -> dict:
            y = (self.l(x)[:, :k] - 1).to(lib.float64)
            return {"a": y.sum(dim=1), "b": [y, (x, k), (y,)]}

    return Annotated()


def test_what_graphs_and_modules_print_and_their_text_are_pytorchs(monkeypatch):
    monkeypatch.setattr(Library, "name", "torch")
    ours, theirs = [module.symbolic_trace(annotated(lib)) for lib, module in LIBRARIES]
    assert str(ours.graph) == str(theirs.graph)
    assert ours.code == theirs.code
    assert str(ours) == str(theirs)
    assert ours(genesis.ones(1, 2), flag=True)["a"].shape == (1,)


def test_shapes_are_noted():
    noted = []
    for lib, module in LIBRARIES:
        traced = module.symbolic_trace(network(lib))
        prop = importlib.import_module("torch.fx.passes.shape_prop").ShapeProp if lib is torch else fx.ShapeProp
        prop(traced).propagate(lib.tensor(X))
        noted.append([(node.name, "type" in node.meta, "tensor_meta" in node.meta and str(
            getattr(node.meta["tensor_meta"], "stride", ""))) for node in traced.graph.nodes])
    assert noted[0] == noted[1]


def test_traced_modules_compute_what_the_module_does():
    for lib, module in LIBRARIES:
        plain = network(lib)
        traced = module.symbolic_trace(plain)
        for result, want in zip(traced(lib.tensor(X)), plain(lib.tensor(X)), strict=True):
            np.testing.assert_array_equal(result.detach().numpy(), want.detach().numpy())
        assert traced(lib.tensor(X), 4)[0].tolist() == plain(lib.tensor(X), 4)[0].tolist()
        names = {name for name in traced.state_dict() if not name.startswith("_tensor_constant")}
        assert names == set(plain.state_dict()) - {"shift"}
        twin = copy.deepcopy(traced)
        with lib.no_grad():
            twin.linear1.weight.zero_()
        assert traced.linear1.weight.abs().sum() > 0 and twin(lib.tensor(X))[0].shape == (2, 1)
        interpreted = module.Interpreter(traced).run(lib.tensor(X))
        np.testing.assert_array_equal(interpreted[1].detach().numpy(), plain(lib.tensor(X))[1].detach().numpy())


def test_gradients_go_through_and_compiled_modules_replay():
    plain = network(genesis)
    traced = fx.symbolic_trace(plain)
    compiled = genesis.compile(traced)
    for _ in range(4):
        compiled(genesis.tensor(X))[0].sum().backward()
    expected = network(torch)
    (torch.fx.symbolic_trace(expected)(torch.tensor(X))[0].sum() * 4).backward()
    np.testing.assert_allclose(plain.linear1.weight.grad.numpy(), expected.linear1.weight.grad.numpy(), rtol=1e-4)


def test_the_text_is_pytorchs_where_functions_have_names():
    def function(lib):
        def call(x, y=1.5):
            return {"a": lib.relu(x) + y, "b": (x[0], 3 - x), "c": x.transpose(0, 1).float()}

        return call

    texts = [module.symbolic_trace(function(lib)).code.strip().splitlines() for lib, module in LIBRARIES]
    assert texts[0][1:] == texts[1][1:]


def twice(lib):
    return lambda x: lib.relu(x) + lib.relu(x + 1)


def squared(lib):
    return lambda x: lib.relu(x + 1) * lib.relu(x + 1)


def inner(lib):
    return lambda x: lib.relu(x + 1), lambda x: lib.tanh(x)


def test_nodes_are_changed_and_passes_make_other_modules():
    for lib, module in LIBRARIES:
        traced = module.symbolic_trace(twice(lib))
        for node in traced.graph.nodes:
            if node.op == "call_function" and node.target is lib.relu:
                with traced.graph.inserting_after(node):
                    other = traced.graph.call_function(lib.exp, node.args)
                node.replace_all_uses_with(other)
                traced.graph.erase_node(node)
        traced.graph.lint()
        traced.recompile()
        x = lib.tensor(X)
        np.testing.assert_allclose(traced(x).numpy(), (x.exp() + (x + 1).exp()).numpy(), rtol=1e-6)

        np.testing.assert_allclose(negated(lib, module)(traced).transform()(x).numpy(), (-2 * x - 1).numpy(), rtol=1e-5)
        with pytest.raises(RuntimeError, match="still had 1 users"):
            traced.graph.erase_node([*traced.graph.nodes][1])


def negated(lib, module):
    class Negated(module.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(lib.neg if target is lib.exp else target, args, kwargs)

    return Negated


def test_patterns_are_replaced():
    for lib, module in LIBRARIES:
        traced = module.symbolic_trace(squared(lib))
        found = module.replace_pattern(traced, *inner(lib))
        assert len(found) == 2
        np.testing.assert_allclose(traced(lib.tensor(X)).numpy(), np.tanh(X) ** 2, rtol=1e-5)


def test_what_values_decide_cannot_be_traced():
    for _, module in LIBRARIES:
        with pytest.raises(module.proxy.TraceError, match="control flow"):
            module.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
        with pytest.raises(module.proxy.TraceError, match="cannot be iterated"):
            module.symbolic_trace(lambda x: [y for y in x])
        concrete = module.symbolic_trace(lambda x, flag: x if flag else -x, concrete_args={"flag": False})
        assert [n.target.__name__ for n in concrete.graph.nodes if n.op == "call_function"][-1] == "neg"
    assert genesis.nn.Module.__call__ is type(genesis.nn.Linear(2, 2)).__call__ and (genesis.ones(1) + 1).item() == 2


def marked(x):
    return x * len(x.shape)


fx.wrap("marked")
torch.fx.wrap("marked")


def test_wrapped_functions_become_nodes():
    for lib, module in LIBRARIES:
        traced = module.symbolic_trace(lambda x: marked(x) + 1)
        assert any(node.target is marked for node in traced.graph.nodes)
        assert traced(lib.ones(2, 2)).tolist() == [[3, 3], [3, 3]]


def test_a_graph_grows_by_calls_with_its_proxies_outside_of_a_trace():
    graph = fx.Graph()
    tracer = GraphAppendingTracer(graph)
    x, w = fx.Proxy(graph.placeholder("x"), tracer), fx.Proxy(graph.get_attr("w"), tracer)
    y = genesis.einsum("zi,ij->zj", [x, w]).relu() + genesis.cat([x, x], -1)[:, :2]
    graph.output(y.node)
    assert [node.args[0] for node in graph.nodes if node.target is genesis.einsum] == ["zi,ij->zj"]
    assert [len(node.args) for node in graph.nodes if node.target is genesis.einsum] == [3]
    made = fx.GraphModule({"w": genesis.ones(2, 2)}, graph, "Made")
    assert made(genesis.tensor([[1.0, 2.0]])).tolist() == [[4.0, 5.0]]
    del x, w, y, tracer
    gc.collect()
    assert not OVERRIDES  # calls ask nobody any more


def test_graphs_are_copied_with_their_nodes():
    graph = fx.symbolic_trace(network(genesis)).graph
    made = copy.deepcopy(graph)
    assert str(made) == str(graph) and made._tracer_cls is fx.Tracer
    assert not {*map(id, made.nodes)} & {*map(id, graph.nodes)} and all(node.graph is made for node in made.nodes)
    made.lint()
    with made.inserting_before(made.output_node()):
        made.call_function(genesis.sin, (next(iter(made.nodes)),))
    assert len(made.nodes) == len(graph.nodes) + 1


def of_two_graphs(lib, module, deepcopy_of):
    """A class as torchvision's feature extractors have it: another graph for evaluation, and copies of its own."""
    names = importlib.import_module("torch.fx.graph_module") if lib is torch else module.graph_module

    class Dual(module.GraphModule):
        def __init__(self, root, train_graph, eval_graph):
            super(module.GraphModule, self).__init__()
            self.train_graph, self.eval_graph = train_graph, eval_graph
            for node in [*train_graph.nodes, *eval_graph.nodes]:
                if node.op in ("get_attr", "call_module"):
                    names._copy_attr(root, self, node.target)
            self.train()
            self.graph = train_graph

        def train(self, mode=True):
            if mode != self.training:
                self.graph = self.train_graph if mode else self.eval_graph
            return super().train(mode)

        def __deepcopy__(self, memo):
            made = type(self).__new__(type(self))
            memo[id(self)] = made
            body = names._CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
            Dual.__init__(made, body, vars(body)["train_graph"], vars(body)["eval_graph"])
            return made

    model = network(lib)
    made = [module.GraphModule(model, module.Tracer().trace(model)) for _ in range(2)]
    graphs = [m.graph for m in made]
    last = graphs[1].output_node()
    last.args = (last.args[0][0],)
    graphs[1].eliminate_dead_code()
    dual = Dual(model, *graphs)
    return copy.deepcopy(dual) if deepcopy_of else dual


@pytest.mark.parametrize("copied", [False, True])
def test_subclasses_may_hold_several_graphs(copied):
    results = []
    for lib, module in LIBRARIES:
        dual = of_two_graphs(lib, module, copied)
        whole, one = dual(lib.tensor(X)), dual.eval()(lib.tensor(X))
        results.append([[*map(lambda t: t.detach().numpy(), (*whole, one))], sorted(dual.state_dict())])
    for ours, theirs in zip(results[0][0], results[1][0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    kept = [[name for name in names if not name.startswith("_tensor_constant")] for _, names in results]
    assert kept[0] == kept[1]


def doubled(x):
    return x * 2


def test_functions_that_a_tracer_is_given_become_nodes():
    def kinds(lib, tracer):
        return [node.op for node in tracer(autowrap_functions=(doubled,)).trace(lambda x: doubled(x) + 1).nodes]

    assert kinds(genesis, fx.Tracer) == kinds(torch, torch.fx.Tracer) == ["placeholder", *["call_function"] * 2, "output"]
    assert len(fx.Tracer().trace(lambda x: doubled(x)).nodes) == 3 and doubled(3) == 6


@pytest.mark.parametrize("lib", [genesis, torch])
def test_what_a_trace_computes_of_parameters_alone_follows_them(lib):
    class Scaled(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.places = lib.nn.Parameter(lib.ones(4)), lib.nn.Embedding(3, 4)
            self.register_buffer("shift", lib.ones(4))

        def forward(self, x):
            return x * self.scale.exp() + self.shift * self.scale + self.places(lib.arange(3)) + self.places.weight.sum(0)

    module, x = Scaled(), lib.ones(3, 4)
    traced = (fx if lib is genesis else torch.fx).symbolic_trace(module)
    with lib.no_grad():
        module.scale.fill_(2.0)
        module.places.weight.fill_(3.0)
    assert lib.allclose(traced(x), module(x))
    assert not [name for name in dir(traced) if name.startswith("_tensor_constant") and getattr(traced, name).requires_grad]
    traced(x).sum().backward()
    assert module.scale.grad is not None and module.places.weight.grad is not None


def test_traced_modules_are_pickled_with_their_graphs():
    traced = fx.symbolic_trace(network(genesis)).eval()
    loaded = pickle.loads(pickle.dumps(traced))
    assert str(loaded.graph) == str(traced.graph) and not loaded.training and loaded.code == traced.code
    assert [*loaded.state_dict()] == [*traced.state_dict()]
    x = genesis.tensor(np.random.RandomState(0).randn(5, 3).astype(np.float32))
    for one, other in zip(loaded(x), traced(x), strict=True):
        assert one.tolist() == other.tolist()
    loaded.graph.lint()
