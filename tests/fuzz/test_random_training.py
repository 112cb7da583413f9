"""Random training steps: lazily fused, operation by operation, compiled, and by torch, from the same weights.

A failure shows the model, the optimizer and the rest as the expressions that make them.
"""

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import genesis

# GENESIS_FUZZ=5000 runs that many, new ones each time.
EXAMPLES = int(os.environ.get("GENESIS_FUZZ", "0"))
FUZZ = settings(
    max_examples=EXAMPLES or 7, derandomize=not EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck),
    database=None, phases=[Phase.generate, Phase.shrink],
)
STEPS, CLASSES, WORDS = 4, 3, 7
ACTIVATIONS = [
    "nn.Tanh()", "nn.ReLU()", "nn.GELU()", "nn.SiLU()", "nn.Sigmoid()", "nn.LeakyReLU(0.1)", "nn.Softmax(-1)", "nn.ELU()",
]
OPTIMIZERS = [
    "optim.SGD(p, lr=0.05)", "optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True)",
    "optim.SGD(p, lr=0.05, weight_decay=0.01, momentum=0.5)",
    "optim.Adam(p, lr=0.01, eps=1e-2)", "optim.AdamW(p, lr=0.01, eps=1e-2, weight_decay=0.1)",
    "optim.Adam(p, lr=0.01, eps=1e-2, amsgrad=True)", "optim.RMSprop(p, lr=0.01, eps=1e-2, momentum=0.3, centered=True)",
    "optim.Adagrad(p, lr=0.02, eps=1e-2)",
    "optim.AdamW([{'params': p[:1], 'lr': 0.02}, {'params': p[1:], 'weight_decay': 0.0}], lr=0.01, eps=1e-2)",
]
SCHEDULES = [
    "None", "optim.lr_scheduler.StepLR(o, 2, 0.5)", "optim.lr_scheduler.CosineAnnealingLR(o, 5)",
    "optim.lr_scheduler.LambdaLR(o, lambda k: 1 / (k + 1))", "optim.lr_scheduler.ExponentialLR(o, 0.7)",
]
CLIPS = ["None", "nn.utils.clip_grad_norm_(p, 0.5)", "nn.utils.clip_grad_value_(p, 0.1)"]
LOSSES = [
    "F.cross_entropy(y, labels)", "(y * y).mean() + F.cross_entropy(y, labels, label_smoothing=0.1)",
    "F.nll_loss(F.log_softmax(y, -1), labels)",
]


@dataclass(frozen=True)
class Plan:
    """A training step in words; `inputs` is the shape of a batch, of words where the first layer embeds them."""

    layers: tuple[str, ...]
    inputs: tuple[int, ...]
    optimizer: str
    schedule: str
    clip: str
    loss: str
    dtype: str
    accumulates: bool

    @property
    def random(self) -> bool:
        return any("Dropout" in layer for layer in self.layers)


def attending(lib: Any) -> Any:
    class Attending(lib.nn.Module):
        """Self-attention with what is added to it."""

        def __init__(self, width, heads):
            super().__init__()
            self.attention = lib.nn.MultiheadAttention(width, heads, batch_first=True)

        def forward(self, x):
            return x + self.attention(x, x, x, need_weights=False)[0]

    class Mean(lib.nn.Module):
        """The mean over the places of a sequence."""

        def forward(self, x):
            return x.mean(1)

    return Attending, Mean


KINDS = {lib: attending(lib) for lib in (genesis, torch)}


