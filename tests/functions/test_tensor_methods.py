"""Methods of tensors beside the rows' own: shapes changed in place, strides by number, random fills, questions of kind."""

import math

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

BOTH = (genesis, torch)


def square(library, *shape):
    return library.arange(math.prod(shape), dtype=library.float64).reshape(shape)


# ---- shapes in place ----

CHANGES = [
    ("squeeze_", (2, 1, 3), ()), ("squeeze_", (1, 3), (0,)), ("squeeze_", (), ()), ("unsqueeze_", (2, 3), (-1,)),
    ("unsqueeze_", (), (0,)), ("transpose_", (2, 3, 4), (0, -1)), ("swapaxes_", (2, 3), (0, 1)), ("swapdims_", (0, 3), (0, 1)),
    ("t_", (2, 3), ()), ("t_", (3,), ()),
]


@pytest.mark.parametrize(("name", "shape", "arguments"), CHANGES)
def test_shapes_change_in_place_as_torchs(name, shape, arguments):
    found = []
    for library in BOTH:
        x = square(library, *shape)
        other = x.reshape(-1)
        assert getattr(x, name)(*arguments) is x
        x += 1
        other *= 2
        found.append([x, other, x * 1, library.tensor(x.stride() if x.numel() else ())])
    assert_close(*found)


def test_a_number_is_divided_by_a_tensor_under_the_older_name_too():
    assert genesis.tensor([2.0, 4.0]).__rdiv__(4).tolist() == [2, 1]


def test_a_view_and_its_root_turn_apart_and_go_on_sharing():
    found = []
    for library in BOTH:
        x = square(library, 3, 4)
        row, block = x[1], x[:, 1:3]
        x.t_()
        block.transpose_(0, 1).unsqueeze_(0)
        x += 100
        row *= 2
        block -= 1
        late = x[0]
        late.fill_(7)
        found.append([x, row, block, late])
    assert_close(*found)


def test_gradients_flow_through_a_shape_changed_in_place():
    found = []
    for library in BOTH:
        leaf = square(library, 2, 3).requires_grad_()
        y = leaf * 2
        y.t_()
        y.unsqueeze_(0)
        y *= square(library, 3, 2)
        (y**2).sum().backward()
        found.append([y, leaf.grad])
    assert_close(*found)


def test_a_leaf_that_requires_a_gradient_keeps_its_shape():
    x = genesis.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf tensor that requires grad cannot be changed in place"):
        x.t_()
    with genesis.no_grad():
        x.t_()
    (x * 2).sum().backward()
    assert x.shape == (3, 2) and x.grad.shape == (3, 2)


# ---- strides by number ----


@pytest.mark.parametrize("arguments", [((3, 2), (1, 1)), ((2, 2), (3, 1), 2), ((4,), (0,)), ((), ()), ((2, 0), (1, 5))])
def test_strided_views_are_torchs(arguments):
    found = []
    for library in BOTH:
        leaf = square(library, 2, 4).requires_grad_()
        y = leaf.as_strided(*arguments)
        weights = square(library, *arguments[0]) + 1
        (y * weights).sum().backward()
        plain = square(library, 2, 4)
        part = plain[1].as_strided(*arguments)
        plain += 1
        found.append([y, leaf.grad, part])
    assert_close(*found)


def test_what_is_written_through_strides_is_seen():
    x = genesis.zeros(3, 3)
    x.as_strided((3,), (4,)).fill_(1)
    assert x.tolist() == genesis.eye(3).tolist()
    base, src = (square(genesis, *shape).requires_grad_() for shape in ((3, 3), (2, 2)))
    y = genesis.as_strided_scatter(base, src * 10, (2, 2), (3, 1), 1)
    assert_close(y, torch.as_strided_scatter(square(torch, 3, 3), square(torch, 2, 2) * 10, (2, 2), (3, 1), 1))
    (y * square(genesis, 3, 3)).sum().backward()  # torch's gradient of base is not that of finite differences
    assert base.grad.tolist() == [[0, 0, 0], [3, 0, 0], [6, 7, 8]] and src.grad.tolist() == [[10, 20], [40, 50]]


def test_strides_beyond_the_storage_are_refused():
    x = genesis.zeros(2, 3)
    with pytest.raises(ValueError, match="exceed a storage of 6 elements"):
        x.as_strided((3, 2), (3, 1))
    with pytest.raises(ValueError, match="want a stride for each extent"):
        x.as_strided((3, 2), (1,))
    with pytest.raises(ValueError, match="do not lie over each other"):
        genesis.as_strided_scatter(x.T, x, (2, 3), (1, 1))


@pytest.mark.parametrize(("shape", "wrap"), [
    ((3, 5), False), ((7, 3), False), ((7, 3), True), ((4, 3), True), ((3, 3, 3), False),
])
def test_diagonals_are_filled_as_torchs(shape, wrap):
    assert_close(*[square(library, *shape).fill_diagonal_(-1, wrap) for library in BOTH])


# ---- writing at places ----


