"""State dicts, defaults and groups of optimizers and schedules print as PyTorch's: the same keys in the same order."""

import pytest
import torch

import genesis

OPTIMIZERS = ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop",
              "SGD", "Muon", "LBFGS")
SCHEDULES = {
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=10),
    "three phases": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=10, three_phase=True, anneal_strategy="linear"),
    "no momentum": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=10, cycle_momentum=False),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1),
    "exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, mode="exp_range", gamma=0.9),
    "scale_fn": lambda s, o: s.CyclicLR(o, 0.01, 0.1, scale_fn=lambda step: 1.0, scale_mode="iterations"),
    "StepLR": lambda s, o: s.StepLR(o, 2), "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 1.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o), s.ExponentialLR(o, 0.9)], [2]),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o), s.ExponentialLR(o, 0.9)], o),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_keys_are_torchs(name, by_references):
    def seen(lib):
        x = lib.ones(2, 2, requires_grad=True)
        made = getattr(lib.optim, name)([{"params": [x], "lr": 0.5}])
        x.grad = lib.ones(2, 2)
        if name != "LBFGS":
            made.step()
        state = made.state_dict()
        return (repr(made), [*state["param_groups"][0]], [*made.param_groups[0]], made.defaults, [*made.defaults],
                {key: [*value] for key, value in state["state"].items()})

    assert seen(genesis) == seen(torch)


@pytest.mark.filterwarnings("ignore:.*lr_scheduler.step")
@pytest.mark.parametrize("name", SCHEDULES)
def test_states_of_schedules_are_torchs_and_are_exchanged(name):
    def made(lib):
        optimizer = lib.optim.SGD([lib.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)
        return optimizer, SCHEDULES[name](lib.optim.lr_scheduler, optimizer)

    def go_on(schedule, steps):
        rates = []
        for _ in range(steps):
            schedule.step(*([1.0] if name == "ReduceLROnPlateau" else []))
            rates.append(schedule.get_last_lr())
        return rates

    (ours, our_schedule), (theirs, their_schedule) = made(genesis), made(torch)
    go_on(our_schedule, 3)
    go_on(their_schedule, 3)
    assert str(our_schedule.state_dict()) == str(their_schedule.state_dict())
    assert [*ours.state_dict()["param_groups"][0]] == [*theirs.state_dict()["param_groups"][0]]
    for lib, optimizer, schedule in ((genesis, theirs, their_schedule), (torch, ours, our_schedule)):
        fresh, resumed = made(lib)
        resumed.load_state_dict(schedule.state_dict())
        for group, other in zip(fresh.param_groups, optimizer.param_groups, strict=True):
            group["lr"] = other["lr"]
        assert go_on(resumed, 2) == [pytest.approx(rates) for rates in go_on(made_again(made, lib, schedule, optimizer), 2)]


def made_again(made, lib, schedule, optimizer):
    """A schedule of the library that `schedule` is of, resumed from the same state."""
    other = torch if lib is genesis else genesis
    fresh, resumed = made(other)
    resumed.load_state_dict(schedule.state_dict())
    for group, known in zip(fresh.param_groups, optimizer.param_groups, strict=True):
        group["lr"] = known["lr"]
    return resumed


def test_a_parameter_of_several_groups_has_one_position_and_sets_have_no_order():
    for library in (genesis, torch):
        with pytest.raises(TypeError):
            library.optim.SGD([{"params": {library.nn.Parameter(library.ones(1))}}])
        optimizer = library.optim.SGD([library.nn.Parameter(library.ones(1)) for _ in range(2)])
        optimizer.param_groups.extend(optimizer.param_groups)
        assert [group["params"] for group in optimizer.state_dict()["param_groups"]] == [[0, 1], [0, 1]]
