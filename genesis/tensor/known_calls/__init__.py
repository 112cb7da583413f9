"""Calls that the trie knows, recorded without Python, and looks at values that a plan computes.

    calls         KnownCalls: by Python at first, later by machine code
    native        that machine code, and the objects that it refers to
    call_ir       its modules
    lock_ir       a function of CPython's that holds the lock: for a look
    look_ir       the flush of a known plan, and the numbers in memory of
    present_ir    the present array of a tensor; for a call
    thread_ir     modes and the user's line, in
    trace_ir      the thread's open trace, of
    record_ir     a call's step of the trace, and the tensors of its results
    key_ir        its key, of the tokens of
    tensor_ir     tensors, which enter the trace, and
    setting_ir    numbers, names, dtypes and tuples of ints
"""
