"""PyTorch's public names: writes the door's list of them, and counts how many genesis has.

    python tools/torch_names.py --write      the names of the installed PyTorch -> genesis/as_torch/names.txt, and where it
                                             defines its classes -> genesis/as_torch/classes.txt
    python tools/torch_names.py              have / total of each namespace
    python tools/torch_names.py --missing    and what is missing
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import sys
import types
import typing
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "genesis" / "as_torch" / "names.txt"
CLASSES = LIST.with_name("classes.txt")
PRIVATE = (  # modules whose names are listed though PyTorch does not document them: public code imports them
    "torch._jit_internal", "torch.utils._pytree", "torch.utils._python_dispatch", "torch.utils.data._utils",
    "torch.utils.data._utils.collate", "torch.optim._functional", "torch.nn._reduction", "torch.fx.node", "torch.fx.graph",
    "torch.fx.graph_module", "torch.fx.proxy", "torch.fx.interpreter", "torch.func", "torch.export", "functorch",
)
WITH_PRIVATE = (
    "torch.nn.", "torch.optim", "torch.utils.data", "torch.utils._pytree", "torch._jit_internal", "torch.jit",
    "torch.distributions",
)
SKIPPED = (
    "torch.testing.", "torch.ao.", "torch.onnx.", "torch.package.", "torch.contrib", "torch.nn.quant", "torch.nn.qat",
    "torch.nn.intrinsic", "torch.quantization", "torch.utils.data.datapipes", "torch.utils.bottleneck", "torch.utils.hipify",
    "torch.utils.model_dump", "torch.utils.viz", "torch.utils.serialization", "torch.utils.jit", "torch.bin",
    "torch.distributed.", "torch.fx.", "torch.export.", "torch.nativert", "torch.profiler.", "torch.utils.benchmark.",
    "torch.masked.", "torch.csrc",
)
DEEP = ("torch._inductor.", "torch.ao.", "torch.testing._", "torch._refs.", "torch._vendor.", "torch.bin", "torch._export.")
# What is counted: the namespaces of a training script. Complex, sparse, quantized and distributed names are no part of it.
COUNTED = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn",
    "torch.nn.utils.parametrize", "torch.nn.utils.parametrizations", "torch.nn.utils.prune", "torch.nn.attention",
    "torch.nn.parallel", "torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.autograd",
    "torch.autograd.functional", "torch.autograd.graph", "torch.autograd.forward_ad", "torch.func", "torch.linalg",
    "torch.special", "torch.fft", "torch.utils.data", "torch.utils.checkpoint", "torch.amp", "torch.random", "torch.testing",
    "torch.masked", "torch.signal.windows", "torch.compiler", "torch.backends", "torch.serialization", "torch.overrides",
)
LEFT_OUT = re.compile(
    r"complex|conj|chalf|cfloat|cdouble|imag$|imag_|^real$|view_as_real|sparse|Sparse|crow_|ccol_|col_indices|row_indices|"
    r"coalesce|^indices$|^values$|dense_dim|to_dense|to_mkldnn|mkldnn|miopen|cudnn|quant|qint|quint|^q_|qscheme|QUInt|QInt|"
    r"^fbgemm|^nested|Nested|^sym_|Sym|Stream|Type$|Storage|^Py|^vitals|^cuda|CUDA|xpu|XPU|hpu|mtia|MTIA|ipu|maia|vulkan|"
    r"metal|^xla|mps|^import_|^get_file|^fork|^wait$|^read_vital|^set_vital|^merge_type|^parse_|^unify|^classproperty|"
    r"^USE_|^autocast_(inc|dec)|autocast_.*_dtype|^is_vulkan|_functional_|^functional_|^compiled_with|AliasDb|Argument$|"
    r"BenchmarkConfig|^Call|^Code$|^Const|^Dict|^Disp|^Exec|^File|^Float|^Graph|^IO|^Inf|^IODesc|^Lite|^Lock|^Logg|"
    r"^Module|^OptionalT|^Operator|^Scr|^Serial|^Sched|^Thro|^Trac|^Union|^Use$|^Value|^AnyT|^Await|^Block$|^Bool|^Bytes|"
    r"^Deep|^Dev|^Enum|^Event$|^Fatal|^Gradient|^Int|^List|^Node$|^None|^Num|^Rref|^RRef|^Str|^Tuple|^Tensor[A-Z]|^Var|"
    r"^Capsule|^Class|^Comp|^Exc|^Fun[a-z]+Schema|^Func[a-z]*Type|^Interface|^JIT|^aot|^cpp$|^fx$|^jit|^onnx|^package|"
    r"^profiler|^quasi|^rename|^refine_names|^names$|align_|^has_names|^Deserial|^legacy|^layout$|^BFloat.*Storage|"
    r"^_|to_padded_tensor|^hub$|^library$|^ops$|^classes$|^contig|^preserve|^channels|strided$|^jagged|^int[1-7]$|^uint[1-7]$|"
    r"^bits|^float8|^float4|packed|cond$|^while_loop|distributed|Distributed|^export$|^hspmm|^saddmm|^sspaddmm|^smm$|^dsmm$|^spmm"
)


def modules() -> list[str]:
    import torch

    found = ["torch", *PRIVATE]
    for module in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
        if not module.name.startswith(SKIPPED) and not any(part.startswith("_") for part in module.name.split(".")[1:]):
            found.append(module.name)
    return sorted({*found, *(name.rpartition(".")[0] for name in found if "." in name), "torch.linalg", "torch.special"})


def shown(name: str, value: object) -> bool:
    """Whether a name of a module is PyTorch's: no module or type of the standard library."""
    if name.startswith("__") or not name.isidentifier() or value is typing.Any or name == "TYPE_CHECKING":
        return False
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("torch.")
    home = str(getattr(value, "__module__", None) or "torch").partition(".")[0]
    return home == "builtins" or home not in {*sys.stdlib_module_names, "typing_extensions"}


