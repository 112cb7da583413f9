"""Groups that repeat one another are built once, and what is copied is what building would have given."""

from __future__ import annotations

import inspect

import pytest

import genesis
from genesis.execution.plan import plan_for
from genesis.lower import schedule
from genesis.lower.build import build_group
from genesis.tracing.state import current_trace


def described(call):
    words = [(w.kind, w.value, w.extra) for w in call.kernel.words]
    return call.kernel.text, call.kernel.name, words, call.kernel.origins, call.extents, call.reads, call.writes, call.nodes


@pytest.fixture
def counted(monkeypatch):
    """Every copy is compared with a group built afresh; what is yielded counts groups and copies."""
    counts = {"groups": 0, "copies": 0}
    original = schedule.Repeats.calls
    monkeypatch.setattr(schedule, "_built", {})

    def compared(self, group):
        known = len(schedule._built)
        calls = original(self, group)
        counts["groups"] += 1
        if len(schedule._built) == known:
            counts["copies"] += 1
            fresh = build_group(self.nodes, self.partition, group)
            assert [described(c) for c in calls] == [described(c) for c in fresh]
        return calls

    monkeypatch.setattr(schedule.Repeats, "calls", compared)
    return counts


def test_layers_of_a_network_are_copies(counted):
    layer = genesis.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
    model = genesis.nn.Sequential(*[layer for _ in range(4)])
    x = genesis.randn(3, 5, 16)
    model(x).sum().backward()
    plan_for(current_trace())
    assert counted["copies"] > counted["groups"] // 5


def test_groups_of_an_earlier_program_are_copied(counted):
    y, copies = genesis.randn(2, 5), []
    y.tolist()
    for rows in (3, 4):
        x = genesis.randn(rows, 8)
        x.tolist()
        counted["copies"] = 0
        found = [x.exp().sum(1), (y * y + 1).sum(0)]
        plan_for(current_trace())
        del found
        genesis.synchronize()
        copies.append(counted["copies"])
    assert copies == [0, 1]  # all but the group of the new size


def test_gathers_scatters_and_joins_are_copied_with_their_places(counted):
    table, wanted = genesis.randn(7, 4, requires_grad=True), genesis.tensor([1, 3, 3])
    parts = [genesis.cat([table[wanted] * 2, table[wanted].exp()]) for _ in range(3)]
    (parts[0].sum() * parts[1].sum() + parts[2].std()).backward()
    plan_for(current_trace())
    assert counted["copies"] > 0


def test_an_index_error_in_a_copy_names_its_own_line():
    table = genesis.arange(4.0)
    good, bad = genesis.tensor([0, 1]), genesis.tensor([2, 9])
    first = table[good].sum() * 3
    second = table[bad].sum() * 3
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(IndexError, match=rf"index 9 is out of range .*test_repeats.py:{line}\)"):
        print(first + second)


def test_numbers_that_differ_are_no_repeats(counted):
    x = genesis.arange(6.0)
    y = [(x * 3).sum(), (x * 1).sum(), (x + 1).sum(), x[:5].sum(), x[1:].sum(), x.reshape(2, 3).t().exp().sum(0)]
    values = [v.tolist() for v in y]
    assert values[:5] == [45, 15, 21, 10, 15]
