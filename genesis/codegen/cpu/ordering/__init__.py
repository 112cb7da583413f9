"""Rows in order: kernels that sort, select and count places. Elements become keys, keys with positions pairs."""
