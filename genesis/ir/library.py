"""The name that genesis prints as: when installed as PyTorch, `genesis.float32` prints as `torch.float32`."""


class Library:
    """`Library.name` is read whenever a dtype or a size is printed; `genesis.as_torch.install` sets it.

    `strict`: whether `backward` from a tensor that depends on no leaf raises, as in PyTorch.
    """

    name: str = "genesis"
    strict: bool = False
