"""Writes into inputs happen in place, whatever else reads and fails beside them; PyTorch is the oracle."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import genesis
from genesis.execution import plan
from genesis.ops import indexing
from tests.fuzz.oracle import checked_flushes

ROWS, WIDTH = 12, 4


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    """Tables of a few rows are written in place too."""
    monkeypatch.setattr(indexing, "LARGE", 0)
    monkeypatch.setattr(plan, "SMALL", 0)


def table(lib, start=0.0):
    return lib.arange(start, start + ROWS * WIDTH, dtype=lib.float32).reshape(ROWS, WIDTH).clone()


def place(t):
    """Where a tensor lies, when all is computed."""
    t.sum().item()
    return t._array.memory.buffer.ptr


def set_rows(lib, t):
    t[lib.tensor([3, -1, 5])] = lib.full((3, WIDTH), 0.5)


def add_rows(lib, t):
    t.index_add_(0, lib.tensor([3, 3, 5]), lib.full((3, WIDTH), 0.5))


def change_a_row(lib, t):
    t[2] += 1


def change_columns(lib, t):
    t.t()[1:3].clamp_(max=20)


def move_rows(lib, t):
    t[lib.tensor([3, 4, 5])] = t[lib.tensor([0, 3, 2])] * 2


def set_a_slice(lib, t):
    t[1:3] = t.flip(0)[2:4]


def set_a_column(lib, t):
    t[:, lib.tensor([1])] = 7.0


def set_two_elements(lib, t):
    t[lib.tensor([0, 1]), lib.tensor([1, 3])] = lib.tensor([5.0, 6.0])


def set_several(lib, t):
    set_rows(lib, t)
    t[5:7] = 3.0
    add_rows(lib, t)


WRITES = [set_rows, add_rows, change_a_row, change_columns, move_rows, set_a_slice, set_a_column, set_two_elements, set_several]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_table_that_nobody_else_holds_is_written_where_it_lies(write):
    ours, theirs = table(genesis), table(torch)
    before = place(ours)
    with checked_flushes():
        write(genesis, ours)
        assert place(ours) == before
    write(torch, theirs)
    assert ours.tolist() == theirs.tolist()


def test_a_view_that_somebody_holds_shows_what_is_written():
    ours, theirs = table(genesis), table(torch)
    place(ours)
    views = [t[1:3] for t in (ours, theirs)]
    with checked_flushes():
        for t, view in zip((ours, theirs), views, strict=True):
            view.mul_(2)
            t[2] += 1
            view.add_(t[0])
    assert ours.tolist() == theirs.tolist() and views[0].tolist() == views[1].tolist()


def test_what_another_view_held_before_is_kept():
    ours, theirs = table(genesis), table(torch)
    place(ours)
    kept = [t[2] * 1 for t in (ours, theirs)]
    rows = [t[2] for t in (ours, theirs)]
    for t in (ours, theirs):
        t[1:4] += 1
    assert kept[0].tolist() == kept[1].tolist() and rows[0].tolist() == rows[1].tolist()


def test_a_table_that_somebody_holds_is_copied():
    ours = table(genesis)
    before = place(ours)
    held = ours.index_add(0, genesis.tensor([1]), genesis.ones(1, WIDTH))
    assert place(held) != before and place(ours) == before
    assert (held - ours).sum().item() == WIDTH and ours.tolist() == table(torch).tolist()


def test_what_is_read_of_the_table_before_keeps_its_values():
    ours = table(genesis)
    place(ours)
    doubled = ours * 2
    set_rows(genesis, ours)
    assert doubled.tolist() == (table(torch) * 2).tolist()


@pytest.mark.parametrize("write", [
    lambda t, at, v: t.__setitem__(at, v), lambda t, at, v: t.index_add_(0, at, v),
    lambda t, at, v: t.__setitem__(slice(0, 3), t[at] * 2)], ids=["set", "add", "read"])
def test_an_index_out_of_range_leaves_its_table_as_it_was(write):
    first, second = table(genesis), table(genesis, 100.0)
    place(first)
    at = place(second)
    with pytest.raises(IndexError, match="99 is out of range"):
        set_rows(genesis, first)
        write(second, genesis.tensor([0, 99, 1]), genesis.ones(3, WIDTH))
        second.sum().item()
    want = table(torch)
    set_rows(torch, want)
    assert first.tolist() == want.tolist() and second.tolist() == table(torch, 100.0).tolist()
    assert place(second) == at


def test_two_tables_are_written_in_one_program():
    first, second = table(genesis), table(genesis, 100.0)
    at = [place(first), place(second)]
    with checked_flushes():
        set_rows(genesis, first)
        set_rows(genesis, second)
        assert [place(first), place(second)] == at


@pytest.mark.parametrize("optimizer", ["SGD", "SparseAdam"])
def test_steps_on_sparse_gradients_leave_the_table_where_it_is(optimizer):
    def trained(lib):
        rows = lib.nn.Embedding(ROWS, WIDTH, sparse=True)
        with lib.no_grad():
            rows.weight.copy_(table(lib))
        stepping = getattr(lib.optim, optimizer)(rows.parameters(), lr=0.1)
        places = set()
        for step in range(3):
            stepping.zero_grad()
            (rows(lib.tensor([step, 5, 5])) ** 2).sum().backward()
            stepping.step()
            if lib is genesis:
                places.add(place(rows.weight))
        return rows.weight.detach(), places

    ours, places = trained(genesis)
    theirs, _ = trained(torch)
    torch.testing.assert_close(torch.tensor(ours.tolist()), theirs, rtol=1e-5, atol=1e-6)
    assert len(places) == 1


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(WRITES), st.sampled_from(["", "look", "hold", "mix"])),
                min_size=1, max_size=6))
def test_programs_of_writes_are_torchs(program):
    def shown(lib):
        tables, held = [table(lib), table(lib, 100.0)], []
        for number, write, then in program:
            write(lib, tables[number])
            if then == "look":
                held.append(tables[number].sum().item())
            elif then == "hold":
                held.append(tables[number].clone())
            elif then == "mix":
                tables[number][lib.tensor([0, 7])] = tables[1 - number][lib.tensor([1, 3])]
        return [*map(list, tables), *held]

    with checked_flushes():
        ours = shown(genesis)
    for mine, other in zip(ours, shown(torch), strict=True):
        for one, two in zip(mine, other, strict=True) if isinstance(mine, list) else [(mine, other)]:
            assert (one.tolist() if hasattr(one, "tolist") else one) == (two.tolist() if hasattr(two, "tolist") else two)
