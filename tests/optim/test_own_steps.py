"""Optimizers whose classes write `step` and keep their state as PyTorch's do: the same class on both."""

import pickle

import numpy as np
import pytest

import genesis

torch = pytest.importorskip("torch")


def written(library):
    class Momentum(library.optim.Optimizer):
        def __init__(self, params, lr=0.1, decay=0.9):
            super().__init__(params, {"lr": lr, "decay": decay})
            self.loaded = []

        def __setstate__(self, state):
            super().__setstate__(state)
            self.loaded = [*self.loaded, sorted(state)]

        def step(self, closure=None):
            loss = None
            if closure is not None:
                with library.enable_grad():
                    loss = closure()
            with library.no_grad():
                for group in self.param_groups:
                    for parameter in group["params"]:
                        if parameter.grad is None:
                            continue
                        state = self.state[parameter]
                        if len(state) == 0:
                            state["count"], state["mean"] = 0, library.zeros_like(parameter)
                            state["past"] = [library.ones(1)]
                        state["count"] += 1
                        state["mean"].lerp_(parameter.grad, 1 - group["decay"])
                        parameter.add_(state["mean"], alpha=-group["lr"])
            return loss

    return Momentum


def trained(library, resume):
    parameters = [library.tensor([1.0, -2.0], requires_grad=True), library.tensor([3.0], requires_grad=True)]
    optimizer = written(library)(parameters)

    def loss_of():
        optimizer.zero_grad()
        loss = sum((p * p).sum() for p in parameters)
        loss.backward()
        return loss

    losses = [optimizer.step(loss_of).item() for _ in range(3)]
    saved = optimizer.state_dict()
    if resume:
        again = written(library)(parameters)
        again.load_state_dict(saved)
        if library is genesis:
            saved["state"][0]["mean"].zero_()  # which is the first one's, as in PyTorch; what is loaded is a copy
        assert again.loaded == [["param_groups", "state"]] and again.state[parameters[0]]["mean"].any()
        optimizer = again
    losses += [optimizer.step(loss_of).item() for _ in range(3)]
    return losses, [p.tolist() for p in parameters], optimizer.state_dict()


@pytest.mark.parametrize("resume", [False, True])
def test_a_step_of_its_own_finds_an_empty_state_at_first_and_saves_what_it_keeps(resume):
    (ours, values, saved), (theirs, expected, like) = trained(genesis, resume), trained(torch, resume)
    assert np.allclose(ours, theirs) and all(map(np.allclose, values, expected))
    assert saved["param_groups"] == like["param_groups"] and [*saved["state"]] == [*like["state"]] == [0, 1]
    assert saved["state"][0]["count"] == like["state"][0]["count"] == 6 and saved["state"][0]["past"][0].tolist() == [1.0]
    assert np.allclose(saved["state"][0]["mean"].tolist(), like["state"][0]["mean"].tolist())


def test_half_precision_parameters_have_their_state_loaded_in_their_dtype_and_counts_as_they_are():
    for library in (torch, genesis):
        parameter = library.zeros(2, dtype=library.float16, requires_grad=True)
        optimizer = written(library)([parameter])
        optimizer.load_state_dict({"state": {0: {"step": library.tensor(3.0), "mean": library.ones(2)}, "name": [1]},
                                   "param_groups": optimizer.state_dict()["param_groups"]})
        state = optimizer.state[parameter]
        assert (state["step"].dtype, state["mean"].dtype, optimizer.state["name"]) == (library.float32, library.float16, [1])


def test_schedules_of_such_optimizers_do_not_warn(recwarn):
    parameter = genesis.ones(1, requires_grad=True)
    optimizer = written(genesis)([parameter])
    schedule = genesis.optim.lr_scheduler.StepLR(optimizer, 1)
    parameter.sum().backward()
    optimizer.step()
    schedule.step()
    assert not recwarn.list and optimizer.param_groups[0]["lr"] == pytest.approx(0.01)


def test_a_class_that_keeps_the_librarys_step_is_pickled_with_its_state():
    parameter = genesis.ones(1, requires_grad=True)
    optimizer = genesis.optim.SGD([parameter], lr=0.1, momentum=0.9)
    parameter.sum().backward()
    optimizer.step()
    assert pickle.loads(pickle.dumps(optimizer)).state_dict()["state"].keys() == {0}
