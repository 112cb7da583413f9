"""Parameters divided among ranks, against one process with the whole batch. Run by `test_collectives.py`."""

import warnings

import numpy as np
from checks import equal, raises, run
from data_parallel_script import batch, share, trained

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.checkpoint import state_dict as dcp
from genesis.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from genesis.distributed.tensor import DTensor, Shard, distribute_tensor
from genesis.execution.plan import plan_for
from genesis.tracing.state import current_trace


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def plain():
    genesis.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 9, bias=False), nn.LayerNorm(9), nn.Linear(9, 3))


def divided(inner=None, outer=None, reshards=None):
    model = plain()
    for layer in (model[0], model[2]):
        fully_shard(layer, mp_policy=inner, reshard_after_forward=reshards)
    return fully_shard(model, mp_policy=outer, reshard_after_forward=reshards)


def close(model, alone, bound=1e-5):
    found = dcp.get_model_state_dict(model, options=dcp.StateDictOptions(full_state_dict=True))
    for name, wanted in alone.state_dict().items():
        wanted = wanted.numpy()
        assert np.abs(found[name].numpy() - wanted).max() <= bound * np.abs(wanted).max(), name


def check_training_is_that_of_the_whole_batch():
    alone = plain()
    trained(alone, parts=lambda x: x)
    for compiled, reshards in ((False, None), (True, None), (True, True), (False, False)):
        model = divided(reshards=reshards)
        trained(model, compiled=compiled)
        close(model, alone)


def check_whole_parameters_go_after_forward_and_come_again_in_backward():
    """Also where the forward ran before, and where ranks hold different results of it."""
    def network(reshards):
        genesis.manual_seed(5)
        layers = [nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.LayerNorm(256)) for _ in range(6)]
        for layer in layers:
            fully_shard(layer, reshard_after_forward=reshards)
        return fully_shard(nn.Sequential(*layers))

    x = genesis.tensor(np.random.default_rng(rank()).standard_normal((4, 256)).astype(np.float32))
    wanted = None
    for reshards, ran in ((False, False), (None, False), (None, True)):
        model = network(reshards)
        genesis.debug.reset_stats()
        result = model(x)
        loss = (result * x).sum()
        if ran:
            loss.item()
        held = [result] if rank() == 0 else []
        del result
        loss.backward()
        plan = None if ran else plan_for(current_trace())
        found = [p.grad.to_local().numpy() for p in model.parameters()]
        if wanted is None:
            wanted, most, sent = found, plan.arena_bytes + sum(plan.sizes), genesis.debug.stats()["collective_bytes"]
            continue
        for old, new in zip(wanted, found, strict=True):
            assert np.abs(new - old).max() <= 1e-5 * np.abs(old).max()
        rows = 6 * 256 * 256 * 4 / size()  # what the second gathers are given, but for what backward does not read
        more = genesis.debug.stats()["collective_bytes"] - sent
        assert 0.8 * rows < more < 1.02 * rows, (more, rows)
        if not ran:
            needed = plan.arena_bytes + sum(plan.sizes)
            assert most - needed > 3 * 256 * 256 * 4, (most, needed)  # of six layers' at least three
        del held


def check_neighbours_keep_whole_parameters_between_forward_and_backward():
    """Those of a number of ranks that is neither one nor all; in a program that goes on, and in one that ran."""
    parts = 2 if size() == 4 else size()
    x, wanted = genesis.tensor(np.random.default_rng(rank()).standard_normal((4, 5)).astype(np.float32)), None
    for reshards, ran in ((False, False), (parts, False), (parts, True)):
        model = divided(reshards=reshards)
        genesis.debug.reset_stats()
        loss = (model(x) ** 2).sum()
        if ran:
            loss.item()
        loss.backward()
        lines = genesis.debug.graph(*[p.grad.to_local() for p in model.parameters()]).text(detail=True)
        found = [p.grad.to_local().numpy() for p in model.parameters()]
        if not reshards:
            wanted, sent = found, genesis.debug.stats()["collective_bytes"]
            continue
        for old, new in zip(wanted, found, strict=True):
            assert np.abs(new - old).max(initial=0) <= 1e-5 * np.abs(old).max(initial=0)
        assert genesis.debug.stats()["collective_bytes"] > sent
        again = [line for line in lines.splitlines() if "again of" in line and "all_gather" in line]
        assert len(again) >= 3 if parts < size() else not again, again  # the weights
    if size() == 4:
        trained(model, compiled=True)
        trained(alone := plain(), parts=lambda x: x)
        close(model, alone)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert fully_shard(plain(), reshard_after_forward=1)._sharding.reshards is False
    assert "one rank that keeps all" in str(told[0].message)


