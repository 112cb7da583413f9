"""The main module of child processes: installs genesis as PyTorch before anything else runs."""

import os
import runpy

from genesis.as_torch import install
from genesis.as_torch.processes import MAIN

if __name__ == "__mp_main__":  # as multiprocessing imports the main module
    install()
    _kind, _, _name = os.environ.get(MAIN, "").partition(" ")
    if _kind == "path":
        globals().update(runpy.run_path(_name, run_name="__mp_main__"))
    elif _kind == "name":
        globals().update(runpy.run_module(_name, run_name="__mp_main__", alter_sys=True))
