"""Long runs keep memory flat, and what goes out of scope gives its memory back at once."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

import genesis
from genesis import nn
from genesis.execution.plan import plan_for
from genesis.runtime.memory import memory_stats
from genesis.runtime.plan_cache import PlanCache
from genesis.tensor import new_programs
from genesis.tensor.new_programs import MOST_WHOLE
from genesis.tracing.state import current_trace
from genesis.utils.checkpoint import checkpoint
from tests.collector import without_collector
from tests.growth import growth


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Reference counts alone must free everything."""
    with without_collector():
        yield


def training(make_optimizer, use: Callable[[genesis.Tensor], object]) -> Callable[[], object]:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = make_optimizer(model.parameters())
    inputs, targets = genesis.randn(32, 16), genesis.randint(0, 4, (32,))

    def step() -> object:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return use(loss)

    return step


class Running:
    """A number that adds up what it is given."""

    def __init__(self) -> None:
        self.total: object = genesis.tensor(0.0)

    def add(self, loss: genesis.Tensor) -> None:
        self.total = self.total + loss.detach() * 0.5


OPTIMIZERS = {
    "sgd": lambda parameters: genesis.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "adam": lambda parameters: genesis.optim.Adam(parameters, lr=1e-3),
}
USES = {"unread": id, "read": lambda loss: loss.item(), "summed": Running().add}


@pytest.mark.parametrize(("optimizer", "use"), [("sgd", "read"), ("adam", "unread"), ("adam", "summed")])
def test_training_is_flat(optimizer, use):
    assert growth(training(OPTIMIZERS[optimizer], USES[use])).is_flat()


def test_a_list_of_losses_holds_losses_alone():
    losses: list[genesis.Tensor] = []
    found = growth(training(OPTIMIZERS["adam"], losses.append), steps=500)
    assert found.buffers <= 64 * found.steps


def test_gradients_that_accumulate_are_flat():
    parameter = genesis.ones(1000, requires_grad=True)
    assert growth(lambda: (parameter * parameter).sum().backward()).is_flat()


def test_reading_results_without_no_grad_is_flat():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    inputs = genesis.randn(32, 16)
    assert growth(lambda: model(inputs).argmax(1).tolist()).is_flat()


def test_a_loop_that_is_never_read_is_bounded():
    total = genesis.zeros(1000)

    def step() -> None:
        nonlocal total
        total = total * 0.9 + 1.5

    assert growth(step, warm=25_000, steps=25_000).is_flat()


IMAGES = 3, 17, 17
MODELS = {
    "wide": ((16,), lambda: nn.Linear(16, 4)),
    "narrow": ((3,), lambda: nn.Linear(3, 4)),
    "images": (IMAGES, lambda: nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveMaxPool2d(3), nn.Flatten(), nn.Linear(72, 4))),
}


def kernels_made() -> int:
    """Compiled here or by a worker, or found in the cache: the first time that this process has one."""
    counted = genesis.debug.stats()
    return counted["kernels_compiled"] + counted["kernels_loaded"]


@pytest.mark.parametrize("name", MODELS)
def test_new_batch_sizes_need_no_kernel_after_the_first(name):
    shape, make = MODELS[name]
    model = make()
    optimizer = OPTIMIZERS["adam"](model.parameters())

    def step(rows: int) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(genesis.randn(rows, *shape)), genesis.randint(0, 4, (rows,))).backward()
        optimizer.step()

    step(64)  # enough for two threads
    for rows in range(32, 32 + MOST_WHOLE):  # from then on programs are flushed in parts
        step(rows)
    made = kernels_made()
    for rows in range(2, 52):
        step(rows)
    genesis.synchronize()
    assert kernels_made() == made


def test_a_tensor_out_of_scope_gives_its_memory_back():
    before = memory_stats().held
    x = genesis.ones(10_000, requires_grad=True)
    size = x.nbytes
    y = (x * 2).exp()
    y.sum().backward()
    x.grad.tolist()
    assert memory_stats().held > before + size
    del x, y
    assert memory_stats().held < before + size  # of small results, such as the sum, a plan keeps the memory


def test_what_was_written_in_place_and_dropped_is_not_computed():
    x = genesis.tensor([1.0] * 5)
    y = x * 2.5
    y.add_(1.5).mul_(0.5)
    total = y.sum()
    del y
    assert len(plan_for(current_trace()).values) == 1
    assert total.item() == 10.0


def test_a_small_result_that_is_held_is_not_written_over():
    x = genesis.arange(3)
    results, views = [], []
    for number in range(8):
        y = x * number
        (results if number % 2 else views).append(y if number % 2 else y.numpy()[1:])
        del y
    assert [r.tolist() for r in results] == [[0, n, 2 * n] for n in (1, 3, 5, 7)]
    assert [v.tolist() for v in views] == [[n, 2 * n] for n in (0, 2, 4, 6)]


def test_the_plans_that_ran_last_are_kept():
    cache, home = PlanCache(size_limit=2), {}
    cache.put(home, "a", 1, size=1)
    cache.put(home, "b", 2, size=1)
    cache.note(home, "a", 1)
    cache.put(home, "c", 3, size=1)
    assert home == {"a": 1, "c": 3}


class Squared(genesis.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


def a_loss(w):
    return (w * 3).tanh().sum()


def in_a_hook(w):
    y = (w * 3).tanh()
    y.register_hook(lambda g: g.tolist() and None)
    return y.sum()


def before_backward(w):
    loss = (w * 3).tanh().sum()
    loss.item()
    return loss


def of_a_function(w):
    y = Squared.apply(w)
    y.tolist()
    return Squared.apply(y).sum()


def of_a_checkpoint(w):
    y = checkpoint(genesis.tanh, w * 3)
    y.tolist()
    return y.sum()


@pytest.mark.parametrize("loss", [a_loss, in_a_hook, before_backward, of_a_function, of_a_checkpoint])
def test_gradients_that_accumulate_whatever_is_looked_at_repeat_their_plans(loss):
    """No step's path goes on from the one before: nothing grows, nothing is planned anew."""
    new_programs._met.clear()  # all losses share this line
    w = genesis.ones(3, requires_grad=True)
    for step in range(30):
        if step == 10:
            gc.collect()
            genesis.debug.reset_stats()
            held = genesis.debug.memory().held
        loss(w).backward()
    w.grad.tolist()
    assert genesis.debug.stats()["plans_built"] <= 1  # the last step is looked at elsewhere
    assert genesis.debug.memory().held <= held + 1024
