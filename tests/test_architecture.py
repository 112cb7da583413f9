"""The floors of the house: imports run downwards only, at the top of a file, and never to what only tests may use."""

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import networkx

PACKAGE = Path(__file__).resolve().parent.parent / "genesis"
FILES = sorted(PACKAGE.rglob("*.py"))

# The floors, from the lowest up: folders and loose modules. A file imports from its own floor and those below it.
FLOORS = [
    "ir", "pytree", "runtime", "ops", "lower", "codegen", "tracing", "execution", "tensor", "autograd", "functions", "random",
    "quasirandom", "linalg", "special", "testing",
    "fft", "masked", "sparse", "nested", "array_api", "signal", "distributions", "utils", "nn", "ao", "optim", "amp",
    "backends", "func", "function", "cuda", "serialization", "capture", "shipping", "onnx", "distributed", "debug",
    "profiler", "", "oneflow", "as_torch", "__main__",
]
USERS = {  # modules that users import, and nothing else, lie loose
    "__init__", "__main__", "fft", "function", "linalg", "masked", "oneflow", "pytree", "quasirandom", "random", "special",
    "testing",
}
# What takes long to import waits until it is asked for: the first kernel to compile, the first graph drawn, a reference's
# special functions, the data loader's threads, the first CUDA device.
DEFERRED = {
    ("genesis/runtime/deferred.py", ""), ("genesis/runtime/moved_modules.py", ""),
    ("genesis/runtime/machine_code.py", "llvmlite.binding"), ("genesis/runtime/numba_compiler.py", "llvmlite.binding"),
    ("genesis/runtime/numba_compiler.py", "numba.core"), ("genesis/runtime/logs.py", "logging"),
    ("genesis/debug/graph.py", "networkx"), ("genesis/ops/rows.py", "scipy.special"),
    ("genesis/ir/dtypes.py", "ml_dtypes"), ("genesis/runtime/digest.py", "_blake2"), ("genesis/runtime/digest.py", "hashlib"),
    ("genesis/ops/fourier.py", "scipy.fft"),
    ("genesis/ops/lapack.py", "scipy.linalg"), ("genesis/codegen/cpu/lapack/routines.py", "scipy.linalg."),
    ("genesis/ops/solving.py", "scipy.linalg"),
    ("genesis/cuda/gpus.py", "pynvml"),
    ("genesis/distributed/mpi.py", "mpi4py"), ("genesis/utils/tensorboard.py", "tensorboard"),
    ("genesis/debug/cuda_probe.py", "cuda.pathfinder"),
    ("genesis/codegen/cuda/binaries.py", "genesis.codegen.cuda"),
    ("genesis/codegen/backend.py", "genesis.codegen.cuda.program"),
    ("genesis/runtime/cuda/__init__.py", "genesis.runtime.cuda.real"),
    ("genesis/runtime/cuda/__init__.py", "genesis.runtime.cuda.simulated"),
    ("genesis/runtime/cuda/cublas.py", "nvmath.bindings.cublas"), ("genesis/runtime/cuda/cublas.py", "cuda.pathfinder"),
}
FORBIDDEN = {"torch", "jax", "jaxlib", "sklearn", "matplotlib", "tqdm"}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in FILES}


