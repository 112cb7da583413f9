"""Views that share memory with the outside, whoever writes, when: beside PyTorch."""

from itertools import product

import numpy as np
import pytest
import torch

import genesis

VIEWS = {
    "itself": lambda x: x, "reshape": lambda x: x.reshape(12), "view": lambda x: x.view(2, 6), "transposed": lambda x: x.T,
    "row": lambda x: x[1], "column": lambda x: x[:, 2], "slice": lambda x: x[1:, ::2], "unsqueezed": lambda x: x.unsqueeze(1),
    "squeezed": lambda x: x.unsqueeze(0).squeeze(0), "flat": lambda x: x.flatten(), "diagonal": lambda x: x.diagonal(),
    "narrow": lambda x: x.narrow(0, 1, 2), "windows": lambda x: x.unfold(0, 2, 1), "permuted": lambda x: x.permute(1, 0),
    "detached": lambda x: x.detach(), "of a view": lambda x: x[1:].T[0], "chunk": lambda x: x.chunk(2, 1)[1],
    "strided": lambda x: x.as_strided((2, 3), (4, 1), 1),
}
OUTSIDE = {"numpy": lambda x: x.numpy(), "interface": np.asarray, "dlpack": np.from_dlpack, "torch": torch.from_dlpack}


def shared_with_the_outside(library, view, outside, pending, writer, late):
    """What root, view, a view beside it and the outside show after a write; `late`: the view was read before it was shared."""
    root = library.arange(12).reshape(3, 4) * 1.0
    if not pending:
        root.sum().item()
    seen, beside = VIEWS[view](root), root[0]
    if late:
        seen.sum().item(), beside.sum().item()
    array = OUTSIDE[outside](seen)
    if writer == "outside":
        array[...] = 50
    elif writer == "view":
        seen.add_(100)
    elif writer == "root":
        root.mul_(2)
    else:
        beside.sub_(7)
    return [np.asarray(value).copy() for value in (seen, root, beside, array)]


WRITERS = [(view, writer) for view in VIEWS for writer in ("outside", "view", "root", "beside")]
WRITERS.remove(("windows", "view"))  # several of its elements share one place: an error in both libraries


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize(("view", "writer"), WRITERS)
def test_views_share_with_the_outside_as_in_torch(view, outside, writer):
    for pending in (True, False):
        for late in (True, False):
            mine = shared_with_the_outside(genesis, view, outside, pending, writer, late)
            theirs = shared_with_the_outside(torch, view, outside, pending, writer, late)
            for name, a, b in zip(("view", "root", "beside", "outside"), mine, theirs, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"{name}, {pending=}, {late=}")


DERIVED = ("leaf", "result", "realized result")  # what the views are of: all carry gradients
WRITES = {
    "nobody": lambda root, seen, array: None,
    "outside": lambda root, seen, array: array.fill(50),
    "outside, twice": lambda root, seen, array: (array.fill(50), (seen * 2).sum().item(), array.fill(60)),
    "root": lambda root, seen, array: root.mul_(2),
    "view": lambda root, seen, array: seen.add_(100),
    "detached": lambda root, seen, array: root.detach().sub_(7),
    "data": lambda root, seen, array: root.data.mul_(3),
}


