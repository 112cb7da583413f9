"""Kernels that sort, select and find nonzero elements. Elements become integer keys; keys with positions are pairs."""
