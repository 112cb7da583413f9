"""Averages of weights, their batch norms and their schedule, beside torch's."""

import pickle

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

ROWS = np.random.default_rng(0).normal(size=(6, 5, 3)).astype(np.float32)
AVERAGES = {
    "mean": lambda s: {}, "ema": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.75)},
    "one by one": lambda s: {"avg_fn": s.get_ema_avg_fn(0.9)},
    "means of lists": lambda s: {"multi_avg_fn": s.get_swa_multi_avg_fn()},
    "with buffers": lambda s: {"avg_fn": lambda held, new, n: (held + new) / 2, "use_buffers": True},
}


def layers(library):
    return library.nn.Sequential(library.nn.Linear(3, 4), library.nn.BatchNorm1d(4), library.nn.Linear(4, 1))


def trained(library, weights, settings):
    """The averaged model after a few steps; its batch norm's statistics of all batches."""
    model = layers(library)
    model.load_state_dict({k: library.tensor(v) for k, v in weights.items()})
    averaged = library.optim.swa_utils.AveragedModel(model, **settings(library.optim.swa_utils))
    optimizer = library.optim.SGD(model.parameters(), lr=0.1)
    for rows in ROWS:
        optimizer.zero_grad()
        (model(library.tensor(rows)) ** 2).mean().backward()
        optimizer.step()
        averaged.update_parameters(model)
    state = {k: np.array(v.detach()) for k, v in averaged.state_dict().items()}
    library.optim.swa_utils.update_bn([(library.tensor(rows), None) for rows in ROWS], averaged)
    assert averaged.module[1].momentum == 0.1
    norm = averaged.module[1]
    averaged.eval()
    return state, [norm.running_mean, norm.running_var, averaged(library.tensor(ROWS[0])).detach()]


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_are_torchs(name):
    weights = {k: v.numpy() for k, v in layers(torch).state_dict().items()}
    (ours, here), (theirs, there) = (trained(m, weights, AVERAGES[name]) for m in (genesis, torch))
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        assert_close(ours[key], value, f"{name} {key}", scale=10)
    assert_close(here, there, name, scale=10)


def test_averaged_models_are_pickled_as_torchs():
    for lib in (genesis, torch):
        model = lib.nn.Linear(1, 1, bias=False)
        averaged = pickle.loads(pickle.dumps(lib.optim.swa_utils.AveragedModel(model)))
        for value in (1.0, 4.0):
            with lib.no_grad():
                model.weight.fill_(value)
            averaged.update_parameters(model)
        assert averaged.module.weight.item() == 2.5


@pytest.mark.parametrize("settings", [{}, {"anneal_epochs": 4}, {"anneal_epochs": 3, "anneal_strategy": "linear"},
                                      {"anneal_epochs": 0}], ids=str)
def test_learning_rates_are_torchs(settings):
    found = []
    for library in (genesis, torch):
        groups = [{"params": [library.ones(1, requires_grad=True)], "lr": lr} for lr in (0.5, 0.1)]
        optimizer = library.optim.SGD(groups, lr=1.0)
        schedule = library.optim.swa_utils.SWALR(optimizer, swa_lr=[0.05, 0.2], **settings)
        rates = [schedule.get_last_lr()]
        for _ in range(7):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
        found.append(rates)
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_what_makes_no_sense_is_refused():
    swa = genesis.optim.swa_utils
    with pytest.raises(ValueError, match=r"decay is 1\.5; want 0 to 1"):
        swa.get_ema_multi_avg_fn(1.5)
    with pytest.raises(ValueError, match="got both avg_fn and multi_avg_fn"):
        swa.AveragedModel(genesis.nn.Linear(1, 1), avg_fn=swa.get_swa_avg_fn(), multi_avg_fn=swa.get_swa_multi_avg_fn())
    for epochs in (-1, 1.7):
        with pytest.raises(ValueError, match="want an integer of 0 or more"):
            swa.SWALR(genesis.optim.SGD([genesis.ones(1)], lr=1.0), 0.1, anneal_epochs=epochs)
    with pytest.raises(ValueError, match="anneal_strategy is 'steps'; want 'cos' or 'linear'"):
        swa.SWALR(genesis.optim.SGD([genesis.ones(1)], lr=1.0), 0.1, anneal_strategy="steps")
