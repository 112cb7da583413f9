"""Derivatives that are asked for again, modules stacked, axes moved by a pattern: results are torch's."""

import re

import numpy as np
import pytest
import torch

import genesis

W = np.random.RandomState(0).randn(3, 3)


def test_a_linearized_function_gives_torchs_derivatives_and_runs_once():
    found = []
    for lib in (genesis, torch):
        weight, runs = lib.tensor(W), []

        def function(a, b, lib=lib, weight=weight, runs=runs):
            runs.append(1)
            return {"u": (a @ weight).sin() * b, "v": a.sum()}

        value, along = lib.func.linearize(function, lib.tensor(W[0]), lib.tensor(W[1]))
        changes = [along(lib.tensor(W[1]), lib.tensor(W[2])), along(lib.tensor(W[2]), lib.tensor(W[2]))]
        assert lib is torch or len(runs) == 1
        found.append([tree[name].numpy() for tree in (value, *changes) for name in ("u", "v")])
    for have, want in zip(*found, strict=True):
        np.testing.assert_allclose(have, want)


def test_gradients_come_before_values():
    for lib in (genesis, torch):
        gradient, (value, aux) = lib.func.grad_and_value(lambda x: ((x * x).sum(), x + 1), has_aux=True)(lib.tensor(W[0]))
        np.testing.assert_allclose(gradient.numpy(), 2 * W[0])
        assert value.item() == pytest.approx((W[0] ** 2).sum()) and aux.shape == (3,)


def test_modules_are_stacked_for_vmap():
    models = [genesis.nn.Sequential(genesis.nn.Linear(3, 2), genesis.nn.BatchNorm1d(2)) for _ in range(4)]
    parameters, buffers = genesis.func.stack_module_state(models)
    theirs = torch.func.stack_module_state([torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))] * 4)
    for have, want in zip((parameters, buffers), theirs, strict=True):
        assert {k: (tuple(v.shape), v.requires_grad) for k, v in have.items()} == {
            k: (tuple(v.shape), v.requires_grad) for k, v in want.items()}
    linear = [genesis.nn.Linear(3, 2) for _ in range(4)]
    stacked, _ = genesis.func.stack_module_state(linear)
    x = genesis.tensor(W, dtype=genesis.float32)
    results = genesis.vmap(lambda p: genesis.func.functional_call(linear[0], p, (x,)))(stacked)
    for have, model in zip(results, linear, strict=True):
        np.testing.assert_allclose(have.detach().numpy(), model(x).detach().numpy(), rtol=1e-5)
    with pytest.raises(ValueError, match="modules of one class"):
        genesis.func.stack_module_state([linear[0], genesis.nn.ReLU()])
    norms = genesis.func.replace_all_batch_norm_modules_(genesis.nn.Sequential(models[0])).state_dict()
    assert not any("running" in name for name in norms)


@pytest.mark.parametrize("pattern, lengths", [
    ("a b c -> c (a b)", {}), ("a (b d) c -> d a b c", {"d": 3}), ("... c -> c ...", {}), ("a b c -> a 1 (c b)", {}),
    ("a ... -> a (...)", {}), ("a b c -> (a b c)", {}), ("... -> ...", {}),
])
def test_axes_move_as_the_pattern_says(pattern, lengths):
    have, want = (lib.func.rearrange(lib.arange(24.0).reshape(2, 3, 4), pattern, **lengths) for lib in (genesis, torch))
    assert have.tolist() == want.tolist()


@pytest.mark.parametrize("pattern", ["a b -> a b", "a b c -> a b", "a b c", "a b a -> a b a", "(a b) c d -> a b c d"])
def test_patterns_that_do_not_fit_are_refused(pattern):
    with pytest.raises(ValueError, match="rearrange: "):
        genesis.func.rearrange(genesis.zeros(2, 3, 4), pattern)


