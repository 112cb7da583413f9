"""State dicts: what hooks see and change, extra state, classes that load their own way; beside torch's."""

import copy
import io
import pickle

import pytest
import torch

import genesis
from genesis import nn

BOTH = pytest.mark.parametrize("lib", [genesis, torch], ids=["genesis", "torch"])


def plain(value):
    """Comparable: tensors as lists."""
    return value.detach().tolist() if hasattr(value, "detach") else value


@BOTH
def test_hooks_of_state_dicts_are_called_in_order_with_what_torch_gives_them(lib):
    net, seen = lib.nn.Sequential(lib.nn.Linear(2, 1), lib.nn.Linear(1, 1, bias=False)), []
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(("pre", type(m).__name__, prefix, keep)))
    net[0].register_state_dict_post_hook(lambda m, state, prefix, meta: seen.append((prefix, [*state], dict(meta))))
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop("1.weight") is None or None)
    net[1].register_load_state_dict_pre_hook(lambda m, state, prefix, *others: seen.append((prefix, [*state], *others)))
    net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    state = net.state_dict()
    net.load_state_dict(state)
    assert seen == [("pre", "Linear", "0.", False), ("0.", ["0.weight", "0.bias"], {"version": 1}),
                    ("1.", [], {"version": 1}, True, [], [], [])]


@BOTH
def test_post_hooks_return_nothing(lib):
    layer = lib.nn.Linear(1, 1)
    layer.register_state_dict_post_hook(lambda *given: {})
    with pytest.raises(RuntimeError, match="None"):
        layer.state_dict()
    layer = lib.nn.Linear(1, 1)
    layer._register_state_dict_hook(lambda *given: {"other": 1})
    assert layer.state_dict() == {"other": 1}


def test_a_post_hook_sees_what_was_loaded():
    net, seen = nn.Sequential(nn.Linear(1, 1, bias=False)), []
    net.register_load_state_dict_post_hook(lambda m, keys: seen.append(m[0].weight.item()))
    net.load_state_dict({"0.weight": genesis.full((1, 1), 3.0)})
    assert seen == [3.0]


def counter(lib):
    class Counter(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.calls = lib.nn.Parameter(lib.zeros(1)), 0

        def get_extra_state(self):
            return {"calls": self.calls}

        def set_extra_state(self, state):
            self.calls = state["calls"]

    return Counter


@BOTH
def test_extra_state_is_saved_and_loaded(lib):
    first, second = lib.nn.Sequential(counter(lib)()), lib.nn.Sequential(counter(lib)())
    first[0].calls = 5
    assert [*first.state_dict()] == ["0.weight", "0._extra_state"]
    second.load_state_dict(first.state_dict())
    assert second[0].calls == 5
    with pytest.raises(RuntimeError, match="_extra_state"):
        second.load_state_dict({"0.weight": lib.zeros(1)})
    with pytest.raises(RuntimeError, match="_extra_state"):
        lib.nn.Linear(1, 1, bias=False).load_state_dict({"weight": lib.zeros(1, 1), "_extra_state": 1})


def renaming(lib):
    class Renaming(lib.nn.Linear):
        _version = 2

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "kernel"] = destination.pop(prefix + "weight")

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *others):
            self.loaded = local_metadata.get("version")
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)
            self.sum = self.weight.sum().item()  # what super() loaded is there

    return Renaming


@BOTH
def test_classes_save_and_load_their_own_way(lib):
    kind = renaming(lib)
    first, second = lib.nn.Sequential(kind(2, 2)), lib.nn.Sequential(kind(2, 2))
    state = first.state_dict()
    assert [*state] == ["0.bias", "0.kernel"] and dict(state._metadata) == {"": {"version": 1}, "0": {"version": 2}}
    second.load_state_dict(state)
    assert plain(second[0].weight) == plain(first[0].weight)
    assert second[0].loaded == 2 and second[0].sum == first[0].weight.sum().item()


@BOTH
def test_assigned_tensors_take_the_place_of_parameters(lib):
    layer = lib.nn.BatchNorm1d(2)
    layer.weight.requires_grad_(False)
    state = {name: value.double() if value.dtype == lib.float32 else value for name, value in layer.state_dict().items()}
    before = layer.bias
    layer.load_state_dict(state, assign=True)
    assert layer.weight.dtype == lib.float64 == layer.running_mean.dtype
    assert not layer.weight.requires_grad and layer.bias.requires_grad and isinstance(layer.bias, lib.nn.Parameter)
    assert layer.bias is not before and layer.running_mean is state["running_mean"]


@BOTH
def test_batch_norms_of_old_files_have_no_count(lib):
    layer = lib.nn.BatchNorm1d(2)
    state = dict(layer.state_dict())
    del state["num_batches_tracked"]
    assert str(layer.load_state_dict(state)) == "<All keys matched successfully>"


