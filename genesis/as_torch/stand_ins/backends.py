"""Settings of the libraries that PyTorch computes with, which genesis does not use: stored, without effect on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from genesis.as_torch.stand_ins.settings import Settings, no, no_effect, nothing, stored
from genesis.codegen.cpu.tiling import vector_bytes
from genesis.runtime.cuda.cublas import matmul

LIBRARIES = (
    "cpu", "mkl", "mkldnn", "nnpack", "openmp", "opt_einsum", "quantized", "xeon", "xnnpack", "kleidiai", "cusparselt",
)
CAPABILITIES = {32: "AVX2", 64: "AVX512"}  # by the bytes per vector


class Library:
    """The settings of one library."""

    enabled = deterministic = False
    is_available = staticmethod(no)
    flags = verbose = staticmethod(no_effect)
    set_flags = staticmethod(nothing)
    engine, supported_engines = "none", ("none",)
    VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = range(3)
    fp32_precision = "none"

    @staticmethod
    def get_cpu_capability() -> str:
        """The vector instructions of kernels, by PyTorch's names."""
        return CAPABILITIES.get(vector_bytes(), "DEFAULT")


class _Products(Settings):
    """Settings of matrix products on GPUs: TF32 is genesis' own setting."""

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 operands may be rounded to TF32."""
        return matmul.allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        matmul.allow_tf32 = allowed

    @property
    def fp32_precision(self) -> str:
        """The same by a name: "tf32", or "none" for float32's own digits."""
        return "tf32" if matmul.allow_tf32 else "none"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        matmul.allow_tf32 = precision == "tf32"


class _Plans(Settings):
    """The cache of Fourier transforms' plans of a GPU, which is empty; indexed by the GPU."""

    size, max_size = 0, 4096
    clear = staticmethod(nothing)

    def __getitem__(self, device: object) -> _Plans:
        return self


def _preferred(value: str) -> Callable[..., str]:
    """A function that returns a setting, after it has set it if given a value."""
    set_to, setting = stored(value)

    def preferred(backend: str | None = None) -> str:
        if backend is not None:
            set_to(backend)
        return cast(str, setting())

    return preferred


def _of_gpus() -> dict[str, Any]:
    """The names of `torch.backends.cuda`."""
    found: dict[str, Any] = {
        **{f"preferred_{kind}_library": _preferred("default") for kind in ("linalg", "blas", "rocm_fa")},
        **dict.fromkeys((
            "is_flash_attention_available", "is_ck_sdpa_available", "can_use_flash_attention", "can_use_efficient_attention",
            "can_use_cudnn_attention"), no),
        "matmul": _Products(allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True),
        "cufft_plan_cache": _Plans(), "sdp_kernel": no_effect,
    }
    for kind in ("flash", "mem_efficient", "math", "cudnn"):
        found[f"enable_{kind}_sdp"], found[f"{kind}_sdp_enabled"] = stored(True)
    found["allow_fp16_bf16_reduction_math_sdp"], found["fp16_bf16_reduction_math_sdp_allowed"] = stored(False)
    return found


NAMES = {
    **{f"torch.backends.cuda.{name}": value for name, value in _of_gpus().items()},
    "torch.backends.cudnn.flags": no_effect,
    "torch.backends.cudnn.conv": Settings(fp32_precision="tf32"),
    "torch.backends.fp32_precision": "none",
    **{f"torch.backends.mps.{name}": no for name in ("is_macos_or_newer", "is_macos13_or_newer")},
}
