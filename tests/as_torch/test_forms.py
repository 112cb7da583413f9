"""Forms of PyTorch's calls that are its own alone: under the door they print what they print there."""

import subprocess
import sys

import pytest
import torch

import genesis
from tests.as_torch.test_door import run

CALLS = """
    torch.Tensor(2, 3).shape
    torch.Tensor([1, 2])
    torch.Tensor(), torch.Tensor(range(3))
    torch.Tensor((2, 3))
    torch.Tensor(torch.Size([2, 3])).shape
    torch.Tensor(numpy.array([1, 2]))
    torch.FloatTensor([1, 2])
    torch.LongTensor(3).shape
    torch.tensor([1, 2], dtype=float)
    torch.ones(2).sum(dtype=float)
    x.type(torch.IntTensor)
    x.type("torch.DoubleTensor").dtype
    x.layout == torch.strided
    x.layout in {torch.strided, torch.sparse_coo}, {x.layout: 1}[torch.strided], isinstance(x.T.layout, torch.layout)
    [__import__("copy").deepcopy(kind) is kind for kind in (x.layout, torch.sparse_csr, torch.channels_last)]
    torch.zeros_like(x.to_sparse(), layout=torch.strided), torch.ones_like(x.to_sparse(), layout=torch.strided)
    isinstance(torch.channels_last, torch.layout), isinstance(torch.strided, torch.memory_format)
    x.to(memory_format=torch.contiguous_format)
    torch.ones(1, 2, 3, 3).is_contiguous(memory_format=torch.channels_last)
    torch.ones(1, 3, 3, 2).permute(0, 3, 1, 2).is_contiguous(memory_format=torch.channels_last)
    x.contiguous(memory_format=torch.contiguous_format).clone(memory_format=torch.preserve_format)
    (x * torch.ones(1, requires_grad=True))
    isinstance(x, torch.autograd.Variable), torch.autograd.Variable(x, requires_grad=True)
    torch.get_rng_state().dtype, torch.manual_seed(3).initial_seed(), torch.Generator(device="cpu").device
    torch.Tensor(x).data_ptr() == x.data_ptr()
    torch.Tensor._make_subclass(torch.nn.Parameter, x, True)
    torch.__version__ > "2.0", torch.__version__ >= (1, 9)
    torch.storage.UntypedStorage(3).nbytes(), x.storage().__sizeof__() > 24, x.storage_type() is torch.FloatStorage
    isinstance(x.storage(), torch.FloatStorage)
    x[torch.tensor([0, 1])].storage().tolist()
    torch.finfo(torch.float16), torch.finfo(torch.float32), torch.iinfo(torch.int8)
    torch.version.cuda, torch.is_storage(x.storage()), torch.is_storage(x), torch.profiler.ProfilerActivity.CPU
    x.addcmul(2, x, x + 1), torch.addcdiv(x, 0.5, x, x + 1), x.clone().addcmul_(2, x, x), x.clone().addcdiv_(-0.1, x, x + 1)
    x.addmm(2, 3, x[:, :2], x), x.addmm(2, x[:, :2], x), torch.addmm(2, x, 3, x[:, :2], x), x.clone().addmm_(2, 3, x[:, :2], x)
    x[0].addmv(2, 3, x.t(), x[:, 0]), torch.addr(2, x, 3, x[:, 0], x[0]), torch.addmv(2, x[0], x.t(), x[:, 1])
    torch.baddbmm(2, x[None], 3, x[None, :, :2], x[None])
    x.addbmm(2, x[None, :, :2], x[None]), x.addcmul(2.0, tensor1=x, tensor2=x + 1)
    x.add(2, other=x), torch.sub(x, 2, other=x), x.clone().add_(2, x), torch.add(1, 2, other=x), x.sub(torch.tensor(2.0), x)
    x.addmm(2, x[:, :2], mat2=x), torch.addmm(torch.tensor(2.0), x, 3, x[:, :2], mat2=x)
    torch.tensor(1.0).movedim(-1, 0), torch.zeros(0, 3).median(), torch.zeros(0).nanmedian()
    torch.backends.cudnn.enabled is None, torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()
"""
LINES = [line.strip() for line in CALLS.strip().splitlines()]