def carrying_gradients(library, view, outside, derived, writer, late, shown_first):
    """As above, where gradients are carried; and versions, what is computed with the views, and gradients of that."""
    leaf = (library.arange(12).reshape(3, 4) * 1.0).requires_grad_()
    root = leaf if derived == "leaf" else leaf * 1.0
    if derived == "realized result":
        root.sum().item()
    array = np.asarray(OUTSIDE[outside](VIEWS[view](root.detach()))) if shown_first else None
    seen, beside = VIEWS[view](root), root[0]
    if late:
        seen.sum().item(), beside.sum().item()
    if array is None:
        array = np.asarray(OUTSIDE[outside](seen.detach()))
    with library.no_grad():
        WRITES[writer](root, seen, array)
    total = (seen * seen).sum() + (beside * beside * beside).sum()
    found = [*[np.asarray(x.detach()).copy() for x in (seen, root, beside)], array.copy(), total.item()]
    found += [x._version for x in (seen, root, beside, root.data)] + [x.requires_grad for x in (seen, root, beside)]
    if total.requires_grad:
        total.backward()
        found.append(np.asarray(leaf.grad).copy())
    return found


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("view", VIEWS)
def test_views_that_carry_gradients_share_with_the_outside_as_in_torch(view, derived):
    told = ["view", "root", "beside", "outside", "computed", *["version"] * 4, *["flag"] * 3, "gradient"]
    for outside, writer, late, shown_first in product(OUTSIDE, WRITES, (True, False), (True, False)):
        if (writer, view) in (("view", "windows"), ("view", "detached")) or (outside != "numpy" and writer != "outside"):
            continue
        if view == "chunk" and writer not in ("nobody", "outside", "outside, twice", "data"):
            continue  # torch refuses writes beside what `chunk` gives
        case = view, outside, derived, writer, late, shown_first
        mine, theirs = (carrying_gradients(library, *case) for library in (genesis, torch))
        for name, a, b in zip(told[: len(theirs)], mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{name}, {case[1:]}")


def test_a_view_that_is_written_to_without_recording_keeps_its_derivation():
    for library in (genesis, torch):
        leaf = library.ones(2, 3).requires_grad_()
        row = leaf[0]
        with library.no_grad():
            row.add_(1)
            assert (row * 1).requires_grad is False and row.requires_grad
        (row * row).sum().backward()
        assert leaf.grad.tolist() == [[4, 4, 4], [0, 0, 0]]


def test_versions_are_torchs():
    for library in (genesis, torch):
        x = library.zeros(2, 3)
        row, alone, data = x[0], x.clone(), x.data
        x.add_(1)
        row[1] = 5
        x.detach().mul_(2)
        data.add_(1)
        data.add_(1)
        x.numpy()[0, 0] = 9
        assert [t._version for t in (x, row, x.T, alone, data, x.data)] == [3, 3, 3, 0, 2, 0]


REBOUND = {
    "set_": lambda m, x: x.set_(m.ones(3)), "set_ to its own view": lambda m, x: x.set_(x.view(4)),
    "set_, both written": lambda m, x: (y := m.ones(3).mul_(2), x.set_(y), y.mul_(2), x.add_(1))[0],
    "resize_": lambda m, x: x.resize_(1, 2), "resize_ to more": lambda m, x: x.resize_(3, 3).zero_(),
    "resize_ to its own shape": lambda m, x: x.resize_(2, 2), "as_strided_": lambda m, x: x.as_strided_((2,), (1,)),
    "squeeze_": lambda m, x: x.squeeze_(), "unsqueeze_ of a view": lambda m, x: x[0].unsqueeze_(0),
    "t_ of a view": lambda m, x: x.squeeze(0).t_(), "t_": lambda m, x: x.t_().add_(1),
    "data": lambda m, x: setattr(x, "data", m.ones(2, 2)),
    "data, both written": lambda m, x: (y := m.ones(2, 2).mul_(2), setattr(x, "data", y), x.add_(1), y.add_(1), y.add_(1))[0],
    "data of its own": lambda m, x: setattr(x, "data", x.data * 2), "data of a view": lambda m, x: setattr(x[0], "data", x[1]),
    "data, then a view": lambda m, x: (setattr(x, "data", m.arange(6.0)[1:5].view(2, 2)), x[0], x[0].add_(1))[1],
    "data twice": lambda m, x: [setattr(x, "data", y) for y in (m.arange(6.0)[2:].view(2, 2), x.data + 1)] and x[0].add_(1),
    "a view of data": lambda m, x: x.data[0].add_(1), "data of data": lambda m, x: x.data.add_(1).data,
    "a parameter": lambda m, x: m.nn.Parameter(x), "a parameter of a view": lambda m, x: m.nn.Parameter(x[0]),
    "out": lambda m, x: m.add(x, 1, out=m.empty(0)),
}


@pytest.mark.parametrize("name", REBOUND)
@pytest.mark.parametrize("has_views", [False, True])
def test_a_tensor_keeps_its_count_of_writes_with_another_storage(name, has_views):
    found = []
    for library in (genesis, torch):
        x = library.tensor([[1.0, 2.0], [3.0, 4.0]])
        others = [x[0], x.detach(), x.data] if has_views else []
        x.add_(1)
        result = REBOUND[name](library, x)
        found.append([(t._version, t.tolist()) for t in [x, *others, *([result] if hasattr(result, "_version") else [])]])
        with library.no_grad():
            x.mul_(3)
        found[-1] += [(t._version, t.tolist()) for t in [x, *others]]
    assert found[0] == found[1]


@pytest.mark.parametrize("call", [
    lambda m, x: m.flip(x, (0,)), lambda m, x: x.flip(0), lambda m, x: x.repeat_interleave(1, 0),
    lambda m, x: x.matrix_power(1), lambda m, x: m.linalg.matrix_power(x, 1), lambda m, x: m.rot90(x, 0),
    lambda m, x: m.roll(x, 0), lambda m, x: x.repeat(1, 1), lambda m, x: m.clone(x),
    lambda m, x: m.tile(x, (1,)), lambda m, x: m.cat([x]), lambda m, x: m.stack([x])[0],
], ids=range(12))
def test_results_that_torch_copies_share_no_memory(call):
    for library in (genesis, torch):
        x = library.arange(9).reshape(3, 3).double()
        call(library, x).add_(100)
        assert x.max().item() == 8


def test_a_view_of_a_leaf_whose_memory_is_shown_keeps_its_derivation():
    leaf = genesis.ones(9).reshape(3, 3).requires_grad_()
    wide = leaf.expand(2, 3, 3)
    assert leaf.detach().numpy().sum() == 9
    (wide * wide).sum().backward()
    assert leaf.grad.tolist() == [[4.0] * 3] * 3


def averages_lent(lib):
    """Weights that an average stands in for, taken back and trained on."""
    p = lib.zeros(3, requires_grad=True)
    backup, average = p.data, lib.full((3,), 100.0)
    p.data = average
    p.data = backup
    with lib.no_grad():
        p.sub_(0.5)
    backup.add_(10)
    return p, backup, average


def views_of_what_was_replaced(lib):
    x = lib.arange(6.0)
    written, before = x[4:], x.detach()
    x.add_(1)
    x.data = lib.full((2,), 7.0)
    x.add_(1)
    written.add_(1)
    x.data = lib.ones(2)
    return x, written, before, written[1:]


def replaced_by_its_own_part(lib):
    x = lib.arange(6.0)
    odd, whole = x[1::2], x.data
    x.data = odd
    x.add_(10)
    return x, odd, whole


def turned_then_replaced(lib):
    x = lib.arange(6.0).reshape(2, 3).clone()
    row = x[1]
    x.t_()
    column = x[:, 0]
    x.data = lib.zeros(2)
    row.add_(1)
    column.mul_(2)
    return x, row, column


@pytest.mark.parametrize("case", [averages_lent, views_of_what_was_replaced, replaced_by_its_own_part, turned_then_replaced])
def test_views_stay_with_the_storage_that_data_is_taken_from(case):
    ours, theirs = case(genesis), case(torch)
    for have, want in zip(ours, theirs, strict=True):
        assert have.tolist() == want.tolist()
    with genesis.eager():
        assert [x.tolist() for x in case(genesis)] == [x.tolist() for x in theirs]


@pytest.mark.parametrize("take", [lambda x: x, lambda x: x[:2], lambda x: x.data, lambda x: x.data[:2]])
def test_a_write_that_is_taken_back_is_not_counted(take):
    x = genesis.arange(3.0)
    x.data = genesis.arange(6.0)[1:4]
    tensor = take(x)
    x.tolist()
    tensor.add_(genesis.ones(2)[genesis.tensor([5])].sum())
    with pytest.raises(IndexError):
        tensor.tolist()
    assert (tensor._version, x._version, x.tolist()) == (0, 0, [1, 2, 3])
    tensor.add_(1)
    assert tensor._version == 1


@pytest.mark.parametrize("part", ["x", "x[1:]", "x.data"])
def test_a_result_shares_the_storage_that_it_is_given_and_keeps_its_derivation(part):
    found = []
    for library in (genesis, torch):
        w, x = library.ones(2, requires_grad=True), library.zeros(3 if "[" in part else 2)
        y = w * 2
        y.data = eval(part)
        with library.no_grad():
            y.add_(3)
        x.mul_(2)
        y[0] = 5
        (y * y).sum().backward()
        found.append((x.tolist(), y.tolist(), y.requires_grad, y._version, x._version, w.grad.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_views_of_a_storage_that_a_leaf_gives_up_have_its_gradient_whoever_reads_them(is_replaced, late, looks):
    found = []
    for library in (genesis, torch):
        leaf = library.ones(2, 3)
        if late:
            view = leaf[1]
        leaf.requires_grad_()
        if not late:
            view = leaf[1]
        if is_replaced:
            leaf.data = library.full((2, 3), 4.0)
        with pytest.raises(RuntimeError, match="a view of a leaf"):
            view.mul_(2)
        with library.no_grad():
            view.mul_(3)
            if looks:
                view.tolist()
        (view * view * leaf).sum().backward()
        found.append((view.tolist(), leaf.tolist(), view.requires_grad, view.is_leaf, leaf.grad.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("part", ["real", "imag", "conj", "mT", "view_as_real"])
def test_parts_of_a_detached_tensor_have_the_gradients_that_are_written_to_it_and_they_to_them(part, looks):
    found = []
    for library in (genesis, torch):
        w = library.tensor([2 - 1j, 1j], requires_grad=True)
        whole = library.tensor([[1 + 2j, 3 - 1j], [2, 1j]]).detach()
        view = library.view_as_real(whole) if part == "view_as_real" else getattr(whole, part)
        view = view() if part == "conj" else view
        whole.mul_(w)
        if looks:
            with library.no_grad():
                view.tolist()
        (view * view).abs().sum().backward(retain_graph=True)
        first = w.grad.tolist()
        view[0] = (w if view.is_complex() else w.real).sum()
        (whole * whole).abs().sum().backward()
        found.append((view.tolist(), whole.tolist(), view.requires_grad, first, w.grad.tolist()))
    for have, want in zip(*found, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("change", [lambda x: x.t_(), lambda x: setattr(x, "data", x.data.flatten())])
def test_a_gradient_that_no_longer_fits_its_leaf_is_refused(change):
    for library in (genesis, torch):
        leaf = library.ones(2, 3, requires_grad=True)
        total = (leaf * 2).exp().sum()
        with library.no_grad():
            change(leaf)
        with pytest.raises(RuntimeError):
            total.backward()


def test_set_is_refused_where_gradients_would_have_to_follow():
    leaf = genesis.ones(2, requires_grad=True)
    for tensor, source in ((genesis.zeros(2), leaf), (leaf * 2, genesis.zeros(2))):
        with pytest.raises(RuntimeError, match="set_: has no gradient"):
            tensor.set_(source)
    assert genesis.zeros(2).set_(leaf.storage()).tolist() == [1, 1]
