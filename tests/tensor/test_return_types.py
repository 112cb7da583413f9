"""Results of several names have PyTorch's classes, fields and forms."""

import copy
import pickle

import numpy as np
import pytest
import torch

import genesis
from genesis.tensor import return_types
from genesis.tensor.return_types import all_return_types, return_type

MATRIX = np.array([[4.0, 1, 2], [1, 5, 3], [2, 3, 7]], np.float32)
CALLS = {
    **{name: lambda l, x, n=name: getattr(x, n)(1) for name in ("max", "min", "median", "nanmedian", "mode", "sort", "cummax")},
    "topk": lambda l, x: x.topk(2), "kthvalue": lambda l, x: x.kthvalue(2), "aminmax": lambda l, x: x.aminmax(),
    "frexp": lambda l, x: x.frexp(), "histogram": lambda l, x: l.histogram(x, 3),
    "histogramdd": lambda l, x: l.histogramdd(x[:, :1], [2]),
    **{f"linalg.{name}": lambda l, x, n=name: getattr(l.linalg, n)(x) for name in (
        "eigh", "eig", "qr", "slogdet", "svd", "lu", "lu_factor", "lu_factor_ex", "inv_ex", "cholesky_ex", "ldl_factor",
        "ldl_factor_ex")},
    "linalg.solve_ex": lambda l, x: l.linalg.solve_ex(x, x), "linalg.lstsq": lambda l, x: l.linalg.lstsq(x, x),
    "triangular_solve": lambda l, x: l.triangular_solve(x, x), "svd": lambda l, x: x.svd(), "qr": lambda l, x: x.qr(),
    "slogdet": lambda l, x: x.slogdet(), "geqrf": lambda l, x: x.geqrf(),
    "lu_unpack": lambda l, x: l.lu_unpack(*l.linalg.lu_factor(x)),
    "lu": lambda l, x: x.lu(), "max of all": lambda l, x: x.max(), "std_mean": lambda l, x: l.std_mean(x),
    "vmap": lambda l, x: l.func.vmap(lambda row: row.max(0))(x),
    "out": lambda l, x: l.max(x, 1, out=(l.empty(0), l.empty(0, dtype=l.int64))),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_classes_and_fields_are_torchs(call):
    with genesis.eager():
        got = CALLS[call](genesis, genesis.tensor(MATRIX))
    want = CALLS[call](torch, torch.tensor(MATRIX))
    assert type(got).__name__ == type(want).__name__
    assert getattr(got, "__match_args__", None) == getattr(want, "__match_args__", None)


def test_all_of_torchs_are_there():
    theirs = {kind.__name__: kind for kind in torch.return_types.all_return_types if not kind.__name__.startswith("_")}
    ours = {kind.__name__: kind for kind in all_return_types}
    assert theirs.keys() <= ours.keys()
    for name, kind in theirs.items():
        assert (ours[name].__match_args__, ours[name].n_fields) == (kind.__match_args__, kind.n_fields)


def test_results_print_copy_and_pickle_as_torchs():
    with genesis.eager():
        got = genesis.tensor(MATRIX).max(1)
    want = torch.tensor(MATRIX).max(1)
    assert repr(got) == repr(want).replace("torch.", "genesis.")
    for again in (copy.copy(got), copy.deepcopy(got), pickle.loads(pickle.dumps(got))):
        assert type(again) is type(got) is return_type("max") and again.indices.tolist() == want.indices.tolist()
    assert isinstance(got, tuple) and type(got[:1]) is tuple
    with pytest.raises(AttributeError):
        got.values = got.indices


def test_classes_are_made_of_one_sequence():
    for library in (return_types, torch.return_types):
        assert library.max((1, 2)) == (1, 2) and library.max([1, 2]).indices == 2
        with pytest.raises(TypeError, match=r"return_types.max\(\) takes a 2-sequence \(3-sequence given\)"):
            library.max((1, 2, 3))


def test_a_replay_returns_the_class():
    lowest_and_highest = genesis.compile(lambda x: genesis.aminmax(x))
    for scale in (1, 2, 3):
        got, want = (lowest_and_highest(genesis.tensor(MATRIX * scale)), torch.aminmax(torch.tensor(MATRIX * scale)))
        assert type(got) is return_type("aminmax") and len(got) == len(want)
        assert (got.min.item(), got.max.item()) == (want.min.item(), want.max.item())
