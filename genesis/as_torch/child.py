"""The main module of a process that one under the door starts: it installs the door before the script, or anything, is run."""

import os
import runpy

from genesis.as_torch import install
from genesis.as_torch.processes import MAIN

if __name__ == "__mp_main__":  # as multiprocessing imports it there
    install()
    _kind, _, _name = os.environ.get(MAIN, "").partition(" ")
    if _kind == "path":
        globals().update(runpy.run_path(_name, run_name="__mp_main__"))
    elif _kind == "name":
        globals().update(runpy.run_module(_name, run_name="__mp_main__", alter_sys=True))
