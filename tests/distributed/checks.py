"""What scripts on ranks share: inputs that every rank can compute for all ranks, and the checks that a script names."""

import sys
import time
import traceback

import numpy as np

import genesis
import genesis.distributed as dist

DONE = "passed"


def given(rank, shape, dtype=np.float64, seed=0):
    """The tensor of a rank, as NumPy has it."""
    random = np.random.default_rng((seed, rank))
    if np.dtype(dtype).kind in "iu":
        return random.integers(0, 7, shape).astype(dtype)
    values = random.standard_normal(shape)
    return (values + 1j * random.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def all_given(shape, dtype=np.float64, seed=0):
    return [given(rank, shape, dtype, seed) for rank in range(dist.get_world_size())]


def mine(shape, dtype=np.float64, seed=0, requires_grad=False):
    return genesis.tensor(given(dist.get_rank(), shape, dtype, seed), requires_grad=requires_grad)


def equal(found, wanted, exact=False):
    values = found.detach().numpy() if isinstance(found, genesis.Tensor) else np.asarray(found)
    assert values.shape == np.shape(wanted), (values.shape, np.shape(wanted))
    assert np.dtype(np.asarray(wanted).dtype) == values.dtype, (np.asarray(wanted).dtype, values.dtype)
    np.testing.assert_allclose(values, wanted, rtol=0 if exact else 1e-6, atol=0 if exact else 1e-6)


def raises(kind, said, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as problem:
        assert said in str(problem), f"{said!r} is not in {problem}"
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def run(*parts, timeout=30, backend=None):
    """Run the checks of each part, a (namespace, names of checks), on one group: those whose names begin with "check_" where
    none is named; print what passed, on rank 0. A namespace alone has those that the command line names.
    """
    dist.init_process_group(backend, timeout=timeout)
    for part in parts:
        namespace, named = part if isinstance(part, tuple) else (part, sys.argv[1:])
        for name, function in [*namespace.items()]:  # warnings leave a registry there
            if name in named if named else name.startswith("check_"):
                start = time.monotonic()
                try:
                    function()
                except BaseException:
                    print(f"{name} failed on rank {dist.get_rank()}:\n{traceback.format_exc()}", file=sys.stderr)
                    raise
                if dist.get_rank() == 0:
                    print(f"{DONE} {name} {time.monotonic() - start:.2f}", flush=True)
    dist.destroy_process_group()
