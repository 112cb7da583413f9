"""How genesis was installed, and so the command that installs what it lacks."""

from __future__ import annotations

from pathlib import Path

__all__ = ["install_command"]

_TREE = Path(__file__).parents[2]


def install_command(extra: str = "") -> str:
    """The command that installs genesis from its clone, with an extra; a wheel does not know its clone, which is ".".

    >>> from genesis.runtime.installation import install_command
    >>> install_command("cuda13").endswith('[cuda13]"')
    True
    """
    # Never by a name alone: PyPI's `genesis` is another project's, and this one's distribution is not there.
    clone = _TREE if (_TREE / "pyproject.toml").exists() else "."
    return f'python -m pip install --editable "{clone}{f"[{extra}]" if extra else ""}"'
