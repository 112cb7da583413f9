"""The cost model: what stages move and compute, which values are worth their memory, and what fusion refused."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.codegen.cuda.program import target_of
from genesis.lower.materialize import is_worth_keeping
from genesis.lower.target import Target

HOST = Target(2)


def stages(*tensors):
    return [stage.estimate for stage in genesis.debug.kernels(*tensors).stages]


@pytest.fixture
def abc():
    return [genesis.tensor([[float(k)] * 300] * 200) for k in range(3)]


def test_an_elementwise_kernel_moves_each_element_once(abc):
    a, b, c = abc
    [found] = stages(a * b + c)
    assert (found.nbytes, found.flops) == (4 * 4 * 60_000, 2 * 60_000)


def test_what_is_spread_or_cut_out_is_counted_as_it_is_read(abc):
    a, b, _ = abc
    [spread] = stages(a * b[0])
    [cut] = stages(a[:50] * 2.0)
    assert spread.nbytes == 4 * (2 * 60_000 + 300)
    assert cut.nbytes == 4 * 2 * 15_000


def test_a_reduction_reads_all_and_writes_rows(abc):
    [found] = stages(abc[0].exp().sum(1))
    assert found.nbytes == 4 * (60_000 + 200)
    assert found.flops > 10 * 60_000, "an exponential is dear"


def test_a_product_counts_multiplications_and_additions():
    x, y = (genesis.from_numpy(np.ones(shape, np.float32)) for shape in ((3, 64, 32), (32, 16)))
    [found] = stages(x @ y)
    assert found.flops == 2 * 3 * 64 * 32 * 16


def test_more_work_takes_longer(abc):
    a = abc[0]
    less, more, most = lambda: a[:20] + 1.5, lambda: a + 1.5, lambda: a.exp().sin().tan().exp().tanh()
    seconds = [stages(work())[0].seconds for work in (less, more, most)]
    assert 0 < seconds[0] < seconds[1] < seconds[2]


def test_cheap_values_are_computed_again_and_dear_ones_kept():
    kept = [is_worth_keeping(cost, 1 << 20, HOST, sources=1, large=1) for cost in (2, 20, 21, 50)]
    assert kept == [False, False, True, True]
    assert is_worth_keeping(2, 1 << 20, HOST, sources=2, large=2), "it takes more reading than one value"
    assert not is_worth_keeping(60, 1 << 20, HOST, sources=0, large=0), "a random number takes none"


@pytest.mark.parametrize("capability", [(7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0), (12, 1)])
def test_a_gpu_computes_again_what_the_host_would_keep(capability):
    gpu = target_of(capability)
    assert is_worth_keeping(25, 1 << 28, HOST, sources=1, large=1)
    assert not is_worth_keeping(25, 1 << 28, gpu, sources=1, large=1), "it computes more while memory answers"
    assert is_worth_keeping(500, 1 << 28, gpu, sources=1, large=1)
    assert not is_worth_keeping(1, 1 << 20, gpu, sources=1, large=1)


def test_what_is_not_fused_is_recorded_with_its_reason(abc):
    x = genesis.rand(40, 50)
    found = genesis.debug.kernels((x.softmax(1).t().exp() @ genesis.ones(40, 3)).relu())
    refused = "\n".join(found.refusals)
    assert "exp" in refused and "away from where it is computed" in refused
    assert "relu" in refused and "a contract is no loop" in refused


def test_a_full_kernel_says_so():
    x = genesis.rand(64)
    for _ in range(70):
        x = x * 1.5 + 0.5
    assert any("has 64 operations" in refusal for refusal in genesis.debug.kernels(x).refusals)


def test_one_kernel_refuses_nothing(abc):
    a, b, c = abc
    assert genesis.debug.kernels((a * b + c).tanh().sum(1)).refusals == []