def check_what_is_gathered_by_hand_is_there_until_the_forward():
    model = fully_shard(nn.Linear(6, 4))
    model.unshard().wait()
    assert model.weight.shape == (4, 6)
    y = model(genesis.ones(2, 6))
    assert isinstance(model.weight, DTensor) and y.shape == (2, 4)
    model.set_reshard_after_forward(True)
    model.set_gradient_divide_factor(2.0 * size())
    model(genesis.ones(2, 6)).sum().backward()
    equal(model.bias.grad.full_tensor(), np.ones(4, np.float32), exact=True)
    loss = (model(genesis.ones(2, 6)) ** 2).sum()
    loss.item()
    raises(RuntimeError, "reshard_after_forward=False", loss.backward, create_graph=True)


def check_each_rank_keeps_its_rows():
    model = divided()
    assert isinstance(model, FSDPModule) and isinstance(model, nn.Sequential) and type(model[2]).__name__ == "FSDPLinear"
    whole = plain()
    for (name, shard), p in zip(model.named_parameters(), whole.parameters(), strict=True):
        most = -(-p.shape[0] // size())
        wanted = p.detach().numpy()[rank() * most : (rank() + 1) * most]
        assert isinstance(shard, nn.Parameter) and shard.placements == (Shard(0),) and shard.shape == p.shape, name
        equal(shard.to_local(), wanted, exact=True)
        equal(shard.full_tensor(), p.detach().numpy(), exact=True)
    rows = nn.Sequential(*[nn.Linear(48, 48, bias=False) for _ in range(3)])
    before = sum([p.nbytes for p in rows.parameters()])
    for layer in rows:
        fully_shard(layer)
    assert sum([p.to_local().nbytes for p in rows.parameters()]) == before / size()
    x = genesis.ones(2, 48)
    rows(x).sum().backward()
    assert all([p.grad.shape == p.shape and p.grad.placements == (Shard(0),) for p in rows.parameters()])


def check_memory_between_steps_is_that_of_the_rows():
    for compiled in (False, True):
        before = genesis.debug.memory().held
        model = nn.ModuleList([fully_shard(nn.Linear(512, 768, bias=False)) for _ in range(4)])  # no size is rounded
        optimizer = genesis.optim.Adam(model.parameters(), lr=1e-3)

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = sum([(layer(x) ** 2).mean() for layer in model])
            loss.backward()
            optimizer.step()
            return loss

        run_step = genesis.compile(step) if compiled else step
        for _ in range(4):
            run_step(genesis.ones(2, 512)).item()
        optimizer.zero_grad()
        rows = 3 * 4 * 512 * 768 * 4 / size()  # parameters, and Adam's two means
        held = genesis.debug.memory().held - before
        assert held <= rows * 1.05, (compiled, held, rows)


def check_gradients_are_rows_of_the_average():
    model, alone = divided(), plain()
    x, y = batch(0)
    nn.functional.mse_loss(model(share(x)), share(y)).backward()
    nn.functional.mse_loss(alone(x), y).backward()
    for shard, p in zip(model.parameters(), alone.parameters(), strict=True):
        equal(shard.grad.full_tensor(), p.grad.numpy())
    bound = 0.5 * nn.utils.clip_grad_norm_(alone.parameters(), 1e9).item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), bound)
    wanted = nn.utils.clip_grad_norm_(alone.parameters(), bound)
    np.testing.assert_allclose(norm.item(), wanted.item(), rtol=1e-5)
    for shard, p in zip(model.parameters(), alone.parameters(), strict=True):
        equal(shard.grad.full_tensor(), p.grad.numpy())


def check_mixed_precision():
    inner = MixedPrecisionPolicy(param_dtype=genesis.bfloat16, reduce_dtype=genesis.float32)
    model = divided(inner, MixedPrecisionPolicy(genesis.bfloat16, genesis.float32, output_dtype=genesis.float32))
    seen = []
    model[1].register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    result = model(share(batch(0)[0]))
    assert result.dtype is genesis.float32 and seen == [genesis.bfloat16]
    result.sum().backward()
    assert {p.grad.dtype for p in model.parameters()} == {genesis.float32}
    alone = plain()
    alone(share(batch(0)[0])).sum().backward()
    np.testing.assert_allclose(result.detach().numpy(), alone(share(batch(0)[0])).detach().numpy(), atol=0.1)


