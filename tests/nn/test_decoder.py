"""The Transformer's decoder, and both halves together, against torch's."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
MEMORY, TARGET = RANDOM.normal(size=(2, 5, 8)), RANDOM.normal(size=(2, 3, 8))
LATER = np.triu(np.full((3, 3), -np.inf), 1)
PADDING = np.array([[False, False, True, False, True], [False] * 5])
SETTINGS = [{}, {"norm_first": True, "activation": "gelu"}, {"bias": False, "layer_norm_eps": 1e-3}]


def found_by(modules, masks):
    """Results and gradients of modules of both libraries with the same parameters."""
    theirs, ours = modules
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    found = []
    for library, module in ((genesis, ours), (torch, theirs)):
        first, second = (library.tensor(a, requires_grad=True) for a in (TARGET, MEMORY))
        given = {k: library.tensor(v) if isinstance(v, np.ndarray) else v for k, v in masks.items()}
        inputs = (second, first) if type(module).__name__ == "Transformer" else (first, second)
        y = module(*inputs, **given)
        (y**3).sum().backward()
        found.append([y, first.grad, second.grad, *[p.grad for p in module.parameters()]])
    return found


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("masks", [{}, {"tgt_mask": LATER, "memory_key_padding_mask": PADDING}], ids=["open", "masked"])
def test_a_decoder_is_torchs(settings, masks):
    modules = []
    for library in (torch, genesis):
        layer = library.nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True, dtype=library.float64, **settings)
        modules.append(library.nn.TransformerDecoder(layer, 2, library.nn.LayerNorm(8, dtype=library.float64)))
    assert_close(*found_by(modules, masks), scale=1000)


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
def test_both_halves_are_torchs(settings):
    modules = [library.nn.Transformer(8, 2, 1, 2, 16, dropout=0.0, batch_first=True, dtype=library.float64, **settings)
               for library in (torch, genesis)]
    masks = {"tgt_mask": LATER, "src_key_padding_mask": PADDING, "memory_key_padding_mask": PADDING}
    assert_close(*found_by(modules, masks), scale=1000)


def test_masks_of_later_places_are_torchs():
    ours, theirs = (m.nn.Transformer.generate_square_subsequent_mask(3) for m in (genesis, torch))
    assert_close(ours, theirs)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="TransformerDecoderLayer: activation must be"):
        nn.TransformerDecoderLayer(4, 2, 4, activation="tanh")
    with pytest.raises(ValueError, match="want 8 features"):
        nn.Transformer(8, 2, 1, 1, 8)(genesis.ones(3, 1, 8), genesis.ones(3, 1, 4))
