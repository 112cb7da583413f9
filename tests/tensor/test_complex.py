"""Complex tensors beside torch's: values, gradients, views of parts, and what refuses them."""

import io
import pickle

import numpy as np
import pytest
import torch

import genesis
from genesis.autograd import gradcheck, gradgradcheck

DTYPES = ("complex64", "complex128")
rng = np.random.default_rng(0)


def numbers(*shape, dtype="complex64"):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def same(ours, theirs, rtol=None):
    theirs = theirs.detach().resolve_conj().numpy()
    ours = ours.detach().resolve_conj().resolve_neg().numpy()
    assert ours.dtype == theirs.dtype
    wide = theirs.dtype.name in ("complex128", "float64")
    np.testing.assert_allclose(ours, theirs, rtol or (1e-11 if wide else 1e-4), 1e-12 if wide else 1e-5)


BINARY = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y, "scalar": lambda x, y: 2 * x - 1j * y + 0.5, "real": lambda x, y: x * y.real,
    "modulus": lambda x, y: abs(x) * y, "eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
    "matmul": lambda x, y: x[:, None] * y[None, :] @ (x[:, None] * y[None, :]), "dot": lambda x, y: x @ y,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(name, dtype):
    for count in (1, 3, 40):
        a, b = numbers(count, dtype=dtype), numbers(count, dtype=dtype)
        same(BINARY[name](genesis.tensor(a), genesis.tensor(b)), BINARY[name](torch.tensor(a), torch.tensor(b)))


FUNCTIONS = (
    "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sigmoid", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "asin", "acos", "atan", "asinh", "acosh", "atanh", "exp2", "reciprocal", "square", "sgn", "abs", "angle", "conj",
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_within_a_few_roundings(name):
    wide = np.concatenate([numbers(200, dtype="complex128") * size for size in (1e-3, 1, 5)])
    wide = np.concatenate([wide, [2, -2, 0.5, -0.5, 1j, 1 + 1e-7j]])
    exact = getattr(torch, name)(torch.tensor(wide)).resolve_conj().numpy()
    for dtype, bound in (("complex64", 1e-5), ("complex128", 1e-12)):
        z = wide.astype(dtype)
        exact = getattr(torch, name)(torch.tensor(z.astype("complex128"))).resolve_conj().numpy()
        found = getattr(genesis, name)(genesis.tensor(z)).resolve_conj().numpy()
        kept = np.isfinite(exact)
        assert (np.abs(found - exact)[kept] <= bound * np.abs(exact)[kept] + 1e-30).all()


SPECIAL = np.array([complex(x, y) for x in (0.0, -0.0, 1, -1, -0.5, 2, 1e-30, 3e30, np.inf, -np.inf) for y in (
    0.0, -0.0, 1, -1, 0.5, -2, 1e-30, 3e30, np.inf, -np.inf)])


def same_bits_of_zeros(found, exact):
    """Parts are equal, signs of zeros included; what is exact as a whole is found."""
    for a, b in ((found.real, exact.real), (found.imag, exact.imag)):
        known = ~np.isnan(b) & ~np.isnan(a)
        np.testing.assert_allclose(a[known], b[known], 1e-11, 1e-15)
        zeros = (a == 0) & (b == 0)
        np.testing.assert_array_equal(np.signbit(a)[zeros], np.signbit(b)[zeros])
    assert not np.isnan(found[~np.isnan(exact)]).any()


@pytest.mark.parametrize("name", [
    "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sgn",
])
def test_signs_of_zeros_and_infinities_choose_the_branch_as_in_torch(name):
    exact = np.arccos(SPECIAL) if name == "acos" else getattr(torch, name)(torch.tensor(SPECIAL)).numpy()
    same_bits_of_zeros(getattr(genesis, name)(genesis.tensor(SPECIAL)).numpy(), exact)


def test_quotients_have_torchs_signs_of_zeros():
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL[::3], SPECIAL[::3]))
    same_bits_of_zeros((genesis.tensor(x) / genesis.tensor(y)).numpy(), (torch.tensor(x) / torch.tensor(y)).numpy())


