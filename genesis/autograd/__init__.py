"""Automatic differentiation: backward as a graph transform, custom Functions, hooks and modes."""

from genesis.autograd import forward_ad, functional, graph
from genesis.autograd.anomaly import AnomalyError, detect_anomaly, set_detect_anomaly
from genesis.autograd.gradients import backward, grad, zero_grad
from genesis.autograd.custom import Context
from genesis.autograd.data_parallel import LocalReduction, Reduction
from genesis.autograd.forward_values import ChangedError, ReleasedError
from genesis.autograd.function import Function, once_differentiable
from genesis.autograd.grad_manager import GradManager
from genesis.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck, numerical_gradient_check
from genesis.autograd.graph_view import GradientNode
from genesis.autograd.trace_backward import GraphCycleError
from genesis.ops.derive import NotDifferentiableError
from genesis.tensor import modes as grad_mode  # by PyTorch's name
from genesis.tensor.modes import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled,
)

__all__ = [
    "AnomalyError", "ChangedError", "Context", "Function", "GradManager", "GradcheckError", "GradientNode", "GraphCycleError",
    "LocalReduction", "NotDifferentiableError", "Reduction", "ReleasedError", "backward", "detect_anomaly", "enable_grad",
    "forward_ad", "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
    "is_inference_mode_enabled", "no_grad", "numerical_gradient_check", "once_differentiable", "set_detect_anomaly",
    "set_grad_enabled", "zero_grad",
]
__dir__ = __all__.copy