@pytest.mark.parametrize("accumulate", [False, True])
def test_put_writes_at_places_of_the_flattened_tensor(accumulate):
    found = []
    for library in BOTH:
        x, source = (square(library, *shape).requires_grad_() for shape in ((2, 3), (2, 2)))
        at = library.tensor([[5, 0], [-2, 5 if accumulate else 1]])
        y = x.put(at, source, accumulate)
        (y * square(library, 2, 3)).sum().backward()
        found.append([y, x.grad, source.grad, square(library, 2, 3).put_(at, source.detach(), accumulate)])
    assert_close(*found)


def test_scatter_reduce_writes_in_place():
    found = []
    for library in BOTH:
        x, at = square(library, 3), library.tensor([0, 0, 2])
        found.append([x.scatter_reduce_(0, at, square(library, 3) + 2, "prod", include_self=False), x])
        found[-1] += [square(library, 4).cumprod_(0), square(library, 2, 3).renorm_(2, 0, 1.0)]
    assert_close(*found)


@pytest.mark.parametrize("size", [0, 2, 5])
def test_a_set_number_of_positions(size):
    array = np.array([[0, 1], [2, 0]])
    assert_close(*[library.nonzero_static(library.tensor(array), size=size, fill_value=7) for library in BOTH])


# ---- random fills ----


@pytest.mark.parametrize(("name", "arguments", "median", "deciles"), [
    ("exponential_", (2.0,), math.log(2) / 2, (-math.log(0.9) / 2, -math.log(0.1) / 2)),
    ("log_normal_", (0.5, 0.25), math.exp(0.5), (math.exp(0.5 - 0.25 * 1.2815516), math.exp(0.5 + 0.25 * 1.2815516))),
    ("cauchy_", (1.0, 2.0), 1.0, (1 + 2 * math.tan(math.pi * -0.4), 1 + 2 * math.tan(math.pi * 0.4))),
])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fills_have_the_quantiles_of_their_distribution(name, arguments, median, deciles, dtype):
    genesis.manual_seed(0)
    x = getattr(genesis.zeros(200, 500, dtype=getattr(genesis, dtype)), name)(*arguments).numpy()
    np.testing.assert_allclose(np.quantile(x, [0.1, 0.5, 0.9]), [deciles[0], median, deciles[1]], rtol=0.03)
    assert np.isfinite(x).all()


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_geometric_numbers_count_trials(dtype):
    genesis.manual_seed(0)
    x = genesis.zeros(100_000, dtype=getattr(genesis, dtype)).geometric_(0.3).numpy()
    shares = [(x == k).mean() for k in (1, 2, 3)]
    np.testing.assert_allclose(shares, [0.3, 0.21, 0.147], atol=0.006)
    assert x.min() == 1


def test_a_generator_of_ones_own_gives_its_numbers_again():
    generator, x = genesis.Generator(), genesis.zeros(3)
    draws = [
        lambda: genesis.rand(3, generator=generator), lambda: genesis.randn(3, generator=generator),
        lambda: genesis.randint(100, (3,), generator=generator), lambda: genesis.randperm(9, generator=generator),
        lambda: genesis.normal(0.0, 1.0, (3,), generator=generator), lambda: x.uniform_(generator=generator),
        lambda: genesis.full((9,), 0.5).bernoulli(generator=generator), lambda: x.normal_(generator=generator),
        lambda: genesis.ones(9).multinomial(3, generator=generator), lambda: x.exponential_(generator=generator),
    ]
    for draw in draws:
        generator.manual_seed(3)
        first, second = draw().tolist(), draw().tolist()
        genesis.manual_seed(7)
        generator.manual_seed(3)
        assert [draw().tolist(), draw().tolist()] == [first, second] and first != second
    genesis.manual_seed(0)
    expected = genesis.rand(3).tolist()
    genesis.manual_seed(0)
    genesis.rand(5, generator=generator)
    assert genesis.rand(3).tolist() == expected


def test_positions_are_drawn_by_their_probabilities():
    genesis.manual_seed(0)
    weights = genesis.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    drawn = weights.multinomial(20_000, replacement=True).numpy()
    shares = [[(row == k).mean() for k in range(3)] for row in drawn]
    np.testing.assert_allclose(shares, [[0.25, 0, 0.75], [0.5, 0.5, 0]], atol=0.015)
    assert sorted(weights.multinomial(2)[0].tolist()) == [0, 2]
    firsts = np.array([genesis.tensor([1.0, 3.0]).multinomial(2).tolist()[0] for _ in range(300)])
    assert abs(firsts.mean() - 0.75) < 0.1


@pytest.mark.parametrize(("weights", "count", "message"), [
    ([1.0, -1.0], 1, "infinite, NaN or negative"), ([0.0, 0.0], 1, "zeros alone"), ([1.0, 1.0], 3, "cannot draw 3 of 2"),
    ([float("nan"), 1.0], 1, "infinite, NaN"), ([[[1.0]]], 1, "1-d or 2-d"), ([1.0], 0, "cannot draw 0 of 1"),
])
def test_probabilities_that_make_no_sense_are_refused(weights, count, message):
    with pytest.raises(ValueError, match=message):
        genesis.tensor(weights).multinomial(count)


# ---- questions ----


