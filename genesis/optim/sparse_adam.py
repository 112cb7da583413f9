"""SparseAdam: Adam that updates only the rows of sparse gradients."""

from __future__ import annotations

import math

from genesis.optim.adam import BETAS, adam_update
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.sparse_gradients import update_rows
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor


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

    def shown(self, group: Group, state: State) -> State:
        return dict(state) if state["step"] else {}

    def slots(self, group: Group) -> tuple[str, ...]:
        return self.kinds[:2]

    def settings(self, group: Group, age: int) -> Numbers:
        beta1, beta2 = group["betas"]
        step_size = float(group["lr"]) * math.sqrt(1 - beta2**age) / (1 - beta1**age)
        return step_size, group["eps"], beta1, 1 - beta1, beta2, 1 - beta2, 0.0, 1.0, group["maximize"]

    def update(self, parameters: list[Tensor], group: Group, age: int) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def update_sparse(self, parameters: list[Tensor], gradients: list[SparseTensor], group: Group, age: int) -> None:
        update_rows(self, parameters, gradients, group, age)
