"""Conformance with PyTorch by its own databases of operators, modules and optimizers: `python -m tests.conformance`."""

from torch.testing._internal import common_utils

common_utils.extract_test_fn = lambda: None  # it searches the stack for a TestCase at each sample: nine tenths of the time