def test_a_tensor_says_what_it_is_not():
    x, y = genesis.ones(2, 3), torch.ones(2, 3)
    for name in ("is_sparse", "is_quantized", "is_nested", "is_meta", "is_cpu", "is_cuda"):
        assert getattr(x, name) is getattr(y, name), name
    for name in ("is_complex", "is_conj", "is_neg", "is_signed"):
        assert getattr(x, name)() is getattr(y, name)() is getattr(genesis, name)(x), name
    assert x.is_same_size(x * 2) and not x.is_same_size(x.T)
    assert not genesis.tensor([1], dtype=genesis.uint8).is_signed()
    assert x.conj() is x and x.real is x and x.resolve_conj() is x and genesis.conj(x) is x


def test_old_names_of_dtypes():
    x = genesis.tensor([1.5, -2.0])
    for name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Bool"):
        assert x.type(f"torch.{name}Tensor").type() == f"genesis.{name}Tensor"
        assert x.type(f"torch.{name}Tensor").dtype.name == str(torch.ones(1).type(f"torch.{name}Tensor").dtype)[6:]
    assert x.type(genesis.int64).tolist() == [1, -2]
    with pytest.raises(ValueError, match="there is no 'ComplexTensor'"):
        x.type("ComplexTensor")


def test_an_address_is_where_the_outside_finds_the_elements():
    x = genesis.arange(6.0).reshape(2, 3)
    address = x.data_ptr()
    assert address == x.numpy().ctypes.data and x[1].data_ptr() == address + 12
    x += 1
    assert x.data_ptr() == address and x.numpy().ctypes.data == address


def test_matrices_have_methods():
    arrays = np.random.default_rng(0).normal(size=(2, 3, 3))
    found = [[x.inverse(), x.pinverse(), x.matrix_power(3), x.mH, x.adjoint(), x[0].trace(), library.trace(x[1]),
              x.narrow_copy(1, 1, 2), *x.unsafe_chunk(2), *library.unsafe_split(x, 1)]
             for library in BOTH for x in [library.tensor(arrays)]]
    assert_close(*found, scale=100)


def test_functions_that_write_into_their_argument():
    x = genesis.tensor([-1.0, 2.0])
    assert genesis.relu_(x) is x and genesis.exp_(x) is x and genesis.fill_(x, 3) is x and x.tolist() == [3, 3]
    assert not hasattr(genesis, "no_such_name_")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_numbers_are_taken_apart_at_powers_of_two(dtype):
    found = []
    for library in BOTH:
        x = library.tensor([0.0, 1.0, -0.5, 3.0, 2.0**-14, float("inf")], dtype=getattr(library, dtype), requires_grad=True)
        mantissa, exponent = library.frexp(x)
        mantissa[:-1].sum().backward()
        found.append([mantissa, exponent[:-1], x.grad[1:-1]])
    assert_close(*found)


def test_polygamma_is_a_method_too():
    x = genesis.tensor([0.5, 2.0])
    assert_close(x.polygamma(1), torch.tensor([0.5, 2.0]).polygamma(1))


def test_shapes_that_others_broadcast_to_are_sizes():
    assert genesis.broadcast_shapes((2, 1), 3, (1,)).numel() == 6


NAN = float("nan")


@pytest.mark.parametrize("low, high", [(NAN, None), (None, NAN), (NAN, 1.0), (0.0, NAN), (0.5, 1.5)])
def test_a_bound_that_is_nan_makes_nan(low, high):
    held = genesis.compile(lambda x, *bounds: x.clamp(*bounds))
    for bounds in ((0.25, 1.5), (low, high), (low, high), (0.75, 1.25)):
        x, want = genesis.arange(3.0), torch.arange(3.0).clamp(*bounds)
        assert_close(x.clamp(*bounds), want)
        assert_close(held(x, *bounds), want)
    with pytest.raises(ValueError, match="hardtanh: bounds are nan"):
        genesis.nn.functional.hardtanh(genesis.arange(3.0), NAN, 1.0)


def test_lists_and_texts_are_repeated_by_a_tensor_of_one_integer():
    for lib in (genesis, torch):
        n = lib.tensor(2)
        assert ([0] * n, n * (1,), "ab" * n, n * b"c") == ([0, 0], (1, 1), "abab", b"cc")
        with pytest.raises(TypeError):
            "a" + n


@pytest.mark.parametrize("numbers", [
    lambda lib: [lib.tensor([1.0]), lib.tensor([[2.0]])],
    lambda lib: ([lib.tensor([1])], [lib.tensor([2.5])]),
    lambda lib: [[lib.tensor(1), 2], [3, 4.5]],
    lambda lib: [lib.tensor(1.0), lib.tensor(2.0, dtype=lib.float64)],
    lambda lib: [lib.tensor(1.0, dtype=lib.float16), 2],
    lambda lib: [lib.tensor(True), 2],
])
def test_tensors_in_lists_are_numbers_of_a_common_dtype(numbers):
    ours, theirs = (lib.tensor(numbers(lib)) for lib in (genesis, torch))
    assert (ours.tolist(), ours.dtype.name) == (theirs.tolist(), str(theirs.dtype).partition(".")[2])
