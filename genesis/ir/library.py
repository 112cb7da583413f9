"""The name of the library that values are printed under: `genesis.float32`, or `torch.float32` in PyTorch's place."""


class Library:
    """`Library.name` is read whenever a dtype or a size is printed; `genesis.as_torch.install` sets it."""

    name: str = "genesis"