@st.composite
def plans(draw):
    one_of = lambda options: draw(st.sampled_from(options))  # noqa: E731
    rows, width = one_of([4, 1, 2, 7, 16]), one_of([4, 8, 6])
    kind = one_of(["rows", "images", "words"])
    layers = []
    if kind == "rows":
        inputs = (rows, 5)
        layers.append(f"nn.Linear(5, {width}, bias={one_of([True, False])})")
        for _ in range(draw(st.integers(0, 2))):
            layers.append(one_of([
                f"nn.LayerNorm({width})", f"nn.RMSNorm({width})", f"nn.BatchNorm1d({width}, momentum=0.3)",
                f"nn.Linear({width}, {width})", "nn.Dropout(0.3)", *ACTIVATIONS,
            ]))
    elif kind == "images":
        side = one_of([4, 6, 5])
        inputs = (rows, 2, side, side)
        layers.append(f"nn.Conv2d(2, {width}, {one_of([3, 1])}, padding={one_of([1, 0])}, stride={one_of([1, 2])})")
        for _ in range(draw(st.integers(0, 2))):
            layers.append(one_of([
                f"nn.BatchNorm2d({width})", f"nn.GroupNorm(2, {width})", "nn.Dropout(0.3)", "nn.MaxPool2d(2, ceil_mode=True)",
                "nn.AvgPool2d(2, ceil_mode=True)", f"nn.Conv2d({width}, {width}, 3, padding=1)",
                f"nn.Conv2d({width}, {width}, 3, padding=1, groups=2)", *ACTIVATIONS,
            ]))
        layers += ["nn.AdaptiveAvgPool2d(1)", "nn.Flatten()"]
    else:
        inputs = (rows, one_of([3, 1, 5]))
        layers.append(f"nn.Embedding({WORDS}, {width})")
        for _ in range(draw(st.integers(0, 2))):
            layers.append(one_of([
                f"Attending({width}, 2)", f"nn.LayerNorm({width})", f"nn.Linear({width}, {width})", "nn.Dropout(0.2)",
                *ACTIVATIONS,
            ]))
        layers.append("Mean()")
    if rows == 1:
        layers = [layer for layer in layers if "BatchNorm" not in layer]
    layers.append(f"nn.Linear({width}, {CLASSES})")
    return Plan(
        tuple(layers), inputs, one_of(OPTIMIZERS), one_of(SCHEDULES), one_of(CLIPS), one_of(LOSSES),
        one_of(["float64", "float32"]), draw(st.booleans()),
    )


def trained(lib: Any, plan: Plan, wrap: Any = lambda step: step) -> list[np.ndarray]:
    """The losses, and at the end the learning rate, the parameters and the buffers."""
    lib.manual_seed(0)
    numbers = np.random.default_rng(1)
    Attending, Mean = KINDS[lib]
    names = {"nn": lib.nn, "optim": lib.optim, "F": lib.nn.functional, "Attending": Attending, "Mean": Mean}
    model = lib.nn.Sequential(*[eval(layer, names) for layer in plan.layers]).to(getattr(lib, plan.dtype))
    with lib.no_grad():
        for parameter in model.parameters():
            parameter.copy_(lib.tensor((numbers.standard_normal(tuple(parameter.shape)) * 0.4).astype(plan.dtype)))
    names["p"] = list(model.parameters())
    o = names["o"] = eval(plan.optimizer, names)
    schedule = eval(plan.schedule, names)

    def step(x, labels):
        o.zero_grad()
        names["labels"] = labels
        for _ in range(1 + plan.accumulates):
            y = model(x)
            loss = eval(plan.loss, {**names, "y": y})
            loss.backward()
        eval(plan.clip, names)
        o.step()
        if schedule is not None:
            schedule.step()
        return loss

    run, losses = wrap(step), []
    for _ in range(STEPS):
        given = numbers.standard_normal(plan.inputs).astype(plan.dtype)
        words = (np.abs(given) * 10).astype(np.int64) % WORDS
        x = lib.tensor(words if "Embedding" in plan.layers[0] else given)
        losses.append(run(x, lib.tensor(numbers.integers(0, CLASSES, plan.inputs[0]))).item())
    state = [v for v in model.state_dict().values() if v.dtype is not lib.int64]
    return [np.array(losses), np.array([group["lr"] for group in o.param_groups]), *[v.detach().numpy().copy() for v in state]]


def check(plan: Plan, wrap: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with genesis.eager():
            expected = [trained(genesis, plan)]
        if not plan.random:
            expected.append(trained(torch, plan))
        found = trained(genesis, plan, wrap)
    loose = 1e-9 if plan.dtype == "float64" else 1e-3
    for want in expected:
        for have, wanted in zip(found, want, strict=True):
            np.testing.assert_allclose(have, wanted, rtol=loose, atol=loose)


@FUZZ
@given(plans())
def test_lazily_fused(plan):
    check(plan, lambda step: step)


@FUZZ
@given(plans())
def test_compiled(plan):
    check(plan, genesis.compile)
