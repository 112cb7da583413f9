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
    "torch.distributions", "torch.autograd.functional",
)
SKIPPED = (
    "torch.testing.", "torch.ao.", "torch.onnx.", "torch.package.", "torch.contrib", "torch.nn.quant", "torch.nn.qat",
    "torch.nn.intrinsic", "torch.quantization", "torch.utils.data.datapipes", "torch.utils.bottleneck", "torch.utils.hipify",
    "torch.utils.model_dump", "torch.utils.viz", "torch.utils.serialization", "torch.utils.jit", "torch.bin",
    "torch.distributed.", "torch.fx.", "torch.export.", "torch.nativert", "torch.profiler.", "torch.utils.benchmark.",
    "torch.masked.", "torch.csrc",
)
DEEP = ("torch._inductor.", "torch.ao.", "torch.testing._", "torch._refs.", "torch._vendor.", "torch.bin", "torch._export.")
# What is counted: the public names of these modules, by their `__all__`.
COUNTED = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn",
    "torch.nn.utils.parametrize", "torch.nn.utils.parametrizations", "torch.nn.utils.prune", "torch.nn.attention",
    "torch.nn.parallel", "torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.autograd",
    "torch.autograd.functional", "torch.autograd.graph", "torch.autograd.forward_ad", "torch.func", "torch.linalg",
    "torch.special", "torch.fft", "torch.utils.data", "torch.utils.checkpoint", "torch.amp", "torch.random", "torch.testing",
    "torch.masked", "torch.signal.windows", "torch.compiler", "torch.overrides", "torch.distributions", "torch.nested",
    "torch.multiprocessing", "torch.hub", "torch.futures", "torch.distributed", "torch.cuda", "torch.accelerator", "torch.cpu",
    "torch.export", "torch.utils._pytree", "torch.serialization", "torch.library", "torch.utils.benchmark",
    "torch.distributed.checkpoint",
)
# What of them genesis lacks, by the reason: without PyTorch's C++ library most means nothing.
LACKING = {
    "objects of TorchScript's compiler: `torch.jit.script` returns the function itself": """
        AVG AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig BenchmarkExecutionStats Block
        BoolType BufferDict CallStack Capsule ClassType Code CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType
        ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext DeviceObjType DictType EnumType ErrorReport
        ExecutionPlan FatalError FileCheck FloatType FunctionSchema FutureType Gradient Graph GraphExecutorState IODescriptor
        InferredType IntType InterfaceType JITException ListType LiteScriptModule LockingLogger ModuleDict Node NoneType
        NoopLogger NumberType OperatorInfo OptionalType ParameterDict PyObjectType PyTorchFileReader PyTorchFileWriter RRefType
        SUM ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList
        ScriptListIterator ScriptMethod ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty
        SerializationStorageContext StaticModule StreamObjType StringType SymBoolType SymIntType TensorType ThroughputBenchmark
        TracingState TupleType Type UnionType Use Value cpp import_ir_module import_ir_module_from_buffer
        merge_type_from_type_comment parse_ir parse_schema parse_type_comment unify_type_list""",
    "its dispatcher, and counters of its autocast": """
        DispatchKey DispatchKeySet ExcludeDispatchKeyGuard autocast_decrement_nesting autocast_increment_nesting
        get_autocast_ipu_dtype get_autocast_xla_dtype set_autocast_ipu_dtype set_autocast_xla_dtype""",
    "kernels of other libraries by name, most of which its build for CPUs refuses too": """
        cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu
        cudnn_convolution_transpose cudnn_grid_sampler fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
        fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
        fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix miopen_batch_norm miopen_convolution
        miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss
        miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_linear_backward_weights mkldnn_max_pool2d
        mkldnn_max_pool3d mkldnn_rnn_layer native_norm saddmm""",
    "dtypes without operations, of fewer than 8 bits or two in a byte": """
        bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4
        uint5 uint6 uint7""",
    "quantized tensors: not built": """
        choose_qparams_optimized dequantize empty_quantized fused_moving_avg_obs_fake_quant int_repr q_per_channel_axis
        q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme quantize_per_channel quantize_per_tensor
        quantize_per_tensor_dynamic quantized_batch_norm quantized_gru_cell quantized_lstm_cell quantized_max_pool1d
        quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell quint2x4 quint4x2""",
    "arguments and parts of its process groups in C++": """
        AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions GatherOptions Logger
        ProcessGroupGloo ReduceOptions ReduceScatterOptions Reducer ScatterOptions""",
    "its allocators, streams of others, graphs and handles of CUDA's libraries": """
        CUDAGraph CUDAPluggableAllocator ExternalStream GreenContext MemPool caching_allocator_alloc caching_allocator_delete
        caching_allocator_disabled caching_allocator_enable can_device_access_peer change_current_allocator cudart
        current_blas_handle current_solver_handle get_stream_from_external get_sync_debug_mode graph graph_pool_handle jiterator
        memory_snapshot set_sync_debug_mode sparse tunable use_mem_pool""",
    "its exporter's graphs of ATen's operators": """
        Constraint CustomDecompTable ExportBackwardSignature FlatArgsAdapter ModuleCallEntry ModuleCallSignature
        UnflattenedModule default_decompositions load_compiled_function""",
    "other devices, and layouts of oneDNN": "ipu mtia xpu to_mkldnn is_distributed index get_capabilities validate_hpu_device",
    "parts of its operators' registry in C++, of its fake tensors, and kernels of Triton": """
        get_ctx get_kernel register_torch_dispatch wrap_triton""",
    "instructions counted by Valgrind, and generators of operands": """
        CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts FuzzedParameter FuzzedSparseTensor FuzzedTensor Fuzzer
        ParameterAlias""",
    "parts of its plans of checkpoints, and files of Hugging Face's: `safetensors` has functions": """
        BytesStorageMetadata ChunkStorageMetadata HuggingFaceStorageReader HuggingFaceStorageWriter LoadPlan Metadata
        QuantizedHuggingFaceStorageReader ReadItem SavePlan TensorStorageMetadata WriteItem
        load_sharded_optimizer_state_dict""",
    "not built": """
        ScalingType SwizzleType scaled_grouped_mm scaled_mm swap_in_optimizer_params_and_state NestedIOFunction
        allow_mutation_on_saved_tensors DefaultDeviceType GraphExecGroup StorageType register_package skip_data""",
}


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


def public(path: str) -> list[str]:
    """The public names of a module, or of `torch.Tensor`."""
    import torch

    if path == "torch.Tensor":
        return [name for name in dir(torch.Tensor) if name[0] != "_"]
    home = importlib.import_module(path)
    names = getattr(home, "__all__", None) or [
        name for name, value in vars(home).items() if not isinstance(value, types.ModuleType) and
        str(getattr(value, "__module__", "")).startswith("torch")]
    return sorted({name for name in names if name[0] != "_"})


def missing(path: str) -> list[str]:
    """What genesis lacks of a module's public names."""
    sys.path.insert(0, str(ROOT))
    from genesis.as_torch import finder

    return [name for name in public(path) if not finder.has(finder.source_of(path), path, name)]


def count(list_missing: bool) -> None:
    have_all = total_all = 0
    for path in COUNTED:
        total, lacking = len(public(path)), missing(path)
        have_all, total_all = have_all + total - len(lacking), total_all + total
        print(f"{path:34} {total - len(lacking):4} of {total:4}")
        if list_missing and lacking:
            print("    " + " ".join(lacking))
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
