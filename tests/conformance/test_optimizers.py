"""Each optimizer of PyTorch's database with its first settings, beside torch's: `python -m tests.conformance` runs them all."""

import contextlib

import pytest

import genesis
from genesis import optim
from tests.conformance import optimizers

FIRST = {entry.info.name: entry for entry in reversed(optimizers.entries())}


@pytest.mark.parametrize("name", FIRST)
def test_optimizers_agree_with_torch(name):
    for check in optimizers.CHECKS.values():
        with genesis.eager(), contextlib.suppress(NotImplementedError):  # where the check does not apply
            check(FIRST[name])


def test_a_step_hook_changes_the_arguments_and_is_taken_away():
    weight = genesis.ones(2, requires_grad=True)
    optimizer, met = optim.SGD([weight], lr=0.5), []
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: (args, {**kwargs, "closure": lambda: met.append(o)}))
    optimizer.step()
    assert met == [optimizer]
    handle.remove()
    optimizer.step()
    assert met == [optimizer]


def test_names_of_parameters_are_kept_in_groups():
    layer = genesis.nn.Linear(2, 3)
    optimizer = optim.Adam(layer.named_parameters())
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is layer.weight


def test_sparse_adam_leaves_rows_without_gradient_alone():
    table = genesis.ones(3, 2).requires_grad_()
    optimizer = optim.SparseAdam([table], lr=0.5)
    for row in (0, 2):
        optimizer.zero_grad()
        genesis.nn.functional.embedding(genesis.tensor([row]), table, sparse=True).sum().backward()
        optimizer.step()
    assert table.tolist()[1] == [1, 1] and table.tolist()[0] != [1, 1]
    assert optimizer.state[table]["exp_avg"].tolist()[1] == [0, 0]


def test_adafactor_keeps_a_row_and_a_column():
    optimizer = optim.Adafactor([genesis.ones(3, 4).requires_grad_(), genesis.ones(5).requires_grad_()])
    shapes = [{name: kept.shape for name, kept in state.items() if name != "step"} for state in optimizer.state.values()]
    assert shapes == [{"row_var": (3, 1), "col_var": (1, 4)}, {"variance": (5,)}]


def test_muon_wants_matrices():
    with pytest.raises(ValueError, match=r"Muon: a parameter has shape \(3,\); want \(rows, columns\)"):
        optim.Muon([genesis.ones(3).requires_grad_()])
