"""The registry of a module's members: what counts as one, however it came to be an attribute. The same code on PyTorch."""

import contextlib
import copy
import gc
import itertools
import pickle
import weakref
from collections import OrderedDict

import pytest

import genesis

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("library", [torch, genesis], ids=["torch", "genesis"])


def names(pairs):
    return [name for name, _ in pairs]


@BOTH
def test_what_is_put_in_place_past_setattr_is_no_member(library):
    nn = library.nn
    owner, strategy = nn.Sequential(nn.Linear(1, 1)), nn.Module()
    object.__setattr__(strategy, "owner", owner)
    strategy.__dict__["hidden"] = nn.Parameter(library.ones(1))
    owner.strategy = strategy  # each holds the other
    assert names(owner.named_modules()) == ["", "0", "strategy"] and list(owner.state_dict()) == ["0.weight", "0.bias"]
    assert not list(strategy.children()) and not list(strategy.parameters()) and strategy.owner is owner
    assert repr(strategy) == "Module()" and strategy.hidden.shape == (1,)
    strategy.child = owner[0]
    assert names(strategy.named_children()) == ["child"]


@BOTH
def test_tables_stand_among_the_attributes_and_are_written_to_there(library):
    nn = library.nn

    class Written(nn.Module):
        def __setattr__(self, name, value):
            tables = {table: self.__dict__.get(table) for table in ("_parameters", "_modules", "_buffers")}
            if isinstance(value, nn.Parameter):
                tables["_parameters"][name] = value
            elif isinstance(value, nn.Module):
                tables["_modules"][name] = value
            else:
                object.__setattr__(self, name, value)

    net = Written()
    net.layer, net.weight, net.plain = nn.Linear(1, 1), nn.Parameter(library.ones(2)), 3
    assert list(net.state_dict()) == ["weight", "layer.weight", "layer.bias"] and net.weight.shape == (2,)
    assert net.__dict__["_modules"].pop("layer") is not None and not hasattr(net, "layer") and not list(net.children())
    net._parameters["weight"] = library.zeros(3)  # as functional copies of modules do
    assert net.weight.shape == (3,) and [p.shape for p in net.parameters()] == [(3,)]


@BOTH
def test_members_that_are_none_stay_in_their_tables(library):
    nn = library.nn
    layer = nn.Linear(2, 1, bias=False)
    assert [*layer._parameters] == ["weight", "bias"] and names(layer.named_parameters()) == ["weight"]
    net = nn.Module()
    net.register_module("body", None)
    net.register_buffer("mean", None)
    assert [*net._modules] == ["body"] and [*net._buffers] == ["mean"] and not net.state_dict()
    net.body = nn.ReLU()
    net.mean = library.zeros(1)
    assert names(net.named_children()) == ["body"] and list(net.state_dict()) == ["mean"]
    with pytest.raises(TypeError):
        net.mean = "none"
    with pytest.raises(TypeError):
        net.body = 3
    with pytest.raises(TypeError):
        layer.weight = library.zeros(1, 2)


@BOTH
def test_a_name_that_none_reserves_takes_no_other_kind(library):
    kinds = {"parameter": library.nn.Parameter(library.ones(1)), "buffer": library.ones(1), "module": library.nn.ReLU()}
    for first, second in itertools.product(kinds, kinds):
        net = library.nn.Module()
        getattr(net, f"register_{first}")("x", None)
        with contextlib.nullcontext() if first == second else pytest.raises(KeyError, match="attribute 'x' already exists"):
            getattr(net, f"register_{second}")("x", kinds[second])


@BOTH
@pytest.mark.parametrize("kind", ["parameter", "buffer", "module"])
def test_a_member_takes_no_name_of_a_method_or_plain_attribute(library, kind):
    net = library.nn.Module()
    net.plain = None
    for name in ("type", "forward", "training", "plain"):
        with pytest.raises(KeyError, match=f"attribute '{name}' already exists"):
            getattr(net, f"register_{kind}")(name, None)


@BOTH
def test_an_attribute_changes_its_kind(library):
    nn = library.nn
    net = nn.Module()
    net.register_buffer("x", library.zeros(1))
    net.x = nn.Parameter(library.ones(1))
    assert names(net.named_parameters()) == ["x"] and not list(net.buffers())
    with pytest.raises(TypeError):
        net.x = nn.ReLU()
    net.x = nn.Parameter(library.zeros(1))
    del net.x
    net.x = nn.ReLU()
    assert names(net.named_children()) == ["x"] and not list(net.parameters())
    net.x = nn.Parameter(library.zeros(1))
    assert names(net.named_parameters()) == ["x"] and not list(net.children())
    del net.x
    net.x = 3
    assert not list(net.children()) and net.x == 3
    net.y = nn.Parameter(library.ones(1))
    net._buffers["y"] = net._parameters.pop("y")
    assert names(net.named_buffers()) == ["y"] and list(net.state_dict()) == ["y"]


@BOTH
def test_a_module_in_two_places_is_one_child(library):
    nn = library.nn
    layer, calls = nn.Linear(1, 1), []
    tied = nn.Sequential(layer, layer)
    assert len([*tied.children()]) == 1 and names(tied.named_children()) == ["0"]
    assert repr(tied).count("Linear(") == 2
    tied.apply(calls.append)
    assert calls == [layer, tied] and len(tied.state_dict()) == 4 and len(tied) == 2


