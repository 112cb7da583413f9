"""L-BFGS: Newton's method with a Hessian estimated from the last gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from genesis.execution.realize import realize
from genesis.functions.methods.complex_numbers import view_as_real
from genesis.ir.annotations import Options
from genesis.ops.registry import OPERATIONS
from genesis.optim.optimizer import Closure, Group, Members, Optimizer, State
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode

DECREASE, CURVATURE = 1e-4, 0.9
BLOCK = 8  # past steps of one program: however many there are, the same few programs run


class Point(NamedTuple):
    """A point of the line search: the loss, its gradient, and its slope along the direction."""

    step: float
    loss: float
    gradient: Tensor
    slope: float


class LBFGS(Optimizer):
    """Up to `max_iter` steps against H @ gradient a call; H estimates the inverse Hessian from the last `history_size` steps.

    D. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization" (1989). A step reads losses, so
    `genesis.compile` does not replay it.

    Args:
        params: tensors, in one group.
        lr: the step length (the first is at most that of a unit gradient), or the start of the line search.
        max_iter: the maximal number of steps per call of `step`.
        max_eval: the maximal number of losses per call; by default 1.25 times `max_iter`.
        tolerance_grad: a call ends when no gradient element exceeds it.
        tolerance_change: a call ends when neither the step nor the loss change exceeds it.
        history_size: the number of remembered steps.
        line_search_fn: None, or "strong_wolfe".

    Raises ValueError for several groups, a negative `lr` and another line search.

    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - genesis.tensor([3.0, -1.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    13.0
    >>> x
    tensor([ 3.0000, -1.0000], requires_grad=True)
    """

    def __init__(
        self, params: Members, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        })

    def check(self, group: Group) -> None:
        """Raise ValueError for invalid settings."""
        if group["lr"] < 0:
            raise ValueError(f"LBFGS: lr is {group['lr']}; want 0 or more")
        if self.param_groups:
            raise ValueError("LBFGS: has one group of parameters, got another")
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn is {group['line_search_fn']!r}; want None or 'strong_wolfe'")

    def state_of(self, parameter: Tensor, group: Group) -> State:
        """The state of all parameters, kept under the first one."""
        new: State = {"func_evals": 0, "n_iter": 0, "d": None, "t": 0.0, "old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1,
                      "prev_flat_grad": None, "prev_loss": None}
        if parameter is not group["params"][0]:
            return {}
        state = self.state[parameter]
        if not state:
            state.update(new)
        return state

    def shown(self, group: Group, state: State) -> State:
        if state.get("n_iter"):
            return {**state, "al": [None] * group["history_size"]}
        return {name: state[name] for name in ("func_evals", "n_iter")} if state.get("func_evals") else {}

    def step(self, closure: Closure | None = None) -> Any:
        """The loss before the first step. Raises TypeError without `closure`, which computes the loss and its gradients."""
        if closure is None:
            raise TypeError("LBFGS: step wants a closure that computes the loss and its gradients, and returns the loss")
        self.has_stepped = True
        (group,) = self.param_groups

        def evaluate() -> tuple[Any, Tensor]:
            with grad_mode(True):
                loss = closure()
            found = [p.new_zeros(p.shape) if p.grad is None else p.grad.to_dense() for p in group["params"]]
            gradients = [numbers_of(gradient).reshape(-1) for gradient in found]
            return loss, detach(call(OPERATIONS["cat"], (gradients,)))

        with grad_mode(False):
            loss, gradient = evaluate()
            self.state_of(group["params"][0], group)["func_evals"] += 1
            if _greatest(gradient) > group["tolerance_grad"]:
                self._iterate(group, evaluate, float(loss), gradient)
        return loss

    def _iterate(self, group: Group, evaluate: Callable[[], tuple[Any, Tensor]], loss: float, gradient: Tensor) -> None:
        state, evaluations = self.state_of(group["params"][0], group), 1
        for number in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = state["d"] = self._direction(state, gradient, group["history_size"])
            last_loss, state["prev_flat_grad"] = loss, gradient
            state["prev_loss"] = loss
            first = 1.0 / max(1.0, float(gradient.abs().sum())) if state["n_iter"] == 1 else 1.0
            state["t"] = step = first * group["lr"]
            slope, count = float(gradient.dot(direction)), 0
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"]:
                start, most = Point(0.0, loss, gradient, slope), group["max_eval"] - evaluations
                found, count = self._search(group, evaluate, start, direction, step, most)
                step, loss, gradient = found.step, found.loss, found.gradient
            else:
                self._move(group, direction, step)
                if number < group["max_iter"]:
                    value, gradient = evaluate()
                    loss, count = float(value), 1
            state["t"], evaluations = step, evaluations + count
            state["func_evals"] += count
            if number == group["max_iter"] or evaluations >= group["max_eval"]:
                break
            small = group["tolerance_change"]
            if _greatest(gradient) <= group["tolerance_grad"] or _greatest(direction) * step <= small:
                break
            if abs(loss - last_loss) < small:
                break

    def _direction(self, state: State, gradient: Tensor, history_size: int) -> Tensor:
        """-H @ gradient, by the two-loop recursion over past steps and gradient changes."""
        if state["n_iter"] == 1:
            return -gradient
        change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        if float(curvature) > 1e-10:
            for name, value in (("old_dirs", change), ("old_stps", step), ("ro", 1.0 / curvature)):
                state[name].append(value)
                del state[name][:-history_size]
            state["H_diag"] = curvature / change.dot(change)
        pairs, q, weights = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True)), -gradient, []
        for y, s, inverse in reversed(pairs):
            weights.append(s.dot(q) * inverse)
            q = q - weights[-1] * y
            if not len(weights) % BLOCK:
                realize(q._array)
        q = q * state["H_diag"]
        for y, s, inverse in pairs:
            q = q + s * (weights.pop() - y.dot(q) * inverse)
            if not len(weights) % BLOCK:
                realize(q._array)
        return q

    def _search(
        self, group: Group, evaluate: Callable[[], tuple[Any, Tensor]], start: Point, direction: Tensor, step: float, most: int
    ) -> tuple[Point, int]:
        kept = [p.clone() for p in group["params"]]

        def at(step: float) -> Point:
            self._move(group, direction, step)
            loss, gradient = evaluate()
            for parameter, value in zip(group["params"], kept, strict=True):
                parameter.copy_(value)
            return Point(step, float(loss), gradient, float(gradient.dot(direction)))

        found, count = strong_wolfe(at, start, step, _greatest(direction), most)
        self._move(group, direction, found.step)
        return found, count

    @staticmethod
    def _move(group: Group, direction: Tensor, step: float) -> None:
        params = [numbers_of(p) for p in group["params"]]
        for parameter, piece in zip(params, direction.split([p.numel() for p in params]), strict=True):
            parameter.add_(piece.reshape(parameter.shape), alpha=step)

    def _load(self, parameter: Tensor, group: Group, saved: Options | None) -> None:
        """Load a copy of the state of all parameters."""
        if saved:
            state = self.state_of(parameter, group)
            for key in state.keys() & saved.keys():
                state[key] = [v.clone() for v in saved[key]] if isinstance(saved[key], list) else saved[key]


def numbers_of(tensor: Tensor) -> Tensor:
    """The real numbers of a tensor, sharing its storage: a complex one's parts."""
    return view_as_real(tensor) if tensor.dtype.is_complex else tensor


def _greatest(vector: Tensor) -> float:
    return float(vector.abs().max())


# ---- a line search for the strong Wolfe conditions (J. Nocedal, S. Wright, "Numerical Optimization", 2006, 3.5) ----
# Steps grow until two of them bracket a solution; then the bracket shrinks, both by cubic interpolation. The safeguards are
# PyTorch's, so that both take the same steps.


def cubic_minimum(a: Point, b: Point, least: float, most: float) -> float:
    """The minimum of the cubic through two points with their slopes, clamped to the bounds; the middle of the bounds if there
    is none."""
    if a.step > b.step:
        a, b = b, a
    d = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square = d * d - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2
    root = math.sqrt(square)
    rise, change = b.slope + root - d, b.slope - a.slope + 2 * root
    if not change:  # on a line there is none: the end that goes down
        return most if rise < 0 else least
    step = b.step - (b.step - a.step) * (rise / change)
    return min(max(step, least), most)


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, step: float, length: float, most: int, tolerance: float = 1e-9
) -> tuple[Point, int]:
    """(the point found, the number of loss evaluations), from `start` at step 0, trying `step` first and `most` others.

    `length` is the greatest element of the direction; an interval that changes nothing by more than `tolerance` is not divided.
    """
    before, now, count = start, evaluate(step), 1
    bracket: list[Point] = []
    while not bracket and count <= most:
        if _too_high(now, start) or (count > 2 and now.loss >= before.loss):
            bracket = [before, now]
        elif abs(now.slope) <= -CURVATURE * start.slope:
            return now, count
        elif now.slope >= 0:
            bracket = [before, now]
        else:
            step = cubic_minimum(before, now, now.step + 0.01 * (now.step - before.step), now.step * 10)
            before, now, count = now, evaluate(step), count + 1
    return _zoomed(evaluate, start, bracket or [start, now], count, length, most, tolerance)


def _too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + DECREASE * point.step * start.slope


def _zoomed(
    evaluate: Callable[[float], Point], start: Point, bracket: list[Point], count: int, length: float, most: int,
    tolerance: float,
) -> tuple[Point, int]:
    """The zoom phase, within an interval that contains an acceptable step."""
    low, high = sorted(bracket, key=lambda point: point.loss)
    slow = False  # whether the last step was near an end too
    while count <= most and abs(high.step - low.step) * length >= tolerance:
        lower, upper = sorted((low.step, high.step))
        step, margin = cubic_minimum(low, high, lower, upper), 0.1 * (upper - lower)
        near = min(upper - step, step - lower) < margin
        if near and (slow or step >= upper or step <= lower):
            step = upper - margin if abs(step - upper) < abs(step - lower) else lower + margin
            near = False
        slow = near
        now, count = evaluate(step), count + 1
        if _too_high(now, start) or now.loss >= low.loss:
            low, high = (low, now) if low.loss <= now.loss else (now, low)
            continue
        if abs(now.slope) <= -CURVATURE * start.slope:
            return now, count
        if now.slope * (high.step - low.step) >= 0:
            high = low
        low = now
    return low, count