def check_an_overflow_on_one_rank_is_one_on_all():
    plan = {"0": dist.tensor.parallel.ColwiseParallel()}
    for model in (divided(), dist.tensor.parallel.parallelize_module(nn.Sequential(nn.Linear(4, 12)), None, plan)):
        optimizer, scaler = genesis.optim.SGD(model.parameters(), lr=0.5), genesis.amp.GradScaler()
        scaler.scale(genesis.ones(()))
        before = [p.to_local().detach().numpy().copy() for p in model.parameters()]
        for number, moves in enumerate((0.0, 0.5)):
            for p in model.parameters():
                p.grad = genesis.full_like(p, float("inf") if rank() == number == 0 else scaler.get_scale())
            scaler.step(optimizer)
            scaler.update()
            assert scaler.get_scale() == 32768.0
            for p, old in zip(model.parameters(), before, strict=True):
                equal(p.to_local(), old - np.float32(moves), exact=True)


def check_whole_state_is_saved_and_loaded():
    model, alone = divided(), plain()
    trained(alone, parts=lambda x: x, steps=2)
    dcp.set_model_state_dict(model, alone.state_dict(), options=dcp.StateDictOptions(full_state_dict=True))
    close(model, alone, 0)
    model, alone = divided(), plain()
    trained(alone, parts=lambda x: x, steps=3)
    model.load_state_dict(alone.state_dict())
    close(model, alone, 0)
    raises(RuntimeError, "", model.load_state_dict, {})


def check_parameters_that_loading_assigns_are_computed_with():
    model, alone = divided(), plain()
    state = {name: distribute_tensor(value * 2, p.device_mesh, p.placements)
             for (name, value), p in zip(alone.state_dict().items(), model.state_dict().values(), strict=True)}
    model.load_state_dict(state, assign=True)
    alone.load_state_dict({name: value * 2 for name, value in alone.state_dict().items()})
    x = genesis.ones(2, 5)
    equal(model(x), alone(x).detach().numpy())
    close(model, alone)
    model[0].weight = nn.Parameter(genesis.ones(9, 5))
    raises(ValueError, "want a DTensor", model, x)


def check_state_dicts_by_options():
    """Whole tensors on all ranks or the first, and set from those of the first alone, whatever others give."""
    model, other, alone = divided(), divided(), plain()
    optimizers = [genesis.optim.Adam(each.parameters(), lr=0.1) for each in (model, other, alone)]
    for each, optimizer, x in zip((model, alone), optimizers[::2], (share(batch(0)[0]), batch(0)[0]), strict=True):
        each(x).square().mean().backward()
        optimizer.step()
    wanted = [alone.state_dict(), optimizers[2].state[alone[0].weight]["exp_avg"]]
    options = dcp.StateDictOptions(full_state_dict=True)
    state, moments = dcp.get_state_dict(model, optimizers[0], options=options)
    for name, value in wanted[0].items():
        equal(state[name], value.numpy())
    equal(moments["state"]["0.weight"]["exp_avg"], wanted[1].numpy())
    first = dcp.StateDictOptions(full_state_dict=True, cpu_offload=True)
    state, moments = dcp.get_state_dict(model, optimizers[0], options=first)
    assert (len(state), len(moments)) == ((len(wanted[0]), 2) if rank() == 0 else (0, 0))
    sent = dcp.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    dcp.set_state_dict(other, optimizers[1], model_state_dict=state, optim_state_dict=moments, options=sent)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        equal(two.to_local(), one.to_local().detach().numpy(), exact=True)
        for key, value in optimizers[0].state[one].items():
            assert np.array_equal(*[np.asarray(getattr(each, "to_local", lambda each=each: each)()) for each in (
                optimizers[1].state[two][key], value)]), key
    whole = dcp.get_model_state_dict(model, options=options)
    raises(RuntimeError, "0.bias", dcp.set_model_state_dict, other, {**whole, "0.bias": genesis.ones(2)}, options=options)


def check_wrong_arguments():
    model = divided()
    raises(ValueError, "sharded already", fully_shard, model)
    raises(TypeError, "want a module", fully_shard, genesis.ones(2))
    raises(ValueError, "want a bool, None, or a divisor", fully_shard, plain(), reshard_after_forward=5)
    scalar = nn.Module()
    scalar.scale = nn.Parameter(genesis.tensor(1.0))
    raises(ValueError, "no axis to cut", fully_shard, scalar)
    fully_shard(scalar, ignored_params=[scalar.scale])
    assert type(scalar.scale) is nn.Parameter


if __name__ == "__main__":
    run(globals())
