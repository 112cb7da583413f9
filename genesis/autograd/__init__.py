"""Automatic differentiation: backward as a graph transform, custom Functions, hooks and modes."""

from genesis.ops.derive import NotDifferentiableError
from genesis.runtime.deferred import LazyNames
from genesis.tensor import modes as grad_mode  # by PyTorch's name
from genesis.tensor.modes import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled,
)

__all__ = [
    "AnomalyError", "ChangedError", "Context", "Function", "GradManager", "GradcheckError", "GradientNode", "GraphCycleError",
    "NotDifferentiableError", "ReleasedError", "backward", "detect_anomaly", "enable_grad",
    "forward_ad", "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
    "is_inference_mode_enabled", "no_grad", "numerical_gradient_check", "once_differentiable", "set_detect_anomaly",
    "set_grad_enabled", "zero_grad",
]
__dir__ = __all__.copy
# A process that only computes derives nothing.
__getattr__ = LazyNames("genesis.autograd", {
    "genesis.autograd": "anomaly forward_ad function functional graph hooks",
    "genesis.autograd.anomaly": "AnomalyError detect_anomaly set_detect_anomaly",
    "genesis.autograd.custom": "Context",
    "genesis.autograd.forward_values": "ChangedError ReleasedError",
    "genesis.autograd.function": "Function once_differentiable",
    "genesis.autograd.grad_manager": "GradManager",
    "genesis.autograd.gradients": "backward grad zero_grad",
    "genesis.autograd.graph_view": "GradientNode",
    "genesis.autograd.numerical_checks": "GradcheckError gradcheck gradgradcheck numerical_gradient_check",
    "genesis.autograd.trace_backward": "GraphCycleError",
})
