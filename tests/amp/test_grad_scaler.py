"""GradScaler beside torch's: the same scales, steps and parameters over iterations of which some overflow."""

import numpy as np
import pytest
import torch

import genesis
from genesis.amp import GradScaler

SETTINGS = {"init_scale": 1024.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 3}


def problem(library, **settings):
    w = library.tensor([1.0, 2.0], requires_grad=True)
    device = {"device": "cpu"} if library is torch else {}
    return w, library.optim.Adam([w], lr=0.1), library.amp.GradScaler(**device, **{**SETTINGS, **settings})


def iterate(library, w, optimizer, scaler, x):
    optimizer.zero_grad()
    scaler.scale((w * library.tensor(x)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale(), w.detach().tolist(), scaler.state_dict()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_scales_and_parameters_are_torchs(bad):
    ours, theirs = problem(genesis), problem(torch)
    overflows = {4, 5, 11}
    for i in range(20):
        x = [1.0, bad] if i in overflows else [0.5 - i, 3.0]
        got, want = iterate(genesis, *ours, x), iterate(torch, *theirs, x)
        assert (got[0], got[2]) == (want[0], want[2]), i
        np.testing.assert_allclose(got[1], want[1], rtol=1e-6)


def test_the_scale_stops_growing_at_the_end_of_float32_as_torchs():
    settings = {"init_scale": 2.0**126, "growth_interval": 1}
    ours, theirs = problem(genesis, **settings), problem(torch, **settings)
    for _ in range(3):
        assert iterate(genesis, *ours, [0.0, 0.0])[0] == iterate(torch, *theirs, [0.0, 0.0])[0] == 2.0**126


def test_an_overflow_skips_the_step_and_leaves_the_optimizer_alone():
    w, optimizer, scaler = problem(genesis)
    iterate(genesis, w, optimizer, scaler, [np.inf, 1.0])
    assert w.tolist() == [1, 2] and optimizer.state[w]["step"] == 0


def test_one_overflowing_optimizer_skips_its_own_step_alone():
    a, first, scaler = problem(genesis)
    b, second, _ = problem(genesis)
    scaler.scale((a * genesis.tensor([np.inf, 1.0])).sum() + b.sum()).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert a.tolist() == [1, 2] and b.tolist() != [1, 2]
    assert scaler.get_scale() == 256


def test_unscaled_gradients_can_be_clipped():
    w, optimizer, scaler = problem(genesis)
    scaler.scale((w * genesis.tensor([3.0, 4.0])).sum()).backward()
    assert w.grad.tolist() == [3072, 4096]
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [3, 4]
    assert genesis.nn.utils.clip_grad_norm_([w], 1.0).item() == 5
    scaler.step(optimizer)
    np.testing.assert_allclose(w.tolist(), [0.9, 1.9], rtol=1e-6)


def test_many_outputs_are_scaled_in_what_they_came_in():
    scaler = GradScaler(2.0)
    pair = scaler.scale((genesis.ones(1), [genesis.ones(1)]))
    assert isinstance(pair, tuple) and pair[0].item() == pair[1][0].item() == 2
    assert [y.item() for y in scaler.scale(genesis.ones(1) for _ in range(2))] == [2, 2]
    with pytest.raises(TypeError, match=r"GradScaler.scale: wants a tensor or an iterable of them, got float"):
        scaler.scale(1.0)


def test_a_16_bit_loss_is_scaled_in_float32():
    loss = genesis.tensor(2.0, dtype=genesis.float16)
    assert GradScaler().scale(loss).item() == 131072
    assert GradScaler().scale(loss).dtype is genesis.float32


def test_update_takes_a_scale():
    w, optimizer, scaler = problem(genesis)
    iterate(genesis, w, optimizer, scaler, [1.0, 1.0])
    scaler.update(8.0)
    assert scaler.get_scale() == 8
    scaler.update(genesis.tensor(16.0))
    assert scaler.get_scale() == 16


def test_state_goes_from_torchs_scaler_to_ours_and_back():
    ours, theirs = problem(genesis), problem(torch)
    for _ in range(4):
        iterate(torch, *theirs, [1.0, 1.0])
    ours[2].load_state_dict(theirs[2].state_dict())
    assert ours[2].state_dict() == theirs[2].state_dict()
    for _ in range(4):
        assert iterate(genesis, *ours, [1.0, 1.0])[0] == iterate(torch, *theirs, [1.0, 1.0])[0]
    with pytest.raises(RuntimeError, match="the state is empty"):
        ours[2].load_state_dict({})


def test_a_disabled_scaler_passes_everything_through():
    w, optimizer, scaler = problem(genesis, enabled=False)
    loss = (w * w).sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.grad.tolist() == [2, 4] and w.tolist() != [1, 2]
    assert not scaler.is_enabled() and scaler.get_scale() == 1 and scaler.state_dict() == {}


def test_calls_out_of_order_say_what_is_missing():
    w, optimizer, scaler = problem(genesis)
    for method in (scaler.unscale_, scaler.step):
        with pytest.raises(RuntimeError, match="nothing was scaled; call scale"):
            method(optimizer)
    with pytest.raises(RuntimeError, match=r"GradScaler.update: nothing was scaled"):
        scaler.update()
    loss = scaler.scale(w.sum())
    with pytest.raises(RuntimeError, match="no parameter of this optimizer has a gradient"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"GradScaler.update: no gradients were checked"):
        scaler.update()
    loss.backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"were unscaled since the last update\(\)"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"GradScaler.unscale_: was called after step\(\)"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"GradScaler.step: was called after step\(\)"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="a closure is not supported"):
        scaler.step(optimizer, lambda: loss)


def test_float16_gradients_are_refused():
    w = genesis.ones(2, dtype=genesis.float16, requires_grad=True)
    scaler = GradScaler(2.0)
    scaler.scale(w.sum()).backward()
    with pytest.raises(ValueError, match="gradients are float16; keep the parameters float32"):
        scaler.step(genesis.optim.SGD([w], lr=0.1))


def test_factors_out_of_range_are_refused():
    with pytest.raises(ValueError, match="growth_factor must be above 1, got 1"):
        GradScaler(growth_factor=1)
    with pytest.raises(ValueError, match=r"backoff_factor must be below 1, got 2"):
        GradScaler(backoff_factor=2)


def test_settings_can_be_read_and_set():
    scaler = GradScaler()
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.1)
    scaler.set_growth_interval(7)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3.0, 0.1, 7)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("cause", ["a label", "a matrix"])
def test_after_a_step_that_fails_gradients_are_unscaled_again(cause, compiled):
    states = []
    for library in (torch, genesis):
        w, optimizer, scaler = problem(library)

        def step(labels, matrix, library=library, w=w, optimizer=optimizer, scaler=scaler):
            optimizer.zero_grad()
            loss = library.nn.functional.cross_entropy(w.expand(2, 2) * library.tensor([1.0, 3.0]), labels)
            loss = loss + library.linalg.inv(matrix).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss

        run = genesis.compile(step) if compiled and library is genesis else step
        for k in range(4):
            labels, matrix = library.tensor([0, 1]), library.eye(2)
            if k not in (1, 2):
                run(labels, matrix)
                continue
            bad = (library.tensor([0, 1000]), matrix) if cause == "a label" else (labels, library.zeros(2, 2))
            with pytest.raises((IndexError, RuntimeError), match=r"1000|singular"):
                run(*bad)
        moments = optimizer.state_dict()["state"][0]["exp_avg"]
        states.append(([w.tolist(), w.grad.tolist(), moments.tolist()], scaler.state_dict()))
    (theirs, their_scaler), (ours, our_scaler) = states
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert our_scaler == their_scaler
