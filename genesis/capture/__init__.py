"""`genesis.compile`: a function is traced once for each signature, and replayed from then on.

`record/` notes what a call does: which code runs, what its programs read and write. `guards/` decides whether it may be
replayed: a check of all that the code can reach. `replay/` runs it again. `compiled` chooses among a function's entries.
"""

from genesis.capture.compiled import Compiled, compile
from genesis.capture.record.records import SplitError
from genesis.capture.replay.comparison import MismatchError

__all__ = ["Compiled", "MismatchError", "SplitError", "compile"]
__dir__ = __all__.copy
