"""vmap against torch.func.vmap, and vectorized Jacobians against those taken row by row."""

import functools

import numpy as np
import pytest
import torch

import genesis
from genesis import func
from tests.func.test_transforms import A, B, agree, same
from tests.tolerances import assert_close

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script")

C = np.random.default_rng(2).standard_normal((4, 2, 3))
FUNCTIONS = {
    "elementwise": lambda m, x: x.sin() * 2 + 1,
    "reductions": lambda m, x: (x.sum(), x.mean(0), x.amax(-1, keepdim=True), x.argmax(1), m.var(x)),
    "views": lambda m, x: {"t": x.transpose(0, 1), "r": x.reshape(3, 2)[1:, 0], "f": x.flip(0), "e": x.expand(2, 2, 3)},
    "products": lambda m, x: (x @ m.tensor(B), m.tensor(A) @ x.transpose(0, 1), x @ x.transpose(0, 1), x[0] @ x[1]),
    "joining": lambda m, x: (m.cat([x, x * 2], 1), m.stack([x, m.tensor(A)])),
    "indexing": lambda m, x: (x[m.tensor([1, 0, 1])], x.gather(1, m.tensor([[2, 0], [1, 1]])), x[:, 1]),
    "writes": lambda m, x: written(x),
    "softmax": lambda m, x: (m.softmax(x, -1), m.logsumexp(x, 0)),
    "sorting": lambda m, x: (m.sort(x, 1)[0], m.cumsum(x, 0)),
    "constant": lambda m, x: (m.tensor(A), x * 0),
}


def written(x):
    y = x.clone()
    y[0] = y[1] * 2
    y[:, 1:].mul_(x[:, :2])
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_are_computed_at_once(name):
    function = FUNCTIONS[name]
    ours = func.vmap(lambda x: function(genesis, x))(genesis.tensor(C))
    each = [function(torch, torch.tensor(x)) for x in C]
    same(ours, stacked(each))


def stacked(each):
    """Trees of results as one tree of stacked results."""
    first = each[0]
    if isinstance(first, dict):
        return {key: stacked([one[key] for one in each]) for key in first}
    return tuple(stacked(list(many)) for many in zip(*each, strict=True)) if isinstance(first, tuple) else torch.stack(each)


def test_axes_of_arguments_and_results():
    for in_dims, out_dims in (((0, None), 0), ((2, 0), 1), ((-1, 0), -1)):
        agree(lambda f, t, i=in_dims, o=out_dims: f.vmap(lambda x, y: x * y[:1].sum(), i, o)(
            t(C), t(np.ones((3, 2)) if i[1] == 0 else B)))
    agree(lambda f, t: f.vmap(lambda p, x: {"y": p["w"] * x, "b": p["b"]}, ({"w": 0, "b": None}, 1), {"y": 1, "b": 0})(
        {"w": t(A), "b": t(B)}, t(A.T.copy())))


def test_per_example_gradients():
    agree(lambda f, t: f.vmap(f.grad(lambda w, x: ((x @ w).tanh() ** 2).sum()), (None, 0))(t(B), t(C)))
    agree(lambda f, t: f.vmap(f.jacrev(lambda x: x.exp() * x.sum()))(t(A)))
    agree(lambda f, t: f.vmap(f.hessian(lambda x: (x.sin() ** 2).prod()))(t(A)))
    agree(lambda f, t: f.vmap(lambda x, v: f.jvp(lambda x: x**3, (x,), (v,))[1])(t(A), t(A + 1)))


def test_gradients_of_what_was_mapped():
    agree(lambda f, t: f.grad(lambda x: (f.vmap(lambda r: r.exp() * r.sum())(x) ** 2).sum())(t(A)))
    agree(lambda f, t: f.grad(lambda w: f.vmap(lambda r: (r * w).sin().sum())(t(A)).sum())(t(B)))
    agree(lambda f, t: f.hessian(lambda x: f.vmap(lambda r: (r**3).prod())(x).sum())(t(A)))
    x = genesis.tensor(A, requires_grad=True)
    func.vmap(lambda r: (r * r).sum())(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * A)


def test_maps_nest():
    agree(lambda f, t: f.vmap(f.vmap(lambda x: x.sum() * x))(t(C)))
    agree(lambda f, t: f.vmap(f.vmap(lambda x, y: x @ y, (0, None)), (None, 0))(t(A), t(C[:, 0])))


