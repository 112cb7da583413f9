"""complex32: pairs of float16 in memory, computed with as complex64 and rounded once; beside torch's."""

import contextlib
import io
import pickle
import warnings

import numpy as np
import pytest
import torch

import genesis
from genesis.serialization import safetensors
from tests.tolerances import assert_close, to_torch

NUMBERS = [1 + 2j, 3 - 4j, -0.5j, 0.1 + 0.333j, 6e4 - 1e-7j, complex("inf-nanj")]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's is experimental
        yield


def both(numbers=NUMBERS):
    return genesis.tensor(numbers, dtype=genesis.complex32), torch.tensor(numbers, dtype=torch.complex32)


@pytest.fixture(params=["kernels", "references"])
def pair(request):
    with genesis.eager() if request.param == "references" else contextlib.nullcontext():
        yield both(NUMBERS[:4])


def test_what_torch_computes_with_them_is_the_same(pair):
    calls = {
        "sum": lambda x, lib: x + x, "product": lambda x, lib: x * x - 2 * x, "number": lambda x, lib: 1j - x,
        "parts": lambda x, lib: (x.real, x.imag, lib.view_as_real(x)), "modulus": lambda x, lib: x.abs(),
        "sign": lambda x, lib: x.sgn(), "conjugate": lambda x, lib: (-x).conj(), "equal": lambda x, lib: (x == x, x != 2 * x),
        "wider": lambda x, lib: (x + x.to(lib.complex64), x * lib.ones(4), x + lib.ones(4).half(), x.cdouble()),
        "halves": lambda x, lib: (
            lib.ones(2).half() * 1j, lib.complex(x.real, x.imag), lib.view_as_complex(lib.ones(2, 2).half())),
        "moved": lambda x, lib: (x.reshape(2, 2).T.contiguous(), lib.cat([x, x[1:]]), x[lib.tensor([3, 0])], x[x.real > 0]),
        "written": lambda x, lib: (x.clone().fill_(1j), x.index_add(0, lib.tensor([1, 1]), x[:2]), x.roll(1)),
        "sums in others": lambda x, lib: x.sum(dtype=lib.complex64),
        "converted": lambda x, lib: (x.half(), x.to(lib.float64), x.long(), x.bool(), lib.tensor([2, 3]).chalf()),
    }
    for name, call in calls.items():
        ours, theirs = (call(x, lib) for x, lib in zip(pair, (genesis, torch), strict=True))
        assert_close(ours, theirs, name)


def test_what_torch_refuses_is_rounded_once(pair):
    x = pair[0]
    wide = x.to(genesis.complex64)
    for call in (lambda x: x / (x + 1), lambda x: x.exp(), lambda x: x.prod(), lambda x: x.reshape(2, 2) @ x.reshape(2, 2),
                 lambda x: x.cumsum(0), lambda x: genesis.linalg.inv(x.reshape(2, 2) + genesis.eye(2).half())):
        got, want = call(x), call(wide)
        assert got.dtype is genesis.complex32
        assert_close(got, want.chalf())
    for call in (genesis.fft.fft, lambda x: genesis.polar(x.real, x.imag), lambda x: x.sort(), lambda x: x.max()):
        with pytest.raises(TypeError, match=r"wants|takes"):
            call(x)


def test_gradients_arrive_in_the_leafs_dtype():
    leaves = [lib.tensor([1.0, 2.0, 3.0], requires_grad=True) for lib in (genesis, torch)]
    for x in leaves:
        z = x.chalf()
        ((z * z).real + z.abs()).float().sum().backward()
    assert_close(leaves[0].grad, leaves[1].grad)
    x = genesis.tensor([1 + 1j], dtype=genesis.complex32, requires_grad=True)
    (x * x.conj()).real.sum().backward()
    assert x.grad.dtype is genesis.complex32 and x.grad.tolist() == [2 + 2j]


def test_a_compiled_call_is_replayed():
    double = genesis.compile(lambda x: (x * 2 + x.conj()).real)
    for scale in (1, 2, 3):
        assert double(genesis.tensor([scale + 1j], dtype=genesis.complex32)).tolist() == [3 * scale]
    assert len(double.entries) == 1


def test_views_share_the_storage():
    x = genesis.tensor([1 + 2j, 3], dtype=genesis.complex32)
    x.imag.fill_(5)
    x.view(genesis.float16)[0] = 7
    assert x.tolist() == [7 + 5j, 3 + 5j] and x.view(genesis.float16).view(genesis.complex32).tolist() == x.tolist()
    assert (x.element_size(), x.dtype.is_complex, genesis.finfo(x.dtype).bits) == (4, True, 16)


def test_they_are_printed_kept_and_exchanged_as_torchs(tmp_path):
    ours, theirs = both()
    assert repr(ours) == repr(theirs).replace("torch.", "genesis.")
    assert ours.type() == theirs.type().replace("torch.", "genesis.")
    np.testing.assert_array_equal(ours.tolist(), theirs.tolist())
    file = io.BytesIO()
    torch.save({"x": theirs, "view": theirs[2:5]}, file)
    file.seek(0)
    assert_close(genesis.load(file)["view"], theirs[2:5])
    file = io.BytesIO()
    genesis.save(ours, file)
    file.seek(0)
    assert_close(ours, torch.load(file))
    assert_close(pickle.loads(pickle.dumps(ours)), theirs)
    assert_close(genesis.from_dlpack(theirs), torch.from_dlpack(ours))
    assert_close(genesis.tensor(ours.numpy()), to_torch(ours.numpy()))
    assert np.asarray(ours).dtype == ours.numpy().dtype
    with pytest.raises(TypeError, match="complex32, which the format has no name for"):
        safetensors.save_file({"x": ours}, tmp_path / "x")


@pytest.mark.parametrize("name", ["bool", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_common_dtypes_are_torchs(name):
    theirs = torch.promote_types(torch.complex32, getattr(torch, name))
    assert genesis.promote_types(genesis.complex32, getattr(genesis, name)).name == str(theirs).removeprefix("torch.")
