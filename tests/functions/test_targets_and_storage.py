"""New tensors written into `out=`, bounds of `random_`, and what shares memory: beside PyTorch."""

import pytest
import torch

import genesis
from tests.as_torch.test_door import run


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float64"])
@pytest.mark.parametrize("call", [
    "zeros(2", "ones(2", "full((2,), 3", "eye(2", "arange(3", "linspace(0, 4, 3", "logspace(0, 2, 3"])
def test_new_tensors_have_the_dtype_of_out(call, dtype):
    found = []
    for lib in (genesis, torch):
        target = lib.empty(0, dtype=getattr(lib, dtype))
        assert eval(f"lib.{call}, out=target)", {"lib": lib, "target": target}) is target
        found.append((str(target.dtype).rpartition(".")[2], target.tolist()))
    assert found[0] == found[1]


def test_random_numbers_are_drawn_in_the_dtype_of_out():
    for lib in (genesis, torch):
        assert lib.rand(5, out=lib.empty(0, dtype=lib.complex64)).imag.any()
        with pytest.raises(RuntimeError):
            lib.rand(2, out=lib.empty(0, dtype=lib.int64))
        with pytest.raises(RuntimeError):
            lib.randperm(300, out=lib.empty(0, dtype=lib.uint8))


def test_ranges_fill_a_part_of_any_shape():
    found = []
    for lib in (genesis, torch):
        x = lib.zeros(2, 3)
        lib.arange(0, 4, out=x[:, 1:])
        lib.linspace(5, 6, 2, out=x[:, 0])
        found.append(x.tolist())
    assert found[0] == found[1] == [[5, 0, 1], [6, 2, 3]]


def test_bounds_of_random_integers():
    for lib in (genesis, torch):
        drawn = lib.empty(1000, dtype=lib.int64).random_(5, None)
        assert drawn.min() >= 5 and drawn.max() > 2**40
        whole = lib.empty(1000, dtype=lib.int64).random_(-(2**63), None)
        assert whole.min() < -(2**61) and whole.max() > 2**61
        assert lib.empty(1000, dtype=lib.int8).random_(-128, None).min() < -100
        assert set(lib.empty(100).random_(to=2).tolist()) == {0, 1} == set(lib.empty(100).random_(2).tolist())
        assert set(lib.empty(100).random_(**{"from": 3, "to": 5}).tolist()) == {3, 4}
        for named in ({"high": 5}, {"from": 2}):
            with pytest.raises((TypeError, RuntimeError)):
                lib.empty(3).random_(**named)


def test_what_is_a_view():
    found = []
    for lib in (genesis, torch):
        a, b = lib.randn(3, 4, requires_grad=True), lib.randn(3, 4)
        tensors = [a, a.detach(), a.view(-1), a.detach()[0], a.clone().detach(), a[0].detach(), b[0], b[0].detach(), b.T,
                   b.contiguous(), b.expand(2, 3, 4), b[0].clone(), b.data[0], *b.split(1), lib.nn.Parameter(b[0])]
        found.append([x._is_view() for x in tensors])
    assert found[0] == found[1]


def test_a_ravelled_tensor_is_contiguous():
    for lib in (genesis, torch):
        x = lib.arange(6.0)
        flat = x[::2].ravel()
        flat[0] = 7
        assert flat.stride() == (1,) and x[0] == 0 and x.ravel().data_ptr() == x.data_ptr()


def test_resized_tensors_share_memory_or_are_refused():
    for lib in (genesis, torch):
        x = lib.zeros(2, 3)
        seen = x.numpy()
        x.resize_(2, 2, memory_format=lib.contiguous_format if lib is torch else None)[1, 1] = 7
        assert seen.tolist() == [[0, 0, 0], [7, 0, 0]]
        with pytest.raises(RuntimeError):
            x.resize_(10)
        assert lib is torch or x.shape == (2, 2)


def test_old_constructors_share_memory_of_tensors(tmp_path):
    printed = run("""
        import torch
        x = torch.arange(4.0)
        y = torch.FloatTensor(x)
        y[0] = 7
        print(x[0].item(), torch.Tensor(x).data_ptr() == x.data_ptr(), torch.FloatTensor(x.storage()).shape)
        print(torch.Tensor((1, 2)).tolist(), x.new((3, 4)).tolist(), x.new(x.shape).shape, x.new([[1], [2]]).tolist())
        print(torch.Storage is torch.FloatStorage, torch.empty(100, dtype=torch.int64).random_(-2**63, None).min() < 0)
        for buffer, settings in ([1, 2], {}), (b"1234", {"count": 0}), (b"1234", {"offset": 4}), (b"", {}):
            try:
                torch.frombuffer(buffer, dtype=torch.uint8, **settings)
            except ValueError:
                print("refused")
        for number in 2.5, True:
            try:
                x.new(number)
            except TypeError:
                print("refused")
        print(torch.FloatTensor(2, 3).shape, torch.LongTensor([1.7]).tolist(), x.new(2, 3).shape, torch.Tensor().shape)
        """, tmp_path=tmp_path)
    assert printed.splitlines() == [
        "7.0 True torch.Size([4])", "[1.0, 2.0] [3.0, 4.0] torch.Size([4]) [[1.0], [2.0]]",
        "True tensor(True)", *["refused"] * 6, "torch.Size([2, 3]) [1] torch.Size([2, 3]) torch.Size([0])"]


def test_large_integers_are_floats_beside_floats_and_compared_exactly():
    for lib in (genesis, torch):
        assert lib.tensor([2**64, 1.5]).tolist() == [2.0**64, 1.5]
        assert lib.tensor([[2**70]], dtype=lib.float64).tolist() == [[2.0**70]]
        for data in ([2**64], [2**64, None], ["1", 2**64]):
            with pytest.raises((RuntimeError, TypeError, ValueError)):
                lib.tensor(data)
        close = [lib.isclose(lib.tensor([2**53]), lib.tensor([2**53 + 1]), rtol=0, atol=at).item() for at in (0, 2)]
        assert close == [False, True]


def test_reversed_and_empty_splits():
    for lib in (genesis, torch):
        assert reversed(lib.arange(3)).tolist() == [2, 1, 0] and reversed(lib.tensor(3)) == 3
        assert [part.shape[0] for part in lib.ones(0, 3).split(0)] == [0]
        with pytest.raises(RuntimeError):
            lib.ones(2).split(0)
