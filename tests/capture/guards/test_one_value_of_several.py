"""Tensors that held one value when a call was recorded need not in the next: what parts them makes another program."""

import numpy as np
import torch

import genesis


def trained(lib, wrap):
    """ASGD's average is its parameter in the first steps; a rate that changes has the call recorded anew by then."""
    parameter, rate, seen = lib.ones(3, requires_grad=True), [1.5], []
    optimizer = lib.optim.ASGD([parameter], lr=0.05)

    def step(x):
        optimizer.zero_grad()
        (parameter * x * rate[0]).sum().backward()
        optimizer.step()

    step = wrap(step)
    for k in range(8):
        rate[0] = 1.5 if k < 4 else 2.5
        step(lib.arange(3.0))
        if k == 5:
            parameter.data[1:] = 0.3
        seen.append(parameter.detach().numpy().copy())
    return seen, step


def test_a_parameter_written_between_steps_is_not_read_from_its_average():
    want, _ = trained(torch, lambda f: f)
    found, compiled = trained(genesis, genesis.compile)
    np.testing.assert_allclose(found, want, rtol=1e-6)
    assert sum(entry.replays for entry in compiled.entries) >= 4
