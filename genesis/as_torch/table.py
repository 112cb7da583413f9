"""The table of genesis' objects behind each module of PyTorch, and behind single names.

A module exports the attributes of its sources, in order, restricted to PyTorch's names. `path.*` means the path and all its
submodules. Single names take precedence over sources.
"""

from __future__ import annotations

import enum
import functools
import io
import math
import multiprocessing
import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import genesis
import genesis.optim.lr_scheduler.scheduler as scheduler
import genesis.utils.data as data
from genesis import (
    amp, ao, autograd, cuda, distributed, distributions, func, nested, nn, optim, random, signal, sparse,
)
from genesis.ao import observers
from genesis.ao.nn import quantized
from genesis.as_torch import fx, stand_ins
from genesis.as_torch.names import modules, names_of
from genesis.as_torch.stand_ins.settings import Settings, always, no, no_effect, nothing
from genesis.autograd import hooks
from genesis.autograd.custom import Context
from genesis.distributed import fully_sharded, fully_sharded_settings, rendezvous, wrapping
from genesis.distributed.tensor.dtensor import DTensor
from genesis.functions.random_draws import drawn_by_host
from genesis.ir.named_layouts import NamedLayout
from genesis.nn import functional, init, parallel, parameter as nn_parameter, state, utils
from genesis.runtime import dlpack
from genesis.runtime.devices import CPU
from genesis.serialization.names import Builder, functions_of
from genesis.sparse import products
from genesis.tensor import return_types
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size
from genesis.tracing.state import thread_state

Source = Any  # a module, a class or any object with attributes


SAME = """
    autograd.forward_ad autograd.functional backends backends.cuda backends.cudnn backends.mha backends.mps
    distributed.checkpoint.state_dict distributed.checkpoint.stateful distributions distributions.constraint_registry
    distributions.constraints distributions.utils fft func linalg nested nn nn.functional nn.grad nn.init nn.utils.prune
    nn.utils.rnn optim.lr_scheduler optim.swa_utils profiler quasirandom signal signal.windows sparse special testing
"""  # modules that genesis has under the same name
BESIDE = "amp cuda masked serialization utils.checkpoint"  # those that have names of PyTorch's alone too, in a stand-in
ALONE = """accelerator compiler cpu hub library overrides utils._contextlib utils.flop_counter utils.tensorboard utils.weak
"""  # those that a stand-in alone serves

