"""What PyTorch has beside arrays and networks, as far as it has a meaning here: compilers, settings, processes."""