def test_each_example_selects_by_an_index_of_its_own():
    place = np.array([1, 0, -1])

    def written(x, i):
        y = x.clone()
        y[i] += 10
        y[i].mul_(0)  # of a copy
        return y

    for function in (lambda x, i: x[i], lambda x, i: x[None, i] * 2, lambda x, i: x[x.argmax()] * i, written):
        agree(lambda f, t, g=function: f.vmap(g)(t(A.T.copy()), t(place)))
    agree(lambda f, t: f.vmap(lambda i: t(A)[:, i])(t(place)))
    agree(lambda f, t: f.grad(lambda x: f.vmap(lambda row, i: row[i] ** 2)(x, t(place)).sum())(t(A.T.copy())))


def test_a_map_is_one_program_whatever_its_extent():
    for extent in (3, 300):
        genesis.debug.reset_stats()
        func.vmap(func.grad(lambda x: x.tanh().prod()))(genesis.ones(extent, 5)).tolist()
        assert genesis.debug.stats()["flushes"] == genesis.debug.stats()["native_calls"] == 1
    assert genesis.debug.stats()["kernels_compiled"] == 0


def test_transforms_stay_on_their_device():
    x = genesis.tensor(A, device="cpu:1")
    for take in (func.jacrev, func.jacfwd, func.hessian, lambda f: func.vmap(func.grad(lambda r: f(r).sum()))):
        found = take(lambda x: x.exp() * x)(x)
        assert found.device == x.device
        assert_close(found.to("cpu"), take(lambda x: x.exp() * x)(genesis.tensor(A)))


class Square(genesis.Function):
    """Its backward is another custom Function."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return Doubled.apply(x) * g


class Doubled(genesis.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Looking(Square):
    """Its backward looks at a value."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert g.isfinite().all()
        return 2 * x * g


def test_custom_functions_are_transformed():
    x = genesis.tensor(B)
    for function in (Square.apply, Looking.apply):
        assert_close(func.jacrev(function)(x), np.diag(2 * B))
        assert_close(func.jacfwd(function)(x), np.diag(2 * B))
        assert_close(func.vmap(function)(x), B * B)
    assert_close(func.hessian(lambda x: Square.apply(x).sum())(x), 2 * np.eye(3))
    assert_close(func.vmap(func.grad(Square.apply))(x), 2 * B)


def test_custom_functions_are_not_derived_for_many_examples():
    with pytest.raises(NotImplementedError, match="a custom Function is derived for one example"):
        func.grad(lambda x: func.vmap(Square.apply)(x).sum())(genesis.tensor(B))
    assert_close(func.vmap(func.grad(Looking.apply))(genesis.tensor(B)), 2 * B)  # it looks at what is 1 for all


def test_errors():
    x = genesis.tensor(A)
    with pytest.raises(RuntimeError, match="vmap: the function looked at a value"):
        func.vmap(lambda r: r if r.sum() > 0 else -r)(x)
    with pytest.raises(ValueError, match=r"the mapped axes have the extents \[2, 3\]"):
        func.vmap(lambda a, b: a)(x, genesis.tensor(B))
    with pytest.raises(ValueError, match=r"the mapped axes have the extents \[\]"):
        func.vmap(lambda a: a, None)(x)
    with pytest.raises(ValueError, match=r"in_dims has 2, but the tensor has shape \(2, 3\)"):
        func.vmap(lambda a: a, 2)(x)
    with pytest.raises(ValueError, match=r"in_dims \(0,\) does not have the structure"):
        func.vmap(lambda a, b: a, (0,))(x, x)
    with pytest.raises(TypeError, match="a float is mapped over"):
        func.vmap(lambda a: a)(1.0)
    with pytest.raises(TypeError, match="a int is returned"):
        func.vmap(lambda a: 1)(x)


def test_a_function_that_looks_at_values_has_a_jacobian_nevertheless():
    def function(x):
        y = x * 2 if x.sum() > 0 else x * 3
        return y * y

    assert_close(func.jacrev(function)(genesis.tensor(B)), np.diag(2 * (9 if B.sum() <= 0 else 4) * B))


def test_an_index_that_no_example_determines_selects_a_view():
    def moved(library, x):
        y, k = x * 1, library.tensor(0) + 1
        y[k].add_(x[0])
        return y

    ours, theirs = (library.func.jacfwd(lambda x, library=library: moved(library, x))(library.tensor([1.0, 2.0, 3.0]))
                    for library in (genesis, torch))
    assert ours.tolist() == theirs.tolist()
    ours, theirs = (library.func.vmap(lambda x, library=library: moved(library, x))(library.ones(2, 3))
                    for library in (genesis, torch))
    assert ours.tolist() == theirs.tolist()


