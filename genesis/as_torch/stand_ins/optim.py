"""Names of `torch.optim` for optimizers of one's own, and the line search of L-BFGS."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import genesis
from genesis.as_torch.stand_ins.settings import always
from genesis.ir.annotations import AnyFunction
from genesis.optim import lbfgs
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode


def _use_grad_for_differentiable(func: AnyFunction) -> AnyFunction:
    """An optimizer's step, recording gradients only if its setting `differentiable` is set."""
    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with grad_mode(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """The number of a tensor, or the number."""
    return x.item() if isinstance(x, Tensor) else x


class _RequiredParameter:
    """The default of an optimizer's required settings."""

    def __repr__(self) -> str:
        return "<required parameter>"


OPTIMIZER: dict[str, Any] = {
    "required": _RequiredParameter(), "ParamsT": Iterable[Any],
    "_default_to_fused_or_foreach": always((False, False)),  # steps of single tensors are fused anyway
    "_use_grad_for_differentiable": _use_grad_for_differentiable,
    "_get_value": _get_value, "_to_scalar": lambda x: x.squeeze() if isinstance(x, Tensor) and x.ndim else x,
    "_get_scalar_dtype": lambda is_fused=None: (
        genesis.float32 if is_fused or genesis.get_default_dtype() != genesis.float64 else genesis.float64),
    "_get_capturable_supported_devices": lambda supports_xla=True: ["cuda"],
    "_get_foreach_kernels_supported_devices": lambda: ["cuda"], "_get_fused_kernels_supported_devices": lambda: ["cuda", "cpu"],
    "_disable_dynamo_if_unsupported": lambda single_tensor_fn=None: lambda func: func,
    "_foreach_supported_types": [Tensor, genesis.nn.Parameter], "_params_t": Iterable[Any],
    **{f"_{name}_doc": "" for name in ("capturable", "differentiable", "foreach", "fused", "maximize", "params")},
}


# ---- the line search of LBFGS ----
def _strong_wolfe(
    obj_func: AnyFunction, x: Any, t: float, d: Tensor, f: Any, g: Tensor, gtd: Any, c1: float = 1e-4, c2: float = 0.9,
    tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[Any, Tensor, float, int]:
    """(the loss, its gradient, the step, the number of losses) of the search along `d`; `obj_func(x, step, d)` has both."""
    if (c1, c2) != (lbfgs.DECREASE, lbfgs.CURVATURE):
        raise NotImplementedError(f"_strong_wolfe: c1={c1}, c2={c2}; want the defaults")
    losses = {}

    def at(step: float) -> lbfgs.Point:
        losses[step], gradient = obj_func(x, step, d)
        return lbfgs.Point(step, float(losses[step]), gradient, float(gradient.dot(d)))

    start = lbfgs.Point(0.0, float(f), g, float(gtd))
    found, count = lbfgs.strong_wolfe(at, start, float(t), float(d.abs().max()), max_ls, tolerance_change)
    return losses.get(found.step, f), found.gradient, found.step, count


def _cubic_interpolate(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None) -> float:
    """The minimum of the cubic through two points with their slopes, within bounds, by default the points."""
    a, b = (lbfgs.Point(float(x), float(f), None, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))  # type: ignore[arg-type]
    return lbfgs.cubic_minimum(a, b, *map(float, bounds or sorted((a.step, b.step))))
