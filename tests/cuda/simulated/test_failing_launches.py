"""A GPU that refuses a launch: nothing is lost if tensors are as they were, else all is, loudly."""

import numpy as np
import pytest

import genesis
from genesis.runtime.completion import UnfinishedError
from genesis.runtime.cuda.gpu import LaunchError


@pytest.fixture
def refusing(memory, monkeypatch):
    """Have the GPU refuse launch number `refusing[0]` of the next submission that has one."""
    at, submit = [None], memory.gpu.submit

    def refuse(commands, after=int):
        launches = [command for command in commands if getattr(command, "__name__", "") != "mark"]
        if at[0] is None or len(launches) <= at[0]:
            return submit(commands, after)
        number = commands.index(launches[at[0]])
        at[0] = None
        submit(commands[:number])
        raise LaunchError("CUDA: a launch failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", number)

    monkeypatch.setattr(memory.gpu, "submit", refuse)
    monkeypatch.setattr(memory.gpu, "captured", no_graph)
    return at


def no_graph(commands):
    raise RuntimeError("no graphs in this test")


def moved(x):
    """Writes x over by one launch, and multiplies it with itself by another."""
    x += 1
    return x @ x


@pytest.mark.parametrize("replayed", [False, True], ids=["as written", "replayed"])
def test_values_are_lost_if_the_failing_launch_was_not_the_first(refusing, replayed):
    x, other = genesis.zeros(5, 5, device="cuda"), genesis.ones(5, 5, device="cuda")
    step = genesis.compile(moved) if replayed else moved
    for _ in range(3):
        step(x).tolist()
    refusing[0] = 1
    with pytest.raises(UnfinishedError, match=r"LAUNCH_OUT_OF_RESOURCES \(at .*test_failing_launches\.py:\d+\); .* is lost"):
        step(x).tolist()
    assert refusing[0] is None, "it was refused"
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"was lost.*test_failing_launches\.py"):
            (x + 1).tolist()
    assert other.sum().item() == 25, "another trace's values are what they were"
    x.copy_(other)
    assert step(x).tolist() == [[20] * 5] * 5 and x.tolist() == [[2] * 5] * 5, "what is written anew is as good as new"


def test_nothing_is_lost_if_the_first_launch_fails(refusing):
    x = genesis.zeros(5, 5, device="cuda")
    for _ in range(3):
        moved(x).tolist()
    refusing[0] = 0
    product = moved(x)
    with pytest.raises(RuntimeError, match="CUDA: a launch failed"):
        product.tolist()
    assert product.tolist() == [[80] * 5] * 5 and x.tolist() == [[3] * 5] * 5, "the write has not happened"


def test_nothing_is_lost_if_no_input_was_to_be_written_over(refusing):
    x = genesis.ones(5, 5, device="cuda")
    kept = x.detach()
    refusing[0] = 1
    product = moved(x)
    with pytest.raises(RuntimeError, match="CUDA: a launch failed"):
        product.tolist()
    del kept
    assert product.tolist() == [[20] * 5] * 5


@pytest.mark.parametrize("launch", [0, 2])
def test_a_training_step_has_not_happened_or_is_lost(refusing, launch):
    genesis.manual_seed(0)
    model = genesis.nn.Sequential(genesis.nn.Linear(3, 4), genesis.nn.Tanh(), genesis.nn.Linear(4, 1)).cuda()
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = genesis.ones(6, 3, device="cuda")

    def step():
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()

    for _ in range(2):
        step()
    saved = [p.detach().cpu().numpy().copy() for p in model.parameters()]
    refusing[0] = launch
    with pytest.raises(RuntimeError, match="CUDA: a launch failed") as caught:
        step()
    assert isinstance(caught.value, UnfinishedError) == bool(launch)
    if launch:
        for p in model.parameters():
            with pytest.raises(RuntimeError, match="was lost"):
                p.cpu()
        with genesis.no_grad():
            for p, values in zip(model.parameters(), saved, strict=True):
                p.copy_(genesis.tensor(values))
    found = [p.detach().cpu().numpy() for p in model.parameters()]
    assert all((a == b).all() for a, b in zip(found, saved, strict=True))
    if not launch:  # nothing of the optimizer is lost either
        step()
        found = [p.detach().cpu().numpy() for p in model.parameters()]
        assert all(np.isfinite(a).all() and (a != b).any() for a, b in zip(found, saved, strict=True))
