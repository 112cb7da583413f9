"""Loops over tiles on a GPU: with room for few scores at a time, values and gradients are those of the CPU."""

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.codegen.cuda import program
from genesis.lower.target import SequentialTiles
from genesis.tensor import new_programs
from tests.tolerances import assert_close


@pytest.fixture(autouse=True)
def programs_are_whole():
    """All backwards run in one line, whose programs of ever new sizes would be flushed in parts."""
    new_programs._met.clear()


@pytest.fixture
def room(monkeypatch):
    """Sets the bytes that a tile has room for."""
    def small(nbytes):
        monkeypatch.setattr(program, "SEQUENTIAL_TILES", SequentialTiles(nbytes, 1 << 40, 1 << 20))

    return small


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def assert_as_on_the_cpu(computed, least=2, scale=4.0):
    """`computed(device)` gives tensors; on the GPU in a loop of at least so many tiles."""
    expected = computed("cpu")
    found = computed("cuda")
    loops = [line for line in str(genesis.debug.program(*found)).splitlines() if line.startswith("loop")]
    assert max((int(line.split()[1]) for line in loops), default=0) >= least, loops
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours.detach().cpu(), theirs.detach(), scale=scale)


def attention(queries, keys, dtype=genesis.float32, mask=None, **settings):
    def computed(device):
        genesis.manual_seed(3)
        q, k, v = (genesis.tensor(numbers(*shape, seed=seed), device=device, dtype=dtype, requires_grad=True)
                   for seed, shape in enumerate((queries, keys, keys)))
        given = {} if mask is None else {"attn_mask": genesis.tensor(numbers(*mask), device=device)}
        y = F.scaled_dot_product_attention(q, k, v, **given, **settings)
        y.float().square().sum().backward()
        return y, q.grad, k.grad, v.grad

    return computed


CASES = {
    "rows, the last tile shorter": ((1, 2, 7, 4), (1, 2, 7, 4), {}, 600, 4),
    "causal": ((1, 2, 7, 4), (1, 2, 7, 4), {"is_causal": True}, 600, 4),
    "causal, several heads in a tile": ((2, 2, 5, 4), (2, 2, 5, 4), {"is_causal": True}, 1000, 2),
    "dropout": ((2, 2, 6, 4), (2, 2, 6, 4), {"dropout_p": 0.3}, 900, 4),
    "other keys": ((1, 1, 7, 4), (1, 1, 5, 4), {"dropout_p": 0.2}, 200, 7),
    "a mask of keys": ((2, 2, 6, 4), (2, 2, 6, 4), {"mask": (2, 1, 1, 6)}, 900, 4),
    "a mask of scores": ((3, 1, 5, 4), (3, 1, 5, 4), {"mask": (5, 5)}, 500, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_attention_and_its_gradients(name, room):
    queries, keys, settings, nbytes, least = CASES[name]
    room(nbytes)
    assert_as_on_the_cpu(attention(queries, keys, **settings), least)


def test_sums_of_sixteen_bits_are_added_up_in_thirty_two(room):
    """In float16, 2048 + 1 is 2048."""
    room(60)

    def computed(device):
        x = genesis.tensor(np.ones((24, 5)), device=device, dtype=genesis.float16)
        first = genesis.tensor([2048.0] + [1.0] * 23, device=device, dtype=genesis.float16).reshape(24, 1)
        w = genesis.tensor(np.eye(5), device=device, dtype=genesis.float16)
        return ((((x * first) @ w).abs() * 1).t() @ x, )

    assert_as_on_the_cpu(computed)
    assert computed("cuda")[0].tolist() == [[2072.0] * 5] * 5


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.bfloat16, genesis.float64])
def test_gradients_of_weights_are_summed_over_tiles_of_rows(dtype, room):
    room(200)

    def computed(device):
        x, w, v = (genesis.tensor(numbers(*shape), device=device, dtype=dtype, requires_grad=True)
                   for shape in ((13, 5), (6, 5), (4, 6)))
        y = F.linear(F.linear(x, w).tanh(), v)
        y.float().square().sum().backward()
        return w.grad, v.grad

    assert_as_on_the_cpu(computed)


def test_gradients_of_convolutions_are_summed_over_tiles_of_the_batch(room):
    room(1000)

    def computed(device):
        x, w, v = (genesis.tensor(numbers(*shape), device=device, requires_grad=True)
                   for shape in ((5, 2, 6, 5), (3, 2, 3, 3), (2, 3, 3, 3)))
        F.conv2d(F.conv2d(x, w, None, 1, 1).relu(), v, None, 1, 1).square().sum().backward()
        return x.grad, w.grad, v.grad

    assert_as_on_the_cpu(computed)


def test_a_compiled_step_and_a_replayed_one_are_as_the_first(room):
    room(300)
    model = genesis.nn.MultiheadAttention(4, 2, batch_first=True).cuda()
    x = genesis.tensor(numbers(2, 5, 4), device="cuda")

    @genesis.compile
    def step(x):
        model.zero_grad()
        y, _ = model(x, x, x, need_weights=False)
        y.square().sum().backward()
        return y.detach(), [p.grad for p in model.parameters()]

    first, gradients = step(x)
    first, gradients = first.cpu(), [g.cpu() for g in gradients]
    for _ in range(2):
        again, more = step(x)
        assert_close(again.cpu(), first)
        for ours, theirs in zip(more, gradients, strict=True):
            assert_close(ours.cpu(), theirs)
