"""`torch.compile` of a module gives an OptimizedModule, as PyTorch's in what can be seen of it."""

import copy
import pickle

import pytest
import torch

import genesis
from genesis.as_torch.stand_ins import compiler

LIBRARIES = ((genesis.nn, compiler.compile), (torch.nn, torch.compile))


def both(of):
    return [of(nn, compile) for nn, compile in LIBRARIES]


def test_names_and_form_are_torchs():
    def seen(nn, compile):
        made = compile(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
        nested = nn.Sequential(compile(nn.Linear(2, 2)))
        return (
            type(made).__qualname__, type(made).__module__, repr(made), [*made.state_dict()], [*dict(made.named_modules())],
            [*dict(made.named_parameters())], isinstance(made, nn.Sequential), len(made), repr(nested), [*nested.state_dict()])

    got, want = both(seen)
    assert got == want


def test_attributes_are_the_modules():
    def seen(nn, compile):
        module = nn.Linear(2, 2)
        module.tag = 7
        made = compile(module)
        made.tag += 1
        made.new = 3
        met = [module.tag, module.new, made.weight is module.weight, made._orig_mod is module, made.eval() is made]
        met += [module.training]
        made.train()
        del made.new
        with pytest.raises(AttributeError, match="'Linear' object has no attribute 'nope'"):
            _ = made.nope
        return [*met, module.training, hasattr(module, "new"), type(copy.deepcopy(made)) is type(made), "tag" in dir(made)]

    got, want = both(seen)
    assert got == want


def test_calls_hooks_and_copies_compute(monkeypatch):
    module, x = genesis.nn.Linear(2, 2), genesis.ones(1, 2)
    made = compiler.compile(module)
    want = module(x).tolist()
    met = []
    made.register_forward_hook(lambda *call: met.append("wrapper"))
    module.register_forward_hook(lambda *call: met.append("module"))
    for _ in range(3):
        assert made(x).tolist() == want
    assert met[:2] == ["module", "wrapper"]
    fresh = compiler.compile(genesis.nn.Linear(2, 2))
    fresh.load_state_dict(made.state_dict())
    monkeypatch.setattr(type(made), "__module__", "genesis.as_torch.stand_ins.eval_frame")  # the door is not open here
    again = pickle.loads(pickle.dumps(fresh))
    assert again(x).tolist() == want
    again._orig_mod.weight.detach().zero_()
    assert again(x).tolist() == [module.bias.tolist()]


def test_a_module_compiles_its_later_calls():
    module = genesis.nn.Linear(2, 2)
    compiler.compile_module(module)
    assert type(module).__name__ == "Linear" and isinstance(module, genesis.nn.Linear)
    assert [*module.state_dict()] == ["weight", "bias"]
    assert module(genesis.zeros(1, 2)).tolist() == [module.bias.tolist()]


def test_what_cannot_be_called_is_refused_as_by_torch():
    for _, compile in LIBRARIES:
        with pytest.raises(AssertionError, match="A callable function is expected, but <class 'int'> is provided"):
            compile(3)
