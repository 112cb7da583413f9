"""Views of complex tensors, their parts and conjugates, read and written in any order, beside torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis

VIEWS = {
    "conj": lambda x: x.conj(), "real": lambda x: x.real, "imag": lambda x: x.imag if x.is_complex() else x,
    "mT": lambda x: x.T,
    "first": lambda x: x[0],
    "tail": lambda x: x[..., 1:], "steps": lambda x: x[::2], "flat": lambda x: x.reshape(-1),
    "detach": lambda x: x.detach(), "H": lambda x: x.H, "diagonal": lambda x: x.diagonal(), "data": lambda x: x.data,
    "turned": lambda x: x.unsqueeze(0), "expand": lambda x: x.expand(2, *x.shape), "copy": lambda x: x * 2,
    "resolved": lambda x: x.resolve_conj().resolve_neg(), "clone": lambda x: x.clone(), "square": lambda x: x * x.conj(),
}
WRITES = {
    "mul_": lambda x, c: x.mul_(2), "add_": lambda x, c: x.add_(c), "zero_": lambda x, c: x[..., :1].zero_(),
    "fill": lambda x, c: x.__setitem__((..., 0), c), "conj_physical_": lambda x, c: x.conj_physical_(),
    "copy_": lambda x, c: x.copy_((x + 1).flip(0)), "real": lambda x, c: x.real.sub_(1), "neg_": lambda x, c: x.neg_(),
    "imag": lambda x, c: x.imag.mul_(3) if x.is_complex() else x.mul_(3),
    "turn": lambda x, c: x.mul_(1j) if x.is_complex() else x,
    "set": lambda x, c: setattr(x, "imag", x.real + c.real) if x.is_complex() else x,
}
STEPS = st.lists(st.tuples(st.sampled_from([*VIEWS, *WRITES]), st.integers(0, 7)), min_size=1, max_size=12)


def _run(library, steps, values, grad, shared):
    """What every tensor holds at the end, and the root's gradient; None for steps that are refused."""
    leaf = library.tensor(values) if not shared else library.from_numpy(values.copy())
    if grad:
        leaf.requires_grad = True
    pool = [leaf * 1 if grad else leaf]
    done = []
    for name, at in steps:
        x = pool[at % len(pool)]
        try:
            if name in VIEWS:
                pool.append(VIEWS[name](x))
            else:
                WRITES[name](x, 2 - 1j if x.is_complex() else 0.5)
            done.append(True)
        except (RuntimeError, IndexError, TypeError, ValueError):
            done.append(False)
    results = [x.detach().resolve_conj().resolve_neg().numpy() for x in pool]
    if not grad:
        return done, results, [(x.is_conj(), x.is_neg()) for x in pool]
    loss = sum((x.abs() ** 2 + x.real).sum() for x in pool if x.requires_grad)
    (found,) = library.autograd.grad(loss, [leaf]) if loss.requires_grad else (None,)
    return done, [*results, *([] if found is None else [found.resolve_conj().numpy()])], None


def _compare(steps, grad, shared):
    values = np.random.default_rng(len(steps)).normal(size=(3, 3, 2)).view(complex)[..., 0]
    try:
        done, theirs, kinds = _run(torch, steps, values, grad, shared)
    except RuntimeError:  # what backward reads has changed
        return
    if not all(done):
        steps = [step for step, is_done in zip(steps, done, strict=True) if is_done]
        return _compare(steps, grad, shared)
    own = _run(genesis, steps, values, grad, shared)
    assert own[0] == done and own[2] == kinds, (steps, own[0])
    for ours, wanted in zip(own[1], theirs, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-10, atol=1e-10, err_msg=str(steps))


@pytest.mark.parametrize(("grad", "shared"), [(False, False), (False, True), (True, False)])
def test_views_and_writes_agree_with_torch(grad, shared):
    @settings(max_examples=40, deadline=None)
    @given(STEPS)
    def check(steps):
        with genesis.eager():
            _compare([s for s in steps if s[0] != "data" or not grad], grad, shared)  # writes through .data are not counted

    check()
