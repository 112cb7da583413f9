"""Legalization, a small graph in and out."""

import pytest

from genesis.lower.legalize import force_materialized, legalize
from tests.lower.text import cases, parsed, plain, shown


def legalized(text, saved=0):
    """`saved` of the outputs, the last ones, are only read."""
    return shown(legalize(parsed(text), saved))


CASES = cases("""
---- matrix products ----

# a product of float16 is one of float32
%0 = input() : float16[2, 8]
%1 = input() : float16[8, 3]
%2 = matmul(%0, %1) : float16[2, 3]
return %2
becomes
%0 = input() : float16[2, 8]
%1 = input() : float16[8, 3]
%2 = cast(%0, dtype='float32') : float32[2, 8]
%3 = cast(%1, dtype='float32') : float32[8, 3]
%4 = matmul(%2, %3) : float32[2, 3]
%5 = cast(%4, dtype='float16') : float16[2, 3]
return %5

# a row times a transposed matrix of 16 bits is a sum along the rows that lie in memory
%0 = input() : bfloat16[1, 40]
%1 = input() : bfloat16[3, 40]
%2 = permute(%1, shape=(40, 3), strides=(1, 40), offset=0) : bfloat16[40, 3]
%3 = matmul(%0, %2) : bfloat16[1, 3]
return %3
becomes
%0 = input() : bfloat16[1, 40]
%1 = input() : bfloat16[3, 40]
%2 = permute(%1, shape=(40, 3), strides=(1, 40), offset=0) : bfloat16[40, 3]
%3 = cast(%0, dtype='float32') : float32[1, 40]
%4 = cast(%2, dtype='float32') : float32[40, 3]
%5 = reshape(%3, shape=(1, 1, 40), strides=(40, 40, 1), offset=0) : float32[1, 1, 40]
%6 = expand(%5, shape=(1, 3, 40), strides=(40, 0, 1), offset=0) : float32[1, 3, 40]
%7 = permute(%4, shape=(3, 40), strides=(1, 3), offset=0) : float32[3, 40]
%8 = reshape(%7, shape=(1, 3, 40), strides=(120, 40, 1), offset=0) : float32[1, 3, 40]
%9 = mul(%6, %8) : float32[1, 3, 40]
%10 = sum(%9, axes=(2,)) : float32[1, 3]
%11 = cast(%10, dtype='bfloat16') : bfloat16[1, 3]
return %11

# a product of integers is a sum of products
%0 = input() : int64[2, 8]
%1 = input() : int64[8, 3]
%2 = matmul(%0, %1) : int64[2, 3]
return %2
becomes
%0 = input() : int64[2, 8]
%1 = input() : int64[8, 3]
%2 = reshape(%0, shape=(2, 1, 8), strides=(8, 8, 1), offset=0) : int64[2, 1, 8]
%3 = expand(%2, shape=(2, 3, 8), strides=(8, 0, 1), offset=0) : int64[2, 3, 8]
%4 = permute(%1, shape=(3, 8), strides=(1, 3), offset=0) : int64[3, 8]
%5 = reshape(%4, shape=(1, 3, 8), strides=(24, 8, 1), offset=0) : int64[1, 3, 8]
%6 = expand(%5, shape=(2, 3, 8), strides=(0, 8, 1), offset=0) : int64[2, 3, 8]
%7 = mul(%3, %6) : int64[2, 3, 8]
%8 = sum(%7, axes=(2,)) : int64[2, 3]
return %8

# a product of a row with a matrix goes through the matrix row by row
%0 = input() : float32[1, 8]
%1 = input() : float32[8, 3]
%2 = matmul(%0, %1) : float32[1, 3]
return %2
becomes
%0 = input() : float32[1, 8]
%1 = input() : float32[8, 3]
%2 = permute(%0, shape=(8, 1), strides=(1, 8), offset=0) : float32[8, 1]
%3 = reshape(%2, shape=(8, 1, 1), strides=(1, 1, 1), offset=0) : float32[8, 1, 1]
%4 = expand(%3, shape=(8, 1, 3), strides=(1, 1, 0), offset=0) : float32[8, 1, 3]
%5 = reshape(%1, shape=(8, 1, 3), strides=(3, 3, 1), offset=0) : float32[8, 1, 3]
%6 = mul(%4, %5) : float32[8, 1, 3]
%7 = sum(%6, axes=(0,)) : float32[1, 3]
return %7

# a transposed operand is read where it is
%0 = input() : float32[8, 2]
%1 = input() : float32[8, 3]
%2 = transpose(%0, shape=(2, 8), strides=(1, 2), offset=0) : float32[2, 8]
%3 = matmul(%2, %1) : float32[2, 3]
return %3

# rows with gaps between them are read where they are
%0 = input() : float32[2, 16]
%1 = input() : float32[8, 3]
%2 = slice(%0, shape=(2, 8), strides=(16, 1), offset=0) : float32[2, 8]
%3 = matmul(%2, %1) : float32[2, 3]
return %3

# an operand with gaps in its rows is copied once for two readers
%0 = input() : float32[2, 16]
%1 = input() : float32[8, 3]
%2 = input() : float32[8, 3]
%3 = slice(%0, shape=(2, 8), strides=(16, 2), offset=0) : float32[2, 8]
%4 = matmul(%3, %1) : float32[2, 3]
%5 = matmul(%3, %2) : float32[2, 3]
return %4, %5
becomes
%0 = input() : float32[2, 16]
%1 = input() : float32[8, 3]
%2 = input() : float32[8, 3]
%3 = slice(%0, shape=(2, 8), strides=(16, 2), offset=0) : float32[2, 8]
%4 = clone(%3) : float32[2, 8]
%5 = matmul(%4, %1) : float32[2, 3]
%6 = matmul(%4, %2) : float32[2, 3]
return %5, %6

# an input with gaps is copied
%0 = input(strides=(16, 2)) : float32[2, 8]
%1 = input() : float32[8, 3]
%2 = matmul(%0, %1) : float32[2, 3]
return %2
becomes
%0 = input(strides=(16, 2)) : float32[2, 8]
%1 = input() : float32[8, 3]
%2 = clone(%0) : float32[2, 8]
%3 = matmul(%2, %1) : float32[2, 3]
return %3

# an operand that is no memory is copied
%0 = constant(value=1.0) : float32[]
%1 = expand(%0, shape=(2, 8), strides=(0, 0), offset=0) : float32[2, 8]
%2 = input() : float32[8, 3]
%3 = matmul(%1, %2) : float32[2, 3]
return %3
becomes
%0 = constant(value=1.0) : float32[]
%1 = expand(%0, shape=(2, 8), strides=(0, 0), offset=0) : float32[2, 8]
%2 = input() : float32[8, 3]
%3 = clone(%1) : float32[2, 8]
%4 = matmul(%3, %2) : float32[2, 3]
return %4

# a view of a view is copied
%0 = input() : float32[6, 5]
%1 = transpose(%0, shape=(5, 6), strides=(1, 5), offset=0) : float32[5, 6]
%2 = reshape(%1, shape=(6, 5), strides=(5, 1), offset=0) : float32[6, 5]
%3 = input() : float32[5, 7]
%4 = matmul(%2, %3) : float32[6, 7]
return %4
becomes
%0 = input() : float32[6, 5]
%1 = transpose(%0, shape=(5, 6), strides=(1, 5), offset=0) : float32[5, 6]
%2 = reshape(%1, shape=(6, 5), strides=(5, 1), offset=0) : float32[6, 5]
%3 = input() : float32[5, 7]
%4 = clone(%2) : float32[6, 5]
%5 = matmul(%4, %3) : float32[6, 7]
return %5

# windows are not copied, read as they lie or turned
%0 = input() : float32[6, 6]
%1 = conv2d(%0, shape=(3, 3, 4, 4), strides=(6, 1, 6, 1), offset=0) : float32[3, 3, 4, 4]
%2 = reshape(%1, shape=(9, 16), strides=(16, 1), offset=0) : float32[9, 16]
%3 = permute(%1, shape=(16, 9), strides=(1, 16), offset=0) : float32[16, 9]
%4 = input() : float32[5, 9]
%5 = matmul(%4, %2) : float32[5, 16]
%6 = matmul(%5, %3) : float32[5, 9]
return %6

# of 16 bits those are converted that windows show, not the windows
%0 = input() : bfloat16[6, 6]
%1 = conv2d(%0, shape=(3, 3, 4, 4), strides=(6, 1, 6, 1), offset=0) : bfloat16[3, 3, 4, 4]
%2 = reshape(%1, shape=(9, 16), strides=(16, 1), offset=0) : bfloat16[9, 16]
%3 = input() : bfloat16[5, 9]
%4 = matmul(%3, %2) : float32[5, 16]
return %4
becomes
%0 = input() : bfloat16[6, 6]
%1 = conv2d(%0, shape=(3, 3, 4, 4), strides=(6, 1, 6, 1), offset=0) : bfloat16[3, 3, 4, 4]
%2 = reshape(%1, shape=(9, 16), strides=(16, 1), offset=0) : bfloat16[9, 16]
%3 = input() : bfloat16[5, 9]
%4 = cast(%3, dtype='float32') : float32[5, 9]
%5 = cast(%0, dtype='float32') : float32[6, 6]
%6 = conv2d(%5, shape=(3, 3, 4, 4), strides=(6, 1, 6, 1), offset=0) : float32[3, 3, 4, 4]
%7 = reshape(%6, shape=(9, 16), strides=(16, 1), offset=0) : float32[9, 16]
%8 = matmul(%4, %7) : float32[5, 16]
return %8

# a batch over two axes is walked
%0 = input() : float32[5, 4, 2, 8]
%1 = input() : float32[5, 8, 6]
%2 = expand(%1, shape=(5, 4, 8, 6), strides=(48, 0, 6, 1), offset=0) : float32[5, 4, 8, 6]
%3 = matmul(%0, %2) : float32[5, 4, 2, 6]
return %3

# a batch over three axes that do not merge is copied
%0 = input() : float32[5, 4, 3, 2, 8]
%1 = input() : float32[3, 8, 6]
%2 = permute(%0, shape=(3, 4, 5, 2, 8), strides=(16, 48, 192, 8, 1), offset=0) : float32[3, 4, 5, 2, 8]
%3 = expand(%1, shape=(3, 4, 5, 8, 6), strides=(48, 0, 0, 6, 1), offset=0) : float32[3, 4, 5, 8, 6]
%4 = matmul(%2, %3) : float32[3, 4, 5, 2, 6]
return %4
becomes
%0 = input() : float32[5, 4, 3, 2, 8]
%1 = input() : float32[3, 8, 6]
%2 = permute(%0, shape=(3, 4, 5, 2, 8), strides=(16, 48, 192, 8, 1), offset=0) : float32[3, 4, 5, 2, 8]
%3 = expand(%1, shape=(3, 4, 5, 8, 6), strides=(48, 0, 0, 6, 1), offset=0) : float32[3, 4, 5, 8, 6]
%4 = clone(%2) : float32[3, 4, 5, 2, 8]
%5 = clone(%3) : float32[3, 4, 5, 8, 6]
%6 = matmul(%4, %5) : float32[3, 4, 5, 2, 6]
return %6

---- reductions ----

# a reduction of one element is a view
%0 = input() : float32[3, 1]
%1 = exp(%0) : float32[3, 1]
%2 = sum(%1, axes=(1,)) : float32[3]
%3 = neg(%2) : float32[3]
return %3
becomes
%0 = input() : float32[3, 1]
%1 = exp(%0) : float32[3, 1]
%2 = reshape(%1, shape=(3,), strides=(1,), offset=0) : float32[3]
%3 = neg(%2) : float32[3]
return %3

# the place of the largest of one is zero
%0 = input() : float32[3, 1]
%1 = argmax(%0, axes=(1,)) : int64[3]
%2 = neg(%1) : int64[3]
return %2
becomes
%0 = input() : float32[3, 1]
%1 = constant(value=0) : int64[]
%2 = expand(%1, shape=(3,), strides=(0,), offset=0) : int64[3]
%3 = neg(%2) : int64[3]
return %3

---- outputs ----

# a broadcast output is copied
%0 = input() : float32[3]
%1 = exp(%0) : float32[3]
%2 = expand(%1, shape=(2, 3), strides=(0, 1), offset=0) : float32[2, 3]
return %2
becomes
%0 = input() : float32[3]
%1 = exp(%0) : float32[3]
%2 = expand(%1, shape=(2, 3), strides=(0, 1), offset=0) : float32[2, 3]
%3 = clone(%2) : float32[2, 3]
return %3

# a whole view is an output as it is
%0 = input() : float32[6]
%1 = exp(%0) : float32[6]
%2 = reshape(%1, shape=(2, 3), strides=(3, 1), offset=0) : float32[2, 3]
return %2

# two outputs do not share memory
%0 = input() : float32[3]
%1 = exp(%0) : float32[3]
%2 = reshape(%1, shape=(1, 3), strides=(3, 1), offset=0) : float32[1, 3]
return %1, %2
becomes
%0 = input() : float32[3]
%1 = exp(%0) : float32[3]
%2 = reshape(%1, shape=(1, 3), strides=(3, 1), offset=0) : float32[1, 3]
%3 = clone(%2) : float32[1, 3]
return %1, %3

---- gathers and host operations ----

# what is gathered from is in memory
%0 = iota() : int64[4]
%1 = input() : int64[2]
%2 = gather(%0, %1, dim=0) : int64[2]
return %2
becomes
%0 = iota() : int64[4]
%1 = input() : int64[2]
%2 = clone(%0) : int64[4]
%3 = gather(%2, %1, dim=0) : int64[2]
return %3

# what python computes from is in memory
%0 = iota() : int64[4]
%1 = cumsum(%0, dim=0) : int64[4]
return %1
becomes
%0 = iota() : int64[4]
%1 = clone(%0) : int64[4]
%2 = cumsum(%1, dim=0) : int64[4]
return %2
""")


