"""`torch.hub`: models of a folder, and of a repository that was fetched before; weights from an address."""

import contextlib
import io
import os
import tempfile
from pathlib import Path

import torch

HUBCONF = '''
dependencies = ["torch"]
import torch
from parts import made

def tiny(n=2, pretrained=False):
    """A tiny model."""
    return made(n)

class Other(torch.nn.Module):
    pass

_hidden = tiny
'''

with tempfile.TemporaryDirectory() as home:
    folder = Path(home) / "somebody_models_main"
    folder.mkdir()
    (folder / "hubconf.py").write_text(HUBCONF)
    (folder / "parts.py").write_text("from torch.nn import Linear\ndef made(n): return Linear(n, n)\n")
    print(torch.hub.load(str(folder), "tiny", 3, source="local"), torch.hub.load(folder, "tiny", n=1, source="local"))
    for name, source in (("none", "local"), ("tiny", "x")):
        try:
            torch.hub.load(str(folder), name, source=source)
        except (RuntimeError, ValueError) as problem:
            print(type(problem).__name__, problem)
    torch.hub.set_dir(home)
    print(torch.hub.get_dir() == home, torch.hub.HASH_REGEX.pattern, torch.hub.MODULE_HUBCONF)
    repository = "somebody/models:main"
    print(torch.hub.list(repository, trust_repo=True, skip_validation=True, verbose=False))
    print(torch.hub.help(repository, "tiny", trust_repo=True, skip_validation=True))
    print(torch.hub.load(repository, "tiny", 2, trust_repo="check", verbose=False, skip_validation=True))
    weights = Path(home) / "weights.pth"
    torch.save(torch.nn.Linear(2, 2).state_dict(), weights)
    with contextlib.redirect_stdout(io.StringIO()) as told:
        found = torch.hub.load_state_dict_from_url(weights.as_uri(), progress=False, file_name="kept.pth")
    print([*found], told.getvalue().partition(":")[0])
    print(os.path.exists(Path(home) / "checkpoints" / "kept.pth"))
