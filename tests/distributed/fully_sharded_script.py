"""Parameters divided among ranks by wrappers, against one process with the whole batch. Run by `test_collectives.py`."""

import functools
import io

import numpy as np
from checks import raises, run
from data_parallel_script import trained
from fsdp_script import plain, rank, size

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed import FullyShardedDataParallel as FSDP
from genesis.distributed.checkpoint import state_dict as dcp
from genesis.distributed.fully_sharded_settings import (
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    OptimStateKeyType,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictType,
)
from genesis.distributed.wrapping import (
    CustomPolicy,
    ModuleWrapPolicy,
    enable_wrap,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)

FULL, SHARDED, LOCAL = (StateDictType[f"{kind}_STATE_DICT"] for kind in ("FULL", "SHARDED", "LOCAL"))


def close(found, alone, bound=1e-5):
    assert [*found] == [*alone.state_dict()]
    for name, wanted in alone.state_dict().items():
        wanted = wanted.numpy()
        assert np.abs(found[name].numpy() - wanted).max() <= bound * np.abs(wanted).max(), name


def paths(model):
    return [path.replace("_fsdp_wrapped_module", "*") for path, m in model.named_modules() if isinstance(m, FSDP)]


def check_training_is_that_of_the_whole_batch():
    alone = plain()
    trained(alone, parts=lambda x: x)
    for strategy, compiled in ((ShardingStrategy.FULL_SHARD, False), (ShardingStrategy.SHARD_GRAD_OP, True)):
        model = FSDP(plain(), sharding_strategy=strategy, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
        assert paths(model) == ["", "*.0", "*.2", "*.4"] and len(FSDP.fsdp_modules(model, root_only=True)) == 1
        assert [name for name, _ in model.named_parameters()] == [name for name, _ in alone.named_parameters()]
        trained(model, compiled=compiled)
        close(model.state_dict(), alone)


def check_policies_wrap_what_they_say():
    def of(policy):
        return paths(FSDP(plain(), auto_wrap_policy=policy))

    assert of(functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={nn.LayerNorm})) == ["", "*.3"]
    assert of(functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.Tanh))) == ["", "*.1"]
    assert of(functools.partial(size_based_auto_wrap_policy, min_num_params=60)) == ["", "*.2"]
    assert of(CustomPolicy(lambda m: {"mixed_precision": MixedPrecision()} if isinstance(m, nn.Linear) else False)) == [
        "", "*.0", "*.2", "*.4"]
    raises(ValueError, "want True, False or settings", of, CustomPolicy(lambda m: 5))
    with enable_wrap(wrapper_cls=FSDP, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP):
        inner = wrap(nn.Linear(3, 3))
    assert isinstance(inner, FSDP) and not isinstance(wrap(nn.Linear(3, 3)), FSDP)
    left = FSDP(plain(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), ignored_modules=[])
    assert left[1] is left.module[1] and left[0].in_features == 5


