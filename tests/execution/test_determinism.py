"""With `use_deterministic_algorithms(True)` every number of threads gives the same bits."""

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.codegen.cpu.lapack import launch
from genesis.nn import functional as F
from genesis.runtime.native import Block

RANDOM = np.random.default_rng(0)
ROWS, IMAGES = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((700, 400), (8, 16, 20, 20)))
LABELS = RANDOM.integers(0, 300, 700)


def gradients(function, *shapes):
    """The gradients of a function's mean square by matrices of ROWS' numbers."""
    inputs = [genesis.tensor(np.resize(ROWS, shape), requires_grad=True) for shape in shapes]
    function(*inputs).square().mean().backward()
    return [x.grad for x in inputs]


def adam_steps():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(400, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 300))
    optimizer = genesis.optim.Adam(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(model(rows()), genesis.tensor(LABELS)).backward()
        optimizer.step()
    return list(model.parameters())


def rows():
    return genesis.tensor(ROWS)


CASES = {
    "sums over everything": lambda: [rows().sum(), rows().exp().mean(), (1 + rows() * 1e-4).prod(), rows().var()],
    "sums of columns": lambda: [rows().sum(0), (rows().sum(1), rows().square().sum(0))[1]],
    "running sums": lambda: [rows().flatten().cumsum(0), rows().cumsum(0)],
    "scatter-adds": lambda: [rows().new_zeros(300, 400).index_add(0, genesis.tensor(LABELS), rows()),
                             genesis.bincount(genesis.tensor(LABELS), rows()[:, 0])],
    "products of many terms": lambda: [rows().T @ rows(), rows()[0] @ rows().T, rows().flatten() @ rows().flatten()],
    "normalization": lambda: gradients(lambda x, w: F.layer_norm(x, (400,), w), (700, 400), (400,)),
    "convolution": lambda: gradients(
        lambda x, w: F.conv2d(x, w, stride=2, padding=1), (16, 16, 20, 20), (32, 16, 3, 3)),
    "attention": lambda: gradients(F.scaled_dot_product_attention, *[(1, 1, 2048, 32)] * 3),
    "recurrence": lambda: gradients(lambda x: nn.LSTM(40, 48)(x)[0], (20, 32, 40)),
    "steps of Adam": adam_steps,
}


@pytest.fixture
def any_threads():
    before = genesis.get_num_threads()
    genesis.use_deterministic_algorithms(True)
    yield
    genesis.use_deterministic_algorithms(False)
    genesis.set_num_threads(before)


@pytest.mark.parametrize("case", CASES)
def test_results_do_not_depend_on_the_number_of_threads(any_threads, case):
    found = []
    for threads in (1, 2, 3, 4):
        genesis.set_num_threads(threads)
        genesis.manual_seed(0)
        found.append([result.detach().numpy().tobytes() for result in CASES[case]()])
    assert found[1:] == found[:1] * 3


def test_a_compiled_step_is_recorded_for_each_setting(any_threads):
    x = genesis.tensor(RANDOM.standard_normal(300_000).astype(np.float32))
    attention = genesis.compile(lambda x: gradients(F.scaled_dot_product_attention, *[(1, 1, 2048, 32)] * 3)[1] + x.sum())
    genesis.set_num_threads(2)
    fixed = attention(x).numpy()
    genesis.use_deterministic_algorithms(False)
    attention(x)
    genesis.use_deterministic_algorithms(True)
    genesis.set_num_threads(3)
    assert attention(x).numpy().tobytes() == fixed.tobytes()


def test_blas_takes_the_same_threads_whatever_there_are(any_threads, monkeypatch):
    taken = []
    monkeypatch.setattr(launch, "BY_BLAS", 0)
    monkeypatch.setattr(launch, "Block", lambda words, items: taken.append(words[2]) or Block(words, items))
    for threads in (1, 3):
        genesis.set_num_threads(threads)
        genesis.linalg.inv(genesis.tensor(np.eye(4) * (threads + 1))).numpy()
    assert taken == [launch.FIXED] * 2


def test_the_setting_has_the_names_of_pytorch():
    assert not genesis.are_deterministic_algorithms_enabled() and genesis.get_deterministic_debug_mode() == 0
    try:
        genesis.use_deterministic_algorithms(True, warn_only=True)
        assert genesis.is_deterministic_algorithms_warn_only_enabled() and genesis.get_deterministic_debug_mode() == 1
        genesis.set_deterministic_debug_mode("error")
        assert genesis.are_deterministic_algorithms_enabled() and not genesis.is_deterministic_algorithms_warn_only_enabled()
        for wrong, error in ((3, RuntimeError), ("on", RuntimeError), (1.5, TypeError)):
            with pytest.raises(error, match="set_deterministic_debug_mode"):
                genesis.set_deterministic_debug_mode(wrong)
        with pytest.raises(TypeError, match="use_deterministic_algorithms: mode wants True or False"):
            genesis.use_deterministic_algorithms(1)
    finally:
        genesis.set_deterministic_debug_mode("default")
    assert not genesis.are_deterministic_algorithms_enabled()
