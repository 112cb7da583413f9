"""Parameters and buffers without a shape, and the layers that have them, beside PyTorch's."""

import copy
import pickle

import pytest
import torch

import genesis


def outcome(case, lib):
    try:
        return str(case(lib)).replace("genesis.", "torch.")
    except (ValueError, RuntimeError) as problem:  # an error of arguments is both
        return "refused" if isinstance(problem, ValueError) or "access the shape" in str(problem) else "RuntimeError"


def layer(lib):
    return lib.nn.LazyLinear(3, dtype=lib.float64)


def called(lib, lazy, *shape):
    lazy(lib.ones(*shape, dtype=lib.float64))
    return lazy


def own(lib):
    mixin = torch.nn.modules.lazy.LazyModuleMixin if lib is torch else lib.nn.LazyModuleMixin

    class Scale(mixin, lib.nn.Module):
        cls_to_become = None

        def __init__(self):
            super().__init__()
            self.factor = lib.nn.UninitializedParameter()
            self.register_buffer("shift", lib.nn.UninitializedBuffer())

        def initialize_parameters(self, x):
            with lib.no_grad():
                self.factor.materialize(x.shape[-1:])
                self.factor.fill_(2)
                self.shift.materialize((1,))
                self.shift.zero_()

        def forward(self, x):
            return x * self.factor + self.shift

    return Scale()


def forgetful(lib):
    made = own(lib)
    made.initialize_parameters = lambda x: None
    return made


CASES = {
    "printed": lambda lib: (layer(lib), layer(lib).weight, layer(lib).bias),
    "what it is": lambda lib: [(lib.nn.parameter.is_lazy(p), p.requires_grad, p.dtype, p.grad, p.is_leaf, isinstance(
        p, lib.nn.Parameter)) for p in layer(lib).parameters()],
    "shape": lambda lib: layer(lib).weight.shape,
    "sum": lambda lib: layer(lib).weight + 1,
    "number of elements": lambda lib: sum(p.numel() for p in layer(lib).parameters()),
    "clone": lambda lib: layer(lib).weight.clone(),
    "fill": lambda lib: lib.nn.init.zeros_(layer(lib).weight),
    "shared": lambda lib: layer(lib).weight.share_memory_(),
    "copies": lambda lib: (copy.deepcopy(layer(lib)).weight, pickle.loads(pickle.dumps(layer(lib))).bias),
    "state": lambda lib: dict(layer(lib).state_dict()),
    "loaded into another": lambda lib: layer(lib).load_state_dict(layer(lib).state_dict()),
    "loaded into one with a shape": lambda lib: lib.nn.Linear(2, 3).load_state_dict(layer(lib).state_dict()),
    "converted": lambda lib: [(p, p.dtype) for p in layer(lib).half().parameters()],
    "called": lambda lib: called(lib, layer(lib), 2, 4).weight.dtype,
    "gradients forgotten": lambda lib: lib.optim.SGD(layer(lib).parameters(), 0.1).zero_grad(),
    "batch norm": lambda lib: (lib.nn.LazyBatchNorm1d(), lib.nn.LazyBatchNorm1d().running_mean,
                               called(lib, lib.nn.LazyBatchNorm1d().double(), 2, 3).num_batches_tracked),
    "convolution": lambda lib: (lib.nn.LazyConv2d(4, 3, bias=False).weight,
                                called(lib, lib.nn.LazyConv2d(4, 3, groups=2).double(), 1, 2, 5, 5)),
    "a class of one's own": lambda lib: (own(lib).has_uninitialized_params(), own(lib)(lib.ones(1, 2)).tolist(), own(lib)),
    "one that materializes nothing": lambda lib: forgetful(lib)(lib.ones(1, 2)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_what_has_no_shape_is_as_pytorchs(name):
    assert outcome(CASES[name], genesis) == outcome(CASES[name], torch)


@pytest.mark.parametrize("lib", [genesis, torch])
@pytest.mark.parametrize(("kind", "shape"), [("Linear", (1, 4)), ("BatchNorm1d", (2, 4)), ("Conv1d", (1, 4, 3))])
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_a_layer_that_has_loaded_its_size_stays_lazy_until_it_is_called(lib, kind, shape):
    arguments = {"Linear": (2,), "BatchNorm1d": (), "Conv1d": (2, 1)}[kind]
    whole, lazy = getattr(lib.nn, kind)(4, *arguments), getattr(lib.nn, f"Lazy{kind}")(*arguments)
    for _ in range(2):
        lazy.load_state_dict(whole.state_dict())
        assert not lazy.has_uninitialized_params() and type(lazy).__name__ == f"Lazy{kind}"
    lazy(lib.ones(shape))
    assert type(lazy) is getattr(lib.nn, kind)


@pytest.mark.parametrize("lib", [genesis, torch])
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_hooks_attributes_and_parameters_stay_when_a_layer_gets_its_size(lib):
    lazy, seen = lib.nn.LazyLinear(2).eval(), []
    weight = lazy.weight
    lazy.register_forward_hook(lambda module, inputs, output: seen.append(type(module).__name__))
    lazy.note = 3
    lazy(lib.ones(1, 4))
    assert seen == ["Linear"] and lazy.weight is weight and lazy.in_features == 4 and lazy.note == 3 and not lazy.training
