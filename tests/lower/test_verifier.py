"""The verifier: it finds every mistake that changes a result, and names the launch, the value and the bytes."""

import importlib
import random
from collections import Counter
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.lower import lower
from genesis.lower.footprint import Footprint, Tiles, keeps_to_tiles
from genesis.lower.schedule import Location
from genesis.lower.stages import Loop
from genesis.lower.target import Target
from genesis.lower.verifier import MemoryPlanError, verify
from tests.fuzz.programs import Program
from tests.fuzz.steps import STEPS
from tests.lower.mutants import MISTAKES, changes_a_result, may_run_astray, recorded_programs
from tests.lower.text import parsed

EPILOGUES, TILES = map(importlib.import_module, ("genesis.lower.fuse_epilogues", "genesis.lower.fuse_tiles"))
FEW = 1 << 20  # bytes of inputs, up to which a program is run for each of its mutants
RANDOM = 24


def train(model, x, target, loss, optimizer):
    for _ in range(2):
        optimizer.zero_grad()
        loss(model(x), target).backward()
        optimizer.step()


def operand(*shape):
    return genesis.tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


# ---- real programs ----

def a_multilayer_perceptron():
    model = nn.Sequential(nn.Linear(13, 40), nn.GELU(), nn.Linear(40, 5))
    train(model, operand(9, 13), genesis.arange(9) % 5, nn.functional.cross_entropy, optim.Adam(model.parameters()))


def a_convolutional_network():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.Flatten(),
        nn.Dropout(0.2), nn.Linear(96, 5))
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    train(model, operand(3, 1, 12, 12), genesis.arange(3), nn.functional.cross_entropy, optimizer)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(11, 16), nn.LayerNorm(16)
        self.inside, self.outside, self.head = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 11)

    def forward(self, tokens):
        x = self.embedding(tokens)
        parts = self.inside(self.norm(x)).chunk(3, -1)
        heads = [part.reshape(*tokens.shape, 2, 8).transpose(1, 2) for part in parts]
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(x.shape)
        return self.head(x + self.outside(mixed)).flatten(0, 1)


def a_transformer():
    model, tokens = Transformer(), genesis.arange(20).reshape(2, 10) % 11
    train(model, tokens, tokens.flatten(), nn.functional.cross_entropy, optim.AdamW(model.parameters()))


def views_that_are_written_to():
    x = genesis.arange(48.0).reshape(6, 8) + 1
    rows = x[1:4]
    rows.mul_(2)
    x[:, 3] = rows.sum()
    x.T[2] += 1
    y = genesis.cat([x[:3], rows, x * 2])
    z = y.clone()
    z[::2] = 0
    z[genesis.tensor([1, 3])] = 5
    w = z.scatter(0, genesis.tensor([[0, 1, 2, 3, 4, 5, 0, 1]]), genesis.ones(1, 8)).cumsum(0)
    return [tensor.tolist() for tensor in (x, rows, y, z, w)]


def joined_products():
    a, b = operand(12, 8), operand(12, 5)
    y = genesis.cat([a @ a.T, b @ b.T, (a @ a.T).exp()], 1)
    inverse = genesis.linalg.inv(a.T @ a + genesis.eye(8)) * 2
    return [tensor.tolist() for tensor in (y, genesis.stack([a, a * 2]), y.sort(1)[0], inverse)]


def loops_over_tiles():
    settings = {"LEAST_SAVED": 1, "LEAST_ROWS": 4, "PACKING": 0, "CACHE": 4096}
    with patch.multiple(TILES, **settings):
        ((operand(70, 20) @ operand(20, 33)).relu() @ operand(33, 20) + 1).tolist()
        q, k = operand(2, 3, 40, 16).requires_grad_(), operand(2, 3, 40, 16).requires_grad_()
        (((q @ k.mT) / 4).softmax(-1) @ k).square().sum().backward()
        return q.grad.tolist(), k.grad.tolist()


def epilogues_of_products():
    model, x = nn.Sequential(nn.Linear(64, 96), nn.Sigmoid(), nn.Linear(96, 64)), operand(80, 64)
    with patch.multiple(EPILOGUES, LEAST_SAVED=1, PACKING=0), patch.object(TILES, "LEAST_SAVED", 1 << 40):
        for optimizer in (optim.SGD(model.parameters(), lr=0.01, momentum=0.9), optim.Adam(model.parameters())):
            train(model, x, x, nn.functional.mse_loss, optimizer)


def a_random_program(seed):
    program = Program(random.Random(seed).randint, gradients=bool(seed % 2))
    program.run(12, STEPS)
    program.finish()


PROGRAMS = [a_multilayer_perceptron, a_convolutional_network, a_transformer, views_that_are_written_to, joined_products,
            loops_over_tiles, epilogues_of_products]


@pytest.fixture
def two_threads():
    before = genesis.get_num_threads()
    genesis.set_num_threads(2)
    yield
    genesis.set_num_threads(before)


