"""The kernels that programs are made of compile for both architectures, and keep what they compute with in registers."""

import itertools
import re
from contextlib import contextmanager

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.codegen.cuda import binaries
from genesis.codegen.cuda.binaries import cubin, machine_code, names, toolchain
from genesis.codegen.cuda.emit import Team, emit_finish, emit_kernel
from genesis.codegen.cuda.geometry import team_of
from genesis.codegen.cuda.target import LARGE, SIMULATED
from genesis.execution import flush as execute
from genesis.lower.build import KernelCall
from genesis.runtime.kernel_cache import KernelCache
from tests.codegen.cuda.schedules import calls_of, lowered, program_of

pytest.importorskip("numba_cuda")
pytestmark = pytest.mark.skipif(SIMULATED, reason="the simulator compiles nothing")

OLDER, NEWER = (8, 0), (9, 0)


# ---- the kernels of programs ----


@contextmanager
def planned():
    """Collects the programs that are run inside, which NumPy computes."""
    programs, run = [], execute._run

    def collected(trace, source):
        if handles := execute.held_arrays(trace):
            programs.append(lowered(trace, handles))
        trace.eager = True
        return run(trace, source)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(execute, "_run", collected)
        yield programs
        execute.flush_all()


def functions(programs, row_teams):
    """The functions of all kernels of some programs, by their text; those that reduce rows once for each of some teams.

    Points that may be shared are by the last of them, and by the threads of columns.
    """
    kernels = {call.kernel.text: call.kernel for program in programs for call in calls_of(program)}
    together = {stage[0].kernel.text for program in programs for stage in program.schedule.stages
                if len(stage) > 1 and isinstance(stage[0], KernelCall)}
    found = {}
    for kernel in kernels.values():
        reduces = any(reduced for _, reduced in kernel.axes) and not any(i.name == "scatter" for i in kernel.instructions)
        teams = (Team("thread"),) if not reduces else row_teams if kernel.lane_is_reduced else (Team("column", LARGE),)
        is_shared = reduces and not kernel.has_totals and len(kernel.steps) == 1
        last = teams[-1]._replace(shared=is_shared)
        made = [emit_kernel(kernel, team) for team in (*teams[:-1], last)]
        made += [emit_finish(kernel, last)] if is_shared or kernel.has_totals else []
        made += [emit_kernel(kernel, teams[0], many=True)] if kernel.text in together and not kernel.has_totals else []
        found |= {function.source: function for function in made}
    return list(found.values())


