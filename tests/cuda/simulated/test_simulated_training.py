"""Training on a GPU: the losses of the CPU, state beside the parameters, memory that does not grow, compiled steps."""

import gc
import io

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from tests.tolerances import assert_close

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.05),
    "AdamW": lambda p: optim.AdamW(p, lr=0.05, amsgrad=True),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01),
}


def network(dropout=0.0):
    genesis.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Dropout(dropout), nn.Linear(4, 2))


def data():
    rows = [[1.0, -1.0, 0.5], [0.0, 2.0, -1.0], [1.5, 0.5, 0.0], [-1.0, -0.5, 1.0]]
    return genesis.tensor(rows), genesis.tensor([0, 1, 0, 1])


def losses(device, make, steps=4, dropout=0.0, compiled=False):
    model = network(dropout).to(device)
    optimizer = make(model.parameters())
    x, y = (t.to(device) for t in data())

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = genesis.compile(step) if compiled else step
    found = [step(x, y).item() for _ in range(steps)]
    if compiled:
        assert len(step.entries) == 1 and not step.refusals, step.refusals
        assert step.entries[0].replays >= steps - 2
    return found, model, optimizer


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_takes_the_steps_of_the_cpu(name):
    here, _, _ = losses("cpu", OPTIMIZERS[name])
    there, model, optimizer = losses("cuda", OPTIMIZERS[name])
    assert there == pytest.approx(here, rel=1e-5)
    assert all(p.is_cuda for p in model.parameters())
    assert all(v.is_cuda for state in optimizer.state.values() for v in state.values() if isinstance(v, genesis.Tensor))


def test_dropout_drops_what_it_drops_on_the_cpu():
    here, _, _ = losses("cpu", OPTIMIZERS["SGD"], dropout=0.5)
    there, _, _ = losses("cuda", OPTIMIZERS["SGD"], dropout=0.5)
    assert there == pytest.approx(here, rel=1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_compiled_steps_are_replayed_there(name):
    plain, _, _ = losses("cuda", OPTIMIZERS[name], steps=6, dropout=0.5)
    compiled, _, _ = losses("cuda", OPTIMIZERS[name], steps=6, dropout=0.5, compiled=True)
    assert compiled == pytest.approx(plain, rel=1e-6)


def test_a_compiled_function_minds_where_its_arguments_are():
    double = genesis.compile(lambda x: x * 2)
    for device in ("cpu", "cuda", "cpu", "cuda", "cuda"):
        result = double(genesis.ones(2, device=device))
        assert result.device == device and result.tolist() == [2, 2]


def test_modules_and_optimizers_move_with_their_state():
    _, model, optimizer = losses("cuda", OPTIMIZERS["Adam"])
    file = io.BytesIO()
    genesis.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = genesis.load(file, map_location="cpu")
    again = network()
    again.load_state_dict(saved["model"])
    on_the_cpu = optim.Adam(again.parameters(), lr=0.05)
    on_the_cpu.load_state_dict(saved["optimizer"])
    again.cuda()
    assert all(p.is_cuda for p in again.parameters())
    x, _ = data()
    assert_close(again(x.cuda()).cpu(), model.cpu()(x))
    assert not any(p.is_cuda for p in model.parameters())


# ---- memory ----


def test_steps_leave_no_memory_behind(memory):
    model = nn.Linear(3, 2, device="cuda")
    optimizer = optim.Adam(model.parameters())
    x, y = (t.cuda() for t in data())
    held = []
    for _ in range(50):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        held.append(genesis.cuda.memory_allocated())
    assert held[-1] <= held[10], "garbage of cycles may have gone meanwhile"
    assert memory.gpu.name == genesis.cuda.get_device_name() == "simulated GPU"


def test_memory_is_counted_given_back_and_told(memory):
    gc.collect()
    before = genesis.cuda.memory_allocated()
    x = genesis.tensor(np.ones(1 << 20, np.float32), device="cuda")
    assert genesis.cuda.memory_allocated() - before >= x.nbytes
    assert genesis.cuda.max_memory_allocated() >= genesis.cuda.memory_allocated() <= genesis.cuda.memory_reserved()
    del x
    assert genesis.cuda.memory_allocated() - before < 1 << 12
    reserved = genesis.cuda.memory_reserved()
    genesis.cuda.empty_cache()
    assert genesis.cuda.memory_reserved() < reserved
    genesis.cuda.reset_peak_memory_stats()
    assert genesis.cuda.max_memory_allocated() == genesis.cuda.memory_allocated()


def test_running_out_of_memory_says_what_holds_it_and_loses_nothing(memory, monkeypatch):
    x = genesis.tensor([1.0, 2.0], device="cuda")
    free, total = genesis.cuda.mem_get_info()
    monkeypatch.setattr(memory.gpu, "total", total - free + (1 << 20))
    y = x + 1
    wide = x.reshape(2, 1).expand(2, 1 << 20).contiguous()
    with pytest.raises(genesis.cuda.OutOfMemoryError, match=r"cuda:0: wanted 8\.00 MiB; .* are held by tensors"):
        y.tolist()
    del wide
    assert y.tolist() == [2, 3], "the flush that failed is taken up again"
