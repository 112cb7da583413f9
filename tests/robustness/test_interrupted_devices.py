"""Ctrl-C while several devices compute: what is done again has the value it had, and every tensor is where it was."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import genesis
from genesis import nn

from .interrupts import CONTEXTS, interrupt, moments_of


def moments_to_try(function: Callable[[], Any], most: int) -> list[int]:
    """Moments all through a call, different ones from place to place."""
    count = moments_of(function)
    return sorted(random.Random(0).sample(range(1, count + 1), min(most, count)))


def test_an_interrupted_way_over_devices_can_be_gone_again():
    leaf = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def there_and_back() -> Any:
        leaf.grad = None
        there = (leaf * 2.5).to("cpu:1")
        loss = (there * there + genesis.tensor(1.5)).sum().to("cpu:2")
        loss.backward()
        return loss.item(), leaf.grad.tolist()

    expected = there_and_back()
    for moment in moments_to_try(there_and_back, 100):
        beside = genesis.ones(3, device="cpu:1") * 1.5
        where = interrupt(there_and_back, moment)
        assert beside.tolist() == [1.5] * 3, where
        assert there_and_back() == expected, where


def test_an_interrupted_parallel_step_leaves_parameters_where_they_were():
    genesis.manual_seed(0)
    model = nn.DataParallel(nn.Linear(3, 2), ["cpu", "cpu:1"])
    gm = genesis.GradManager(["cpu", "cpu:1"]).attach(model.parameters())
    inputs = genesis.randn(5, 3)

    def gradients() -> Any:
        found = [p.grad.tolist() for p in model.parameters()]
        gm.release()
        return found

    def steps() -> Any:
        model.zero_grad()
        model(inputs).square().sum().backward()
        replicas = gradients()
        gm.run(lambda x: model.module(x).square().sum(), inputs, reduction="sum")
        return replicas, gradients()

    expected = steps()
    as_modes_change = moments_of(steps, CONTEXTS)
    assert as_modes_change > 10
    tried = [(moment, CONTEXTS) for moment in range(1, as_modes_change + 1)]
    for moment, within in [*tried, *((moment, ()) for moment in moments_to_try(steps, 50))]:
        where = interrupt(steps, moment, within)
        assert genesis.is_grad_enabled(), where
        assert {str(p.device) for p in model.parameters()} == {"cpu"}, where
        assert steps() == expected, where
