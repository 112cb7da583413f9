"""Transforms of functions: derivatives as functions that can be transformed again, and modules as pure functions.

>>> from genesis.func import grad
>>> grad(grad(lambda x: x**3))(genesis.tensor(2.0))
tensor(12.)
"""

from genesis.func.functional_call import functional_call
from genesis.func.transforms import grad, hessian, jacfwd, jacrev, jvp, value_and_grad, vjp
from genesis.func.vmap import vmap

__all__ = ["functional_call", "grad", "hessian", "jacfwd", "jacrev", "jvp", "value_and_grad", "vjp", "vmap"]
