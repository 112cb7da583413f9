"""Views alias as torch's do: random programs of views and in-place operations, run by both."""

import gc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis
from genesis.ops.layout import contiguous_layout
from genesis.tensor.traced_number import Number
from tests.tolerances import assert_close

VIEWS = {
    "transpose": lambda x, n: x.transpose(0, -1),
    "T": lambda x, n: x.permute(tuple(range(x.ndim))[::-1]),
    "select": lambda x, n: x[n % x.shape[0]],
    "slice": lambda x, n: x[n % 2 :: 1 + n % 2],
    "narrow": lambda x, n: x.narrow(x.ndim - 1, 0, max(1, x.shape[-1] - n % 2)),
    "reshape": lambda x, n: x.reshape(-1),
    "view": lambda x, n: x.view(1, -1),
    "flatten": lambda x, n: x.flatten(),
    "unsqueeze": lambda x, n: x.unsqueeze(n % (x.ndim + 1)),
    "squeeze": lambda x, n: x.squeeze(),
    "expand": lambda x, n: x.unsqueeze(0).expand(2, *x.shape),
    "diagonal": lambda x, n: x.diagonal(n % 2 - 1, 0, x.ndim - 1),
    "detach": lambda x, n: x.detach(),
    "data": lambda x, n: x.data,
    "unbind": lambda x, n: x.unbind(0)[-1],
    "chunk": lambda x, n: x.chunk(2, -1)[0],
    "contiguous": lambda x, n: x.contiguous(),
    "clone": lambda x, n: x.contiguous().clone(),  # what is computed here lies in row-major order
    "new axis": lambda x, n: x[..., None],
    "times": lambda x, n: (x * 2).contiguous(),
}
WRITES = {
    "add_": lambda x, n: x.add_(n),
    "mul_": lambda x, n: x.mul_(2),
    "fill_": lambda x, n: x.fill_(n),
    "zero_": lambda x, n: x.zero_(),
    "copy_": lambda x, n: x.copy_(x.flip(0)),
    "relu_": lambda x, n: x.relu_(),
    "set item": lambda x, n: x.__setitem__(n % x.shape[0], n),
    "set slice": lambda x, n: x.__setitem__(slice(0, 1), -n),
    "add to itself": lambda x, n: x.__iadd__(x),
    "set mask": lambda x, n: x.__setitem__(x > 2, -3.0) if 0 not in x.stride() else refuse(),
}


def refuse():
    raise RuntimeError("torch writes to expanded elements by mask, in no certain order")


STEPS = st.tuples(st.sampled_from([*VIEWS, *WRITES]), st.integers(0, 9), st.integers(0, 5))


def step(pool, name, which, number):
    x = pool[which % len(pool)]
    if name in WRITES:
        WRITES[name](x, number)
    else:
        pool.append(VIEWS[name](x, number))


def run(pools, program):
    """The program on both libraries; a step that torch refuses must not be done by us either, and is left out."""
    ours, theirs = pools
    for name, which, number in program:
        try:
            step(theirs, name, which, number)
        except (RuntimeError, IndexError, ValueError, TypeError):
            with pytest.raises((RuntimeError, IndexError, ValueError, TypeError)):
                step(ours, name, which, number)
            continue
        step(ours, name, which, number)


@settings(max_examples=40)
@given(st.lists(STEPS, min_size=1, max_size=12))
def test_random_programs_end_as_in_torch(program):
    start = np.arange(12, dtype=np.float32).reshape(3, 4) - 4
    ours, theirs = [genesis.tensor(start)], [torch.from_numpy(start.copy())]
    run((ours, theirs), program)
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b, str(program))
        assert tuple(a.stride()) == b.stride() or 0 in a.shape or 1 in a.shape, program


# torch lets nobody write to views that came as several results.
SINGLE_STEPS = STEPS.filter(lambda step: step[0] not in ("unbind", "chunk"))


@settings(max_examples=25)
@given(st.lists(SINGLE_STEPS, min_size=1, max_size=8))
def test_gradients_flow_through_views_and_writes_as_in_torch(program):
    start = np.arange(12, dtype=np.float64).reshape(3, 4) - 4
    leaf, torch_leaf = genesis.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    ours, theirs = [leaf * 1], [torch_leaf * 1]
    run((ours, theirs), program)
    total, torch_total = leaf.sum(), torch_leaf.sum()
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert_close(a, b, str(program))
        total, torch_total = total + (a * (place + 1)).sum(), torch_total + (b * (place + 1)).sum()
    try:
        torch_total.backward()
    except RuntimeError:
        return  # torch saved a value that was changed since; here values are not changed but replaced
    total.backward()
    assert_close(leaf.grad, torch_leaf.grad, str(program))


def test_view_of_view_shares_storage():
    x = genesis.zeros(2, 3, 4)
    x.transpose(0, 2)[1].T.mul_(0).add_(7)
    assert x[:, :, 1].tolist() == [[7] * 3] * 2
    assert x.sum().item() == 42


def test_reshape_copies_only_where_it_must():
    x = genesis.zeros(2, 3)
    x.reshape(3, 2).fill_(1)
    x.T.reshape(6).fill_(5)
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_views_of_no_elements_are_contiguous():
    views = [lambda x: x[..., 2:2], lambda x: x[:0].T, lambda x: x[1:, 2:2]]
    own, theirs = ([view(library.zeros(3, 4)).is_contiguous() for view in views] for library in (genesis, torch))
    assert own == theirs


def test_view_parts_anew_what_lies_together():
    x, y = (library.arange(48).reshape(2, 6, 4)[:, :3].view(2, 4, 3) for library in (genesis, torch))
    assert x.stride() == y.stride() and x.tolist() == y.tolist()


