"""ONNX: programs for other runtimes. The package `onnx`, of the extra of that name, writes the files."""

from genesis.onnx.export import export

__all__ = ["export"]
__dir__ = __all__.copy