def floor_of(module: str) -> int:
    return FLOORS.index((module + ".").split(".")[1])


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imports_of(tree: ast.AST) -> list[tuple[str, ast.stmt | ast.Call]]:
    """Every import, those for types alone and those by `import_module`, `import_whole` or `LazyNames` among them.

    A function that is `deferred` is imported for types beside it, which `test_deferred_functions_are_imported_for_types` sees.
    """
    found: list[tuple[str, ast.stmt | ast.Call]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            found.append((node.module or "", node))
            found += [(f"{node.module}.{alias.name}", node) for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "import_whole"):
            found.append((ast.literal_eval(node.args[0]) if isinstance(node.args[0], ast.Constant) else "", node))
        elif is_table(node):
            table = ast.literal_eval(node.args[1])
            found += [(f"{module}.{name}", node) for module, names in table.items() for name in names.split()]
    return found


def is_table(node: ast.AST) -> bool:
    """Whether it is a table of a package's names."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("LazyNames")


def test_every_folder_has_a_floor():
    assert {floor for floor in FLOORS if (PACKAGE / floor).is_dir()} - {""} == {
        folder.name for folder in PACKAGE.iterdir() if folder.is_dir() and folder.name != "__pycache__"
    }
    assert {path.stem for path in PACKAGE.glob("*.py")} == USERS


def imported_modules(path: Path) -> set[str]:
    """The modules of genesis that a file imports; a package on the way to a module of it does not count."""
    named = [name for name, _ in imports_of(tree_of(path)) if name in MODULES]
    return {name for name in named if not any(other.startswith(name + ".") for other in named)} - {module_name(path)}


def test_no_import_closes_a_circle():
    arrows = networkx.DiGraph([(module_name(path), name) for path in FILES for name in imported_modules(path)])
    assert [sorted(circle) for circle in networkx.strongly_connected_components(arrows) if len(circle) > 1] == []


def test_imports_run_downwards():
    assert [f"{module_name(path)} imports {name}, which stands above it" for path in FILES for name in imported_modules(path)
            if floor_of(name) > floor_of(module_name(path))] == []


def test_imports_are_in_order():
    """As by ruff's rule, which would give each name of a long import a line: modules by name, each once; constants before
    classes before others."""
    def place(name):
        kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
        return kind, [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", name.lower())], name

    for path in FILES:
        imports = [node for node in tree_of(path).body if isinstance(node, ast.ImportFrom) and node.module != "__future__"]
        own = [node.module for node in imports if node.module.startswith("genesis.")]
        assert path.name == "__init__.py" or own == sorted({*own}), path
        for names in [[alias.name for alias in node.names] for node in imports]:
            assert path.name == "__init__.py" or names == sorted(names, key=place), (path, names)


def test_imports_stand_at_the_top():
    """At the top, too, is declared what waits until it is asked for: names of a package by `LazyNames`, functions that a file
    calls by `deferred`. So an import of genesis reads no compiler, no derivation and no layers, and no function imports."""
    hidden = []
    for path in FILES:
        tree, place = tree_of(path), path.relative_to(PACKAGE.parent).as_posix()
        top = {id(statement) for statement in tree.body}
        for branch in (s for s in tree.body if isinstance(s, ast.If | ast.With)):
            top |= {id(statement) for statement in branch.body}  # `if TYPE_CHECKING:`, and with the collector paused
        hidden += [
            f"{place}:{statement.lineno} hides an import of {name}" for name, statement in imports_of(tree)
            if id(statement) not in top and not is_table(statement)
            and not any(place == file and name.startswith(prefix) for file, prefix in DEFERRED)
        ]
    assert hidden == []


def test_deferred_functions_are_imported_for_types():
    """So the floors are those of all imports, and type checkers know what is called."""
    for path in FILES:
        found = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
        calls = {ast.unparse(call) for call in found if ast.unparse(call.func) == "deferred"}
        for branch in (s for s in tree_of(path).body if isinstance(s, ast.If)):
            typed = [(s.module, alias) for s in branch.body if isinstance(s, ast.ImportFrom) for alias in s.names]
            deferring = [(alias.asname or alias.name, f"deferred({module!r}, {alias.name!r})") for module, alias in typed]
            beside = {f"{name} = {call}": call for name, call in deferring}
            calls -= {beside.get(ast.unparse(statement)) for statement in branch.orelse}
        assert calls == set(), f"{module_name(path)} defers what it does not import for types in the same place"


def test_nothing_for_tests_alone_is_imported():
    assert [f"{module_name(path)} imports {name}" for path in FILES for name, _ in imports_of(tree_of(path))
            if name.partition(".")[0] in FORBIDDEN] == []


def test_the_library_switches_gradients_by_grad_mode():
    """An interrupt can skip the exits of the public modes, which are Python, and nothing else would switch back."""
    public = {"no_grad", "enable_grad", "set_grad_enabled", "inference_mode"}
    entered = [(path, item.context_expr) for path in FILES for statement in ast.walk(tree_of(path))
               if isinstance(statement, ast.With) for item in statement.items]
    assert [f"{module_name(path)}:{context.lineno}" for path, context in entered if isinstance(context, ast.Call)
            and ast.unparse(context.func).rpartition(".")[2] in public] == []


def test_files_of_tests_have_names_of_their_own():
    """Pytest imports those of folders that are no packages by their names alone."""
    files = (PACKAGE.parent / "tests").rglob("test_*.py")
    names = Counter(path.name for path in files if not path.with_name("__init__.py").exists())
    assert [name for name, count in names.items() if count > 1] == []
