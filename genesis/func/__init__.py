"""Function transforms: composable derivatives and vmap, and modules as pure functions.

>>> from genesis.func import grad
>>> grad(grad(lambda x: x**3))(genesis.tensor(2.0))
tensor(12.)
"""

from genesis.func.functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state
from genesis.func.rearrange import rearrange
from genesis.func.transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp
from genesis.func.vmap import vmap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "rearrange",
    "replace_all_batch_norm_modules_", "stack_module_state", "value_and_grad", "vjp", "vmap",
]
__dir__ = __all__.copy