@BOTH
def test_replicas_that_take_the_attributes_of_another_have_members_of_their_own(library):
    nn = library.nn
    net = nn.BatchNorm1d(2)
    replica = net.__new__(type(net))
    replica.__dict__ = net.__dict__.copy()
    replica._parameters = {}
    replica._buffers = replica._buffers.copy()
    replica._modules = replica._modules.copy()
    replica._buffers["running_mean"] = library.ones(2)
    assert not list(replica.parameters()) and names(net.named_parameters()) == ["weight", "bias"]
    assert net.running_mean.tolist() == [0, 0] and replica.running_mean.tolist() == [1, 1]
    replica._modules["extra"] = nn.ReLU()
    assert not list(net.children())


@BOTH
@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_copies_have_the_members_and_no_others(library, again):
    nn = library.nn
    net = nn.Sequential(OrderedDict(first=nn.Linear(2, 1, bias=False), second=nn.BatchNorm1d(1)))
    net.register_buffer("scratch", library.zeros(1), persistent=False)
    object.__setattr__(net, "hidden", nn.ReLU())
    made = again(net)
    assert list(made.state_dict()) == list(net.state_dict()) and names(made.named_buffers()) == names(net.named_buffers())
    assert names(made.named_children()) == ["first", "second"] and type(made.hidden) is nn.ReLU
    made.third = nn.ReLU()
    made._modules["fourth"] = nn.ReLU()
    made.__dict__["_modules"]["fifth"] = nn.ReLU()
    assert names(made.named_children()) == ["first", "second", "third", "fourth", "fifth"]
    assert names(net.named_children()) == ["first", "second"]


@BOTH
def test_the_names_of_buffers_that_are_not_saved_are_a_set(library):
    net = library.nn.Module()
    net.register_buffer("a", library.zeros(1))
    net.register_buffer("b", library.zeros(1), persistent=False)
    net._non_persistent_buffers_set.add("a")
    net._non_persistent_buffers_set.discard("b")
    assert list(net.state_dict()) == ["b"] and net._non_persistent_buffers_set == {"a"}
    net._non_persistent_buffers_set = set()
    assert list(net.state_dict()) == ["a", "b"]


@BOTH
def test_a_method_may_ask_getattr_for_a_member(library):
    class Initialized(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.raw = library.nn.Parameter(library.zeros(1))

        def initialize(self, value):
            self.__getattr__("raw").data.fill_(value)
            return self

    assert Initialized().initialize(2).raw.item() == 2
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        Initialized().absent  # noqa: B018


@BOTH
def test_a_replaced_registration_meets_the_parameters_of_layers(library, monkeypatch):
    plain, met = library.nn.Module.register_parameter, []

    def noting(self, name, parameter):
        plain(self, name, parameter)
        met.append(name)

    monkeypatch.setattr(library.nn.Module, "register_parameter", noting)
    library.nn.Linear(2, 1)
    assert met == ["weight", "bias"]


@BOTH
def test_a_property_does_not_take_a_module_that_is_assigned_to_it(library):
    class Held(library.nn.Module):
        put = 0

        @property
        def model(self):
            return self._modules["model"]

        @model.setter
        def model(self, value):
            self.put += 1

    net, layer = Held(), library.nn.Linear(1, 1)
    net.model = layer
    assert net.model is layer and net.put == 0 and list(net.state_dict()) == ["model.weight", "model.bias"]


def test_a_module_is_freed_with_its_last_reference():
    gc.collect()
    gc.disable()
    try:
        layer = genesis.nn.Linear(1, 1)
        gone = weakref.ref(layer)
        tables = layer._parameters, layer.__dict__["_parameters"]
        assert [*tables[0]] == [*tables[1]] == ["weight", "bias"]
        del layer, tables
        assert gone() is None
        assert [*genesis.nn.Linear(1, 1)._parameters] == ["weight", "bias"]  # the view keeps the module
    finally:
        gc.enable()


def test_a_compiled_module_alone_keeps_the_members():
    net = genesis.compile(genesis.nn.Linear(2, 1))
    gc.collect()
    net.extra = genesis.nn.ReLU()
    net._parameters["scale"] = genesis.nn.Parameter(genesis.ones(1))
    assert names(net.named_parameters()) == ["weight", "bias", "scale"] and names(net.named_children()) == ["extra"]


def test_modules_that_older_versions_pickled_are_read():
    made = genesis.nn.Sequential.__new__(genesis.nn.Sequential)
    parts = vars(genesis.nn.BatchNorm1d(2))
    state = {name: value for name, value in parts.items() if name not in ("_parameters", "_buffers", "_modules")}
    hidden = {"running_mean": True, "running_var": False, "num_batches_tracked": True}
    norm = genesis.nn.BatchNorm1d.__new__(genesis.nn.BatchNorm1d)
    norm.__setstate__({**state, "_persistence": hidden, "_reserved": frozenset({"other"}), "other": None})
    made.__setstate__({"0": norm, "1": genesis.nn.ReLU(), "training": False})
    assert list(made.state_dict()) == ["0.weight", "0.bias", "0.running_mean", "0.num_batches_tracked"]
    assert len(made) == 2 and not made.training and names(norm.named_buffers()) == [*hidden]
