"""What training loops, loaders, metrics and policies of public libraries ask of PyTorch beside its documented names."""

import collections
import operator
import os
import pickle
import random
from collections import OrderedDict

import numpy as np
import torch
import torch.autograd.gradcheck
import torch.distributed as dist
from torch import nn
from torch.distributions import Categorical
from torch.optim.optimizer import required
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from torch.utils.data._utils import collate as collating
from torch.utils.data._utils.collate import np_str_obj_array_pattern
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind, _SingleProcessDataLoaderIter
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(3)
policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
for _ in range(5):  # a policy's actions
    choice = Categorical(logits=policy(torch.ones(2, 4)))
    print(choice.sample(), choice.sample((3,)), choice.entropy(), torch.rand(1))

x = torch.ones(2)
print(x.is_mps, x.is_xpu, x.is_mkldnn, is_traceable_wrapper_subclass(x), np_str_obj_array_pattern.search("<f4"))
print(dist.Backend("GLOO"), dist.Backend.NCCL, dist.ReduceOp.RedOpType.SUM == dist.ReduceOp.SUM)
answers: list[torch.futures.Future[int]] = [torch.futures.Future()]


class Samples(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return i, torch.rand(1), np.random.rand(1), random.random(), os.getpid() != PARENT


class Parts(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        yield from range(info.id, 7, info.num_workers)


PARENT = os.getpid()
for batch in DataLoader(Samples(), 3, shuffle=True, num_workers=2, pin_memory_device="", in_order=True):
    print(batch)
print([batch.tolist() for batch in DataLoader(Parts(), 2, num_workers=2)], torch.rand(1))


class Bounded(nn.Module):
    def _get_name(self):
        return "Between"

    def forward(self, x):
        return x


print(nn.Sequential(Bounded(), nn.ReLU()))
layer = nn.BatchNorm1d(2)
layer._buffers = OrderedDict(layer._buffers, more=torch.ones(1))
layer._parameters = OrderedDict(scale=nn.Parameter(torch.ones(2)))
layer._modules = OrderedDict(inner=nn.ReLU())
print([*layer.state_dict()], [*layer._modules], hasattr(layer, "weight"))

a, b = torch.ones(2), torch.zeros(3, dtype=torch.float64)
groups = _group_tensors_by_device_and_dtype([[a, b, a], [None, b, b], []], with_indices=True)
for key in sorted(groups, key=str):
    print(key, *groups[key])

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x**3
(jacobian,) = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True, create_graph=True)
jacobian.sum().backward()
print(jacobian.detach(), x.grad)

two, three = np.int64(2), np.array([3])[0]  # sizes that were computed with NumPy
x = torch.arange(24.0).view(2, 3, 4)
print(torch.nn.functional.pad(x, (two, three - 1, -(two - 1), 0)), x.unfold(1, two, two - 1)[1], x.diagonal(two - 1, 1, 2))
print(x.as_strided((two,), (three,), two), x.chunk(two, 2)[1], x.narrow(1, two - 1, two), x.roll(two, 1))


class Listed(list):  # as Keras, which tracks its layers' lists
    pass


print(x.mean(Listed([0, 1])), x.permute(Listed([2, 0, 1])).shape, x.view(Listed([6, -1]))[0], torch.cat(Listed([x, x])).sum())
Halves = collections.namedtuple("Halves", "upper lower")
print(torch.stack(Halves(x[0], x[1])).sum(0)[0], torch.cat(Halves(lower=x, upper=-x))[1, 0])
print(torch.tensordot(x, x, dims=(Listed([0, 1]), Listed([0, 1])))[0], torch.nn.functional.layer_norm(x, Listed([4]))[0, 0])
parts = torch.backends.cuda.SDPAParams(x, x, x, None, 0.0, False, False)
print(torch.backends.cuda.can_use_flash_attention(parts), parts.is_causal)

for engine in (torch.quasirandom.SobolEngine(5), torch.quasirandom.SobolEngine(3, scramble=True, seed=7)):
    print(engine, engine.draw(3), engine.draw(), engine.draw_base2(2), engine.fast_forward(5).draw(2), engine.num_generated)
    print(engine.reset().draw(1, dtype=torch.float64), torch.quasirandom.SobolEngine(40).draw(70)[-1].sum())
torch.manual_seed(5)
print(torch.quasirandom.SobolEngine(20, scramble=True).draw(9).sum(1), torch.rand(1))

print(torch.torch is torch, type(torch.__config__.show()), callable(torch.autograd.Function.jvp))


class Flat(nn.Parameter):  # its own `__new__` says what it holds
    def __new__(cls, parts, requires_grad=True):
        return super().__new__(cls, torch.cat([part.detach().reshape(-1) for part in parts]), requires_grad=requires_grad)

    def __init__(self, parts, requires_grad=True):
        self.sizes = [part.numel() for part in parts]


flat = Flat([nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.zeros(3))])
print(flat.numel(), flat.sizes, type(flat).__name__, flat.requires_grad, flat.sum().item())


