"""The library that a user takes genesis for: `genesis.float32` is printed as `torch.float32` in PyTorch's place."""


class Library:
    """`Library.name` is read whenever a dtype or a size is printed; `genesis.as_torch.install` sets it.

    `strict`: whether `backward` of what depends on no leaf raises, as PyTorch's.
    """

    name: str = "genesis"
    strict: bool = False
