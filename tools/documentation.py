"""What `mkdocs` builds the site with: pages made of docstrings, and pages that lie outside of `docs/`.

A page of the reference is made of each public module: its functions and classes with their signatures and docstrings, whose
examples become blocks of code.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from tools.shapes_of_examples import shapes_in_examples

ROOT = Path(__file__).resolve().parent.parent
MODULES = (
    "genesis", "genesis.nn", "genesis.nn.functional", "genesis.nn.init", "genesis.nn.utils", "genesis.optim",
    "genesis.optim.lr_scheduler", "genesis.ao.quantization", "genesis.ao.nn.quantized.dynamic", "genesis.autograd",
    "genesis.func", "genesis.linalg", "genesis.fft", "genesis.special",
    "genesis.signal", "genesis.sparse", "genesis.nested", "genesis.masked", "genesis.random", "genesis.distributions",
    "genesis.distributed", "genesis.amp", "genesis.utils.data", "genesis.utils.checkpoint", "genesis.utils.tensorboard",
    "genesis.serialization", "genesis.onnx", "genesis.debug", "genesis.profiler", "genesis.testing", "genesis.cuda",
)
OF_OPERATIONS = ("genesis", "genesis.nn", "genesis.nn.functional", "genesis.linalg", "genesis.fft", "genesis.special")
OUTSIDE = {  # page -> the file that it is
    "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md", "benchmarks.md": "benchmarks/NOTES.md",
    "security.md": "SECURITY.md",
}
PICTURES = {"results.png": "benchmarks/results.png"}
PICTURE = "![Times of training steps and functions over those of the fastest of the others](results.png)"
LINK = re.compile(r"(?<!\\)\]\((?!https?://|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write out the folders that the navigation names."""
    decisions = sorted(page.name for page in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    folders = {
        "reference/": ["reference/index.md", *(f"reference/{name}.md" for name in MODULES)],
        "decisions/": ["decisions/README.md", *(f"decisions/{name}" for name in decisions)],
    }

    def written(entry: Any) -> Any:
        if isinstance(entry, dict):
            return {title: written(value) for title, value in entry.items()}
        return [written(e) for e in entry] if isinstance(entry, list) else folders.get(entry, entry)

    config.nav = written(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for page, source in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if page == "benchmarks.md":
            text = text.replace("\n\n", f"\n\n{PICTURE}\n\n", 1)
        files.append(File.generated(config, page, content=_relinked(text, Path(source).parent)))
    for name, source in PICTURES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_bytes()))
    for name in MODULES:
        files.append(File.generated(config, f"reference/{name}.md", content=reference(name)))
    listed = "\n".join(f"- [`{name}`]({name}.md): {_first(importlib.import_module(name))}" for name in MODULES)
    files.append(File.generated(config, "reference/index.md", content=f"# Reference\n\n{listed}\n"))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links out of `docs/` to those files' pages."""
    made = page.file.generated_by is not None
    return markdown if made else _relinked(markdown, Path("docs") / Path(page.file.src_uri).parent)


def _relinked(text: str, folder: Path) -> str:
    """Links relative to a folder of the repository, as links of the site; what the site has not is only named."""
    pages = {source: page for page, source in OUTSIDE.items()}

    def lead(match: re.Match[str]) -> str:
        target = (ROOT / folder / match[1]).resolve()
        if not target.is_relative_to(ROOT):
            return match[0]
        where = target.relative_to(ROOT)
        if folder.parts[:1] == ("docs",) and where.parts[:1] == ("docs",):
            return match[0]
        up = "../" * (len(folder.parts) - 1) if folder.parts[:1] == ("docs",) else ""
        if str(where) in pages:
            return f"]({up}{pages[str(where)]}{match[2] or ''})"
        return f"]({up}{where.relative_to('docs')}{match[2] or ''})" if where.parts[:1] == ("docs",) else "][]"

    return re.sub(r"\[([^\]\[]*)\]\[\]", r"\1", LINK.sub(lead, text))


# ---- the reference ----


def reference(name: str) -> str:
    """The page of a public module, in Markdown.

    >>> "## softmax" in reference("genesis.nn.functional")
    True
    """
    module = importlib.import_module(name)
    parts = [f"# {name}", _markdown(inspect.getdoc(module) or "")]
    for own, thing in _members(module):
        parts += [f"## {own}", _signature(own, thing), _markdown(inspect.getdoc(thing) or "")]
        if name in OF_OPERATIONS:
            parts.append(_shapes(thing))
        if inspect.isclass(thing):
            for method, function in sorted(vars(thing).items()):
                if not method.startswith("_") and inspect.isfunction(function) and function.__doc__:
                    parts += [f"### {own}.{method}", _signature(method, function), _markdown(inspect.getdoc(function) or "")]
    return "\n\n".join(filter(None, parts)) + "\n"


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for own in sorted({*getattr(module, "__all__", ())} | {*dir(module)}, key=str.lower):
        if own.startswith("_"):
            continue
        thing = getattr(module, own, None)
        if (inspect.isclass(thing) or callable(thing)) and (getattr(thing, "__module__", None) or "").startswith("genesis"):
            yield own, thing


def _signature(name: str, thing: Any) -> str:
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    signature = re.sub(r"\bgenesis(\.\w+)*\.(\w+)", r"\2", signature).replace("'", "")
    signature = re.sub(r"\bValue\b", "Tensor", signature)  # rows are written for nodes; users call them with tensors
    return f"```python\n{name}{signature}\n```" if len(signature) < 90 else f"```python\n{name}{_folded(signature)}\n```"


def _shapes(thing: Any) -> str:
    found = shapes_in_examples(thing, tuple(map(importlib.import_module, OF_OPERATIONS)))
    return "Shapes there: " + "; ".join(f"`{line}`" for line in found) + "." if found else ""


def _folded(signature: str) -> str:
    return "\n".join(textwrap.wrap(signature, 100, subsequent_indent="    ", break_long_words=False))


def _first(module: ModuleType) -> str:
    return (inspect.getdoc(module) or "").strip().partition("\n")[0]


def _markdown(text: str) -> str:
    """A docstring as Markdown: examples are blocks of code, and what is listed under a heading is a list."""
    lines: list[str] = []
    example = False
    for line in text.splitlines():
        if line.lstrip().startswith(">>> ") and not example:
            lines += ["", "```pycon"]
            example = True
        elif example and not line.strip():
            lines.append("```")
            example = False
        heading = None if example else re.fullmatch(r"([A-Z]\w+):", line)
        item = None if example else re.fullmatch(r" {4}(\*{0,2}\w[\w, ]*): (.*)", line)
        if heading:
            lines += [f"**{heading[1]}**", ""]
        elif item:
            lines.append(f"- `{item[1]}`: {item[2]}")
        else:
            lines.append(line if example else line.strip() and re.sub(r"^ {8}", "  ", line))
    return "\n".join([*lines, "```"] if example else lines)
