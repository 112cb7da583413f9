"""Tensor and sequence parallel layers against the same layers on one process. Run by `test_collectives.py`."""

import copy
import io
import shutil
import tempfile

import numpy as np
from checks import given, raises, run
from fsdp_script import check_neighbours_keep_whole_parameters_between_forward_and_backward  # noqa: F401 - run by its name

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed import checkpoint
from genesis.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
)
from genesis.distributed.fsdp import fully_shard
from genesis.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from genesis.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from genesis.distributed.tensor.redistribution import redistribute_local

WIDTH, LENGTH, WORDS = 8, 4, 12


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def line():
    return dist.init_device_mesh("cpu", (size(),), mesh_dim_names=("tensor",))


def common(shape, seed=0, requires_grad=False):
    """A tensor that is the same on all ranks."""
    return genesis.tensor(given(0, shape, np.float32, seed), requires_grad=requires_grad)


def close(found, wanted, said=""):
    found, wanted = (x.detach().numpy() if isinstance(x, genesis.Tensor) else x for x in (found, wanted))
    assert found.shape == wanted.shape, (said, found.shape, wanted.shape)
    assert np.abs(found - wanted).max() <= 1e-5 * max(1, np.abs(wanted).max()), (said, found, wanted)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        rows, length, _ = x.shape
        query, key, value = self.project(x).view(rows, length, -1, 3, 2).transpose(1, 2).unbind(3)
        found = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(found.transpose(1, 2).reshape(rows, length, -1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.attention, self.between = nn.LayerNorm(WIDTH), Attention(), nn.RMSNorm(WIDTH)
        self.network = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.network(self.between(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        genesis.manual_seed(5)
        self.words, self.blocks = nn.Embedding(WORDS, WIDTH), nn.Sequential(Block())
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        return self.head(self.last(self.blocks(self.words(x))))


TENSOR = {
    "words": RowwiseParallel(), "blocks.*.attention.project": ColwiseParallel(), "blocks.*.attention.out": RowwiseParallel(),
    "blocks.*.network.0": ColwiseParallel(), "blocks.*.network.2": RowwiseParallel(),
    "head": ColwiseParallel(output_layouts=Replicate()),
}
SEQUENCE = {
    "words": RowwiseParallel(output_layouts=Shard(1)), "blocks.*.before": SequenceParallel(),
    "blocks.*.between": SequenceParallel(), "last": SequenceParallel(),
    "blocks.*.attention": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
    "blocks.*.attention.project": ColwiseParallel(), "blocks.*.attention.out": RowwiseParallel(output_layouts=Shard(1)),
    "blocks.*.network.0": ColwiseParallel(input_layouts=Shard(1)),
    "blocks.*.network.2": RowwiseParallel(output_layouts=Shard(1)),
    "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
}


def batch(number, rows=3):
    random = np.random.default_rng(number)
    return [genesis.tensor(random.integers(0, WORDS, (rows, LENGTH))) for _ in range(2)]


def loss_of(model, seen, following):
    return nn.functional.cross_entropy(model(seen).reshape(-1, WORDS), following.reshape(-1))


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def same_gradients(model, alone):
    for (name, p), q in zip(model.named_parameters(), alone.parameters(), strict=True):
        close(whole(p.grad), q.grad, name)


def trained(model, compiled=False, steps=6, parts=lambda x: x):
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)

    def step(seen, following):
        optimizer.zero_grad()
        loss = loss_of(model, seen, following)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss

    run_step = genesis.compile(step) if compiled else step
    for number in range(steps):
        run_step(*map(parts, batch(number)))
    return run_step


def check_moves_between_placements_and_their_gradients():
    group, x = line().get_group(), common((4, 8, 3))
    parts = {Shard(d): [part.numpy() for part in x.chunk(size(), d % 3)] for d in (0, 1, -2)}
    parts[Replicate()] = [x.numpy()] * size()
    for source, target in ((Shard(0), Shard(1)), (Shard(1), Shard(0)), (Shard(-2), Replicate()), (Replicate(), Shard(1)),
                           (Partial(), Replicate()), (Partial(), Shard(1))):
        local = genesis.tensor(x.numpy() / size() if source == Partial() else parts[source][rank()], requires_grad=True)
        found = redistribute_local(local, source, target, group)
        close(found, parts[target][rank()], (source, target))
        found.backward(genesis.tensor(parts[target][rank()]))  # the gradient, as parts or as a whole
        close(local.grad, x if source == Partial() else parts[source][rank()], (source, target))


def check_models_are_those_of_one_process():
    for plan in (TENSOR, SEQUENCE):
        alone = Model()  # its gradients are new
        model = parallelize_module(copy.deepcopy(alone), line(), plan)
        head = model.head.weight
        assert head.shape == (WORDS, WIDTH) and head.to_local().shape == (WORDS // size(), WIDTH)
        assert head.placements == (Shard(0),) and head.device_mesh.size() == size()
        close(head.full_tensor(), alone.head.weight)
        leaves = [p.to_local() for p in model.parameters() if isinstance(p, DTensor)]
        assert all(leaf._base is None for leaf in leaves), "compiled steps write roots by instructions, views by Python"
        losses = [loss_of(m, *batch(0)) for m in (model, alone)]
        close(*losses)
        for loss in losses:
            loss.backward()
        same_gradients(model, alone)
        close(nn.utils.clip_grad_norm_(model.parameters(), 0.1), nn.utils.clip_grad_norm_(alone.parameters(), 0.1))
        same_gradients(model, alone)


def check_a_compiled_step_is_one_native_call():
    alone = Model()
    trained(alone)
    model = parallelize_module(Model(), line(), SEQUENCE)
    step = trained(model, compiled=True)
    for (name, p), (_, q) in zip(model.state_dict().items(), alone.state_dict().items(), strict=True):
        close(whole(p), q, name)
    inputs = batch(0)
    step(*inputs)
    before = genesis.debug.stats()["native_calls"]
    for _ in range(5):
        step(*inputs)
    calls = genesis.debug.stats()["native_calls"] - before
    assert calls == 5, f"{calls} native calls in 5 steps"


def check_data_and_tensor_parallel_on_a_mesh():
    if size() % 2:
        return
    mesh = dist.init_device_mesh("cpu", (2, size() // 2), mesh_dim_names=("data", "tensor"))
    place = mesh.get_coordinate()
    assert place == [rank() // (size() // 2), rank() % (size() // 2)] and mesh.shape == (2, size() // 2)
    assert mesh["data"].get_local_rank() == place[0] and mesh["tensor"].size() == mesh.size("tensor") == size() // 2
    assert mesh["tensor", "data"].mesh.tolist() == mesh.mesh.t().tolist() and mesh.get_group("data") is mesh["data"].get_group()
    raises(KeyError, "'pipe'", mesh.__getitem__, "pipe")
    alone = Model()
    model = dist.DistributedDataParallel(
        parallelize_module(copy.deepcopy(alone), mesh["tensor"], TENSOR), process_group=mesh.get_group("data"))
    seen, following = batch(0, rows=4)
    mine = slice(2 * place[0], 2 * place[0] + 2)
    loss_of(model, seen[mine], following[mine]).backward()
    loss_of(alone, seen, following).backward()
    same_gradients(model, alone)


def check_rows_and_tensor_parallel_on_a_mesh():
    """Parameters that are cut twice: their norm, their state and their checkpoint are those of one process."""
    if size() % 2:
        return
    mesh = dist.init_device_mesh("cpu", (2, size() // 2), mesh_dim_names=("data", "tensor"))
    alone = Model()

    def divided():
        model = parallelize_module(copy.deepcopy(alone), mesh["tensor"], TENSOR)
        return fully_shard(model, mesh=mesh["data"], reshard_after_forward=True)

    model, (seen, following) = divided(), batch(0, rows=4)
    mine = slice(2 * mesh["data"].get_local_rank(), 2 * mesh["data"].get_local_rank() + 2)
    norms = []
    for each, rows in ((model, mine), (alone, slice(None))):
        optimizer = genesis.optim.SGD(each.parameters(), lr=0.5, momentum=0.9)
        loss_of(each, seen[rows], following[rows]).backward()
        norms.append(nn.utils.clip_grad_norm_(each.parameters(), 0.1).item())
        optimizer.step()
        if each is model:
            state = {"model": get_model_state_dict(model), "optimizer": get_optimizer_state_dict(model, optimizer)}
    np.testing.assert_allclose(*norms, rtol=1e-5)
    found = [None] * size()
    dist.all_gather_object(found, tempfile.mkdtemp() if rank() == 0 else None)
    checkpoint.save(state, checkpoint_id=found[0])
    again = divided()
    loaded = {"model": get_model_state_dict(again)}
    checkpoint.load(loaded, checkpoint_id=found[0])
    set_model_state_dict(again, loaded["model"])
    other = divided()
    other.load_state_dict(alone.state_dict())
    for each in (model, again, other):
        for name, value in get_model_state_dict(each, options=StateDictOptions(full_state_dict=True)).items():
            close(value, alone.state_dict()[name], name)
    whole_state = {name: genesis.zeros(value.shape) for name, value in alone.state_dict().items()}
    checkpoint.load({"model": whole_state}, checkpoint_id=found[0])
    for name, value in whole_state.items():
        close(value, alone.state_dict()[name], name)
    dist.barrier()
    if rank() == 0:
        shutil.rmtree(found[0])


def check_state_dicts_are_of_the_whole():
    alone = Model()
    state = {name: genesis.randn(*value.shape) for name, value in alone.state_dict().items()}
    model = parallelize_module(Model(), line(), TENSOR)
    model.load_state_dict(state)
    for name, value in model.state_dict().items():
        close(whole(value), state[name], name)
    again = parallelize_module(Model(), line(), TENSOR)
    again.load_state_dict(model.state_dict())
    close(again.head.weight.to_local(), model.head.weight.to_local())
    held = distribute_tensor(common((4, 4)), line(), [Shard(1)])
    assert held.shape == (4, 4) and held.start == (0, 4 // size() * rank())
    close(held.redistribute([Shard(0)]).to_local(), common((4, 4)).chunk(size(), 0)[rank()])


def check_loss_of_classes_in_parts():
    scores, targets = common((5, WORDS), requires_grad=True), genesis.tensor([0, 11, -100, 3, 6])
    part = distribute_tensor(scores, line(), [Shard(1)])
    held = distribute_tensor(targets, line(), [Replicate()])
    for reduction in ("mean", "sum"):
        with loss_parallel():
            found = nn.functional.cross_entropy(part, targets if reduction == "sum" else held, reduction=reduction)
        wanted = nn.functional.cross_entropy(scores, targets, reduction=reduction)
        close(found.full_tensor(), wanted)
        (found * 2).backward()
        (wanted * 2).backward()
        close(part.grad.full_tensor(), scores.grad)


def check_parts_are_saved_and_loaded_with_weights_only():
    whole = common((2 * size(), 3))
    for placement in (Shard(0), Replicate(), Partial()):
        held = distribute_tensor(whole, line(), [Replicate()]).redistribute([placement])
        for value in (held, nn.Parameter(held)):
            file = io.BytesIO()
            genesis.save({"value": value}, file)
            file.seek(0)
            again = genesis.load(file)["value"]
            assert type(again) is type(value) and again.placements == (placement,) and again.device_mesh == line()
            close(again.full_tensor(), whole)


def check_outputs_and_names():
    layer = parallelize_module(nn.Linear(4, 8), line(), ColwiseParallel())
    move = PrepareModuleOutput(output_layouts=Shard(-1), desired_output_layouts=Replicate())
    outer = parallelize_module(nn.Sequential(layer), line(), move)
    assert layer(common((2, 4))).shape == (2, 8 // size()) and outer(common((2, 4))).shape == (2, 8)
    raises(ValueError, "no module 'blocks.*.attn'", parallelize_module, Model(), line(), {"blocks.*.attn": ColwiseParallel()})
    raises(TypeError, "want a Linear or an Embedding", parallelize_module, nn.GELU(), line(), ColwiseParallel())
    raises(ValueError, "equal parts", parallelize_module, nn.Linear(4, 4 * size() + 1), line(), ColwiseParallel())
    raises(ValueError, f"want {size()}, all of the job", dist.init_device_mesh, "cpu", (size() + 1,))


if __name__ == "__main__":
    run(globals())