MODULES: dict[str, tuple[Source, ...]] = {
    **{f"torch.{name}": (attrgetter(name)(genesis),) for name in SAME.split()},
    **{f"torch.{name}": (attrgetter(name)(genesis), getattr(stand_ins, name.split(".")[-1])) for name in BESIDE.split()},
    **{f"torch.{name}": (getattr(stand_ins, name.split(".")[-1]),) for name in ALONE.split()},
    "torch": (
        genesis, stand_ins.tensor_types, stand_ins.torch, stand_ins._VF, stand_ins.torch_state, distributed.futures, amp, cuda),
    "torch.futures": (distributed.futures,),
    "torch.storage": (stand_ins.torch_state,),
    "torch.utils.model_zoo": (stand_ins.hub,),
    "torch.utils.benchmark.*": (stand_ins.benchmark, stand_ins.benchmark_compare),
    "torch.torch_version": (stand_ins.torch_state,),
    "torch.windows": (signal.windows,),
    "torch.return_types": (return_types,),
    "torch.functional": (genesis,),
    "torch._VF": (genesis, stand_ins._VF),
    "torch._tensor": (genesis,),
    # ---- networks ----
    "torch.utils.data._utils.collate": (data.collate,),
    "torch.nn.modules.*": (nn,),
    "torch.nn.modules.module": (nn, nn.hooks),
    "torch.nn.modules.utils": (stand_ins.nn,),
    "torch.nn.common_types": (genesis,),
    "torch.nn.parameter": (nn, nn_parameter),
    **{f"torch.nn.parallel{path}": (parallel, nn, distributed) for path in ("", ".distributed")},
    "torch.nn.parallel.*": (parallel, nn),
    "torch.nn.utils": (utils, nn),
    "torch.nn.utils.*": (utils,),
    "torch.nn.utils.parametrize": (utils.parametrize, nn),
    "torch.nn.utils.parametrizations": (utils.parametrizations, nn, utils),
    "torch.nn.utils.weight_norm": (utils.normed_weights,),
    "torch.nn.utils.spectral_norm": (utils.normed_weights,),
    "torch.nn.utils.stateless": (func,),
    "torch.nn.attention.bias": (stand_ins.nn,),
    "torch.nn.attention.experimental": (Settings(),),
    "torch.nn.attention.flex_attention": (nn.flex_attention,),
    **{f"torch.{path}quantization{part}": (ao.quantization,) for path in ("", "ao.") for part in (
        "", ".observer", ".fake_quantize")},
    **{f"torch.{path}nn.quantized.dynamic": (ao.nn.quantized.dynamic,) for path in ("", "ao.")},
    "torch.optim.*": (optim,),
    # ---- gradients ----
    "torch.autograd": (autograd, stand_ins.overrides, stand_ins.autograd),
    "torch.autograd.*": (autograd,),
    "torch.autograd.functional.fwAD": (autograd.forward_ad,),
    "torch.autograd.graph": (autograd.graph, stand_ins.autograd),
    "torch.autograd.profiler": (genesis.profiler, stand_ins.autograd),
    "torch._functorch": (func,),
    "functorch": (func,),  # an older name of both
    # ---- mathematics ----
    "torch.masked.maskedtensor": (stand_ins.masked,),
    "torch.signal.windows.windows": (signal.windows,),
    "torch.random": (random, stand_ins.torch, stand_ins.torch_state),
    "torch.distributions.*": (distributions, distributions.composed, distributions.utils, functional, math),
    "torch.distributions.kl": (distributions.kl, distributions, math),
    "torch.distributions.transforms": (distributions.transforms, distributions, distributions.utils, functional),
    # ---- data and files ----
    "torch.utils.data.*": (data, stand_ins.datapipes),
    "torch.utils.dlpack": (genesis, dlpack),
    "torch.utils.tensorboard.writer": (stand_ins.tensorboard,),
    "torch.utils.hooks": (hooks,),
    "torch.utils._pytree": (stand_ins._pytree, stand_ins._pytree_nodes),
    # ---- devices ----
    "torch.amp.*": (amp,),
    "torch.cuda.graphs": (stand_ins.cuda,),
    "torch.cuda.nvtx": (stand_ins.cuda.ranges,),
    "torch.cuda.profiler": (stand_ins.cuda.profiling,),
    "torch.cuda.nccl": (stand_ins.cuda.communication,),
    "torch.cuda.amp.*": (cuda.amp, amp, stand_ins.amp),
    "torch.cuda.memory": (cuda,),
    "torch.cuda.random": (cuda,),
    "torch.cuda.streams": (cuda,),
    "torch.cpu.amp": (amp,),
    **{f"torch.backends.{name}": (stand_ins.backends.Library,) for name in stand_ins.backends.LIBRARIES},
    "torch.multiprocessing": (stand_ins.multiprocessing, multiprocessing),
    "torch.multiprocessing.spawn": (stand_ins.multiprocessing,),
    **{f"torch.distributed{path}": (distributed, stand_ins.distributed) for path in ("", ".distributed_c10d")},
    **{f"torch.distributed.fsdp{path}": (distributed.fsdp, fully_sharded, fully_sharded_settings, wrapping) for path in (
        "", ".api", ".fully_sharded_data_parallel", ".wrap")},
    **{f"torch.distributed.pipelining{path}": (distributed.pipelining,) for path in ("", ".schedules", ".stage")},
    "torch.distributed._composable.fsdp": (distributed.fsdp,),
    **{f"torch.distributed.optim{path}": (distributed.optim,) for path in ("", ".zero_redundancy_optimizer")},
    "torch.distributed.device_mesh": (distributed,),
    **{f"torch.distributed.checkpoint{path}": (distributed.checkpoint,) for path in (
        "", ".state_dict_saver", ".state_dict_loader", ".filesystem", ".default_planner", ".planner", ".storage", ".api")},
    **{f"torch.distributed.tensor{path}": (distributed.tensor,) for path in ("", ".experimental", ".placement_types")},
    "torch.distributed.tensor.parallel.*": (distributed.tensor.parallel,),
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks": (distributed.communication_hooks,),
    **{f"torch.distributed.nn{path}": (distributed.nn.functional,) for path in ("", ".functional")},
    "torch.distributed.elastic.multiprocessing.errors": (stand_ins.distributed_run,),
    # ---- compilers ----
    "torch._dynamo.*": (stand_ins.compiler,),
    "torch.jit": (stand_ins.compiler,),
    "torch.export.*": (stand_ins.export,),
    "torch.fx": (fx,),
    "torch.fx.graph": (fx.graph, fx),
    "torch.fx.*": (fx, fx.node, fx.proxy, fx.tracer),
    "torch.fx.passes.shape_prop": (fx.shape_prop,),
    "torch.utils._python_dispatch": (stand_ins.overrides,),
    "torch._C": (stand_ins.overrides,),
    "torch.version": (Settings(cuda=None, hip=None, xpu=None, debug=False, git_version="genesis"),),
    "torch.types": (genesis,),
}

