"""The `torch` of child Python processes: installs genesis as PyTorch and replaces itself."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # where genesis is, if it is not installed

from genesis.as_torch import install

del sys.modules[__name__]
install()
__import__(__name__)  # again, now by genesis' import hook
