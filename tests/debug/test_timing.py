"""Times of stages: which there are, and that they add up to what a run takes."""

from __future__ import annotations

import time

import genesis


def test_every_stage_of_every_program_is_timed_and_all_fit_into_the_run():
    x = genesis.ones(64, 64)
    began = time.perf_counter()
    with genesis.debug.timing() as times:
        (x @ x).exp().sum(1).tolist()
        (x + 1).tolist()
    taken = time.perf_counter() - began
    first, second = times.programs
    assert [stage.text.split()[0] for stage in first] == ["product", "kernel"]
    assert first[0].flops == 2 * 64**3 and second[0].flops == 0
    assert all(stage.seconds > 0 for stage in first + second)
    assert sum(stage.seconds for stage in first + second) < taken


def test_sums_of_products_that_kernels_compute_count_as_those_of_products():
    x, w = genesis.ones(2, 8, 16, 16), genesis.ones(8, 1, 3, 3)
    with genesis.debug.timing() as times:
        genesis.nn.functional.conv2d(x, w, groups=8).tolist()
    [stages] = times.programs
    assert sum(stage.flops for stage in stages) == 2 * 9 * 2 * 8 * 14 * 14


def test_each_sum_of_products_of_a_kernel_counts_beside_whatever_else_it_computes():
    x, y = (genesis.ones(30, 40) * number for number in (2, 3))
    with genesis.debug.timing() as times:
        total, squares = (x * y).sum(), (x * x).sum()
        (total + squares + y.exp().sum()).tolist()
    assert sum(stage.flops for stages in times.programs for stage in stages) == 2 * 2 * 30 * 40
