"""Calls that the trie knows, recorded without Python.

    calls         KnownCalls: by Python at first, later by machine code
    native        that machine code, and the objects that it refers to
    thread_ir     the lock, modes and the user's line, in
    trace_ir      the thread's open trace, of
    record_ir     a call's step of the trace, and the tensors of its results
    key_ir        its key, of the tokens of
    tensor_ir     tensors, which enter the trace, and
    setting_ir    numbers, names, dtypes and tuples of ints
"""