def lines() -> list[str]:
    import torch

    made = [f"version {torch.__version__.partition('+')[0]}"]
    for path in modules():
        try:
            module = importlib.import_module(path)
        except Exception:
            continue
        private = not path.startswith(WITH_PRIVATE)
        names = {name for name, value in [*vars(module).items()] if shown(name, value) and not (private and name[0] == "_")}
        names |= {name for name in getattr(module, "__all__", ()) if not (private and name[0] == "_")}
        made.append(f"{path} {' '.join(sorted(names))}".rstrip())
    listed = {line.split()[0] for line in made}
    paths = {module.name for module in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None)}
    paths |= {"torch.utils.tensorboard", "torch._C._functorch"}
    unlisted = {path for path in paths - listed if not path.startswith(DEEP)}
    made.append(f"unlisted {' '.join(sorted(unlisted))}")
    made.append(f"torch.Tensor {' '.join(sorted(name for name in dir(torch.Tensor) if name[0] != '_'))}")
    return made


def classes() -> list[str]:
    """A module and the classes that it defines on each line: of those that genesis has."""
    sys.path.insert(0, str(ROOT))
    from genesis.as_torch import finder

    defined: dict[str, set[str]] = {}
    for path in modules():
        module = sys.modules.get(path)
        for kind in [*vars(module).values()] if module is not None else ():
            home, name = (kind.__module__, kind.__qualname__) if isinstance(kind, type) else ("", "")
            if home.startswith("torch") and not home.startswith("torch.jit") and isinstance(finder.look_up(home, name), type):
                defined.setdefault(home, set()).add(name)
    return [f"{home} {' '.join(sorted(names))}" for home, names in sorted(defined.items())]


def count(list_missing: bool) -> None:
    sys.path.insert(0, str(ROOT))
    from genesis.as_torch import finder, names

    have_all = total_all = 0
    for path in COUNTED:
        here = finder.source_of(path)
        wanted = [name for name in sorted(names.names_of(path)) if not LEFT_OUT.search(name)]
        wanted = [name for name in wanted if finder.is_module(f"{path}.{name}") or f"{path}.{name}" not in names.modules()]
        missing = [name for name in wanted if not finder.has(here, path, name)]
        have_all, total_all = have_all + len(wanted) - len(missing), total_all + len(wanted)
        print(f"{path:34} {len(wanted) - len(missing):4} of {len(wanted):4}")
        if list_missing and missing:
            print("    " + " ".join(missing))
    print(f"{'all':34} {have_all:4} of {total_all:4}  {have_all / total_all:.1%}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--missing", action="store_true")
    given = parser.parse_args()
    if given.write:
        LIST.write_text("\n".join(lines()) + "\n")
        CLASSES.write_text("\n".join(classes()) + "\n")
    else:
        count(given.missing)
