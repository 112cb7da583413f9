"""Calls that the trie knows, recorded without Python.

    calls         KnownCalls: by Python at first, later by machine code
    native        that machine code, and the objects that it refers to
    call_ir       a call's step of the trace, and the tensor of its result
    key_ir        its key, of the tokens of
    tensor_ir     tensors, which enter the trace, and
    setting_ir    numbers, names, dtypes and tuples of ints
"""
