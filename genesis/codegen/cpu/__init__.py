"""Programs for the CPU: LLVM IR with explicit vectors, for loop nests and for kernels that are none."""
