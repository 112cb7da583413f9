"""Comparisons with PyTorch and JAX, and the project's own bars. `python -m benchmarks.run`."""
