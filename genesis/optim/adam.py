"""Adam (Kingma and Ba, 2015), AdamW (Loshchilov and Hutter, 2019), and their kin."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

from genesis.functions.from_data import tensor
from genesis.ir.annotations import Options
from genesis.ir.dtypes import float32
from genesis.ops.elementwise import abs as magnitude, maximum, sqrt
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, shrunk, update_rule
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor

BETAS = setting(
    default=(0.9, 0.999), least=0, below=1, doc="how much of the averages of the gradient and of its square is kept per step"
)


def averaging(group: Group, decoupled: bool) -> Numbers:
    """The last numbers of the Adam family: those of both averages, and weight decay, coupled or decoupled."""
    (beta1, beta2), decay = group["betas"], float(group["weight_decay"])
    joined, kept = (0.0, 1 - float(group["lr"]) * decay) if decoupled else (decay, 1.0)
    return beta1, 1 - beta1, beta2, 1 - beta2, joined, kept, group["maximize"]


@update_rule
def adam_update(
    parameter: Value, gradient: Value, average: Value, square: Value, largest: Value | None, step_size: Scalar, epsilon: Scalar,
    beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar, maximize: bool,
) -> Results:
    """m = beta1 * m + fresh1 * g;  s = beta2 * s + fresh2 * g^2;  p = kept * p - step_size * m / (sqrt(s) + epsilon).

    The order of Kingma and Ba, 2015, end of section 2: the bias corrections are folded into `step_size` and `epsilon`.
    `kept` is AdamW's decay, 1 - lr * weight_decay. With `largest` (AMSGrad), the largest s so far divides instead.
    """
    gradient = descent(parameter, gradient, weight_decay, maximize)
    average, square = average_of(average, gradient, beta1, fresh1), average_of(square, gradient * gradient, beta2, fresh2)
    largest = None if largest is None else maximum(largest, square)
    divisor = sqrt(square if largest is None else largest) + epsilon
    return shrunk(parameter, kept) - average * step_size / divisor, average, square, largest


class Adam(DeclaredOptimizer):
    """Steps scaled by running averages of the gradient and of its square."""

    lr: float = setting(default=1e-3, least=0, doc="the step size")
    betas: tuple[float, float] = BETAS
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    amsgrad: bool = setting(default=False, doc="divide by the largest average of squares so far (Reddi, Kale and Kumar, 2018)")

    operation, kinds = adam_update, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    is_elementwise = True
    example = "lr=0.1", "[0.9000, 1.9000]"
    hints = ("foreach", "capturable", "differentiable", "fused")
    group_order = "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay"
    decoupled_weight_decay: bool = setting(
        default=False, kw_only=True, doc="have weight decay shrink the parameter itself, as AdamW does")
    instead = ", please consider SparseAdam instead"

    def check(self, group: Group) -> None:
        betas = [beta for beta in group["betas"] if isinstance(beta, Tensor)]
        if len(betas) == 1 or any([beta.numel() != 1 for beta in betas]):
            raise ValueError(f"{type(self).__name__}: betas must be either both floats or both Tensors of one element, got "
                             f"{group['betas']}")
        super().check(group)

    def slots(self, group: Group) -> tuple[str, ...]: return self.kinds if group["amsgrad"] else self.kinds[:2]

    def settings(self, group: Group, age: int) -> Numbers:
        beta1, beta2 = group["betas"]
        unbiased = math.sqrt(1 - beta2**age)  # bias correction is folded into the numbers
        step_size = float(group["lr"]) * unbiased / (1 - beta1**age)
        return step_size, group["eps"] * unbiased, *averaging(group, group["decoupled_weight_decay"])


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself: p = p * (1 - lr * weight_decay) before the step."""

    weight_decay: float = setting(default=1e-2, least=0, doc="times the step size, what a step shrinks the parameter by")
    example = "lr=0.1", "[0.8990, 1.8980]"
    lacks = ("decoupled_weight_decay",)
    fixed: ClassVar[Options] = {"decoupled_weight_decay": True}


