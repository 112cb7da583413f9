"""Counts of returns are kept by code, and codes of cells that run again are equal."""

import gc
from collections import Counter

import genesis
from genesis.tensor import new_programs

CELL = """
class Inner(genesis.nn.Module):
    def forward(self, x):
        x = (x * 2).tanh()
        x = (x + 1).exp().log()
        return x - x.mean()

class Outer(genesis.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = genesis.nn.ModuleList([Inner() for _ in range(3)])

    def forward(self, x, between):
        x = (x * 3).sin()
        for layer in self.layers:
            x = layer(x)
        between()
        return x * 2 - x.sum()
"""


def test_code_that_dies_within_a_program_may_be_equal_to_one_that_runs_there(monkeypatch):
    monkeypatch.setattr(new_programs, "_met", type(new_programs._met)())
    cells = [{"genesis": genesis} for _ in range(2)]
    for cell in cells:
        exec(CELL, cell)
    first, second = cells
    for kind in ("Inner", "Outer"):
        new_programs._met[first[kind].forward.__code__] = Counter()
    layers = [second["Outer"]() for _ in range(3)]

    def forget():
        first.clear()
        gc.collect()

    def result(size):
        x = genesis.full((size, 6), 0.5)
        for layer in layers:
            x = layer(x, forget if size == 3 else lambda: None)
        return x.tolist()

    lazy = [result(size) for size in range(2, 6)]
    with genesis.eager():
        assert lazy == [result(size) for size in range(2, 6)]
    assert len(new_programs._met) > 1
