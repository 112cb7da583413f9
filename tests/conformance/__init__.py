"""Conformance with PyTorch by its own databases of operators, modules and optimizers: `python -m tests.conformance`."""