@update_rule
def adamax_update(
    parameter: Value, gradient: Value, average: Value, norm: Value, step_size: Scalar, epsilon: Scalar, beta1: Scalar,
    fresh1: Scalar, beta2: Scalar, weight_decay: Scalar, maximize: bool,
) -> Results:
    """m = beta1 * m + fresh1 * g;  u = max(beta2 * u, |g| + epsilon);  p = p - step_size * m / u."""
    gradient = descent(parameter, gradient, weight_decay, maximize)
    average, norm = average_of(average, gradient, beta1, fresh1), maximum(norm * beta2, magnitude(gradient) + epsilon)
    return parameter - average * step_size / norm, average, norm


class Adamax(DeclaredOptimizer):
    """Adam with steps scaled by a decaying maximum of gradients instead of the average of squares."""

    lr: float = setting(default=2e-3, least=0, doc="the step size")
    betas: tuple[float, float] = setting(default=(0.9, 0.999), least=0, below=1, doc="how much of both is kept per step")
    eps: float = setting(default=1e-8, least=0, doc="added to the size of each gradient")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    group_order = "lr betas eps weight_decay foreach maximize differentiable capturable"
    operation, kinds = adamax_update, ("exp_avg", "exp_inf")
    is_elementwise = True
    example = "lr=0.1", "[0.9000, 1.9000]"

    def settings(self, group: Group, age: int) -> Numbers:
        beta1, beta2 = group["betas"]
        step_size = float(group["lr"]) / (1 - beta1**age)  # bias correction
        return step_size, group["eps"], beta1, 1 - beta1, beta2, float(group["weight_decay"]), group["maximize"]


@update_rule
def nadam_update(
    parameter: Value, gradient: Value, average: Value, square: Value, by_gradient: Scalar, by_average: Scalar, epsilon: Scalar,
    beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar, maximize: bool,
) -> Results:
    """m, s as in `adam_update`;  p = kept * p - (by_gradient * g + by_average * m) / (sqrt(s) + epsilon)."""
    gradient = descent(parameter, gradient, weight_decay, maximize)
    average, square = average_of(average, gradient, beta1, fresh1), average_of(square, gradient * gradient, beta2, fresh2)
    step = (gradient * by_gradient + average * by_average) / (sqrt(square) + epsilon)
    return shrunk(parameter, kept) - step, average, square


class NAdam(DeclaredOptimizer):
    """Adam with Nesterov momentum: a step uses the next step's momentum.

    The first beta must stay constant: the product of all momenta is computed as if it did.
    """

    lr: float = setting(default=2e-3, least=0, doc="the step size")
    betas: tuple[float, float] = BETAS
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    momentum_decay: float = setting(default=4e-3, least=0, doc="how fast the momentum grows towards the first beta")
    decoupled_weight_decay: bool = setting(default=False, doc="have weight decay shrink the parameter itself, as AdamW does")
    operation, kinds = nadam_update, ("exp_avg", "exp_avg_sq")
    is_elementwise = True
    example = "lr=0.1", "[0.8944, 1.8944]"

    def shown(self, group: Group, state: State) -> State:
        kept, beta1 = super().shown(group, state), group["betas"][0]
        product = _product(beta1, group["momentum_decay"], state["step"])
        return {"step": kept.pop("step"), "mu_product": tensor(product, dtype=float32), **kept} if kept else {}

    def settings(self, group: Group, age: int) -> Numbers:
        (beta1, beta2), lr = group["betas"], float(group["lr"])
        unbiased, growth = math.sqrt(1 - beta2**age), group["momentum_decay"]  # the squares' bias correction multiplies all
        by_gradient = lr * (1 - _momentum(beta1, growth, age)) / (1 - _product(beta1, growth, age))
        by_average = lr * _momentum(beta1, growth, age + 1) / (1 - _product(beta1, growth, age + 1))
        averages = averaging(group, group["decoupled_weight_decay"])
        return by_gradient * unbiased, by_average * unbiased, group["eps"] * unbiased, *averages