def recorded():
    """The programs that all of these ran."""
    found = []
    genesis.manual_seed(0)
    for run in [*PROGRAMS, *[lambda seed=seed: a_random_program(seed) for seed in range(RANDOM)]]:
        with recorded_programs() as programs:
            run()
            genesis.zeros(()).item()  # what is pending is run too
        found += [program for program in programs if sum(map(len, program.inputs)) < FEW]
    return found


def test_every_mistake_that_changes_a_result_is_found(two_threads):
    choose = np.random.default_rng(0)
    counts, missed, programs = Counter(), [], recorded()
    for number, program in enumerate(programs):
        verify(program.lowered, program.saved)
        assert not changes_a_result(program, program.lowered)
        for mistake in [mistake for mistake in MISTAKES for _ in range(2)]:
            mutant = mistake(choose, program.lowered)
            if mutant is None:
                continue
            try:
                verify(mutant, program.saved)
                found = False
            except MemoryPlanError:
                found = True
            counts["made"] += 1
            counts["found"] += found
            if found and may_run_astray(program):
                continue
            changed = changes_a_result(program, mutant)
            counts[mistake.__name__] += changed and found
            if changed and not found:
                missed.append((number, mistake.__name__))
    assert not missed
    assert counts["made"] > 500 and sum(counts[mistake.__name__] for mistake in MISTAKES) > 200, counts
    assert sum(counts[mistake.__name__] > 0 for mistake in MISTAKES) >= 6, counts


# ---- claims, each with a mistake of its own ----

STEP = """
%0 = input() : float32[64]
%1 = input() : float32[64]
%2 = input() : float32[8, 8]
%3 = matmul(%2, %2) : float32[8, 8]
%4 = reshape(%3, shape=(64,), strides=(1,), offset=0) : float32[64]
%5 = add(%0, %4) : float32[64]
%6 = flip(%5, shape=(64,), strides=(-1,), offset=63) : float32[64]
%7 = mul(%1, %6) : float32[64]
return %5, %7
"""


def step():
    graph = parsed(STEP)
    return lower(graph.nodes, graph.outputs, Target(1))


def moved(lowered, value, place):
    return lowered._replace(schedule=lowered.schedule._replace(locations=lowered.schedule.locations | {value: place}))


def refusal(lowered, saved=0):
    with pytest.raises(MemoryPlanError) as caught:
        verify(lowered, saved)
    return str(caught.value)


def test_a_program_as_it_is_lowered_is_right():
    verify(step())


def test_a_value_that_is_written_over_before_it_is_read_is_named_with_its_bytes_and_the_launch():
    lowered = step()
    product = next(value for value, place in lowered.schedule.locations.items() if place.kind == "arena")
    assert lowered.donations == [(0, 0), (1, 1)]
    said = refusal(moved(lowered, product, Location("output", 0)))
    name = lowered.schedule.stages[1][0].kernel.name
    assert said == (
        f"stage 1, kernel {name} over [64] for %5: %0 = input(), float32[64], bytes 0 to 256 of input 0, is read after "
        f"stage 0, product %{product} = matmul() has written to bytes 0 to 256 of input 0 for %{product}")


def test_an_arena_that_is_too_small_is_found():
    lowered = step()
    said = refusal(lowered._replace(schedule=lowered.schedule._replace(arena_bytes=64)))
    assert "takes 256 bytes from 0 on of an arena of 64" in said


def test_an_input_that_is_read_out_of_step_is_not_written_over():
    backwards = parsed("""
        %0 = input() : float32[64]
        %1 = flip(%0, shape=(64,), strides=(-1,), offset=63) : float32[64]
        %2 = exp(%1) : float32[64]
        return %2
        """)
    lowered = lower(backwards.nodes, backwards.outputs, Target(1))
    assert lowered.donations == []
    assert "is read when %2 may have been written over it" in refusal(lowered._replace(donations=[(0, 0)]))


def test_a_stage_that_comes_too_early_or_not_at_all_is_found():
    lowered = step()
    first, *later = lowered.schedule.stages
    assert "yet to write to it" in refusal(lowered._replace(schedule=lowered.schedule._replace(stages=[*later, first])))
    assert "nothing has written it" in refusal(lowered._replace(schedule=lowered.schedule._replace(stages=later)))


def test_results_lie_apart():
    lowered = step()
    (first, _), (second, _) = lowered.outputs
    one = lowered._replace(donations=[])
    assert "is read when %7 may have been written over it" in refusal(moved(one, first, one.schedule.locations[second]))
    larger = moved(one, second, Location("arena", 512))
    assert "is a result" in refusal(larger._replace(schedule=larger.schedule._replace(arena_bytes=1024)))
    twice = one._replace(outputs=[one.outputs[0], one.outputs[0]])
    assert "where another one does" in refusal(twice)
    verify(twice, saved=1)