def test_logarithms_near_a_branch_point_in_float32_are_finite():
    z = np.array([1 + 1e-30j, -1 - 1e-25j], "complex64")
    np.testing.assert_allclose(genesis.tensor(z).atanh().numpy(), np.arctanh(z), 1e-6)


REDUCTIONS = {
    "sum": lambda x: x.sum(0), "mean": lambda x: x.mean(1), "prod": lambda x: x.prod(1), "all": lambda x: x.prod(),
    "var": lambda x: x.var(1), "std": lambda x: x.std(), "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(0),
    "norm": lambda x: x.norm(), "any": lambda x: x.any(),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    for shape in ((3, 5), (2, 64), (4, 1)):
        a = numbers(*shape, dtype="complex128")
        same(REDUCTIONS[name](genesis.tensor(a)), REDUCTIONS[name](torch.tensor(a)))
    assert genesis.zeros(0, dtype=genesis.complex64).prod().item() == 1


MOVES = {
    "transpose": lambda x, lib: x.T + 0, "flip": lambda x, lib: x.flip((0, 1)), "step": lambda x, lib: x[:, 1::2] * 2,
    "index": lambda x, lib: x[lib.tensor([2, 0, 0])], "mask": lambda x, lib: x[x.real > 0],
    "cat": lambda x, lib: lib.cat([x, x * 1j], 1), "where": lambda x, lib: lib.where(x.imag > 0, x, 0),
    "expand": lambda x, lib: x[:1].expand(4, 6) * x, "permuted": lambda x, lib: (x.T.real * 2, x.T)[1].contiguous(),
    "gather": lambda x, lib: lib.gather(x, 1, lib.tensor([[0, 5], [1, 1]])), "roll": lambda x, lib: x.roll(2, 1),
    "scatter": lambda x, lib: x.index_add(0, lib.tensor([1, 1]), x[:2]), "adjoint": lambda x, lib: x.mH @ x,
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    for dtype in DTYPES:
        a = numbers(4, 6, dtype=dtype)
        same(MOVES[name](genesis.tensor(a), genesis), MOVES[name](torch.tensor(a), torch))


def test_products_of_matrices():
    a, b = numbers(3, 17, 33), numbers(3, 33, 9)
    same(genesis.tensor(a) @ genesis.tensor(b), torch.tensor(a) @ torch.tensor(b), 1e-3)
    same(genesis.einsum("bij,bjk->ik", genesis.tensor(a), genesis.tensor(b)),
         torch.einsum("bij,bjk->ik", torch.tensor(a), torch.tensor(b)), 1e-3)


# ---- dtypes ----
@pytest.mark.parametrize("other", ["bool", "int64", "float32", "float64", "complex64", "complex128"])
def test_promotion(other):
    for own in DTYPES:
        assert genesis.promote_types(getattr(genesis, own), getattr(genesis, other)).name == str(
            torch.promote_types(getattr(torch, own), getattr(torch, other))).removeprefix("torch.")
        for left, right in (((2,), ()), ((), (2,)), ((2,), (2,))):
            ours = genesis.ones(left, dtype=getattr(genesis, own)) + genesis.ones(right, dtype=getattr(genesis, other))
            theirs = torch.ones(left, dtype=getattr(torch, own)) + torch.ones(right, dtype=getattr(torch, other))
            assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")


def test_python_numbers_promote_to_the_default_complex_dtype():
    assert (genesis.ones(2) * 1j).dtype is genesis.cfloat
    assert (genesis.ones(2, dtype=genesis.float64) * 1j).dtype is genesis.cdouble
    assert (genesis.arange(2) + 1j).dtype is genesis.complex64
    assert genesis.tensor([1, 2j]).dtype is genesis.complex64
    assert [(genesis.ones(1) * c).item() for c in (2, 2 + 0j, 3, 3 + 0j, -0.0)] == [2, 2, 3, 3, 0]


def test_conversions():
    z = genesis.tensor([1 + 2j, 0, 3j])
    assert z.to(genesis.bool).tolist() == [True, False, True]
    assert genesis.ones(2).to(genesis.complex128).tolist() == [1, 1]
    assert (z.is_complex(), z.real.is_complex(), complex(z[2]), z[0].item()) == (True, False, 3j, 1 + 2j)


def test_printed_as_torch_prints():
    for data in ([1 + 2j, 3 - 1j], [0.5j, -1.25], [[1e-9 + 1j, 1e5j], [2.5, 3 - 2j]], [complex("nan"), 1j], 1j):
        assert repr(genesis.tensor(data)) == repr(torch.tensor(data))


def test_saved_pickled_and_shared():
    z = genesis.tensor(numbers(3))
    file = io.BytesIO()
    genesis.save({"z": z, "part": z.real}, file)
    file.seek(0)
    assert torch.load(file)["z"].tolist() == z.tolist()
    assert pickle.loads(pickle.dumps(z)).tolist() == z.tolist()
    values = np.zeros(2, np.complex128)
    shared = genesis.from_numpy(values)
    values[1] = 2j
    assert shared.tolist() == [0, 2j]
    assert torch.from_dlpack(z).tolist() == z.tolist() == genesis.from_dlpack(torch.tensor(z.numpy())).tolist()


# ---- views of parts ----
def written(lib):
    found = []
    z = lib.tensor([1 + 2j, 3 - 1j])
    real, parts = z.real, lib.view_as_real(z)
    real.mul_(3)
    found += [z.clone(), z * 2]
    z.imag[0] = 7.0
    z *= 2
    found += [real + 0, parts + 0]
    parts[1, 0] = -1
    found.append(z + 0)
    pairs = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    joined = lib.view_as_complex(pairs)
    joined *= 1j
    found.append(pairs + 0)
    pairs.zero_()
    found.append(joined + 0)
    turned = lib.tensor([[1 + 2j, 3 - 1j], [0, 1j]]).T
    turned.real[0] = 5
    turned.imag = lib.ones(2, 2)
    found.append(turned + 0)
    z.real.numpy()[0] = 42
    found.append(z + 0)
    return found


def test_views_of_parts_share_storage():
    for ours, theirs in zip(written(genesis), written(torch), strict=True):
        same(ours, theirs)


def test_gradients_flow_through_views_of_parts():
    grads = []
    for lib in (genesis, torch):
        z = lib.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        y = z * (2 - 1j)
        y.real.mul_(3.0)
        (y.abs().sum() + lib.view_as_real(y).square().sum()).backward()
        grads.append(z.grad)
    same(*grads)


def test_view_as_complex_wants_pairs_of_neighbours():
    for bad in (genesis.ones(3), genesis.ones(2, 3).T, genesis.ones(5)[1:].reshape(2, 2), genesis.ones(2, 3)[:, :2]):
        with pytest.raises(ValueError, match="want pairs of neighbours"):
            genesis.view_as_complex(bad)
    with pytest.raises(TypeError, match="wants a tensor of float16, float32 or float64, got int64"):
        genesis.view_as_complex(genesis.zeros(2, 2, dtype=genesis.int64))
    with pytest.raises(TypeError, match="imag: wants a complex tensor, got float32"):
        _ = genesis.ones(2).imag


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_powers_of_zero_are_torchs(dtype):
    exponents = [2, 1 + 1j, -1, -1 + 1j, -0.5 - 2j, 1j, -3j]
    ours, theirs = ((lib.zeros(len(exponents), dtype=getattr(lib, dtype)) ** lib.tensor(exponents, dtype=getattr(lib, dtype)))
                    for lib in (genesis, torch))
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


# ---- gradients ----
DERIVED = {
    "mul": lambda x, y, r: x * y * r, "div": lambda x, y, r: x / y, "pow": lambda x, y, r: x**y,
    "abs": lambda x, y, r: x.abs() * r,
    "angle": lambda x, y, r: x.angle(), "exp": lambda x, y, r: x.exp() * y.conj(), "log": lambda x, y, r: (x * y).log(),
    "parts": lambda x, y, r: x.real * y.imag, "polar": lambda x, y, r: genesis.polar(x.abs(), r),
    "prod": lambda x, y, r: x.prod(),
    "matmul": lambda x, y, r: genesis.outer(x, y) @ genesis.outer(y, x), "cumprod": lambda x, y, r: x.cumprod(0),
    "complex": lambda x, y, r: genesis.complex(r, x.real) * y, "norm": lambda x, y, r: (x * r).norm() + y.var(),
    "index": lambda x, y, r: x[genesis.tensor([0, 0, 2])] * y[1:2], "tanh": lambda x, y, r: genesis.where(r > 0, x.tanh(), y),
}


@pytest.mark.parametrize("name", DERIVED)
def test_gradients_are_those_of_the_parts(name, by_references):
    x, y = (genesis.tensor(numbers(3, dtype="complex128"), requires_grad=True) for _ in range(2))
    r = genesis.tensor(rng.standard_normal(3), requires_grad=True)
    assert gradcheck(DERIVED[name], (x, y, r))
    assert gradgradcheck(DERIVED[name], (x, y, r))


def test_gradients_are_conjugate_wirtinger_derivatives_as_torchs():
    grads = []
    for lib in (genesis, torch):
        z, w = lib.tensor([1 + 2j, 3 - 1j], requires_grad=True), lib.tensor([2.0, -1.0], requires_grad=True)
        y = (z * w).exp() / (z + 2j)
        y.backward(lib.tensor([1 + 1j, -2j]))
        grads.append((z.grad, w.grad))
    for ours, theirs in zip(*grads, strict=True):
        same(ours, theirs)


def test_only_a_real_number_needs_no_gradient():
    z = genesis.tensor([1j], requires_grad=True)
    with pytest.raises(RuntimeError, match="only a real number needs no gradient; this one is complex64"):
        (z * z).sum().backward()


def test_transforms():
    def f(z):
        return z * z * z.conj()

    z, along = numbers(2), numbers(2)
    ours = genesis.func.jvp(f, (genesis.tensor(z),), (genesis.tensor(along),))
    theirs = torch.func.jvp(f, (torch.tensor(z),), (torch.tensor(along),))
    for a, b in zip(ours, theirs, strict=True):
        same(a, b)
    many = numbers(4, 3)
    same(genesis.vmap(lambda z: (z * z.conj()).sum())(genesis.tensor(many)), torch.tensor((many * many.conj()).sum(1)))


# ---- kernels ----
def test_a_chain_is_one_kernel():
    z, w = genesis.tensor(numbers(100)), genesis.tensor(numbers(100))
    y = ((z * w + z) / w - z).exp()
    (stage,) = genesis.execution.plan.plan_for(genesis.tracing.state.current_trace()).lowered.schedule.stages
    assert len(stage) == 1
    same(y, ((torch.tensor(z.numpy()) * torch.tensor(w.numpy()) + torch.tensor(z.numpy())) / torch.tensor(w.numpy())
             - torch.tensor(z.numpy())).exp(), 1e-3)


def test_large_results_pass_the_caches():
    z = genesis.tensor(numbers(1 << 20))
    same(z[3:] * 2 + z[:-3], torch.tensor(z.numpy())[3:] * 2 + torch.tensor(z.numpy())[:-3])


def test_compiled_functions_replay():
    @genesis.compile
    def f(z, s):
        y = z * s + 1j
        return y.abs().sum() + y.real.mean(), y

    for s in (1.0, 2.0, 3.0):
        z = numbers(5)
        norm, y = f(genesis.tensor(z), s)
        t = torch.tensor(z) * s + 1j
        same(norm, t.abs().sum() + t.real.mean())
        same(y, t)


def test_eager_mode_computes_the_same():
    a, b = numbers(5), numbers(5)
    with genesis.eager():
        found = (genesis.tensor(a) / genesis.tensor(b)).exp().real.sum() + genesis.tensor(a).norm()
        assert np.isclose(found.item(), np.exp(a / b).real.sum() + np.linalg.norm(a), 1e-4)


# ---- what takes real numbers only ----
REFUSED = {
    "order": lambda z: z < z, "floor": lambda z: z.floor(), "relu": lambda z: z.relu(), "max": lambda z: z.max(),
    "sort": genesis.sort, "clamp": lambda z: z.clamp(0, 1), "remainder": lambda z: z % 2, "floor_divide": lambda z: z // 2,
    "number": lambda z: genesis.ones(2) < 1j, "argmax": lambda z: z.argmax(), "round": lambda z: z.round(),
    "gelu": genesis.nn.functional.gelu, "softmax": lambda z: z.softmax(0),
    "mse": lambda z: genesis.nn.functional.mse_loss(z, z),
    "atan2": lambda z: genesis.atan2(z, z), "bits": lambda z: z & z, "float": lambda z: float(z[0]),
    "median": lambda z: z.median(), "in place": lambda z: genesis.ones(2).add_(z), "sign": lambda z: z.sign(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_at_the_line_that_asks(name):
    with pytest.raises(TypeError):
        REFUSED[name](genesis.tensor([1 + 2j, 3]))


def test_refusals_name_what_was_called():
    with pytest.raises(TypeError, match=r"^histc: takes real numbers, got complex ones"):
        genesis.histc(genesis.tensor([1 + 2j, 3]))


def assigned(index, value):
    x = genesis.zeros(2)
    x[index] = value


NUMBERS = {
    "full": lambda: genesis.full((2,), 1j, dtype=genesis.float32),
    "tensor": lambda: genesis.tensor([1j], dtype=genesis.float32),
    "index": lambda: assigned(0, 1j), "mask": lambda: assigned(genesis.tensor([True, False]), 1j),
    "fill": lambda: genesis.zeros(2).fill_(1j), "full_like": lambda: genesis.full_like(genesis.zeros(2), 1j),
    "masked_fill": lambda: genesis.zeros(2).masked_fill(genesis.tensor([True, False]), 1j),
    "index_fill": lambda: genesis.zeros(2).index_fill(0, genesis.tensor([0]), 1j),
    "scatter": lambda: genesis.zeros(2).scatter(0, genesis.tensor([0]), 1j),
    "addcmul": lambda: genesis.addcmul(genesis.zeros(2), genesis.ones(2), genesis.ones(2), value=1j),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_complex_numbers_do_not_become_real_ones(name):
    with pytest.raises(TypeError, match="the number 1j is complex"):
        NUMBERS[name]()


def test_conversions_to_real_dtypes_warn():
    with pytest.warns(UserWarning, match="lose their imaginary parts"):
        assert genesis.tensor([1 + 2j]).to(genesis.float32).tolist() == [1]


def test_the_array_api_knows_complex_numbers():
    xp = genesis.array_api
    z = xp.asarray([1.6 + 2.5j, -1j])
    assert xp.conj(z).tolist() == [x.conjugate() for x in z.tolist()]
    assert (xp.real(z).tolist(), xp.imag(z).tolist()) == ([x.real for x in z.tolist()], [x.imag for x in z.tolist()])
    assert xp.round(z).tolist() == [2 + 2j, -1j]
    assert xp.sum(z).item() == sum(z.tolist())
    assert xp.isdtype(z.dtype, "complex floating") and not xp.isdtype(z.dtype, "real floating")
    assert (xp.result_type(xp.float64, 1j), xp.multiply(xp.ones(2), 2j).dtype) == (xp.complex128, xp.complex64)
    np.testing.assert_allclose(xp.fft.fft(z).numpy(), np.fft.fft(z.numpy()), 1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_closeness_is_that_of_both_parts(dtype):
    inf, nan = float("inf"), float("nan")
    a = np.array([1 + 1j, 1e6, complex(inf, 1), complex(nan, 1), complex(inf, nan), 2], dtype)
    b = np.array([1 - 1j, 1e6 + 100j, complex(inf, 1), complex(nan, 1), complex(inf, nan), 2 + 1e-7j], dtype)
    for x, y, equal_nan in [(a, b, False), (a, b, True), (b, a, True), (a, a, False)]:
        ours, theirs = [lib.isclose(lib.tensor(x), lib.tensor(y), equal_nan=equal_nan) for lib in (genesis, torch)]
        assert ours.tolist() == theirs.tolist()
    assert not genesis.allclose(genesis.tensor(a[:1]), genesis.tensor(b[:1]))
    for settings in ((), (3.0, 4.0, 5.0)):
        same(genesis.nan_to_num(genesis.tensor(a), *settings), torch.nan_to_num(torch.tensor(a), *settings))
