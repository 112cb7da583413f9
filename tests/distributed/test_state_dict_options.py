"""State dicts by options on one rank, beside PyTorch's."""

import pytest
import torch
from torch.distributed.checkpoint import state_dict as theirs

import genesis
import genesis.distributed as dist
from genesis.distributed.checkpoint import state_dict as ours

OPTIONS = [
    {}, {"full_state_dict": True}, {"cpu_offload": True, "full_state_dict": True}, {"ignore_frozen_params": True},
    {"flatten_optimizer_state_dict": True}, {"keep_submodule_prefixes": False},
]


def trained(library):
    nn = library.nn
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    model[2].bias.requires_grad_(False)
    optimizers = [library.optim.Adam(model[0].parameters()), library.optim.SGD(model[2].parameters(), lr=0.1, momentum=0.9)]
    model(library.ones(4, 2)).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
    return model, optimizers


@pytest.fixture(autouse=True)
def one_rank():
    dist.init_process_group()
    yield
    dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore:Getting submodules only")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_names_are_pytorchs(options, by_references):
    found = []
    for library, module in ((torch, theirs), (genesis, ours)):
        model, optimizers = trained(library)
        inside = {model[0]} if "keep_submodule_prefixes" in options else None
        chosen = module.StateDictOptions(**options)
        state = module.get_model_state_dict(model, submodules=inside, options=chosen)
        moments = module.get_optimizer_state_dict(model, optimizers, options=chosen)
        if "param_groups" in moments:
            groups = [group["params"] for group in moments["param_groups"]]
            found.append((state.keys(), {name: each.keys() for name, each in moments["state"].items()}, groups))
        else:
            names = {name for name in moments if name.startswith("state.")}
            found.append((state.keys(), names, {name.split(".")[1] for name in moments.keys() - names}))
        module.set_optimizer_state_dict(model, optimizers, moments, options=chosen)
        if inside is None:
            loose = module.StateDictOptions(**options, strict="ignore_frozen_params" not in options)
            module.set_model_state_dict(model, state, options=loose)
    assert found[1] == found[0]


def test_what_is_set_is_what_was_given(by_references):
    options = ours.StateDictOptions(full_state_dict=True, flatten_optimizer_state_dict=True)
    model, optimizers = trained(genesis)
    optimizers[0].param_groups[0]["lr"] = 0.5
    state, moments = ours.get_state_dict(model, optimizers, options=options)
    other, others = trained(genesis)
    ours.set_state_dict(other, others, model_state_dict=state, optim_state_dict=moments, options=options)
    assert other[0].weight.tolist() == model[0].weight.tolist() and others[0].param_groups[0]["lr"] == 0.5
    mean = [each.state[net[0].weight]["exp_avg"].tolist() for net, (each, _) in ((model, optimizers), (other, others))]
    assert mean[0] == mean[1]


def test_what_is_missing_raises_if_it_is_strict(by_references):
    model, optimizers = trained(genesis)
    state, moments = ours.get_state_dict(model, optimizers)
    del state["0.weight"], moments["state"]["2.weight"]
    with pytest.raises(RuntimeError, match=r"0\.weight"):
        ours.set_model_state_dict(model, state)
    with pytest.raises(RuntimeError, match=r"no state for 2\.weight; want strict=False"):
        ours.set_optimizer_state_dict(model, optimizers, moments)
    loose = ours.StateDictOptions(strict=False)
    assert ours.set_model_state_dict(model, state, options=loose).missing_keys == ["0.weight"]
    ours.set_optimizer_state_dict(model, optimizers, moments, options=loose)
    with pytest.raises(ValueError, match="want full_state_dict=True with it"):
        ours.StateDictOptions(broadcast_from_rank0=True)


def wrapped(library, modifiers):
    """A module whose hooks leave its child out of the keys of state dicts."""
    nn = library.nn

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 3)
            self.register_state_dict_post_hook(self.without)
            self.register_load_state_dict_pre_hook(self.within)

        @staticmethod
        def without(module, state, prefix, metadata):
            for name in [name for name in state if name.startswith(f"{prefix}inner.")]:
                state[name.replace(f"{prefix}inner.", prefix, 1)] = state.pop(name)

        @staticmethod
        def within(module, state, prefix, *rest):
            for name in [name for name in state if name.startswith(prefix)]:
                state[f"{prefix}inner.{name[len(prefix):]}"] = state.pop(name)

        def __getattr__(self, name):  # as wrappers have it
            return super().__getattr__(name) if name == "inner" else getattr(super().__getattr__("inner"), name)

    setattr(Wrapped, modifiers, lambda self: {"weight": "inner", "bias": "inner"})
    return nn.Sequential(Wrapped(), nn.Linear(3, 1))


@pytest.mark.parametrize("modifiers", ["_fqn_modifiers", "said_otherwise"])
def test_children_that_hooks_hide_are_found_by_their_keys(modifiers, by_references):
    found = []
    for library, module in ((torch, theirs), (genesis, ours)):
        model = wrapped(library, modifiers)
        options = module.StateDictOptions(dsd_fqn_modifiers=modifiers)
        state = module.get_model_state_dict(model, options=options)
        found.append([*state])
        state["0.weight"] = library.ones(3, 2)
        module.set_model_state_dict(model, state, options=options)
        found.append(model[0].inner.weight.tolist())
    assert [{*found[0]}, found[1]] == [{*found[2]}, found[3]]
    assert {*found[0]} == {"0.weight", "0.bias", "1.weight", "1.bias"}
    model[0].inner.bias.requires_grad_(False)  # PyTorch raises KeyError
    loose = ours.StateDictOptions(ignore_frozen_params=True, dsd_fqn_modifiers=modifiers)
    assert "0.bias" not in ours.get_model_state_dict(model, options=loose)
