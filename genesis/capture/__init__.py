"""`genesis.compile`: a function is traced once for each signature, and replayed from then on.

`record/` records a call: which code runs, and what its programs read and write. `guards/` generates the check that decides
whether a call may be replayed: of all that the code can reach. `replay/` replays it. `compiled` chooses among a function's
entries.
"""

from genesis.capture.compiled import Compiled, compile
from genesis.capture.record.records import SplitError
from genesis.capture.replay.comparison import MismatchError

__all__ = ["Compiled", "MismatchError", "SplitError", "compile"]
__dir__ = __all__.copy