@pytest.mark.filterwarnings("ignore")
def test_they_print_what_pytorch_prints(tmp_path):
    script = "import numpy, torch\nx = torch.arange(6.0).reshape(2, 3)\n" + "\n".join(f"print({line})" for line in LINES)
    printed = run(script, tmp_path=tmp_path)
    import numpy

    names = {"torch": torch, "numpy": numpy, "x": torch.arange(6.0).reshape(2, 3)}
    expected = []
    for line in LINES:
        answer = eval(f"({line},)", names)
        expected.append(" ".join(map(str, answer)))
    assert printed == "\n".join(expected) + "\n"


def test_states_of_generators_are_bytes_that_continue_them(tmp_path):
    printed = run(
        """
        import torch
        state = torch.get_rng_state()
        first = torch.rand(3)
        torch.set_rng_state(state)
        print(torch.equal(first, torch.rand(3)))
        generator = torch.Generator().manual_seed(5)
        state = generator.get_state()
        first = torch.rand(3, generator=generator)
        generator.set_state(state)
        print(torch.equal(first, torch.rand(3, generator=generator)), state.dtype)
        class Own(torch.Tensor):
            pass
        print(type(Own([1.0, 2.0])).__name__, type(torch.ones(2).as_subclass(Own)).__name__, Own(2, 3).shape)
        """, tmp_path=tmp_path)
    assert printed.splitlines() == ["True", "True torch.uint8", "Own Own torch.Size([2, 3])"]


def test_slices_walk_backwards_as_numpys():
    x, v = genesis.arange(24.0).reshape(4, 6), torch.arange(24.0).reshape(4, 6).numpy()
    for index in [slice(None, None, -1), (slice(None), slice(4, 1, -2)), (slice(-1, -4, -1), None, slice(None, None, -3)),
                  (slice(0, 3, -1),), (slice(None, None, -1), [0, 2])]:
        assert x[index].tolist() == v[index].tolist()
    leaf = genesis.arange(5.0).requires_grad_()
    (leaf[::-2] * genesis.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert leaf.grad.tolist() == [3, 0, 2, 0, 1]
    x[::-1, 0] = genesis.tensor([1.0, 2.0, 3.0, 4.0])
    assert x[:, 0].tolist() == [4, 3, 2, 1]
    with pytest.raises(ValueError, match="must not be zero"):
        x[::0]


@pytest.mark.parametrize("call", [
    "x.add(x, 2)", "x.add(2, x, alpha=3)", "torch.add(2, x, x)", "x.add([2], x)", "x.addcmul(x, x, 2)", "x.addcmul(x, 2, x)",
    "torch.addcmul(2, x, x, x)", "torch.addmm(2, 3, x, x, x)", "x.addmm(x, 2, x)", "x.addmm(2, x, x, alpha=3)",
    "x.add(x.sum().requires_grad_(), x)", "torch.zeros(2, layout='strided')", "torch.rand_like(x, layout='strided')",
])
def test_arguments_that_pytorch_does_not_take_there(call):
    for library in (genesis, torch):
        with pytest.raises(TypeError):
            eval(call, {"torch": library, "x": library.ones(2, 2)})


def test_numbers_before_tensors_are_warned_of():
    code = "import torch; x = torch.ones(2)\nfor _ in range(2): x.add(2, x)"
    for door in ("", "import genesis.as_torch; genesis.as_torch.install()\n"):
        ran = subprocess.run([sys.executable, "-c", door + code], capture_output=True, text=True)
        assert ran.returncode == 0 and ran.stderr.count("UserWarning") == 1 and "deprecated" in ran.stderr