def _momentum(beta: float, growth: float, age: int) -> float:
    return float(beta * (1 - 0.5 * 0.96 ** (age * growth)))


@lru_cache(1 << 10)
def _logarithms(beta: float, growth: float) -> list[float]:
    return [0.0]


def _product(beta: float, growth: float, age: int) -> float:
    """The product of the momenta of steps 1 to `age`."""
    if not beta:
        return 0.0
    sums = _logarithms(beta, growth)
    while len(sums) <= age:
        sums.append(sums[-1] + math.log(_momentum(beta, growth, len(sums))))
    return math.exp(sums[age])


@update_rule
def radam_update(
    parameter: Value, gradient: Value, average: Value, square: Value, rectified: Scalar, plain: Scalar, epsilon: Scalar,
    beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar, maximize: bool,
) -> Results:
    """m, s as in `adam_update`;  p = kept * p - m * (rectified / (sqrt(s) + epsilon) + plain)."""
    gradient = descent(parameter, gradient, weight_decay, maximize)
    average, square = average_of(average, gradient, beta1, fresh1), average_of(square, gradient * gradient, beta2, fresh2)
    return shrunk(parameter, kept) - average * (rectified / (sqrt(square) + epsilon) + plain), average, square


class RAdam(DeclaredOptimizer):
    """Adam with steps rectified by the variance of the average of squares; the first steps use only the average gradient."""

    lr: float = setting(default=1e-3, least=0, doc="the step size")
    betas: tuple[float, float] = BETAS
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    decoupled_weight_decay: bool = setting(default=False, doc="have weight decay shrink the parameter itself, as AdamW does")
    group_order = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
    operation, kinds = radam_update, ("exp_avg", "exp_avg_sq")
    is_elementwise = steps_by_addition = True
    example = "lr=0.1", "[0.8000, 1.6000]"

    def settings(self, group: Group, age: int) -> Numbers:
        (beta1, beta2), lr = group["betas"], float(group["lr"])
        bias1, bias2 = 1 - beta1**age, 1 - beta2**age
        most = 2 / (1 - beta2) - 1
        known = most - 2 * age * beta2**age / bias2  # the effective length of the average so far
        rectified, plain = 0.0, lr / bias1
        if known > 5:  # the variance is tractable
            share = (known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known)
            rectified, plain = plain * math.sqrt(share * bias2), 0.0
        return rectified, plain, group["eps"], *averaging(group, group["decoupled_weight_decay"])


class SparseAdam(DeclaredOptimizer):
    """Adam for sparse gradients, such as those of `nn.Embedding(sparse=True)`: other rows and their averages do not change.

    A step raises RuntimeError for a dense gradient.

    >>> table = genesis.ones(3, 2).requires_grad_()
    >>> optimizer = genesis.optim.SparseAdam([table], lr=0.5)
    >>> genesis.nn.functional.embedding(genesis.tensor([2, 2]), table, sparse=True).sum().backward()
    >>> optimizer.step()
    >>> table
    tensor([[1.0000, 1.0000],
            [1.0000, 1.0000],
            [0.5000, 0.5000]], requires_grad=True)
    """

    lr: float = setting(default=1e-3, least=0, doc="the step size")
    betas: tuple[float, float] = BETAS
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    takes_complex = False
    operation, kinds = adam_update, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    is_elementwise = True
    hints = ()

    def shown(self, group: Group, state: State) -> State: return dict(state) if state["step"] else {}
    def slots(self, group: Group) -> tuple[str, ...]: return self.kinds[:2]

    def settings(self, group: Group, age: int) -> Numbers:
        beta1, beta2 = group["betas"]
        step_size = float(group["lr"]) * math.sqrt(1 - beta2**age) / (1 - beta1**age)
        return step_size, group["eps"], beta1, 1 - beta1, beta2, 1 - beta2, 0.0, 1.0, group["maximize"]

    def update(self, parameters: list[Tensor], group: Group, age: int) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def update_sparse(self, parameters: list[Tensor], gradients: list[SparseTensor], group: Group, age: int) -> None:
        self._update_rows(parameters, gradients, group, age)
