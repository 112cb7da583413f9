"""Random programs of collectives against NumPy, which computes all ranks' values. Run by `test_collectives.py`.

    mpiexec -n 3 python -m genesis.distributed random_script.py check_random_programs_are_those_of_numpy --programs 200 --seed 7

All ranks run one program; which values are looked at, and when memory is collected, differs from rank to rank.
"""

import gc
import sys

import numpy as np
from checks import run

import genesis
import genesis.distributed as dist
from genesis.distributed.nn import functional

LENGTH, STEPS, CALLS = 12, 14, 7  # 12 is divisible by 1 to 4 ranks
REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min, "avg": np.mean}


def option(name, default):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default


class Program:
    """Steps over two kinds of values: those of a call, and those that it keeps for the next call (`state`)."""

    def __init__(self, seed, groups):
        self.random = np.random.default_rng(seed)
        self.groups = groups  # (ranks, group) of each; the first is that of all
        self.steps = [self.drawn(2 + k) for k in range(STEPS)]

    def drawn(self, known):
        """What a step does to which of so many values."""
        random = self.random
        kind = random.choice(["sine", "add", "reduce", "gather", "scatter", "broadcast", "all_to_all", "exchange", "in place",
                              "asynchronous", "state", "product", "reduce_to", "uneven"])
        return (str(kind), *[int(random.integers(known)) for _ in range(2)], str(random.choice([*REDUCTIONS])),
                int(random.integers(len(self.groups))), int(random.integers(64)))

    def run(self, x, state):
        """The program on this rank, in genesis."""
        values, own = [x, state * 1.0], dist.get_rank()
        for kind, a, b, reduction, number, salt in self.steps:
            ranks, group = self.groups[number]
            one, other = values[a], values[b]
            root, size = ranks[salt % len(ranks)], len(ranks)
            is_in = own in ranks
            if kind == "sine":
                made = (one * 2 + 0.5).sin()
            elif kind == "add":
                made = one - other * 0.5
            elif kind == "product":
                made = one * other + state
            elif kind == "state":
                state.mul_(0.5).add_(one.detach().sin())
                made = state + other
            elif not is_in:
                made = one + 1
            elif kind == "reduce":
                made = functional.all_reduce(one, reduction, group)
            elif kind == "reduce_to":
                made = functional.reduce(one, root, reduction, group)
            elif kind == "gather":
                made = sum(part * (k + 1) for k, part in enumerate(functional.all_gather(one, group))) / 10
            elif kind == "scatter":
                part = functional.reduce_scatter(one[:1], [*one.chunk(size)], reduction, group)
                made = genesis.cat([part.sin()] * size)[:LENGTH]
            elif kind == "broadcast":
                made = functional.broadcast(one, root, group)
            elif kind == "all_to_all":
                made = functional.all_to_all_single(genesis.empty_like(one), one, group=group)
            elif kind == "exchange":
                place = ranks.index(own)
                peer = place ^ 1
                made = functional.sendrecv(one, ranks[peer], group) if peer < size else one + 1
            elif kind == "uneven":
                sends, receives = self.parts(ranks, own, salt)
                flat = functional.all_to_all_single(genesis.empty(sum(receives), dtype=x.dtype), one[: sum(sends)], receives,
                                                    sends, group)
                made = one + flat.sum()
            else:
                made = one.clone()
                work = dist.all_reduce(made, reduction, group, async_op=kind == "asynchronous")
                other = other + 1
                if work is not None and salt % 2:
                    work.wait()
                made = made + other
            values.append(made)
        return values[-1] + values[-2] * 0.25

    def parts(self, ranks, own, salt):
        """How much `own` sends to each of the ranks, and gets of each."""
        table = [[(salt + 3 * i + 5 * j) % 3 for j in range(len(ranks))] for i in range(len(ranks))]
        place = ranks.index(own)
        return table[place], [row[place] for row in table]

    def model(self, xs, states):
        """The same for all ranks, in NumPy; `states` are lists of one array each."""
        count = len(xs)
        values = [[x, states[r] * 1.0] for r, x in enumerate(xs)]
        for kind, a, b, reduction, number, salt in self.steps:
            ranks, _ = self.groups[number]
            ones, others = [v[a] for v in values], [v[b] for v in values]
            reduce, size = REDUCTIONS[reduction], len(ranks)
            root, held = ranks[salt % size], [ones[r] for r in ranks]
            for r in range(count):
                one, other = ones[r], others[r]
                if kind == "sine":
                    made = np.sin(one * 2 + 0.5)
                elif kind == "add":
                    made = one - other * 0.5
                elif kind == "product":
                    made = one * other + states[r]
                elif kind == "state":
                    states[r] = states[r] * 0.5 + np.sin(one)
                    made = states[r] + other
                elif r not in ranks:
                    made = one + 1
                elif kind == "reduce":
                    made = reduce(held, 0)
                elif kind == "reduce_to":
                    made = reduce(held, 0) if r == root else one
                elif kind == "gather":
                    made = sum(part * (k + 1) for k, part in enumerate(held)) / 10
                elif kind == "scatter":
                    part = np.array_split(reduce(held, 0), size)[ranks.index(r)]
                    made = np.concatenate([np.sin(part)] * size)[:LENGTH]
                elif kind == "broadcast":
                    made = ones[root]
                elif kind == "all_to_all":
                    made = np.concatenate([np.array_split(each, size)[ranks.index(r)] for each in held])
                elif kind == "exchange":
                    peer = ranks.index(r) ^ 1
                    made = ones[ranks[peer]] if peer < size else one + 1
                elif kind == "uneven":
                    got = 0.0
                    for other_rank in ranks:
                        sends, _ = self.parts(ranks, other_rank, salt)
                        place = ranks.index(r)
                        got += ones[other_rank][sum(sends[:place]) : sum(sends[: place + 1])].sum()
                    made = one + got
                else:
                    made = reduce(held, 0) + (other + 1)
                values[r].append(made)
        return [v[-1] + v[-2] * 0.25 for v in values]


def close(found, wanted, said):
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9, err_msg=said)


def check_random_programs_are_those_of_numpy():
    own, count = dist.get_rank(), dist.get_world_size()
    apart = [[*range(1, count)], [0, count - 1]] if count > 2 else []
    groups = [([*range(count)], None), *[(ranks, dist.new_group(ranks)) for ranks in apart]]
    for seed in range(option("--seed", 0), option("--seed", 0) + option("--programs", 4)):
        program = Program(seed, groups)
        random = np.random.default_rng((seed, own))
        start = [np.linspace(-1, 1, LENGTH) * (r + 1) for r in range(count)]
        for is_compiled in (False, True):
            state, states, kept = genesis.tensor(start[own]), [s.copy() for s in start], []
            call = genesis.compile(program.run) if is_compiled else program.run
            for turn in range(CALLS if is_compiled else 2):
                xs = [np.cos(np.arange(LENGTH) * (1 + turn) + r) for r in range(count)]
                found = call(genesis.tensor(xs[own]), state)
                wanted = program.model(xs, states)[own]
                said = f"seed {seed}, rank {own}, call {turn}, compiled: {is_compiled}: {program.steps}"
                if random.integers(2):  # on some ranks, and on others later
                    close(found.numpy(), wanted, said)
                if random.integers(4) == 0:
                    close(state.numpy(), states[own], said)
                if random.integers(8) == 0:
                    gc.collect()
                if random.integers(3):
                    kept.append((found, wanted, said))
            for one in kept:
                close(one[0].numpy(), *one[1:])
            close(state.numpy(), states[own], f"the state, seed {seed}: {program.steps}")


if __name__ == "__main__":
    run(globals())
