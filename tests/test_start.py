"""What a process that imports genesis reads, and what waits until it is asked for."""

import subprocess
import sys

import pytest

import genesis

LATER = {  # modules that no `import genesis` reads
    "genesis.amp", "genesis.array_api", "genesis.capture", "genesis.cuda", "genesis.debug", "genesis.distributions",
    "genesis.func", "genesis.nested", "genesis.nn", "genesis.optim", "genesis.runtime.cuda", "genesis.serialization",
    "genesis.utils", "genesis.codegen.cpu.native_operations", "genesis.codegen.cpu.lapack", "ml_dtypes", "scipy", "networkx",
    "importlib.metadata", "multiprocessing", "numpy.random", "numpy.polynomial", "numpy.typing", "html", "secrets",
}
COMPILER = {  # what the first computation reads, or the first backward, or the first kernel that is not found
    "genesis.autograd.backward_pass", "genesis.autograd.function", "genesis.autograd.gradients", "genesis.autograd.graph",
    "genesis.codegen", "genesis.lower", "genesis.runtime.collectives", "genesis.runtime.kernel_cache", "genesis.runtime.native",
    "genesis.runtime.team", "genesis.codegen.cpu.emit", "llvmlite", "llvmlite.binding", "numba", "hashlib", "subprocess",
}
EMITTERS = {  # what a first computation does not read if its kernels are found
    "genesis.codegen.cpu.emit", "genesis.codegen.cpu.ir", "genesis.codegen.cpu.product.driver", "numba",
    "hashlib", "json", "subprocess",
}
FIRST = [  # what a program may ask for before anything else
    "genesis.dropout", "genesis.ops.gumbel_softmax", "genesis.native_layer_norm", "genesis.nn.functional.relu",
    "genesis.compile", "genesis.utils.data.DataLoader", "genesis.vmap", "genesis.zeros(2).__array_namespace__().ones",
    "genesis.distributions.Normal", "genesis.ops.register_function('one_hot', abs) or genesis.one_hot", "genesis.debug.graph",
    "genesis.backends.cudnn.is_available", "pickle.loads(b'cgenesis.nn.linear\\nLinear\\n.')", "genesis.doctor",
    "genesis.set_float32_matmul_precision", "genesis.nested.nested_tensor", "genesis.autograd.gradcheck",
    "genesis.zeros(2).register_hook", "genesis.zeros(2).to_padded_tensor", "genesis.autograd.function.Function",
]


def printed(program: str) -> str:
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_an_import_reads_what_every_program_needs_and_no_more():
    assert {*printed("import sys, genesis; print(*sys.modules)").split()} & (LATER | COMPILER) == set()


def test_the_collector_goes_on_after_an_import():
    assert printed("import gc, genesis; print(gc.isenabled())") == "True\n"
    assert printed("import gc; gc.disable(); import genesis; print(gc.isenabled())") == "False\n"
    fails = "sys.modules['genesis.sparse'] = None\ntry: import genesis\nexcept ImportError: print(gc.isenabled())"
    assert printed(f"import gc, sys; {fails}") == "True\n"


def test_what_an_import_has_made_is_not_scanned_by_the_collector():
    looks = "young = []; gc.callbacks.append(lambda phase, info: young.append(len(gc.get_objects(0))))"
    counted = printed(f"import gc, numpy; {looks}; import genesis; gc.callbacks.clear(); print(max(young, default=0))")
    assert int(counted) < 5000


def test_a_computation_reads_no_layers_and_no_capture():
    computed = printed("import sys, genesis; (genesis.ones(3, requires_grad=True) + 1).sum().backward(); print(*sys.modules)")
    assert {*computed.split()} & LATER == set()


def test_kernels_that_are_found_are_not_written_again():
    program = "import sys, genesis; print((genesis.ones(3) + 0.125).sum().item(), *sys.modules)"
    printed(program)
    result, *modules = printed(program).split()
    assert result == "3.375" and {*modules} & EMITTERS == set()


def test_a_name_is_found_whatever_was_asked_for_before():
    program = f"""
import os, pickle, genesis
for first in {FIRST}:
    if not (child := os.fork()):
        os._exit(not callable(eval(first)))
    print(first if os.waitpid(child, 0)[1] else "")
"""
    assert printed(program).split() == []


def test_a_name_that_is_none_stays_none():
    with pytest.raises(AttributeError, match="module 'genesis' has no attribute 'no_such_name'"):
        genesis.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'genesis\.utils' has no attribute 'no_such_name'"):
        genesis.utils.no_such_name  # noqa: B018


def test_names_that_wait_are_shown():
    shown = printed("import genesis; print(*dir(genesis))").split()
    assert {"nn", "optim", "compile", "load", "vmap", "dropout", "native_layer_norm"} <= {*shown}


def test_a_compiled_function_may_be_what_reads_a_module_first():
    told = printed("""
import genesis
f = genesis.compile(lambda x: genesis.fft.fft(x).real + genesis.nn.functional.softplus(x))
x = genesis.ones(4)
assert len({str(f(x).tolist()) for _ in range(4)}) == 1
print(genesis.debug.explain(f, x))
""")
    assert "is replayed" in told
