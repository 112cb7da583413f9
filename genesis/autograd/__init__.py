"""Automatic differentiation: backward as a function on graphs, and the switches around it."""

from genesis.autograd import functional
from genesis.autograd.backward import backward, grad
from genesis.autograd.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from genesis.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck, numerical_gradient_check
from genesis.autograd.graph_view import GradientNode
from genesis.autograd.leaves import zero_grad
from genesis.ops.derive import NotDifferentiableError

__all__ = [
    "GradcheckError", "GradientNode", "NotDifferentiableError", "backward", "enable_grad", "functional", "grad", "gradcheck",
    "gradgradcheck", "inference_mode", "is_grad_enabled", "no_grad", "numerical_gradient_check", "set_grad_enabled",
    "zero_grad",
]
