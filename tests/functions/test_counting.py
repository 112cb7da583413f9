"""Counting, comparing, cutting: what is no row of the operation table, against torch."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close, to_torch

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
COUNTS = np.array([0, 3, 1, 3, 5, 3])
RUNS = np.array([[1, 1, 2], [1, 1, 2], [3, 1, 2]])
CALLS = {
    "bincount": [(COUNTS,), (COUNTS, X[0]), (COUNTS, None, 9), (COUNTS[:0],),
                 (COUNTS.astype(np.uint8), COUNTS), (COUNTS, X[0].astype(np.float64), 2)],
    "unique": [(RUNS,), (RUNS, True, True), (RUNS, True, False, True, 0), (RUNS * np.nan, True, True, True)],
    "histc": [(X,), (X, 5, -1, 1), (X, 4), (X * 0, 3)],
    "mode": [(COUNTS,), (RUNS, 0), (RUNS, 1, True)],
    "unique_consecutive": [(COUNTS,), (RUNS, True, True), (RUNS, True, True, 0), (RUNS, True, True, 1), (COUNTS[:0],)],
    "repeat_interleave": [(X, 2), (X, 3, 1), (X, np.array([1, 0, 2, 1]), 0), (np.int32([2, 0, 1]),), (X, 0, -1)],
    "equal": [(X, X), (X, X[0]), (X, X + 1)], "allclose": [(X, X + 1e-9), (X, X + 1), (X, X + 0.01, 0.1, 0.1)],
    "hsplit": [(X, 3), (X, [1, 4]), (X[0], 2)], "vsplit": [(X, 2), (X, [1])], "dsplit": [(X.reshape(2, 3, 4), 2)],
    "split_with_sizes": [(X, [1, 3]), (X, (2, 4), 1)],
    "atleast_1d": [(X,), (X[0, 0],)], "atleast_2d": [(X,), (X[0],), (X[0, 0],)], "atleast_3d": [(X,), (X[0],), (X[0, 0], X)],
    "moveaxis": [(X, 0, 1)], "swapaxes": [(X, 0, -1)], "concat": [([X, X], 1)],
}


def of(library, argument):
    make = to_torch if library is torch else genesis.tensor
    if isinstance(argument, list) and isinstance(argument[0], np.ndarray):
        return [make(a) for a in argument]
    return make(argument) if isinstance(argument, np.ndarray | np.generic) else argument


@pytest.mark.parametrize("name", CALLS)
def test_results_are_torchs(name):
    for given in CALLS[name]:
        ours, theirs = (getattr(lib, name)(*[of(lib, a) for a in given]) for lib in (genesis, torch))
        if isinstance(theirs, bool):
            assert ours is theirs
        else:
            assert_close(ours, theirs, f"{name} {given}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_are_torchs_at_their_edges_and_replayed(dtype):
    edges, numbers = np.arange(11, dtype=dtype) / 10, np.random.default_rng(3).normal(size=(7, 50)).astype(dtype)
    numbers[0, :3] = np.nan, np.inf, 2.0
    edges = np.stack([edges, np.nextafter(edges, dtype(-1)), np.nextafter(edges, dtype(2))])
    compiled = genesis.compile(lambda x, bins, low, high: x.histc(bins, low, high), dynamic=False)
    tenths = (np.arange(-20, 20) / 10).astype(dtype)
    between_their_ends = [(tenths, bins, 0, 0) for bins in (18, 26, 6)]
    for given in ((edges, 10, 0, 1), (edges, 7, 0.1, 0.7), (numbers, 64, -2, 2), *between_their_ends):
        x, *rest = given
        found = [compiled(of(genesis, x), *rest) for _ in range(3)]
        assert_close([of(genesis, x).histc(*rest), *found], [of(torch, x).histc(*rest)] * 4)
    assert len(compiled.entries) == 6 and all(entry.replays for entry in compiled.entries)


def test_repeated_rows_are_copies():
    for x in (genesis.ones(1, 2), genesis.ones(1).expand(2), genesis.ones(2)):
        for repeats in (1, 2):
            y = x.repeat_interleave(repeats, 0)
            y[0] = 5
            assert (y[1:] == 1).all() and (x == 1).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_multiples_wrap_as_torchs(dtype):
    greatest = np.iinfo(dtype).max
    a = np.array([0, 4, 6, greatest, greatest - 1, greatest // 3], dtype)
    pairs = np.repeat(a, len(a)), np.tile(a, len(a))
    assert_close(*[library.lcm(*[of(library, x) for x in pairs]) for library in (genesis, torch)])


def test_a_histogram_has_edges():
    tenths, same = np.arange(11) / 10, X * 0 + 3
    for x, bins, keywords in (
        (X, 4, {}), (X, 3, {"range": (-1.0, 1.0), "density": True}), (X, np.float32([-1, 0, 2]), {"weight": X * X}),
        (tenths, 10, {}), (tenths.astype(np.float32), 10, {}), (same, 2, {}), (same, 3, {"range": (3.0, 3.0)}),
    ):
        ours, theirs = (
            lib.histogram(of(lib, x), of(lib, bins), **{k: of(lib, v) for k, v in keywords.items()}) for lib in (genesis, torch)
        )
        assert_close(ours, theirs)


def test_histograms_of_points_are_counted_anew_by_replays_and_for_each_example():
    def count(points):
        return genesis.histogramdd(points, [2, 3], range=[-1.0, 1.0, -1.0, 1.0]).hist

    compiled = genesis.compile(count)
    for points in POINTS:
        assert_close(compiled(genesis.tensor(points)), torch.histogramdd(
            torch.tensor(points), [2, 3], range=[-1.0, 1.0, -1.0, 1.0]).hist)
    assert len(compiled.entries) == 1
    assert_close(genesis.vmap(count)(genesis.tensor(POINTS)), torch.stack([to_torch(count(genesis.tensor(p))) for p in POINTS]))


POINTS, WEIGHTS = np.random.default_rng(1).normal(size=(2, 3, 5, 2)).astype(np.float32), np.arange(15, dtype=np.float32)
GRIDS = {
    "one number": ((POINTS[0], 3), {}), "a number each": ((POINTS[0], [3, 4]), {}), "nothing": ((POINTS[0, :0], [2, 2]), {}),
    "ends": ((POINTS[0], [3, 4]), {"range": [-1.0, 1.0, 0.0, 2.0]}),
    "densities of weights": ((POINTS[0], [3, 2]), {"weight": WEIGHTS.reshape(3, 5), "density": True}),
}


@pytest.mark.parametrize("name", GRIDS)
def test_histograms_of_points_are_torchs(name):
    arguments, keywords = GRIDS[name]
    found = []
    for library in (genesis, torch):
        given = {k: of(library, v) if isinstance(v, np.ndarray) else v for k, v in keywords.items()}
        found.append(library.histogramdd(of(library, arguments[0]), arguments[1], **given))
    assert_close(*found, name)


def test_histograms_of_points_between_given_edges_are_torchs():
    edges = [np.array([-2.0, 0, 0.5, 2], np.float32), np.array([-1.0, 1], np.float32)]
    in_no_order = [np.array([-2.0, 1, 0.5, -1, 0, 2], np.float32), np.array([-1.0, 1, 0, 2], np.float32)]
    for given in (edges, in_no_order, [e[::-1].copy() for e in edges]):
        found = [m.histogramdd(of(m, POINTS[0]), [of(m, e) for e in given], density=given is edges) for m in (genesis, torch)]
        assert_close(*found)
    assert_close(*[m.histogram(of(m, X), of(m, in_no_order[0])) for m in (genesis, torch)])
    with pytest.raises(ValueError, match=r"3 bins and range None of shape \(3, 5, 2\); want 2 bins, and twice as many ends"):
        genesis.histogramdd(of(genesis, POINTS[0]), [1, 2, 3])
    with pytest.raises(ValueError, match=r"weight has shape \(2,\); want \(3, 5\)"):
        genesis.histogramdd(of(genesis, POINTS[0]), 2, weight=genesis.ones(2))


def test_pieces_share_the_storage():
    x = genesis.zeros(2, 4)
    genesis.hsplit(x, 2)[1].fill_(1)
    genesis.atleast_3d(x)[0].add_(1)
    genesis.moveaxis(x, 0, 1)[0].mul_(5)
    assert x.tolist() == [[5, 1, 2, 2], [0, 0, 1, 1]]


def test_repeated_elements_sum_their_gradients():
    x = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x.repeat_interleave(2) * genesis.arange(6)).sum().backward()
    x.repeat_interleave(genesis.tensor([2, 0, 1])).sum().backward()
    assert x.grad.tolist() == [3, 5, 10]


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_limits_of_floats_are_torchs(name):
    ours, theirs = genesis.finfo(getattr(genesis, name)), torch.finfo(getattr(torch, name))
    for limit in ("min", "max", "eps", "tiny", "smallest_normal", "bits", "dtype"):
        assert getattr(ours, limit) == getattr(theirs, limit), limit


@pytest.mark.parametrize("name", ["int64", "int32", "int16", "int8", "uint8"])
def test_limits_of_integers_are_torchs(name):
    ours, theirs = genesis.iinfo(getattr(genesis, name)), torch.iinfo(getattr(torch, name))
    assert (ours.min, ours.max, ours.bits, ours.dtype) == (theirs.min, theirs.max, theirs.bits, theirs.dtype)


REFUSED = [
    (lambda x: genesis.bincount(x), r"bincount: wants a vector of ints"),
    (lambda x: genesis.bincount(genesis.tensor([1, -1])), r"bincount: wants ints of 0 or more"),
    (lambda x: genesis.histogram(x, 2, range=(1.0, 0.0)), r"histogram: range is \(1.0, 0.0\); want the lower end"),
    (lambda x: genesis.histogram(x, 2, range=(0.0, np.inf)), r"want the lower end of each axis before .*, both finite"),
    (lambda x: genesis.histc(x, 2, 0, np.inf), r"histc: 2 bins from 0 to inf; want .* finite"),
    (lambda x: genesis.histogram(x, 0), r"histogram: bins are \[0\]; want one at least"),
    (lambda x: genesis.histogram(x / 0, 2).hist.tolist(), r"the numbers that the bins are to be between are not finite"),
    (lambda x: genesis.histogramdd(x, [1, x[0]] + [1] * 4), r"histogramdd: bins are .*; want one at least of each axis"),
    (lambda x: genesis.hsplit(x, 4), r"extent 6 of dim 1 is not divisible by 4; use tensor_split"),
    (lambda x: genesis.vsplit(x[0], 2), r"shape \(6,\) has 1 axes; want 2 at least"),
    (lambda x: x.repeat_interleave(genesis.tensor([1, 2]), 0), r"repeats have shape \(2,\); want one count, or \(4,\)"),
    (lambda x: genesis.kthvalue(x, 7), r"kthvalue: k is 7; want 1 to 6"),
    (lambda x: genesis.quantile(x, 0.5, interpolation="cubic"), r"interpolation 'cubic'; want one of linear"),
    (lambda x: genesis.quantile(x, 1.5).item(), r"quantile: q is not within \[0, 1\]"),
    (lambda x: genesis.nanquantile(x, genesis.tensor([0.5, np.nan])).tolist(), r"nanquantile: q is not within"),
    (lambda x: genesis.mvlgamma(x, 0), "mvlgamma: p is 0; want 1 or more"),
    (lambda x: genesis.kthvalue(x[:0], 1, 0), "kthvalue: shape .* has no elements along dim 0"),
    (lambda x: genesis.diag(x[None]), r"diag: wants a vector or a matrix, got shape \(1, 4, 6\)"),
    (lambda x: genesis.select_scatter(x, x, 0, 0), r"select_scatter: src has shape \(4, 6\); want \(6,\)"),
    (lambda x: x.scatter_reduce(0, genesis.zeros(1, 6, dtype=genesis.int64), x, "max"), r"reduce is 'max'; want 'sum'"),
    (lambda x: genesis.cross(x, x), r"cross: shapes \(4, 6\) and \(4, 6\) along dim None; want 3 elements there"),
    (lambda x: genesis.searchsorted(x, x[0]), r"sorted_sequence has shape \(4, 6\) and input \(6,\)"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_errors_tell_what_would_be_right(call, message):
    with pytest.raises(ValueError, match=message):
        call(genesis.tensor(X))


def test_limits_of_the_other_kind_are_refused():
    with pytest.raises(TypeError, match="use iinfo"):
        genesis.finfo(genesis.int32)
    with pytest.raises(TypeError, match="use finfo"):
        genesis.iinfo(genesis.float32)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_gradients_of_quantiles_beside_nan_are_torchs(name):
    rows = np.array([[1, np.nan, 2, 0], [np.nan] * 4, [3, 1, 2, 0]], np.float32)
    slopes = []
    for lib, make in ((genesis, genesis.tensor), (torch, to_torch)):
        x = make(rows).requires_grad_()
        getattr(lib, name)(x, 0.4, 1).nansum().backward()
        slopes.append(x.grad)
    assert_close(*slopes)


@pytest.mark.parametrize("name", ["any", "all"])
def test_no_axes_are_none_for_any_and_all(name):
    for lib in (genesis, torch):
        assert getattr(lib.tensor([[0, 2]]), name)(dim=[]).tolist() == [[False, True]]
    with pytest.raises(RuntimeError, match="does not match out="):
        genesis.sum(genesis.ones(2), 0, dtype=genesis.float64, out=genesis.empty(()))
