"""ONNX: programs for other runtimes. The package `onnx`, of the extra of that name, writes the files."""

from genesis.runtime.deferred import LazyNames

__all__ = ["export"]
__dir__ = __all__.copy
# Libraries import `torch.onnx` where nothing is exported, and the package `onnx` is not installed.
__getattr__ = LazyNames("genesis.onnx", {"genesis.onnx.model": "export"})
