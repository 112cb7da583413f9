"""The floors of the house: imports run downwards only, at the top of a file, and never to what only tests may use."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "genesis"
FILES = sorted(PACKAGE.rglob("*.py"))

# Every file belongs to the longest prefix that fits; it may import from its own floor and those further down.
FLOORS = [
    {"genesis.ir", "genesis.runtime", "genesis.devices", "genesis.provenance", "genesis.pytree"},
    {"genesis.ops"},
    {"genesis.lower"},
    {"genesis.codegen"},
    {"genesis.trie", "genesis.tracing", "genesis.literals", "genesis.memory", "genesis.number"},
    {"genesis.thread"},
    {"genesis.interpret", "genesis.plan"},
    {"genesis.host", "genesis.run"},
    {"genesis.execute"},
    {"genesis.transfer"},
    {"genesis.tensor"},
    {"genesis.definition"},
    {"genesis.dispatch"},
    {"genesis.construction"},
    {"genesis.storage"},
    {"genesis.autograd"},
    {"genesis"},  # the library, written in terms of Tensor
]
# What takes long to import waits until it is asked for: the first kernel to compile, the first graph drawn, a reference's
# special functions, the data loader's threads, the first CUDA device.
DEFERRED = {
    ("genesis/runtime/numba_compiler.py", "llvmlite.binding"), ("genesis/runtime/numba_compiler.py", "numba.core"),
    ("genesis/ir/printer.py", "networkx"), ("genesis/ops/rows.py", "scipy.special"),
    ("genesis/ops/solving.py", "scipy.linalg"), ("genesis/ops/factors.py", "scipy.linalg"),
    ("genesis/utils/__init__.py", "genesis.utils.data"),
    ("genesis/debug/cuda_probe.py", "cuda.pathfinder"),
    ("genesis/codegen/cuda/binaries.py", "genesis.codegen.cuda"),
    ("genesis/codegen/backend.py", "genesis.codegen.cuda.program"),
    ("genesis/devices.py", "genesis.runtime.cuda"),
    ("genesis/runtime/cuda/__init__.py", "genesis.runtime.cuda.real"),
    ("genesis/runtime/cuda/__init__.py", "genesis.runtime.cuda.simulated"),
    ("genesis/runtime/cuda/cublas.py", "nvmath.bindings.cublas"), ("genesis/runtime/cuda/cublas.py", "cuda.pathfinder"),
}
FORBIDDEN = {"torch", "jax", "jaxlib", "sklearn", "matplotlib", "tqdm"}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor_of(module: str) -> int:
    while module:
        for number, floor in enumerate(FLOORS):
            if module in floor:
                return number
        module = module.rpartition(".")[0]
    raise AssertionError("every module is under genesis")


def imports_of(tree: ast.AST) -> list[tuple[str, ast.stmt | ast.Call]]:
    found: list[tuple[str, ast.stmt | ast.Call]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            found.append((node.module or "", node))
            found += [(f"{node.module}.{alias.name}", node) for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            found.append((ast.literal_eval(node.args[0]), node))
    return found


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_run_downwards(path):
    own = floor_of(module_name(path))
    for name, _ in imports_of(ast.parse(path.read_text())):
        if name.startswith("genesis") and name != "genesis":
            assert floor_of(name) <= own, f"{module_name(path)} imports {name}, which stands above it"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_stand_at_the_top(path):
    tree = ast.parse(path.read_text())
    top = {id(statement) for statement in tree.body}
    for branch in (s for s in tree.body if isinstance(s, ast.If)):
        top |= {id(statement) for statement in branch.body}  # `if TYPE_CHECKING:`
    place = path.relative_to(PACKAGE.parent).as_posix()
    for name, statement in imports_of(tree):
        if not any(place == file and name.startswith(prefix) for file, prefix in DEFERRED):
            assert id(statement) in top, f"{place}:{statement.lineno} hides an import of {name}"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_nothing_for_tests_alone_is_imported(path):
    names = {name.partition(".")[0] for name, _ in imports_of(ast.parse(path.read_text()))}
    assert names.isdisjoint(FORBIDDEN)


def test_modes_of_gradients_are_entered_twice():
    """`with recording(..) as again, again`: an interrupt may cut one exit short, and nothing else would switch back."""
    for path in FILES:
        for statement in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.With)):
            contexts = [ast.unparse(item.context_expr) for item in statement.items]
            for n, item in enumerate(statement.items):
                if contexts[n].partition("(")[0] in ("recording", "no_grad", "enable_grad", "set_grad_enabled"):
                    again = item.optional_vars and ast.unparse(item.optional_vars)
                    assert contexts[n + 1 : n + 2] == [again], f"{module_name(path)}:{statement.lineno}"
