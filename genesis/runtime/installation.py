"""How genesis was installed, and so the command that installs what it lacks."""

from __future__ import annotations

from pathlib import Path

__all__ = ["install_command"]

_TREE = Path(__file__).parents[2]


def install_command(extra: str = "") -> str:
    """The command that installs genesis as it is installed here, with an extra.

    >>> from genesis.runtime.installation import install_command
    >>> install_command("cuda13").endswith('[cuda13]"')
    True
    """
    named = f"[{extra}]" if extra else ""
    is_source = (_TREE / "pyproject.toml").exists()
    return f'python -m pip install --editable "{_TREE}{named}"' if is_source else f'python -m pip install "genesis{named}"'