class Part(nn.Module):
    def __init__(self, owner):
        super().__init__()
        object.__setattr__(self, "owner", owner)
        self.layer = nn.Linear(2, 2)


class Owner(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part(self)


owner = Owner().train()
print([path for path, _ in owner.named_modules()], [path for path, _ in owner.named_parameters()])

torch.manual_seed(1)
for size in (3, 20):  # weights of layers that multiply spectra
    weight = torch.empty(size, dtype=torch.cfloat).normal_(1.5, 2.0)
    print(weight[-2:], nn.init.normal_(weight, 0.0, 0.1)[:2], weight.uniform_(1, 2)[-2:], torch.randn(2, dtype=torch.cfloat))

for asked in (("cpu",), (torch.float64,), ("cpu", torch.float16, True), (torch.ones(1),)):
    print(torch._C._nn._parse_to(*asked)[:3])
print(torch.autograd._is_checkpoint_valid())


@torch.utils.data.functional_datapipe("doubled_twice")
class Doubled(torch.utils.data.IterDataPipe):
    def __init__(self, source, times):
        self.source, self.times = source, times

    def __iter__(self):
        return (self.times * each for each in self.source)


class Numbers(torch.utils.data.IterDataPipe):
    def __iter__(self):
        return iter((1, 2))


print([*Numbers().doubled_twice(3)])


# ---- operands of other classes, values under no_grad, what functions saved ----
class Scaled(tuple):
    """Operands that know how to meet a tensor on their left."""

    def __rmul__(self, other):
        return [float(other * x) for x in self]

    def __radd__(self, other):
        return [float(other + x) for x in self]

    def __rmatmul__(self, other):
        return "matmul"

    def __gt__(self, other):
        return "greater"


one = torch.tensor(2.0)
print(one * Scaled((1.0, 2.0)), one + Scaled((1.0, 2.0)), one @ Scaled(), one < Scaled())
for wrong in (None, "text", object()):
    for operate in (operator.sub, operator.truediv, operator.lt):
        try:
            print(operate(one, wrong))
        except TypeError:
            print("TypeError", type(wrong).__name__)

leaf = torch.ones(2, requires_grad=True)
with torch.no_grad():
    print(leaf.numpy(), np.asarray(leaf), leaf.view(-1).numpy())
try:
    leaf.numpy()
except RuntimeError:
    print("RuntimeError")


class Saving(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, gradient):
        x, y = torch.utils.checkpoint.detach_variable(ctx.saved_tensors)
        print(type(ctx.saved_tensors).__name__, len(ctx.saved_tensors.__add__((gradient,))), x.is_leaf, x.requires_grad)
        return gradient * y, gradient * x


Saving.apply(leaf, torch.tensor([2.0, 3.0])).sum().backward()
print(leaf.grad)
torch._assert_async(torch.tensor(True))
try:
    torch._assert_async(torch.tensor(False), "not so")
except RuntimeError as error:
    print(error)
try:
    torch.distributed.rpc.api._require_initialized(print)()
except RuntimeError as error:
    print(error)
print(torch._C._are_functorch_transforms_active())
from torch.distributed.fsdp.api import ShardedStateDictConfig  # noqa: E402
from torch.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel, StateDictType  # noqa: E402
from torch.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy  # noqa: E402

print(FullyShardedDataParallel is torch.distributed.fsdp.FullyShardedDataParallel, [*StateDictType], ShardedStateDictConfig())
print(ModuleWrapPolicy({nn.Linear})(module=nn.ReLU(), recurse=False, nonwrapped_numel=0))
print(size_based_auto_wrap_policy(nn.Linear(20, 20), recurse=False, nonwrapped_numel=420, min_num_params=400))
from torch.ao.quantization import DeQuantStub, FakeQuantize, QuantStub, default_weight_fake_quant  # noqa: E402
from torch.nn.quantized import FloatFunctional  # noqa: E402

print(DeQuantStub()(QuantStub()(torch.ones(2))), FloatFunctional().add_relu(torch.ones(2), torch.tensor([1.0, -2.0])))
print(torch.per_tensor_affine, isinstance(torch.per_channel_symmetric, torch.qscheme))
print(FakeQuantize(quant_min=0, quant_max=9).activation_post_process)
print(default_weight_fake_quant()(torch.tensor([1.0, -0.33])))
print(torch.fake_quantize_per_tensor_affine(torch.ones(2), 0.3, 0, 0, 9))
print(isinstance(torch.autograd.function.FunctionCtx, type), torch.distributed.group.WORLD, torch.distributed.GroupMember.WORLD)
print(torch.xpu.device_count(), torch.backends.cuda.is_built(), torch._C._get_accelerator(), torch.jit.TracerWarning.__mro__[1])


# ---- operations of products, by module ----
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.image = nn.Linear(4, 8), nn.Conv2d(1, 3, 3)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(8, 2, bias=False))

    def forward(self, x, image):
        return self.rest(self.first(x)), self.image(image)