@pytest.mark.parametrize("claim", CASES)
def test_claim(claim):
    before, after = CASES[claim]
    assert legalized(before) == after


# ---- outputs ----


def test_what_is_only_read_may_share_memory():
    graph = plain("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = slice(%1, shape=(2,), strides=(1,), offset=1) : float32[2]
        return %1, %2
    """)
    assert legalized(graph, saved=1) == graph


def test_what_is_only_read_is_copied_if_an_element_stands_for_several():
    assert legalized("""
        %0 = input() : float32[3]
        %1 = expand(%0, shape=(2, 3), strides=(0, 1), offset=0) : float32[2, 3]
        return %1
    """, saved=1) == plain("""
        %0 = input() : float32[3]
        %1 = expand(%0, shape=(2, 3), strides=(0, 1), offset=0) : float32[2, 3]
        %2 = clone(%1) : float32[2, 3]
        return %2
    """)


def test_a_value_set_apart_is_read_from_a_copy():
    graph = parsed("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = neg(%1) : float32[3]
        return %1, %2
    """)
    assert shown(force_materialized(graph, {1})) == plain("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = clone(%1, materialize=True) : float32[3]
        %3 = neg(%2) : float32[3]
        return %2, %3
    """)


def test_products_with_pixels_taken_apart_share_one_copy_in_the_order_of_pixels():
    """Both gradients of a convolution that is transposed, whose windows do not overlap, read every second element."""
    nodes = parsed("""
%0 = input() : float32[16, 64]
%1 = input() : float32[8, 32, 32]
%2 = view(%1, shape=(8, 2, 2, 16, 16), strides=(1024, 32, 1, 64, 2), offset=0, label='windows') : float32[8, 2, 2, 16, 16]
%3 = reshape(%2, shape=(32, 256), strides=(256, 1), offset=0) : float32[32, 256]
%4 = input() : float32[16, 32]
%5 = matmul(%4, %3) : float32[16, 256]
%6 = permute(%3, shape=(256, 32), strides=(1, 256), offset=0) : float32[256, 32]
%7 = input() : float32[16, 256]
%8 = matmul(%7, %6) : float32[16, 32]
return %5, %8
""")
    copies = [node for node in legalize(nodes).nodes if node.op == "clone"]
    assert [node.shape for node in copies] == [(32, 256)]
