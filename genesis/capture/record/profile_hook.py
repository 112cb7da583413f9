"""The interpreter's profile hook, which recording takes for a while."""

from __future__ import annotations

import sys
from typing import Any


def restore(hook: Any) -> None:
    """Set the hook that `sys.getprofile()` gave: also cProfile's, which is no function until Python 3.12."""
    if hook is None or callable(hook):
        sys.setprofile(hook)
    else:
        sys.setprofile(None)
        hook.enable()