VIEWS = {
    "whole": lambda b: b, "beginning": lambda b: b[:2], "further on": lambda b: b[1:], "turned": lambda b: b.t(),
    "columns": lambda b: b[:, 1:], "repeated": lambda b: b[0].expand(4, 4),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("offset", [None, 0, 1])
@pytest.mark.parametrize("transform", [
    lambda lib, f, x: lib.func.vmap(f)(x), lambda lib, f, x: lib.func.vmap(f, in_dims=1)(x),
    lambda lib, f, x: lib.func.jvp(f, (x,), (x,))[0], lambda lib, f, x: lib.func.vjp(lambda y: lib.func.vmap(f)(y[1:]), x)[0],
    lambda lib, f, x: lib.func.grad(lambda y: f(y[0]).sum())(x), lambda lib, f, x: lib.autograd.functional.jacobian(f, x),
])
def test_as_strided_reads_what_pytorch_reads_or_raises(transform, offset, name):
    def of(lib):
        return transform(lib, lambda row: row.as_strided((2,), (1,), offset) ** 2, VIEWS[name](lib.arange(12.0).view(3, 4)))

    try:
        have = of(genesis)
    except RuntimeError as error:
        assert re.search("lies by itself|exceed a storage", str(error))
    else:
        np.testing.assert_array_equal(have.numpy(), of(torch).numpy())


@pytest.mark.parametrize("offset", [None, 0, 1])
def test_as_strided_of_an_argument_that_lies_by_itself_is_taken(offset):
    for lib in (genesis, torch):
        x = lib.arange(12.0).view(3, 4)
        rows = lib.func.vmap(lambda row: row.as_strided((2,), (2,), offset))(x[:2])
        start = offset or 0
        assert rows.tolist() == [[start, start + 2.0], [start + 4.0, start + 6.0]]


def test_as_strided_in_a_compiled_transform_goes_by_each_calls_argument():
    compiled = genesis.compile(lambda x: genesis.func.vjp(lambda y: y.as_strided((2,), (1,), 0), x)[0])
    x = genesis.arange(12.0).view(3, 4)
    for _ in range(3):
        assert compiled(x[:2]).tolist() == [0, 1]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="lies by itself"):
            compiled(x[1:])


@pytest.mark.parametrize("call", [
    lambda lib, x: lib.func.grad(lib.mul, argnums=(0, -2))(x[0], x[1]),
    lambda lib, x: lib.func.grad(lib.mul, argnums=2)(x[0], x[1]),
    lambda lib, x: lib.func.jacrev(lib.mul, argnums=())(x, x), lambda lib, x: lib.func.jacfwd(lib.sin, argnums=0.0)(x),
    lambda lib, x: lib.func.jacrev(lambda x: ())(x), lambda lib, x: lib.func.vjp(lambda x: None, x),
    lambda lib, x: lib.func.jvp(lib.sin, x, (x,)), lambda lib, x: lib.func.jvp(lib.sin, (x,), (x, x)),
    lambda lib, x: lib.func.vjp(lambda x: (x, (x, x)), x)[1](((x, x), x)),
    lambda lib, x: lib.func.vjp(lambda x: {"a": x, "b": x}, x)[1]({"b": x, "a": x}),
    lambda lib, x: lib.autograd.functional.jvp(lib.sin, x, (x, x)),
    lambda lib, x: lib.autograd.functional.vjp(
        lambda x: x.clone(), x.requires_grad_(), lib.ones(2), create_graph=True, strict=True),
])
@pytest.mark.parametrize("lib", [genesis, torch])
def test_what_both_refuse(lib, call):
    with pytest.raises(RuntimeError):
        call(lib, lib.tensor([1.0, 2.0]))


@pytest.mark.parametrize("lib", [genesis, torch])
def test_derivatives_are_recorded_under_no_grad_where_they_are_asked_for(lib):
    with lib.no_grad():
        rows = lib.autograd.functional.jacobian(lambda x: x.exp(), lib.tensor([1.0, 2.0]), create_graph=True)
        table = lib.autograd.functional.hessian(lambda x: (x**3).sum(), lib.tensor([1.0, 2.0]), create_graph=True)
    assert rows.requires_grad and table.requires_grad


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_dict_gets_the_buffers_that_a_call_assigns(lib, compiled):
    class Counter(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", lib.zeros(()))

        def forward(self, x):
            self.count = self.count + 1
            return x + self.count

    def call(state):
        return lib.func.functional_call(counter, state, lib.ones(()))

    call = lib.compile(call) if compiled and lib is genesis else call
    counter, state = Counter(), {"count": lib.tensor(4.0)}
    assert [call(state).item() for _ in range(5)] == [6.0, 7.0, 8.0, 9.0, 10.0]
    assert state["count"] == 9 and counter.count == 0


@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_single_axis_in_a_tuple_is_a_results(lib):
    x = lib.arange(6.0).reshape(2, 3)
    assert lib.func.vmap(lambda x: x, out_dims=(1,))(x).tolist() == x.T.tolist()
    with pytest.raises(ValueError):
        lib.func.vmap(lib.mul, in_dims=[0, 0])(x, x)


@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_function_that_jvp_calls_writes_to_the_callers_tensors(lib):
    def doubled(x):
        x.mul_(2)
        return x * x

    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    push = lib.func.vmap(lambda row, tangent: lib.func.jvp(doubled, (row,), (tangent,)), in_dims=1)
    value, tangent = push(x, lib.ones(2, 2))
    assert x.tolist() == [[2.0, 4.0], [6.0, 8.0]] and value.tolist() == (x * x).T.tolist()
    assert tangent.tolist() == (4 * x).T.tolist()
    lib.func.jvp(doubled, (x[0],), (lib.ones(2),))
    assert x.tolist() == [[4.0, 8.0], [6.0, 8.0]]
