"""From a schedule to a program: a backend for each type of device, which emits kernels and a table of launches."""
