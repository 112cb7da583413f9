"""The import hook: unmodified PyTorch code finds genesis, in processes of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from genesis.as_torch import check, names
from genesis.as_torch.finder import is_module, look_up

ROOT = Path(__file__).resolve().parent.parent.parent


def run(text: str, *arguments: str, tmp_path: Path) -> str:
    """What a script prints that runs under the door."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-m", "genesis.as_torch", str(script), *arguments], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_imports_find_genesis_and_print_as_pytorch(tmp_path):
    printed = run(
        """
        import sys
        import torch, torch.nn as nn, torch.nn.functional as F
        import torch.utils.data.distributed, torch.utils.tensorboard, torch.autograd.gradcheck
        from torch import Tensor
        from torch.utils.data import DataLoader, TensorDataset
        from torch.nn.modules.utils import _pair
        from torch.optim.lr_scheduler import _LRScheduler
        import genesis, importlib.metadata

        print(torch.Tensor is genesis.Tensor, nn.Linear is genesis.nn.Linear, F.relu is genesis.nn.functional.relu)
        print(torch.__version__, importlib.metadata.version("torch"))
        x = torch.zeros(2, 3)
        print(x.dtype, x.shape, x.size(), x.shape[1:], x.shape.numel(), x.type(), isinstance(x.shape, torch.Size))
        print(torch.zeros(1, dtype=torch.float64), torch.empty(0, 2))
        print(isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor), isinstance(x, Tensor))
        print(torch.FloatTensor(2, 3).shape, torch.LongTensor([1, 2]))
        print(callable(torch.autograd.gradcheck), DataLoader[int] is not DataLoader, bool(torch.utils.data.IterDataPipe[int]))
        print(_pair(3), sys.argv[1:], x.reshape(x.size()).expand(x.shape).view(x.shape[0], -1).shape)
        print(issubclass(torch.optim.lr_scheduler.StepLR, _LRScheduler))
        """, "--lr", "0.1", tmp_path=tmp_path)
    version = names.version()
    assert printed.splitlines() == [
        "True True True", f"{version} {version}",
        "torch.float32 torch.Size([2, 3]) torch.Size([2, 3]) torch.Size([3]) 6 torch.FloatTensor True",
        "tensor([0.], dtype=torch.float64) tensor([], size=(0, 2))", "True False True",
        "torch.Size([2, 3]) tensor([1, 2])", "True True True", "(3, 3) ['--lr', '0.1'] torch.Size([2, 3])", "True",
    ]


def test_what_is_missing_raises_when_it_is_used_and_names_itself(tmp_path):
    printed = run(
        """
        import torch
        from torch import quantize_per_tensor
        from torch.distributed.nn import RemoteModule
        from torch.export import default_decompositions
        import torch.distributed as dist

        class Wrapped(RemoteModule):
            pass

        def function(x: "torch.sparse.Anything") -> RemoteModule | None:
            return x

        for use in (lambda: quantize_per_tensor(1), lambda: Wrapped(1), default_decompositions, dist.ProcessGroupGloo):
            try:
                use()
            except NotImplementedError as problem:
                print(str(problem).split(":")[0])
        print(isinstance(torch.zeros(1), RemoteModule), torch.float32 == torch.quint4x2, dist.is_available())
        try:
            torch.no_such_name
        except AttributeError as problem:
            print(problem)
        try:
            import torch.no_such_module
        except ImportError as problem:
            print(problem.name)
        try:
            import torch._six
        except ImportError as problem:
            print(problem.name)
        """, tmp_path=tmp_path)
    assert printed.splitlines() == [
        "torch.quantize_per_tensor", "torch.distributed.nn.RemoteModule", "torch.export.default_decompositions",
        "torch.distributed.ProcessGroupGloo", "False False True", "module 'torch' has no attribute 'no_such_name'",
        "torch.no_such_module", "torch._six",
    ]


def test_compiled_functions_are_replayed(tmp_path):
    printed = run(
        """
        import torch, torch.nn as nn, torch.nn.functional as F
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

        @torch.compile(mode="max-autotune", fullgraph=True)
        def step(x, y):
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x).view(x.shape[0], -1), y)
            loss.backward()
            optimizer.step()
            return loss

        losses = [step(torch.ones(4, 3), torch.tensor([0, 1, 0, 0])).item() for _ in range(5)]
        print(losses == sorted(losses, reverse=True), len(step.entries), step.entries[0].replays > 0)
        """, tmp_path=tmp_path)
    assert printed.split() == ["True", "1", "True"]


