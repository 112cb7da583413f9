"""Calls that the trie knows, views in memory, and looks at values that a known plan computes, without Python.

    calls         KnownCalls: by Python at first, later by machine code
    native        that machine code, and the objects that it refers to
    call_ir       its modules
    lock_ir       a function of CPython's that holds the lock: for a look
    look_ir       the flush of a known plan, and the numbers in memory; for a view
    view_ir       a tensor over a part of memory; for a write
    write_ir      elements put into memory that a tensor alone owns, by NumPy
    present_ir    the present array of a tensor, for all; for a call
    take_ir       a tensor that takes the result, in place
    thread_ir     modes and the user's line, in
    trace_ir      the thread's open trace, of
    record_ir     a call's step of the trace, and the tensors of its results
    key_ir        its key, of the tokens of
    tensor_ir     tensors, which enter the trace, and
    setting_ir    numbers, names, dtypes and tuples of ints
"""
