"""Programs for NVIDIA GPUs: the same kernels as numba-cuda functions."""
