# Written by tools/stubs.py from the operation table: do not edit.

from genesis.autograd import forward_ad as forward_ad, functional as functional, graph as graph
from genesis.autograd.anomaly import (
    AnomalyError as AnomalyError, detect_anomaly as detect_anomaly, set_detect_anomaly as set_detect_anomaly,
)
from genesis.autograd.custom import Context as Context
from genesis.autograd.forward_values import ChangedError as ChangedError, ReleasedError as ReleasedError
from genesis.autograd.function import Function as Function, once_differentiable as once_differentiable
from genesis.autograd.grad_manager import GradManager as GradManager
from genesis.autograd.gradients import backward as backward, grad as grad, zero_grad as zero_grad
from genesis.autograd.graph_view import GradientNode as GradientNode
from genesis.autograd.numerical_checks import (
    GradcheckError as GradcheckError, gradcheck as gradcheck, gradgradcheck as gradgradcheck,
    numerical_gradient_check as numerical_gradient_check,
)
from genesis.autograd.trace_backward import GraphCycleError as GraphCycleError
from genesis.ops.derive import NotDifferentiableError as NotDifferentiableError
from genesis.tensor import modes
from genesis.tensor.modes import (
    enable_grad as enable_grad, inference_mode as inference_mode, is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled,
)

grad_mode = modes