def normal(*shape):
    return genesis.from_numpy(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


FLOATS = [
    "abs neg sign relu floor ceil trunc round sqrt rsqrt exp exp2", "expm1 log log2 log10 log1p sigmoid tanh erf erfc",
    "sin cos tan asin acos atan", "sinh cosh asinh acosh atanh isnan isinf isfinite",
]
PAIRS = ["add sub mul div maximum minimum eq lt", "pow atan2 floor_divide remainder fmod"]
WHOLE = ["add sub mul maximum minimum neg abs sign eq ge", "floor_divide remainder fmod bitwise_and bitwise_or bitwise_xor"
         " bitwise_not bitwise_left_shift bitwise_right_shift pow"]

ALONE = {"neg", "abs", "sign", "bitwise_not"}

# One of each kind of register that conversions go between.
KINDS = (genesis.float32, genesis.float64, genesis.float16, genesis.bfloat16, genesis.int64, genesis.uint8, genesis.bool)


def total(dtype, results):
    """Their sum, in one kernel, of which writing many results would be the greater part."""
    return sum(result.to(dtype) for result in results)


def elementwise():
    for dtype in (genesis.float32, genesis.float64, genesis.bfloat16):
        x, y = normal(9).to(dtype), normal(9).to(dtype)
        for row in FLOATS[{genesis.float32: slice(None), genesis.float64: slice(1, 3), genesis.bfloat16: slice(1)}[dtype]]:
            yield total(dtype, [getattr(genesis, name)(x) for name in row.split()])
        for row in PAIRS if dtype is not genesis.bfloat16 else ():  # which computes in float32
            yield total(dtype, [getattr(genesis, name)(x, y) for name in row.split()])
    for dtype in (genesis.float32, genesis.float64):
        z = genesis.complex(normal(9).to(dtype), normal(9).to(dtype)).clone()
        execute.flush_all()
        yield [z * z.conj() / (z + 1j), z.exp().abs(), z[::2].T.clone()]
    for dtype, rows in ((genesis.int64, WHOLE), (genesis.uint8, WHOLE[1:])):
        x = genesis.tensor([3, 4, 5], dtype=dtype)
        for row in rows:
            yield total(dtype, [getattr(genesis, name)(*[x] * (1 if name in ALONE else 2)) for name in row.split()])
    for source, others in itertools.groupby(itertools.permutations(KINDS, 2), lambda pair: pair[0]):
        x = genesis.tensor([1, 2, 3], dtype=source)
        yield [x.to(dtype) for _, dtype in others]


def reductions():
    x = normal(40, 30).to(genesis.bfloat16)
    yield F.softmax(x, 1), x.sum(0), x.sum()
    x = normal(4, 6, 8, 8).requires_grad_()
    weight = normal(6).requires_grad_()
    F.batch_norm(x, normal(6), normal(6), weight, weight, True).square().sum().backward()
    yield x.grad, weight.grad
    yield F.group_norm(x, 2, weight), F.rms_norm(normal(8, 8), (8,)), F.max_pool2d(x, 3, 2, 1), F.adaptive_avg_pool2d(x, 1)
    F.max_pool2d(x.relu(), 2).sum().backward()
    yield (x.grad,)
    y = normal(8, 10).requires_grad_()
    update = genesis.optim.RMSprop([y], centered=True)
    for loss in (F.huber_loss, F.kl_div, F.binary_cross_entropy_with_logits, F.smooth_l1_loss):
        loss(y, normal(8, 10)).backward()
    update.step()
    yield y, y.grad
    whole = genesis.tensor([[3, 4, 5], [1, 2, 3]])
    yield whole.sum(1), whole.amax(0), (whole > 2).any(1), (whole > 2).all(), whole.prod()


def usual():
    """Rows, columns, totals, gathers, scatters, draws."""
    x = normal(40, 30)
    yield F.softmax(x, 1), x.sum(0), x.sum()
    yield [F.layer_norm(x, (30,)), x.sum(1), x.amax(1), x.argmax(1)]
    yield x * 2 + 1, x.T + x.reshape(30, 40), x.argmin(0)
    table, where = normal(20, 6).requires_grad_(), genesis.tensor([1, 2, 2, 5])
    F.dropout(F.embedding(where, table), 0.5).sum().backward()
    yield (table.grad,)
    yield table.gather(1, where.reshape(4, 1)), table.T.flip(0) + 1, genesis.cat([table[:2], table[:3] * 2])
    yield genesis.rand(3, dtype=genesis.float64), genesis.randn(3), genesis.randn(3, dtype=genesis.float64)
    yield genesis.zeros(9, 4, dtype=genesis.int64).index_add(0, where, genesis.ones(4, 4, dtype=genesis.int64)),
    yield genesis.zeros(9, 4, dtype=genesis.float16).index_add(0, where, genesis.ones(4, 4, dtype=genesis.float16)),


def test_kernels_of_all_kinds_compile_for_both_architectures_without_spills():
    """In one test: what kernels call is compiled once in a process. Assembly for the older architecture serves the newer."""
    with planned() as programs:
        for tensors in usual():
            execute.flush_all()
            del tensors
    for function in functions(programs, (Team("warp"), Team("block", LARGE))):
        assert not machine_code(function, NEWER).spilled, function.source
    with planned() as programs:
        for tensors in itertools.chain(elementwise(), reductions()):
            execute.flush_all()
            del tensors
    for function in functions(programs, (Team("block"),)):
        assert not toolchain().link(ptx_for(function, OLDER), NEWER).spilled, function.source


def ptx_for(function, architecture):
    return toolchain().compile_ptx(function.source, function.name, function.parameters, names(), architecture)


def ptx_of(*tensors):
    """The assembly of the one kernel that computes pending tensors."""
    (call,) = calls_of(program_of(*tensors)[1])
    function = emit_kernel(call.kernel, team_of(call.kernel, call.extents, 132))
    return ptx_for(function, NEWER), function


def test_rows_are_folded_by_exchange_within_warps():
    ptx, function = ptx_of(F.softmax(normal(300, 100), 1))
    assert "shfl.sync" in ptx and "bar.sync" not in ptx, function.source
    ptx, function = ptx_of(F.softmax(normal(3, 5000), 1))
    assert "shfl.sync" in ptx and "bar.sync" in ptx, function.source


def test_arithmetic_of_float32_takes_no_double():
    x = normal(50, 60)
    for y in (x * 2 + x.exp().tanh(), F.gelu(x), F.layer_norm(x, (60,)), x.to(genesis.bfloat16) * 3, F.dropout(x, 0.1)):
        ptx, function = ptx_of(y)
        computed = re.sub(r"cvt\.rn\.f32\.f64", "", ptx)  # of numbers from Python, which are double
        assert not re.search(r"(add|mul|fma|div)\.(rn\.)?f64", computed), function.source


def test_sums_that_meet_are_atomic():
    target = genesis.zeros(50, 60).index_add(0, genesis.tensor([1, 2, 2]), normal(3, 60))
    (_, scatter) = calls_of(program_of(target)[1])
    function = emit_kernel(scatter.kernel, Team("thread"))
    ptx = ptx_for(function, OLDER)
    assert re.search(r"(atom|red)\.global\.add\.f32", ptx)


def test_one_thread_alone_writes_the_fault_record():
    for many in (False, True):
        (call,) = calls_of(program_of(normal(30)[genesis.tensor([1, 2])])[1])
        function = emit_kernel(call.kernel, Team("thread"), many)
        ptx = ptx_for(function, OLDER)
        assert re.search(r"atom\.(global\.)?cas\.b64", ptx)


def test_machine_code_is_kept_on_disk(tmp_path, monkeypatch):
    (call,) = calls_of(program_of(normal(30) * 2)[1])
    function = emit_kernel(call.kernel, Team("thread"))
    monkeypatch.setattr(binaries, "_cache", KernelCache(lambda: tmp_path))
    code = cubin(function, NEWER)
    monkeypatch.setattr(binaries, "toolchain", None)  # nothing is compiled any more
    assert cubin(function, NEWER) == code and code.startswith(b"\x7fELF") and function.name.encode() in code
