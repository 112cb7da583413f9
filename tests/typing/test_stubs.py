"""What mypy and an editor see of genesis: types of results, misspelt names, and scripts without errors of the library's."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# As in a user's project: strict, and silent about the library itself.
SETTINGS = f"""
[mypy]
strict = true
mypy_path = {ROOT}
[mypy-genesis.*]
follow_imports = silent
ignore_errors = true
"""
MLP = '''
"""A classifier of two layers, trained with Adam on batches of a loader."""

from __future__ import annotations

import genesis
from genesis import Tensor, nn, optim
from genesis.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(2, width)
        self.out = nn.Linear(width, 2)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.drop(genesis.relu(self.hidden(x))))


def data(count: int) -> TensorDataset:
    genesis.manual_seed(0)
    x = genesis.randn(count, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    return TensorDataset(x, y)


def accuracy(model: Net, x: Tensor, y: Tensor) -> float:
    model.eval()
    with genesis.no_grad():
        right = (model(x).argmax(dim=1) == y).float().mean()
    model.train()
    return float(right.item())


def main() -> None:
    device = genesis.device("cpu")
    model = Net(16).to(device)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    loader = DataLoader(data(64), batch_size=16, shuffle=True)
    for epoch in range(3):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print(f"epoch {epoch}: {total / len(loader):.4f} {scheduler.get_last_lr()[0]:.4f}")
    x, y = data(16).tensors
    print(accuracy(model, x, y), sum(p.numel() for p in model.parameters()))
    genesis.save(model.state_dict(), "model.gt")
    model.load_state_dict(genesis.load("model.gt"))


if __name__ == "__main__":
    main()
'''
CNN = '''
"""A small convolutional network with `nn.functional`, its step compiled."""

from __future__ import annotations

import genesis
import genesis.nn as nn
import genesis.nn.functional as F


class Block(nn.Module):
    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x: genesis.Tensor) -> genesis.Tensor:
        return F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)


model = nn.Sequential(Block(1, 4), nn.ReLU(), Block(4, 8), nn.Flatten(), nn.Linear(8 * 4, 10))
optimizer = genesis.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = genesis.amp.GradScaler(enabled=False)


@genesis.compile
def step(images: genesis.Tensor, labels: genesis.Tensor) -> genesis.Tensor:
    optimizer.zero_grad()
    logits = model(images)
    loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    return loss


genesis.manual_seed(1)
images = genesis.rand(8, 1, 8, 8)
labels = genesis.randint(0, 10, (8,))
for _ in range(3):
    loss = step(images, labels)
    print(loss.item())

probabilities = F.softmax(model(images), dim=-1)
values, places = probabilities.topk(3, dim=1)
best = probabilities.max(dim=1)
print(best.values.shape, best.indices.tolist(), values.mean(dim=0, keepdim=True).detach().numpy().sum(), places.shape[0])
weight = model[4].weight if isinstance(model[4], nn.Linear) else None
if weight is not None and weight.grad is not None:
    print(weight.grad.norm().item(), weight.std().item(), genesis.linalg.norm(weight).item())
joined = genesis.cat([images.flatten(1), genesis.zeros(8, 2)], dim=1)
stacked = genesis.stack([joined, joined * 2 + 1, 1 - joined, -joined]).reshape(4, -1).transpose(0, 1)
stacked[0] = 0.5
stacked[1:3, ::2] += 1
mask = (stacked > 0.5) & ~(stacked < 0.25)
print(genesis.where(mask, stacked, 0.0).sum().item(), stacked.masked_fill(mask, 0.0).abs().max().item(), bool(mask.any()))
with genesis.autocast("cpu", dtype=genesis.bfloat16):
    print(model(images).dtype)
print(genesis.einsum("ij,kj->ik", joined, joined).shape, joined.to(genesis.float64).dtype, joined.size(0), joined.size())
'''
DERIVATIVES = '''
"""Gradients: of leaves, of functions, per example, and by a Function of one's own."""

from __future__ import annotations

import numpy as np

import genesis
from genesis import Context, Tensor
from genesis.func import functional_call, grad, jacrev, vmap