def counts(counter):
    return counter.get_total_flops(), {path: sum(by.values()) for path, by in sorted(counter.get_flop_counts().items())}


counted, batch, images = Counted(), torch.randn(5, 4), torch.randn(2, 1, 6, 6)
with torch.no_grad(), FlopCounterMode(display=False) as counter:
    counted(batch, images)
print(counts(counter))
with FlopCounterMode(display=False) as counter:
    result = counted(batch, images)[0]
    print(result.sum().item() > 1e9)  # what has been computed is counted too
    result.sum().backward()
print(counts(counter))
print(isinstance(counted, torch.jit.ScriptModule), torch._C._is_tracing())

# The names of classes, which libraries choose by.
layer = torch.nn.Linear(2, 1)
optimizer = torch.optim.Adam(layer.parameters())
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for thing in (x := torch.ones(2), layer.weight, x.shape, x.dtype, x.device, layer, torch.nn.LSTM(2, 2), optimizer, schedule,
              torch.distributions.Normal(0.0, 1.0), torch.utils.data.TensorDataset(x)):
    kind = type(thing)
    print(kind, kind.__module__, kind.__qualname__, pickle.loads(pickle.dumps(kind)) is kind)
print(torch.nn.Module, torch.autograd.Function, x.layout, x.layout == torch.strided)


# Functions that are replaced: layers call what stands there.
def counted_calls(home, name):
    plain = getattr(home, name)

    def call(*arguments, **options):
        print(name, [tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in arguments], sorted(options))
        return plain(*arguments, **options)

    setattr(home, name, call)
    return lambda: setattr(home, name, plain)


undo = [counted_calls(nn.functional, name) for name in ("relu", "linear", "conv2d", "layer_norm", "embedding")]
undo.append(counted_calls(nn.init, "kaiming_uniform_"))
stack = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3), nn.LayerNorm(3))
print(stack(torch.ones(1, 1, 4, 4)).shape, nn.Embedding(3, 2)(torch.tensor([1])).shape)
for put_back in undo:
    put_back()
print(stack(torch.ones(1, 1, 4, 4)).shape)


class Half(nn.Conv1d):
    def _conv_forward(self, input, weight, bias):
        return super()._conv_forward(input, weight * 0, bias * 0 + 1)


print(Half(1, 2, 1)(torch.ones(1, 1, 2)))


# Loaders of others', which take PyTorch's iterators.
class Loader:
    _IterableDataset_len_called = generator = prefetch_factor = worker_init_fn = multiprocessing_context = None
    _auto_collation = drop_last = pin_memory = persistent_workers = False
    num_workers, timeout, in_order, pin_memory_device, collate_fn, _get_shared_seed = 0, 0, True, "", list, lambda self: None

    def __init__(self, dataset, kind, positions):
        self.dataset, self._dataset_kind, self._index_sampler = dataset, kind, positions


sets = (_DatasetKind.Map, ["ab", "cd", "ef"], [2, 0]), (_DatasetKind.Iterable, ["gh", "ij"], range(9))
for kind, dataset, positions in sets:
    batches = _SingleProcessDataLoaderIter(Loader(dataset, kind, positions))
    print([*batches], isinstance(batches, _BaseDataLoaderIter))


# Samples of a class of one's own in batches.
class Point:
    def __init__(self, *at):
        self.at = at


def collate_points(batch, *, collate_fn_map=None):
    return collating.collate([point.at for point in batch], collate_fn_map=collate_fn_map)


collating.default_collate_fn_map.update({Point: collate_points})
print(torch.utils.data.default_collate([{"p": Point(1, 2.5), "n": "a"}, {"p": Point(3, 4.5), "n": "b"}]))
print([batch for batch in DataLoader([Point(k, -k) for k in range(3)], batch_size=2)])
del collating.default_collate_fn_map[Point]
kinds = {np.generic: collating.collate_numpy_scalar_fn, int: collating.collate_int_fn, float: lambda batch, **_: "floats"}
print(collating.collate([(np.float32(1), 2, 3.0, True), (np.float32(3), 4, 5.0, False)], collate_fn_map=kinds))
for samples in ([Point(1)], [np.array(["a"])], [object()]):
    try:
        print(torch.utils.data.default_collate(samples))
    except TypeError as problem:
        print(type(problem).__name__)
print(required, torch.onnx.TrainingMode.TRAINING.value)
with torch.no_grad():
    print(torch.nn.init._no_grad_fill_(torch.ones(2), 3.0), torch.nn.init._no_grad_zero_(torch.ones(2)))

print(torch.autograd.gradcheck(lambda x: x * x, torch.ones(2, dtype=torch.double, requires_grad=True)))
calls = []
engine = torch.autograd.Variable._execution_engine
result = torch.ones(2, requires_grad=True) * 2
result.register_hook(lambda gradient: [engine.queue_callback(lambda: calls.append("end")) for _ in range(2)] and None)
result.sum().backward()
print(calls)
