"""Exported programs: `export`, `load_program` and their results."""

from genesis.shipping.dynamic import Dim
from genesis.shipping.export import export
from genesis.shipping.exported_program import ExportedProgram, ExportGraphSignature, load_program
from genesis.shipping.graph_of_call import ExportError

__all__ = ["Dim", "ExportError", "ExportGraphSignature", "ExportedProgram", "export", "load_program"]
__dir__ = __all__.copy