class Cube(genesis.autograd.Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Context, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


x = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (Cube.apply(x) + x.exp() / 2).sum()
y.backward()
if x.grad is not None:
    print(x.grad.tolist())
(gx,) = genesis.autograd.grad((x.sin() ** 2).sum(), (x,), create_graph=True)
print(gx.sum().item(), gx.requires_grad)


def loss(weight: Tensor, row: Tensor) -> Tensor:
    return ((row @ weight) ** 2).mean()


weight = genesis.randn(3, 2, generator=None)
rows = genesis.as_tensor(np.ones((5, 3), np.float32))
print(grad(loss)(weight, rows).shape)
per_row = vmap(grad(loss), in_dims=(None, 0))(weight, rows)
print(per_row.shape, jacrev(loss)(weight, rows).shape)

net = genesis.nn.Linear(3, 2)
params = {name: p.detach() for name, p in net.named_parameters()}
out = functional_call(net, params, (rows,))
print(out.shape)

with genesis.no_grad():
    for p in net.parameters():
        p -= 0.1 * genesis.ones_like(p)
        p.data.mul_(0.5)
hook = x.register_hook(lambda g: g * 2)
hook.remove()
x.requires_grad_(False).zero_()
print(genesis.allclose(x, genesis.zeros(3)), float(x.sum()), len(x), [float(v) for v in x], x.dtype.is_floating_point)
print(genesis.arange(4).view(2, 2).T.contiguous().stride(), genesis.eye(2).inverse().diagonal().prod().item())
q, r = genesis.linalg.qr(genesis.eye(2))
print((q @ r).trace(), genesis.linspace(0, 1, 3).cumsum(0), genesis.special.expit(x).mean())
'''
REVEALED = {
    "y.exp()": "Tensor", "y + 1": "Tensor", "1 - y": "Tensor", "y == 1": "Tensor", "y[0]": "Tensor", "-y": "Tensor",
    "genesis.zeros(2)": "Tensor", "genesis.exp(y)": "Tensor", "genesis.maximum(y, 0.0)": "Tensor", "y.mul_(2)": "Tensor",
    "genesis.ops.add(y, 1)": "Tensor", "genesis.relu_(y)": "Tensor", "genesis.special.erf(y)": "Tensor",
    "genesis.linalg.inv(y)": "Tensor", "genesis.fft.fftshift(y)": "Tensor", "genesis.masked.sum(y, mask=y > 0)": "Tensor",
    "genesis.signal.windows.hann(3)": "Tensor", "nn.functional.relu(y)": "Tensor",
    "nn.functional.relu(y, inplace=True)": "Tensor", "nn.functional.max_pool1d(y, 2)": "Tensor", "nn.Linear(3, 2)(y)": "Tensor",
    "nn.ReLU()(y)": "Tensor", "nn.CrossEntropyLoss()(y, y)": "Tensor", "nn.Sequential(nn.Linear(3, 2), nn.ReLU())(y)": "Tensor",
    "nn.functional.max_pool1d(y, 2, return_indices=True)": "tuple[Tensor, Tensor]", "genesis.split(y, 2)": "tuple[Tensor, ...]",
    "y.max()": "Tensor", "y.max(1).values": "Tensor", "y.sort().indices": "Tensor", "genesis.linalg.svd(y).S": "Tensor",
    "genesis.nonzero(y)": "Tensor", "genesis.nonzero(y, as_tuple=True)": "tuple[Tensor, ...]",
    "genesis.where(y > 0, y, 0)": "Tensor", "y.shape": "tuple[int, ...]", "y.size(0)": "int", "y.size()": "tuple[int, ...]",
    "y.stride()": "tuple[int, ...]", "y.dtype": "DType", "genesis.float": "DType", "y.grad": "Tensor | None",
    "y.item()": "int | float", "y.ndim": "int", "genesis.autograd.grad(y.sum(), (y,))": "tuple[Tensor, ...]",
    "genesis.pi": "float",
}
MISTAKES = {  # and what is said of them
    "y.sun()": "has no attribute", "genesis.exq": "has no attribute", "nn.Linaer(2, 3)": "has no attribute",
    "genesis.zeros('2')": "incompatible type", "y.sum(dmi=0)": "Unexpected keyword argument",
    "genesis.exp('x')": "incompatible type", "y.backward(retain_grap=True)": "Unexpected keyword argument",
    "nn.Linear(3, 2)(1)": "incompatible type", "genesis.optim.Adam([y], lrr=1)": "Unexpected keyword argument",
    "genesis.linalg.function_of": "has no attribute", "genesis.random.takes_out": "does not explicitly export",
    "nn.functional.call": "has no attribute",
}
HEAD = "import genesis\nfrom genesis import nn\n\ny = genesis.ones(2, 3)\n"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What one run of mypy says of all scripts: (file, line) -> messages."""
    folder = tmp_path_factory.mktemp("scripts")
    revealed = HEAD + "".join(f"reveal_type({expression})\n" for expression in REVEALED)
    scripts = {"mlp": MLP, "cnn": CNN, "derivatives": DERIVATIVES, "revealed": revealed, "mistakes": HEAD + "\n".join(MISTAKES)}
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "mypy.ini").write_text(SETTINGS, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(folder / "cache")]
    run = subprocess.run([*command, *[f"{n}.py" for n in scripts]], cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    found = {}
    for name, line, message in re.findall(r"^(\w+)\.py:(\d+): (.*)$", run.stdout, re.M):
        found.setdefault((name, int(line)), []).append(message)
    return found


@pytest.mark.parametrize("script", ["mlp", "cnn", "derivatives"])
def test_an_ordinary_script_has_no_errors(answers, script):
    assert {place: messages for place, messages in answers.items() if place[0] == script} == {}


@pytest.mark.parametrize("expression", REVEALED)
def test_results_have_their_types(answers, expression):
    line = HEAD.count("\n") + 1 + [*REVEALED].index(expression)
    (message,) = answers["revealed", line]
    plain = re.sub(r"builtins\.|genesis[\w.]*\.|, fallback=[\w.]+", "", message)
    assert plain == f'note: Revealed type is "{REVEALED[expression]}"'


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_errors(answers, mistake):
    line = HEAD.count("\n") + 1 + [*MISTAKES].index(mistake)
    assert MISTAKES[mistake] in answers["mistakes", line][0]
