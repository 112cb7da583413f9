"""`genesis.compile`: a function is traced once for each signature, and replayed from then on.

`watch` sees which code runs while a call is traced, `guards` turns what that code can reach into a check, `recorder` notes
what the programs read and write, `entry` replays them, `compiled` chooses among entries.
"""

from genesis.capture.checking import MismatchError
from genesis.capture.compiled import Compiled, compile
from genesis.capture.records import SplitError

__all__ = ["Compiled", "MismatchError", "SplitError", "compile"]