EVERYTHING = {  # modules that export all names of their sources
    "torch.multiprocessing", "torch.backends.cudnn", "torch.backends.cuda", "torch.backends.mps",
    *[f"torch.backends.{name}" for name in stand_ins.backends.LIBRARIES],
    *[f"torch.distributions.{name}" for name in ("constraints", "kl", "transforms", "utils")],
}

COMMON: dict[str, Any] = {  # names in many of PyTorch's modules
    "Tensor": Tensor, "Parameter": nn.Parameter, "Module": nn.Module, "Optimizer": optim.Optimizer, "Size": Size,
    "RemovableHandle": hooks.RemovableHandle, "device": genesis.device, "dtype": genesis.dtype,
    **{name: getattr(stand_ins.nn, name) for name in (
        "_single", "_pair", "_triple", "_quadruple", "_ntuple", "_reverse_repeat_tuple")},
}


class SDPBackend(enum.Enum):
    """Attention backends: genesis has a single one."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = range(-1, 5)


_inductor_settings, _functorch_settings = Settings(), Settings()

ALIKE: dict[Source, str] = {  # names whose last part is an attribute of the source
    stand_ins.compiler: "compile fork jit.Final wait",
    stand_ins.hub: "hub.HASH_REGEX hub._get_torch_home hub.urlparse",
    stand_ins.overrides: """DisableTorchFunction DisableTorchFunctionSubclass nn.functional.handle_torch_function
        nn.functional.has_torch_function nn.functional.has_torch_function_unary nn.functional.has_torch_function_variadic""",
    stand_ins._utils: """_C._nn._parse_to _utils._flatten_dense_tensors _utils._unflatten_dense_tensors
        nn.utils.parametrize.is_traceable_wrapper_subclass utils._foreach_utils._group_tensors_by_device_and_dtype
        utils._python_dispatch.is_traceable_wrapper_subclass""",
    stand_ins.nn: """nn._reduction.get_enum nn.init._calculate_correct_fan nn.init._calculate_fan_in_and_fan_out
        nn.modules.loss._Loss nn.modules.loss._WeightedLoss nn.modules.transformer._get_activation_fn
        nn.modules.transformer._get_clones""",
    stand_ins.optim: "optim.lbfgs._cubic_interpolate optim.lbfgs._strong_wolfe",
    products: "hspmm smm sspaddmm",
    stand_ins._VF: "_convert_indices_from_coo_to_csr _softmax_backward_data nn.functional.native_channel_shuffle",
}

NAMES: dict[str, Any] = {
    **{f"torch.{path}": getattr(source, path.rpartition(".")[2]) for source, paths in ALIKE.items() for path in paths.split()},
    "torch.AcceleratorError": RuntimeError,
    "torch.autograd._is_checkpoint_valid": lambda: True,
    "torch.__config__": Settings(show=lambda: "PyTorch's names, of genesis"),
    "torch._subclasses.fake_tensor.is_fake": no,
    "torch.profiler.kineto_available": no,
    "torch._C._log_api_usage_once": nothing,
    "torch.distributed.rpc.api._require_initialized": stand_ins.distributed._require_initialized,
    "torch._C._are_functorch_transforms_active": lambda: thread_state.deferred,
    "torch._C._functorch.is_batchedtensor": no,  # no transform wraps tensors here
    "torch._C._functorch.get_unwrapped": lambda tensor: tensor,
    "torch.utils.data.dataloader._collate_fn_t": Callable[[list[Any]], Any],
    "torch.onnx.OperatorExportTypes": enum.IntEnum(
        "OperatorExportTypes", ["ONNX", "ONNX_ATEN", "ONNX_ATEN_FALLBACK", "ONNX_FALLTHROUGH"], start=0),
    "torch.onnx.TrainingMode": enum.IntEnum("TrainingMode", ["EVAL", "PRESERVE", "TRAINING"], start=0),
    **{f"torch.nn.init._no_grad_{name}": function for name, function in {
        "uniform_": init.uniform_, "normal_": init.normal_, "trunc_normal_": init.trunc_normal_, "fill_": init.constant_,
        "zero_": init.zeros_}.items()},
    "torch.utils.data._utils.collate.np_str_obj_array_pattern": re.compile("[SaUO]"),
    "torch.nn.modules.module._IncompatibleKeys": state.IncompatibleKeys,
    **{f"torch.nn.modules.module._global_{kind}_hooks": MappingProxyType({}) for kind in (  # global hooks: there are none
        "forward", "forward_pre", "backward", "backward_pre", "parameter_registration", "buffer_registration",
        "module_registration")},
    "torch.distributed.rendezvous": rendezvous.rendezvous,
    "torch.distributed._tensor.experimental.implicit_replication": distributed.tensor.implicit_replication,
    "torch.cuda._lazy_call": lambda callable, **options: callable() if cuda.is_available() else None,
    "torch._C._get_tracing_state": nothing,
    "torch._C._is_tracing": no,
    "torch._dynamo.utils.is_compile_supported": lambda device_type: True,
    "torch.fx.experimental.proxy_tensor.get_proxy_mode": nothing,
    "torch._utils._get_device_index": lambda device, optional=False, allow_cpu=False: getattr(device, "index", device) or 0,
    "torch._vmap_internals._vmap": func.vmap,
    **{f"torch.nn.common_types.{name}": kind for name, kind in stand_ins.nn.COMMON_TYPES.items()},
    "torch.types._size": Sequence[int], "torch.types._int": int, "torch.types._float": float, "torch.types._bool": bool,
    "torch.types._dtype": genesis.DType, "torch.types._device": genesis.device, "torch.types._TensorOrTensors": Tensor,
    "torch.types.Number": int | float | bool, "torch.types.Device": genesis.device | str | int | None,
    **{f"torch.{name}": check for name, check in stand_ins._utils.CHECKS.items()},
    **{f"torch.optim.optimizer.{name}": value for name, value in stand_ins.optim.OPTIMIZER.items()},
    "torch.autograd.function.FunctionCtx": Context,
    "torch.distributed._tensor.DTensor": DTensor,
    "torch.legacy_contiguous_format": stand_ins.tensor_types.contiguous_format,
    "torch.backends.cuda.is_built": no,
    "torch._C._get_accelerator": lambda: CPU,
    "torch._inductor.cudagraph_mark_step_begin": nothing,
    "torch.xpu.device_count": always(0),
    **{f"torch.xpu.{name}": nothing for name in ("empty_cache", "synchronize", "manual_seed", "manual_seed_all")},
    "torch.quint8": genesis.uint8,
    "torch.qint32": genesis.int32,
    "torch.qscheme": observers.qscheme,
    **{f"torch.{name}": getattr(observers, name) for name in (
        "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "per_channel_affine", "per_channel_symmetric",
        "per_tensor_affine", "per_tensor_symmetric")},
    **{f"torch{path}.FloatFunctional": quantized.FloatFunctional for path in (
        ".nn.quantized", ".ao.nn.quantized", ".nn.quantized.modules.functional_modules")},
    **{f"torch.{name}": function for name, function in stand_ins.foreach.FOREACH.items()},
    **{f"torch.nn.modules.{path}": kind for path, kind in stand_ins.nn.BASES.items()},
    **{f"torch.fx.graph_module.{name}": getattr(fx.graph_module, name) for name in (
        "_CodeOnlyModule", "_copy_attr", "_USER_PRESERVED_ATTRIBUTES_KEY")},
    "torch.fx.node.Target": fx.node.Target, "torch.fx.node.Argument": fx.node.Argument,
    **{f"torch._C.{name}": nothing for name in (
        "_jit_set_profiling_mode", "_jit_set_profiling_executor", "_jit_override_can_fuse_on_gpu", "_jit_set_nvfuser_enabled",
        "_jit_override_can_fuse_on_cpu", "_jit_set_texpr_fuser_enabled")},
    "torch.ops": stand_ins.library.Operators(),
    "torch._C.Generator": genesis.Generator,
    "torch._C.DispatchKey": Settings(),
    "torch._C.DispatchKeySet": stand_ins.library.DispatchKeySet,
    "torch._C._ExcludeDispatchKeyGuard": no_effect,
    **{f"{home}.{name}": function for (home, name), function in functions_of(Builder(None, None)).items()
       if "_rebuild" in name},
    "torch.storage._load_from_bytes": lambda b: genesis.load(io.BytesIO(b), weights_only=False),
    **{f"torch.jit.{name}": stand_ins.compiler.returned for name in ("_script_if_tracing", "_overload", "_overload_method")},
    "torch.onnx.export": stand_ins.export.export_onnx,
    "torch.onnx.is_in_onnx_export": no,
    "torch.onnx.register_custom_op_symbolic": nothing,
    "torch.onnx.symbolic_helper.parse_args": lambda *kinds: stand_ins.compiler.returned,
    "torch.utils.dlpack.to_dlpack": stand_ins.torch_state.to_dlpack,
    "torch.utils.deterministic.fill_uninitialized_memory": True,
    "torch.memory_format": stand_ins.tensor_types.MemoryFormat,
    "torch.layout": NamedLayout,
    "torch.jagged": nested.jagged,
    "torch.qint8": genesis.int8,
    **{f"torch.{name}": sparse.mm for name in ("spmm", "dsmm")},
    "torch.hsmm": products.hspmm,
    "torch._sym_sqrt": math.sqrt,
    "torch.Storage": stand_ins.torch_state.STORAGES["FloatStorage"],
    "torch._utils._element_size": attrgetter("itemsize"),
    **{f"torch.sparse.{name}": kind for name, kind in stand_ins.tensor_types.SPARSE_KINDS.items()},
    **{f"torch.{name}_copy": stand_ins.torch.copied(getattr(genesis, name)) for name in ("view_as_real", "view_as_complex")},
    "torch.optim.lr_scheduler._LRScheduler": scheduler.LRScheduler,
    **{f"torch.{home}.SDPBackend": SDPBackend for home in ("nn.attention", "backends.cuda")},
    "torch.nn.attention.sdpa_kernel": no_effect, "torch.backends.cuda.SDPAParams": stand_ins.nn.SDPAParams,
    "torch.autograd.Variable": stand_ins.tensor_types.Variable,
    **{f"{path}.{name}": getattr(stand_ins.torch_state, name) for name in ("manual_seed", "get_rng_state") for path in (
        "torch", "torch.random")},
    **{f"torch.cuda.{path}get_rng_state": stand_ins.torch_state.get_rng_state for path in ("", "random.")},
    **{f"torch.cuda.{path}get_rng_state_all": lambda: [stand_ins.torch_state.get_rng_state()] for path in ("", "random.")},
    **{f"torch.nn.{path}SyncBatchNorm": distributed.SyncBatchNorm for path in ("", "modules.", "modules.batchnorm.")},
    **{f"{path}.constraints": distributions.constraints for path in modules() if path.startswith("torch.distributions.")},
    **{f"torch.distributions{path}.__all__": source.__all__ for path, source in (  # libraries append to them
        ("", distributions), (".constraints", distributions.constraints), (".transforms", distributions.transforms))},
    "torch.serialization.MAP_LOCATION": Any,
    "torch.distributions.mixture_same_family.MixtureSameFamilyConstraint":
        distributions.constraints.MixtureSameFamilyConstraint,
    **{f"torch.nn.init.{name}": getattr(init, f"{name}_") for name in (
        "sparse", "constant", "dirac", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "uniform", "xavier_normal",
        "xavier_uniform")},
    **{f"torch.nn.functional.{name}_with_indices": functools.partial(getattr(functional, name), return_indices=True)
       for kind in ("max_pool", "adaptive_max_pool") for name in (f"{kind}1d", f"{kind}2d", f"{kind}3d")},
    **{f"torch.nn.functional.fractional_max_pool{axes}d_with_indices": functools.partial(
        getattr(functional, f"fractional_max_pool{axes}d"), return_indices=True) for axes in (2, 3)},
    "torch._sample_dirichlet": lambda input, generator=None: drawn_by_host(
        "dirichlet", input.shape, input, generator=generator),
    **{f"{home}.{name}": function for name, function in stand_ins._VF.ORDERED.items() for home in ("torch", "torch._VF")},
    "torch.nn.functional.upsample": functional.interpolate,
    "torch.nn.utils.clip_grad_norm": utils.clip_grad_norm_,
    "torch.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING": "The epoch parameter of a scheduler's step() is deprecated.",
    "torch.optim.lr_scheduler.inf": float("inf"),
    "torch.nn.utils.rnn.copy_method_params": lambda source: lambda function: function,
    "torch.nn.functional.grad": nn.grad,
    "torch.nn.factory_kwargs": stand_ins.nn.factory_kwargs,
    **{f"torch.nn.functional.{name}": value for name, value in stand_ins.nn.FUNCTIONAL.items()},
    **{f"torch.nn.attention.{name}": value for name, value in stand_ins.nn.ATTENTION.items()},
    "torch.nn.utils.rnn.PackedSequence_": utils.rnn.PackedSequence,
    "torch.nn.utils.rnn.bind": lambda optional, fn: None if optional is None else fn(optional),
    "torch.nn.utils.parametrizations.F": functional,
    **{f"torch.nn.utils.parametrize.{q}": no for q in ("get_swap_module_params_on_conversion", "is_opaque_reference_type")},
    "torch.func.functionalize": stand_ins.compiler.returned,
    "torch._jit_internal._copy_to_script_wrapper": stand_ins.compiler.returned,
    "torch.func.debug_unwrap": lambda tensor, *, recurse=True: tensor,
    "torch._inductor.config": _inductor_settings,
    "torch._functorch.config": _functorch_settings,
    "torch.cuda.default_generators": (),
    **stand_ins.backends.NAMES,
    "torch.cuda._initialized": False,  # read for the state of GPU generators: there is one for all devices
    "torch.cuda.nvtx.range_push": nothing, "torch.cuda.nvtx.range_pop": nothing, "torch.cuda.nvtx.range": no_effect,
    "torch.xpu.is_available": no, "torch.xpu.is_current_stream_capturing": no,
    **{f"torch.{home}.is_available": no for home in ("mtia", "mps", "distributed.rpc")},
    **{f"torch.{name}": kind for name, kind in {**stand_ins.tensor_types.KINDS, **stand_ins.torch_state.STORAGES}.items()},
    **{f"torch.cuda.{name}": kind
       for name, kind in {**stand_ins.tensor_types.CUDA_KINDS, **stand_ins.torch_state.CUDA_STORAGES}.items()
       if name in names_of("torch.cuda")},
}

AMENDED: dict[str, dict[str, Any]] = {  # what modules compiled for PyTorch get, once imported, in place of their parts
    "torchaudio._extension.utils": {"_load_lib": no},  # as where there is no such file: its Python functions run
    "torchvision.ops.boxes": {"_assert_has_ops": nothing},  # `torch.ops.torchvision` has those that are called there
    "torchvision.ops.deform_conv": {"_assert_has_ops": nothing},
}