def check_state_dicts_of_each_kind():
    alone = plain()
    model = FSDP(plain(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    close(model.state_dict(), alone)
    with FSDP.state_dict_type(model, FULL, FullStateDictConfig(offload_to_cpu=True, rank0_only=True)):
        state = model.state_dict()
        assert state == {} if rank() else True
        if not rank():
            close(state, alone)
    assert FSDP.get_state_dict_type(model).state_dict_type is FULL
    with FSDP.state_dict_type(model, LOCAL):
        rows = model.state_dict()
    assert dist.get_world_size() > 1 or rows["2.weight"].shape == (9, 9)
    FSDP.set_state_dict_type(model, SHARDED, ShardedStateDictConfig())
    parts = model.state_dict()
    assert parts["2.weight"].to_local().shape == rows["2.weight"].shape and parts["2.weight"].shape == (9, 9)
    other = FSDP(plain(), auto_wrap_policy=ModuleWrapPolicy({nn.LayerNorm}))
    for p in other.parameters():
        with genesis.no_grad():
            p.zero_()
    assert str(other.load_state_dict(alone.state_dict())) == "<All keys matched successfully>"
    close(other.state_dict(), alone)
    with genesis.no_grad():
        model[2].weight.zero_()
    model.load_state_dict(rows | {"2.weight": alone[2].weight})
    FSDP.set_state_dict_type(model, FULL)
    close(model.state_dict(), alone)
    close(dcp.get_model_state_dict(model, options=dcp.StateDictOptions(full_state_dict=True)), alone)
    raises(RuntimeError, "Missing key(s)", model.load_state_dict, {})
    raises(RuntimeError, "want LocalStateDictConfig", FSDP.set_state_dict_type, model, LOCAL, FullStateDictConfig())


def check_optimizers_are_saved_by_names():
    def stepped(model):
        optimizer = genesis.optim.Adam(model.parameters(), lr=0.1)
        model(genesis.ones(2, 5)).sum().backward()
        optimizer.step()
        return optimizer

    alone, model = plain(), FSDP(plain(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    wanted, optimizer = stepped(alone).state_dict(), stepped(model)
    state = FSDP.optim_state_dict(model, optimizer)
    names = [name for name, _ in alone.named_parameters()]
    assert sorted(state["state"]) == sorted(names) and state["param_groups"][0]["params"] == names
    for k, name in enumerate(names):
        found = state["state"][name]["exp_avg_sq"].numpy()
        np.testing.assert_allclose(found, wanted["state"][k]["exp_avg_sq"].numpy(), rtol=1e-4, atol=1e-9)
    by_number = FSDP.rekey_optim_state_dict(state, OptimStateKeyType.PARAM_ID, model)
    assert FSDP.rekey_optim_state_dict(by_number, OptimStateKeyType.PARAM_NAME, model)["param_groups"] == state["param_groups"]
    only = FSDP.full_optim_state_dict(model, optimizer)
    assert bool(only) == (rank() == 0)
    again = genesis.optim.Adam(model.parameters(), lr=0.5)
    again.load_state_dict(FSDP.optim_state_dict_to_load(model, again, state))
    assert again.param_groups[0]["lr"] == 0.1
    config = FullOptimStateDictConfig(rank0_only=False)
    with FSDP.state_dict_type(model, FULL, FullStateDictConfig(), config):
        assert str(FSDP.optim_state_dict(model, again)) == str(state)


def check_whole_parameters_can_be_summoned_and_written():
    alone, model = plain(), FSDP(plain(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    with FSDP.summon_full_params(model):
        assert [(n, tuple(p.shape)) for n, p in model.named_parameters()] == [
            (n, tuple(p.shape)) for n, p in alone.named_parameters()]
        with genesis.no_grad():
            model[2].weight.fill_(2.0)
    with FSDP.summon_full_params(model, writeback=False), genesis.no_grad():
        model[2].weight.fill_(5.0)
    assert np.unique(model.state_dict()["2.weight"].numpy()).tolist() == [2]
    raises(ValueError, "with_grads", FSDP.summon_full_params(model, with_grads=True).__enter__)


def check_settings():
    genesis.manual_seed(rank())
    synced = FSDP(nn.Linear(4, 4), sync_module_states=True)
    assert dist.broadcast(whole := synced.state_dict()["weight"].clone(), 0) is None
    assert whole.tolist() == synced.state_dict()["weight"].tolist()
    seen = []

    class Seeing(nn.Linear):
        def forward(self, x):
            seen.append((x.dtype.name, self.weight.dtype.name))
            return super().forward(x)

    low = MixedPrecision(param_dtype=genesis.bfloat16, reduce_dtype=genesis.float32)
    model = FSDP(nn.Sequential(Seeing(4, 4), nn.BatchNorm1d(4)), mixed_precision=low, cpu_offload=CPUOffload(True))
    model(genesis.ones(3, 4)).sum().backward()
    assert seen == [("bfloat16", "bfloat16")] and model[0].weight.grad.dtype is genesis.float32
    assert model.clip_grad_norm_(1.0).shape == () and not hasattr(model, "nothing")
    with model.no_sync():
        model(genesis.ones(3, 4)).sum().backward()
    saved = io.BytesIO()
    genesis.save(model.state_dict(), saved)
    if size() > 1:
        for strategy in (ShardingStrategy.NO_SHARD, ShardingStrategy.HYBRID_SHARD):
            raises(ValueError, "want FULL_SHARD or SHARD_GRAD_OP", FSDP, nn.Linear(2, 2), sharding_strategy=strategy)


if __name__ == "__main__":
    run(globals())