def test_pytorch_that_is_imported_already_is_left_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
         "import genesis.as_torch; genesis.as_torch.install()"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120)
    assert "PyTorch is imported already" in done.stderr


def test_check_lists_what_is_missing_without_running_it(tmp_path, capsys):
    text = textwrap.dedent(
        """
        raise SystemExit("was run")
        import torch
        import torch.nn as nn, numpy as np
        from torch import nn as network
        from torch.distributed import ProcessGroupGloo as init, is_available
        from torch.nn import functional as F, Linear

        def forward(self, x):
            nn.Linear(2, 3), F.relu(x), torch.zeros(1).sum().no_method, np.int_repr(1)
            init(), network.Module, torch.Tensor.to_mkldnn, torch.no_such
            return torch.quantize_per_tensor(x).int_repr()
        """)
    found = [(use.path, use.surely) for use in check.missing_in(text)]
    assert sorted(set(found)) == [
        ("Tensor.int_repr", False), ("torch.Tensor.to_mkldnn", True), ("torch.distributed.ProcessGroupGloo", True),
        ("torch.quantize_per_tensor", True),
    ]
    file = tmp_path / "script.py"
    file.write_text(text)
    assert check.report([str(tmp_path)]) == 1
    assert f"torch.quantize_per_tensor                        {file}:12" in capsys.readouterr().out
    file.write_text("import torch\nprint(torch.zeros(2))\n")
    assert check.report([str(file)]) == 0


@pytest.mark.parametrize(
    "path", ["torch", "torch.nn", "torch.nn.modules.linear", "torch.utils.data.dataloader", "torch.ao.quantization"])
def test_modules_of_pytorch_are_modules(path):
    assert is_module(path)


def test_functorch_is_an_older_name_of_transforms(tmp_path):
    """What of it genesis lacks is no module, even where PyTorch is installed, whose `functorch.dim` needs PyTorch."""
    assert run(
        """
        import functorch, torch
        from torch._C._functorch import get_unwrapped, is_batchedtensor
        x = torch.ones(2, 3)
        print(functorch.vmap(torch.sum)(x), functorch.grad is torch.func.grad, is_batchedtensor(x), get_unwrapped(x) is x)
        try:
            from functorch import dim
        except ImportError:
            print(str(torch.quint4x2), repr(torch.quint4x2))
        """, tmp_path=tmp_path).splitlines() == [
        "tensor([3., 3.]) True False True", "torch.quint4x2 <torch.quint4x2, which genesis lacks>"]


def test_names_that_pytorch_lacks_are_not_shown():
    assert look_up("torch", "GradManager") is look_up("torch", "no_such_name") is not look_up("torch", "add")


def test_the_safetensors_package_is_its_own(tmp_path):
    printed = run(
        """
        import torch
        from safetensors import safe_open
        from safetensors.torch import _find_shared_tensors, load_file, load_model, save_file, save_model

        x = torch.arange(6.0).reshape(1, 2, 3)
        kinds = torch.bfloat16, torch.float16, torch.bool, torch.int64, torch.float8_e4m3fn
        save_file({"x": x, **{str(kind): torch.ones(2, 2).to(kind) for kind in kinds}}, "x.safetensors", {"made": "here"})
        with safe_open("x.safetensors", framework="pt") as f:
            print(f.get_slice("x")[:, :, 1:2].tolist(), f.metadata(), f.get_tensor("x").equal(x))
        print(sorted((kind, tensor.float().sum().item()) for kind, tensor in load_file("x.safetensors").items()))

        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = self.b = torch.nn.Linear(2, 2)

        made, read = Tied(), Tied()
        save_model(made, "tied.safetensors")
        load_model(read, "tied.safetensors")
        print(_find_shared_tensors(made.state_dict()) == [{"a.weight", "b.weight"}, {"a.bias", "b.bias"}])
        print(read.a.weight.equal(made.b.weight), _find_shared_tensors({"m": torch.ones(2, device="meta")}))
        print(torch.UntypedStorage.from_file("x.safetensors", False, nbytes=16)[:2].nbytes())
        """, tmp_path=tmp_path)
    assert printed.splitlines() == [
        "[[[1.0], [4.0]]] {'made': 'here'} True",
        str([*[(f"torch.{kind}", 4.0) for kind in ("bfloat16", "bool", "float16", "float8_e4m3fn", "int64")], ("x", 15.0)]),
        "True", "True []", "2"]
