"""Modules under their names in earlier versions: files name classes by where they stood, and programs import from there."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

from genesis.runtime.deferred import import_whole

MOVED = {
    "genesis.ao.nn.quantized.functional_modules": "genesis.ao.nn.quantized", "genesis.devices": "genesis.runtime.devices",
    "genesis.ir.sparse_layouts": "genesis.ir.named_layouts",
    "genesis.methods.conversion": "genesis.functions.methods.conversion", "genesis.tensor": "genesis.tensor.handle",
    "genesis.variable": "genesis.functions.variable",
    **{f"genesis.{folder}.{old}": f"genesis.{folder}.{new}" for folder, joined in {
        "as_torch.stand_ins": {
            "_pytree": "trees", "_pytree_nodes": "tree_nodes", "benchmark": "measuring", "datapipes": "pipes",
            "eval_frame": "optimized", "export": "exporting", "masked": "masked_tensors", "tensor_types": "types",
            "torch_state": "environment"},
        "ao": {"observers": "fake_quantize"}, "distributed": {"process_group": "ranks", "rendezvous": "schemes"},
        "distributed.tensor": {"dtensor": "sharded_parameter"},
        "distributions": {
            "categorical": "mixture_same_family", "composed": "independent relaxed transformed_distribution",
            "constraints": "constraint constraints_of_arrays constraints_of_numbers constraints_of_others",
            "counts": "bernoulli", "distribution": "exp_family", "gamma": "beta", "matrices": "multivariate_normal",
            "location_scale": "cauchy folded logistic_normal normal uniform von_mises",
            "transforms": "joined_transforms scalar_transforms"},
        "nn": {"activation": "piecewise", "loss": "margins", "multi_head": "scaled_attention"},
        "optim": {"adagrad": "adadelta adafactor rmsprop", "adam": "adamax nadam radam sparse_adam", "sgd": "asgd muon rprop"},
        "optim.lr_scheduler": {"cyclic": "cosine", "scheduler": "plateau sequence"},
    }.items() for new, olds in joined.items() for old in olds.split()},
}


class _Moved:
    """The finder and loader of these names, which Python asks once it has found no file."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Python makes an empty module, whose place the module of today takes."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_whole(MOVED[module.__name__])


sys.meta_path.append(_Moved())  # type: ignore[arg-type]
