"""Modules and named scopes of recorded nodes."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest

import genesis
from genesis import nn, optim
from genesis.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4))

    def forward(self, x):
        with genesis.named_scope("sum"):
            x = x + 1
        return self.second(self.first(x)).exp()


class Model(nn.Module):
    def __init__(self, wrap=lambda block: block):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.wrap = wrap

    def forward(self, x):
        for block in self.blocks:
            x = self.wrap(block)(x)
        return x.sum()


LINEAR = {f"Model.blocks.{k}.{name}" for k in range(2) for name in ("first", "second.1")}


def modules_of(graph, op):
    return [graph.modules[i] for i in graph.indices if graph.nodes[i].op == op]


def recorded(run):
    """The graph of the last program that `run` flushes."""
    with genesis.debug.Recording() as recording:
        run()
        genesis.synchronize()
    return recording.programs[-1].graph


def test_nodes_know_the_path_of_their_module():
    model = Model()
    graph = genesis.debug.graph(model(genesis.ones(2, 4)))
    assert modules_of(graph, "matmul") == [
        f"Model.blocks.{k}.{name}" for k in range(2) for name in ("first", "second.1")]
    assert modules_of(graph, "exp") == ["Model.blocks.0", "Model.blocks.1"]
    assert modules_of(graph, "sum") == ["Model"]
    assert {"Model.blocks.0.sum", "Model.blocks.1.sum"} <= {*modules_of(graph, "add")}
    weights = [graph.modules[i] for i in graph.indices if graph.nodes[i].op == "variable" and graph.nodes[i].shape == (4, 4)]
    assert weights == modules_of(graph, "matmul")


def test_models_that_take_one_path_through_the_trie_keep_their_own_names():
    class Other(Model):
        def __init__(self):
            super().__init__()
            self.layers = self.blocks
            del self.blocks

        def forward(self, x):
            for block in self.layers:
                x = block(x)
            return x.sum()

    x, models = genesis.ones(2, 4), (Model(), Other())
    seen = [modules_of(genesis.debug.graph(model(x)), "exp")[0] for model in models]
    assert seen == ["Model.blocks.0", "Other.layers.0"]


@pytest.mark.parametrize("looked_at", [False, True])
def test_gradients_belong_to_the_module_of_their_forward(looked_at):
    model = Model()
    graph = recorded(lambda: backward_of(model, looked_at))
    backward = modules_of(graph, "matmul")[0 if looked_at else 4:]
    assert len(backward) == 8 and set(backward) == LINEAR


def backward_of(model, looked_at):
    loss = model(genesis.ones(2, 4, requires_grad=True))
    if looked_at:
        loss.item()
    loss.backward()


def test_what_a_checkpoint_runs_again_is_in_the_module_that_was_called():
    model = Model(lambda block: lambda x: checkpoint(block, x))
    graph = recorded(lambda: backward_of(model, False))
    assert set(modules_of(graph, "matmul")) == LINEAR


def test_an_optimizers_step_and_compiled_calls_have_their_names():
    model = Model()
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @genesis.compile
    def step(x):
        optimizer.zero_grad()
        model(x).backward()
        optimizer.step()

    for _ in range(4):
        graph = recorded(lambda: step(genesis.ones(2, 4)))
        assert step.entries
        assert {"SGD", "Model.blocks.1.second.1"} <= set(graph.modules.values())
        assert modules_of(graph, "exp")[:2] == ["Model.blocks.0", "Model.blocks.1"]
    assert sum(entry.replays for entry in step.entries) >= 2


def test_scopes_nest_end_with_an_exception_and_decorate():
    @genesis.named_scope("outer")
    def run():
        with genesis.named_scope("inner"):
            return genesis.ones(2).exp()

    assert modules_of(genesis.debug.graph(run()), "exp") == ["outer.inner"]
    broken = nn.Module()
    for _ in range(2):
        with pytest.raises(NotImplementedError), genesis.named_scope("broken"):
            broken(1)
        assert modules_of(genesis.debug.graph(genesis.ones(2).exp()), "exp") == [""]
    with pytest.raises(TypeError, match="wants a name"):
        genesis.named_scope("")


def test_traces_keep_no_module_alive_and_name_its_class_once_it_is_gone():
    model = Block()
    gone, twin = weakref.ref(model), copy.deepcopy(model)
    y = twin(genesis.ones(2, 4))
    assert modules_of(genesis.debug.graph(y), "exp") == ["Block"]
    y = model(genesis.ones(2, 4))
    del model
    gc.collect()
    assert gone() is None
    assert set(modules_of(genesis.debug.graph(y), "matmul")) <= {"Block.Linear", "Block.first", "Block.Sequential.Linear"}


def test_errors_name_the_module():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(3, 2)

        def forward(self, x):
            return self.table(x)

    words = Words()
    with pytest.raises(IndexError, match=r"test_scopes.py:\d+, in Words\.table\)"):
        words(genesis.tensor([7])).tolist()