def looking(library, x, shared, level):
    """Branches on what all examples share."""
    total = (shared * 2).sum()
    x = x * total if total > level else x - 1
    x = x + total.item() * library.ones(2).sum().item()
    if bool((shared > 1).all()):
        x = x * 2
    return x * len(shared.tolist()), x * library.tensor(2.0)


@pytest.mark.parametrize("level", [3.0, 20.0])
def test_values_that_all_examples_share_may_be_looked_at(level):
    """As in PyTorch, also in gradients, in chunks and within one another."""
    found = []
    for library in (genesis, torch):
        x, shared = library.arange(6.0).reshape(3, 2), library.tensor([1.5, 2.5])
        mapped = functools.partial(library.func.vmap, in_dims=(0, None))
        both = mapped(lambda a, b, library=library: looking(library, a, b, level))
        found.append([y.tolist() for y in both(x, shared)])
        found[-1] += [y.tolist() for y in mapped(lambda a, b, library=library: looking(library, a, b, level), chunk_size=2)(
            x, shared)]
        inner = mapped(lambda a, b, both=both: both(a.reshape(2, 1), b)[0])
        found[-1].append(inner(x, shared).tolist())
        gradient = library.func.grad(lambda a, both=both, shared=shared: both(a, shared)[0].sum())
        found[-1].append(gradient(x).tolist())
    assert found[0] == found[1]


def writing_to_arguments(lib):
    """Writes to parts of mapped arguments, along another axis, in chunks, in nested functions, and with a gradient."""
    transforms = func if lib is genesis else torch.func
    x, y = lib.arange(6.0).view(2, 3), lib.zeros(2, 3)
    transforms.vmap(lambda a: a[0].mul_(a[1]), in_dims=1)(x)
    transforms.vmap(lambda a, b: b.copy_(a * 2), chunk_size=1)(x, y)
    transforms.vmap(lambda a: transforms.vmap(lambda b: b.add_(a.sum()))(a))(y[:, 1:])
    w = lib.ones(2, requires_grad=True)
    v = w * 2
    (transforms.vmap(lambda a: a.mul_(3))(v) * v).sum().backward()
    return x.tolist(), y.tolist(), w.grad.tolist()


def test_writes_to_mapped_arguments_are_those_of_each_example():
    assert writing_to_arguments(genesis) == writing_to_arguments(torch)


@pytest.mark.parametrize("lib", [genesis, torch], ids=["genesis", "torch"])
def test_statistics_are_those_of_each_model_or_refused(lib):
    transforms = func if lib is genesis else torch.func
    layers = [lib.nn.BatchNorm1d(3) for _ in range(2)]
    parameters, buffers = transforms.stack_module_state(layers)
    x = lib.tensor(A).float().reshape(2, 3)
    transforms.vmap(lambda *given: transforms.functional_call(layers[0], given, (x,)))(parameters, buffers)
    for mean in buffers["running_mean"]:
        assert_close(mean, x.mean(0) / 10)
    assert buffers["num_batches_tracked"].tolist() == [1, 1] and layers[0].num_batches_tracked == 0
    with pytest.raises(RuntimeError, match="atch"):
        transforms.vmap(layers[0])(lib.stack([x, x]))
    assert layers[0].running_mean.tolist() == [0, 0, 0]


def test_a_tensor_given_twice_is_one_in_the_function():
    x, y = genesis.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3)
    found = genesis.func.vmap(lambda a, b: a.mul_(2) + b)(x, x)
    assert found.tolist() == torch.func.vmap(lambda a, b: a.mul_(2) + b)(y, y).tolist()
    assert x.tolist() == y.tolist()


@pytest.mark.parametrize("lib", [genesis, torch], ids=["genesis", "torch"])
def test_a_result_that_is_an_argument_is_that(lib):
    x, one = lib.zeros(3, 2), lib.ones(2, 3)
    found = lib.func.vmap(lambda a, b: a.add_(b), in_dims=(0, 1), out_dims=1)(x, one)
    found.add_(1)
    assert x.tolist() == [[2, 2]] * 3 and found.shape == (2, 3)


def test_arguments_of_one_memory_are_not_written():
    x = genesis.zeros(3, 3)
    for other in (x[:], x.T):
        with pytest.raises(RuntimeError, match="shares memory"):
            genesis.func.vmap(lambda a, b: b.add_(1) + a)(x, other)
        assert genesis.func.vmap(lambda a, b: b + a)(x, other).shape == (3, 3)
    assert x.sum() == 0