def test_no_index_is_looked_at_once_an_input_may_be_written_over():
    graph = parsed("""
        %0 = input() : float32[64]
        %1 = input() : float32[32]
        %2 = input() : int64[32]
        %3 = exp(%0) : float32[64]
        %4 = check_index(%2, extent=32, wrap=True) : int64[32]
        %5 = gather(%1, %4, dim=0) : float32[32]
        return %3, %5
        """)
    lowered = lower(graph.nodes, graph.outputs, Target(1))
    stages = lowered.schedule.stages
    assert len(stages) == 2 and lowered.donations == []
    early = lowered._replace(donations=[(0, lowered.schedule.locations[lowered.outputs[0][0]].position)])
    assert "this call may fail" in refusal(early)


def test_tiles_of_workers_lie_apart():
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(TILES, LEAST_SAVED=1, LEAST_ROWS=4, PACKING=0, CACHE=4096))
        graph = parsed("""
            %0 = input() : float32[70, 20]
            %1 = input() : float32[20, 33]
            %2 = input() : float32[33, 20]
            %3 = matmul(%0, %1) : float32[70, 33]
            %4 = exp(%3) : float32[70, 33]
            %5 = matmul(%4, %2) : float32[70, 20]
            return %5
            """)
        lowered = lower(graph.nodes, graph.outputs, Target(2))
    (loop,) = [call for stage in lowered.schedule.stages for call in stage if isinstance(call, Loop)]
    verify(lowered)
    one, other = loop.private
    said = refusal(moved(lowered, one, lowered.schedule.locations[other]))
    assert "which this loop uses for something else" in said
    assert "arena" in refusal(lowered._replace(target=Target(64)))


def test_a_part_of_no_element_is_written():
    graph = parsed("""
        %0 = input() : float32[6]
        %1 = input() : float32[0]
        %2 = put(%0, %1, shape=(0,), strides=(1,), offset=3) : float32[6]
        return %2
        """)
    verify(lower(graph.nodes, graph.outputs, Target(1)))
    x = genesis.arange(12.0)
    x[x > 100] = genesis.zeros(0)  # a scatter
    assert x.tolist() == [*range(12)]


def test_a_part_whose_strides_interleave_is_written():
    graph = parsed("""
        %0 = input() : float32[48]
        %1 = input() : float32[3, 2, 2, 3]
        %2 = put(%0, %1, shape=(3, 2, 2, 3), strides=(12, 6, 9, 1), offset=3) : float32[48]
        return %2
        """)
    verify(lower(graph.nodes, graph.outputs, Target(1)))


# ---- what it found ----

def test_an_input_in_which_a_saved_value_lies_is_given_to_no_result():
    """A sum over one element is a view of what it sums: what backward is to read of it lies in the input."""
    graph = parsed("""
        %0 = input() : float32[1, 64]
        %1 = exp(%0) : float32[1, 64]
        %2 = sum(%0, axes=(0,)) : float32[64]
        return %1
        """)
    lowered = lower(graph.nodes, [1], Target(1), saved=[2])
    assert lowered.schedule.locations[lowered.outputs[1][0]].kind == "input" and lowered.donations == []
    verify(lowered, saved=1)
    assert "is read after stage 0" in refusal(lowered._replace(donations=[(0, 0)]), saved=1)


def test_what_a_row_still_needs_is_not_written_over_by_what_is_computed_from_its_sum():
    """y is computed from the sums of g alone, z from the sums and from g itself: the kernel stores y first."""
    rows, row = np.random.default_rng(0).standard_normal((64, 3000)).astype(np.float32), np.arange(3000, dtype=np.float32)
    g, scale = genesis.tensor(rows) * 1, genesis.tensor(row)
    g.tolist()
    sums = g.sum(1, keepdim=True)
    y, z = scale * sums, g * sums + 1
    del g, sums
    want = rows.sum(1, keepdims=True)
    np.testing.assert_allclose(z.numpy(), rows * want + 1, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(y.numpy(), row * want, rtol=1e-3, atol=1)


def test_tiles_whose_heads_interleave_in_one_row_lie_apart():
    """Gradients of queries, keys and values go into one buffer: a tile has some heads of each of its rows."""
    x, project, out = genesis.randn(2, 64, 32).requires_grad_(), nn.Linear(32, 96), nn.Linear(32, 32)
    heads = [part.view(2, 64, 4, 8).transpose(1, 2) for part in project(x).chunk(3, dim=-1)]
    y = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
    out(y.transpose(1, 2).reshape(2, 64, 32)).square().mean().backward()
    assert x.grad.isfinite().all()  # MemoryPlanError if it takes the heads of a row for one another's


def test_tiles_that_write_or_read_one_anothers_elements_do_not_lie_apart():
    two = Tiles(4, np.repeat([0, 1], 2), np.array([0, 2, 4]))  # of two points each
    apart = Footprint(0, True, 0, ((4, 1),), ((3, 4),))  # four points, columns of a 3 x 4 matrix
    assert keeps_to_tiles([apart], [apart._replace(writes=False)], 12, two)
    for shared in (apart._replace(outer=((4, 0),)), apart._replace(offset=1, inner=((2, 4),)), apart._replace(anywhere=True)):
        assert not keeps_to_tiles([apart], [shared], 12, two)
    assert not keeps_to_tiles([apart._replace(outer=((2, 1), (2, 1)))], [], 12, two)  # points 1 and 2 write the same