@BOTH
def test_a_dictionary_is_wanted(lib):
    with pytest.raises(TypeError):
        lib.nn.Linear(1, 1).load_state_dict([1])


@BOTH
def test_a_lazy_layer_within_a_network_becomes_what_it_loads(lib):
    made = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2))
    lazy = lib.nn.Sequential(lib.nn.LazyLinear(2), lib.nn.LazyBatchNorm1d())
    lazy.load_state_dict(made.state_dict())
    assert plain(lazy[0].weight) == plain(made[0].weight) and lazy[1].running_mean.shape == (2,)


def test_nothing_is_written_where_a_key_is_wrong():
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    before = [p.item() for p in net.parameters()]
    with pytest.raises(RuntimeError, match=r"size mismatch for 1\.weight: .* model is genesis.Size\(\[1, 1\]\)"):
        net.load_state_dict({"0.weight": genesis.zeros(1, 1), "1.weight": genesis.zeros(2, 1)})
    assert [p.item() for p in net.parameters()] == before


def test_a_state_dict_goes_to_torch_and_back_with_its_metadata():
    layer, file = nn.BatchNorm1d(2), io.BytesIO()
    genesis.save(layer.state_dict(), file)
    file.seek(0)
    state = torch.load(file)
    assert state._metadata[""] == {"version": 2} and str(torch.nn.BatchNorm1d(2).load_state_dict(state)).startswith("<All")
    file.seek(0)
    assert genesis.load(file)._metadata[""] == {"version": 2}


# ---- buffers ----
@BOTH
def test_a_buffer_is_one_where_it_is_assigned(lib):
    class Scale(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = lib.nn.Buffer(lib.ones(2))
            self.lost = lib.nn.Buffer(lib.ones(1), persistent=False)

    module = Scale()
    assert [*module.state_dict()] == ["kept"] and [name for name, _ in module.named_buffers()] == ["kept", "lost"]
    assert module._non_persistent_buffers_set == {"lost"}
    module.kept = lib.zeros(3)
    assert module.state_dict()["kept"].shape == (3,)
    with pytest.raises(TypeError, match="buffer"):
        module.kept = 3
    assert not module.double().kept.requires_grad and module.lost.dtype == lib.float64
    del module.kept
    assert [name for name, _ in module.named_buffers()] == ["lost"]
    assert (lib.nn.Buffer(lib.ones(2)) + 1).tolist() == [2, 2]


@BOTH
def test_conversion_replaces_buffers(lib):
    """Each of its own, and a tensor that was one stays as it is; parameters are the same objects."""
    module, tensor = lib.nn.Linear(1, 1), lib.zeros(2)
    module.register_buffer("a", tensor)
    module.register_buffer("b", tensor)
    weight = module.weight
    module.double()
    module.a.add_(1)
    assert tensor.dtype is lib.float32 and (module.b.dtype, module.b.tolist()) == (lib.float64, [0, 0])
    assert module.weight is weight and weight.dtype is lib.float64
    module.float().float()
    assert module.a is module.float().a


@BOTH
def test_uninitialized_parameters_and_buffers(lib):
    weight = lib.nn.UninitializedParameter(dtype=lib.float64)
    with pytest.raises(RuntimeError, match="shape"):
        _ = weight.shape
    weight.materialize((2, 3))
    assert type(weight) is lib.nn.Parameter and weight.shape == (2, 3) and weight.dtype == lib.float64 and weight.requires_grad
    buffer = lib.nn.UninitializedBuffer()
    buffer.materialize((2,), dtype=lib.int64)
    assert buffer.shape == (2,) and buffer.dtype == lib.int64 and not isinstance(buffer, lib.nn.Parameter)


def test_hooks_are_copied_with_a_module():
    layer = nn.Linear(1, 1)
    layer.register_state_dict_post_hook(add_unit)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert again.state_dict()["unit"] == "m"


def add_unit(module, state, prefix, metadata):
    state[prefix + "unit"] = "m"


@pytest.mark.parametrize("library", [genesis, torch], ids=["genesis", "torch"])
def test_deep_copies_of_parameters_have_no_gradients(library):
    net = library.nn.Linear(2, 1)
    net(library.ones(1, 2)).sum().backward()
    net.bias.requires_grad_(False)
    again = copy.deepcopy(net)
    assert again.weight.grad is None and again.bias.grad is None and not again.bias.requires_grad
    again(library.ones(1, 2)).sum().backward()
    assert again.weight.grad.tolist() == net.weight.grad.tolist() == [[1.0, 1.0]]
    leaf = library.ones(2, requires_grad=True)
    leaf.sum().backward()
    assert copy.deepcopy(leaf).grad.tolist() == [1.0, 1.0]
