"""PyTorch's APIs beyond arrays and networks, as far as they apply here: compilers, settings, processes."""
