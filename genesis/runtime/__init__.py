"""The bottom floor: memory, compiled kernels, the native executor and its threads, the random numbers' state.

It imports nothing else of the package. From the kernel to the run:

    machine_code    LLVM IR -> object code (numba_compiler, here or in workers) -> address
    kernel_cache    kernels by source: in memory, on disk (private_directory), or compiled, each by one process (compile_claims)
    native          Program: launches of kernels that one native call runs (executor_ir, team, team_ir)
    instructions    guards and program runs without the Python interpreter (instruction_set, instructions_ir)
    memory          buffers from a caching pool
    rng, counters   seeds and draws; counts of compiles, loads, runs
    loaded_source   whether the package's files are what was loaded, and a digest of them: the names of what is on disk
"""
