"""What a Python process finds as `torch` that another one under the door has started: it installs the door and steps aside."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))  # where genesis is, if it is not installed

from genesis.as_torch import install

del sys.modules[__name__]
install()
__import__(__name__)  # again, and now from the door