@given(st.lists(st.integers(1, 6), min_size=2, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_view_takes_the_shapes_that_torch_takes(shape, random):
    x = torch.arange(float(np.prod(shape))).reshape(shape)
    x = x.permute(random.sample(range(x.ndim), x.ndim)) if random.random() < 0.5 else x
    x = x.narrow(random.randrange(x.ndim), 0, 1 if random.random() < 0.2 else min(x.shape))
    wanted, rest = [], x.numel()
    while rest > 1:
        wanted.append(random.choice([n for n in range(2, rest + 1) if rest % n == 0]))
        rest //= wanted[-1]
    own = genesis.from_numpy(x.numpy())
    try:
        found = x.view(wanted)
    except RuntimeError:
        with pytest.raises(ValueError, match="use reshape"):
            own.view(*wanted)
    else:
        mine = own.view(*wanted)
        assert mine.stride() == found.stride() and mine.tolist() == found.tolist()


def test_a_view_taken_before_a_write_sees_it():
    x = genesis.arange(4.0)
    view = x[1:3]
    x *= 10
    assert view.tolist() == [10, 20]


def test_what_was_computed_before_a_write_keeps_its_value():
    x = genesis.arange(3.0)
    y = x + 1
    x.zero_()
    assert (y.tolist(), x.tolist()) == ([1, 2, 3], [0, 0, 0])


def test_expanded_elements_cannot_be_written():
    with pytest.raises(RuntimeError, match="share one place"):
        genesis.zeros(1, 3).expand(2, 3).add_(1)


@pytest.mark.parametrize("index", [0, (slice(None), 0), (0, 0), ...])
@pytest.mark.parametrize("value", [5.0, "tensor"])
def test_elements_of_an_expanded_tensor_are_set_where_each_has_its_own_memory(index, value):
    def outcome(library):
        x = library.zeros(2, 1).expand(2, 3)
        try:
            x[index] = library.tensor(5.0) if value == "tensor" else value
        except RuntimeError:
            return "refused"
        return x.tolist()

    assert outcome(genesis) == outcome(torch)


def looked_at(lib, w):
    v = w[1:]
    with lib.no_grad():
        w.mul_(2)
        v.sum().item()
    return v


def written(lib, w):
    v = w[1:]
    with lib.no_grad():
        v.mul_(2)
    return v


def part_of_a_result(lib, w):
    v = (w * 3)[1:]
    with lib.no_grad():
        v.mul_(2)
        v.tolist()
    return v


def base_took_a_gradient(lib, w):
    x = lib.ones(4)
    v = x[1:]
    x.mul_(w)
    with lib.no_grad():
        v.tolist()
    return v


@pytest.mark.parametrize("view", [looked_at, written, part_of_a_result, base_took_a_gradient])
def test_a_view_that_is_read_anew_without_gradients_keeps_its_derivation(view):
    found = []
    for lib in (genesis, torch):
        w = lib.ones(4, requires_grad=True)
        v = view(lib, w)
        (v * v).sum().backward()
        found.append((v.requires_grad, v.is_leaf, v.tolist(), w.grad.tolist()))
    assert found[0] == found[1]


def test_two_views_that_look_again_in_one_call_do_not_reopen_a_trace_that_the_first_closed():
    with genesis.eager():  # each call closes its trace
        x = genesis.arange(8.0)
        a, b = x[:4], x[::2].detach()
        with genesis.no_grad():
            b.unsqueeze(0).neg_()
        assert ((a - b).tolist(), b.sum().item()) == ([0.0, 3.0, 2.0, 9.0], -12.0)


def test_a_window_of_true_elements_leaves_the_shapes_of_equal_layouts_alone():
    x = genesis.arange(7)
    x.tolist()
    assert [type(extent) for extent in x.unfold(0, True, True).shape] == [int, int]
    assert x.reshape(7, 1).shape[1] is not True
    with pytest.raises(TypeError):
        x.unfold(0, 2.5, 1)


def test_layout_rules_remember_no_number_of_a_recorded_call():
    def numbers():
        gc.collect()
        return sum(type(one) is Number for one in gc.get_objects())

    x = genesis.arange(11.0)
    x.tolist()
    before = numbers()
    taken = genesis.compile(lambda x, n: x[n] * 2.0)
    assert [float(taken(x, n)) for n in (1, 2)] == [2.0, 4.0]
    del taken
    assert numbers() == before


@pytest.mark.parametrize("function", [
    lambda lib, x: lib.einsum("ij->ji", x),
    lambda lib, x: lib.einsum("ii->i", [x]),
    lambda lib, x: lib.einsum("...ij->...ji", x),
    lambda lib, x: lib.positive(x),
    lambda lib, x: lib.cartesian_prod(x[0]),
    lambda lib, x: x.sum_to_size(2, 2),
])
def test_functions_that_only_rearrange_return_views(function):
    found = []
    for lib in (genesis, torch):
        x = lib.zeros(2, 2)
        w = lib.arange(4.0).view(2, 2).requires_grad_()
        function(lib, x)[0] += 5
        (function(lib, w) * function(lib, w)).sum().backward()
        found.append((x.tolist(), w.grad.tolist()))
    assert found[0] == found[1] and any(map(any, found[0][0]))


def test_an_equation_that_does_not_fit_raises_as_with_more_operands():
    for operands in [(genesis.ones(2, 2),), (genesis.ones(2, 2), genesis.ones(2))]:
        with pytest.raises(RuntimeError, match="does not name the 2 axes"):
            genesis.einsum(",".join(["ijk", "i"][: len(operands)]) + "->ij", *operands)


def test_layouts_are_of_plain_shapes():
    assert type(contiguous_layout(genesis.Size((31, 29, 37))).shape) is tuple  # equal shapes share the layout
