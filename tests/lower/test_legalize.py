"""Legalization, a small graph in and out."""

from genesis.lower.legalize import legalize, set_apart
from tests.lower.text import parsed, plain, shown


def legalized(text, saved=0):
    """`saved` of the outputs, the last ones, are only read."""
    return shown(legalize(parsed(text), saved))


def unchanged(text, saved=0):
    return legalized(text, saved) == plain(text)


# ---- matrix products ----


def test_a_product_of_float16_is_one_of_float32():
    assert legalized("""
        %0 = input() : float16[2, 8]
        %1 = input() : float16[8, 3]
        %2 = matmul(%0, %1) : float16[2, 3]
        return %2
    """) == plain("""
        %0 = input() : float16[2, 8]
        %1 = input() : float16[8, 3]
        %2 = cast(%0, dtype='float32') : float32[2, 8]
        %3 = cast(%1, dtype='float32') : float32[8, 3]
        %4 = matmul(%2, %3) : float32[2, 3]
        %5 = cast(%4, dtype='float16') : float16[2, 3]
        return %5
    """)


def test_a_product_of_integers_is_a_sum_of_products():
    assert legalized("""
        %0 = input() : int64[2, 8]
        %1 = input() : int64[8, 3]
        %2 = matmul(%0, %1) : int64[2, 3]
        return %2
    """) == plain("""
        %0 = input() : int64[2, 8]
        %1 = input() : int64[8, 3]
        %2 = reshape(%0, shape=(2, 1, 8), strides=(8, 8, 1), offset=0) : int64[2, 1, 8]
        %3 = expand(%2, shape=(2, 3, 8), strides=(8, 0, 1), offset=0) : int64[2, 3, 8]
        %4 = transpose(%1, shape=(3, 8), strides=(1, 3), offset=0) : int64[3, 8]
        %5 = reshape(%4, shape=(1, 3, 8), strides=(24, 8, 1), offset=0) : int64[1, 3, 8]
        %6 = expand(%5, shape=(2, 3, 8), strides=(0, 8, 1), offset=0) : int64[2, 3, 8]
        %7 = mul(%3, %6) : int64[2, 3, 8]
        %8 = sum(%7, axes=(2,)) : int64[2, 3]
        return %8
    """)


def test_a_transposed_operand_is_read_where_it_is():
    assert unchanged("""
        %0 = input() : float32[8, 2]
        %1 = input() : float32[8, 3]
        %2 = transpose(%0, shape=(2, 8), strides=(1, 2), offset=0) : float32[2, 8]
        %3 = matmul(%2, %1) : float32[2, 3]
        return %3
    """)


def test_rows_with_gaps_between_them_are_read_where_they_are():
    assert unchanged("""
        %0 = input() : float32[2, 16]
        %1 = input() : float32[8, 3]
        %2 = slice(%0, shape=(2, 8), strides=(16, 1), offset=0) : float32[2, 8]
        %3 = matmul(%2, %1) : float32[2, 3]
        return %3
    """)


def test_an_operand_with_gaps_in_its_rows_is_copied_once_for_two_readers():
    assert legalized("""
        %0 = input() : float32[2, 16]
        %1 = input() : float32[8, 3]
        %2 = input() : float32[8, 3]
        %3 = slice(%0, shape=(2, 8), strides=(16, 2), offset=0) : float32[2, 8]
        %4 = matmul(%3, %1) : float32[2, 3]
        %5 = matmul(%3, %2) : float32[2, 3]
        return %4, %5
    """) == plain("""
        %0 = input() : float32[2, 16]
        %1 = input() : float32[8, 3]
        %2 = input() : float32[8, 3]
        %3 = slice(%0, shape=(2, 8), strides=(16, 2), offset=0) : float32[2, 8]
        %4 = clone(%3) : float32[2, 8]
        %5 = matmul(%4, %1) : float32[2, 3]
        %6 = matmul(%4, %2) : float32[2, 3]
        return %5, %6
    """)


def test_an_input_with_gaps_is_copied():
    assert legalized("""
        %0 = input(strides=(16, 2)) : float32[2, 8]
        %1 = input() : float32[8, 3]
        %2 = matmul(%0, %1) : float32[2, 3]
        return %2
    """) == plain("""
        %0 = input(strides=(16, 2)) : float32[2, 8]
        %1 = input() : float32[8, 3]
        %2 = clone(%0) : float32[2, 8]
        %3 = matmul(%2, %1) : float32[2, 3]
        return %3
    """)


def test_an_operand_that_is_no_memory_is_copied():
    assert legalized("""
        %0 = constant(value=1.0) : float32[]
        %1 = expand(%0, shape=(2, 8), strides=(0, 0), offset=0) : float32[2, 8]
        %2 = input() : float32[8, 3]
        %3 = matmul(%1, %2) : float32[2, 3]
        return %3
    """) == plain("""
        %0 = constant(value=1.0) : float32[]
        %1 = expand(%0, shape=(2, 8), strides=(0, 0), offset=0) : float32[2, 8]
        %2 = input() : float32[8, 3]
        %3 = clone(%1) : float32[2, 8]
        %4 = matmul(%3, %2) : float32[2, 3]
        return %4
    """)


def test_a_view_of_a_view_is_copied():
    assert legalized("""
        %0 = input() : float32[2, 3]
        %1 = transpose(%0, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
        %2 = reshape(%1, shape=(2, 3), strides=(3, 1), offset=0) : float32[2, 3]
        %3 = input() : float32[3, 5]
        %4 = matmul(%2, %3) : float32[2, 5]
        return %4
    """) == plain("""
        %0 = input() : float32[2, 3]
        %1 = transpose(%0, shape=(3, 2), strides=(1, 3), offset=0) : float32[3, 2]
        %2 = reshape(%1, shape=(2, 3), strides=(3, 1), offset=0) : float32[2, 3]
        %3 = input() : float32[3, 5]
        %4 = clone(%2) : float32[2, 3]
        %5 = matmul(%4, %3) : float32[2, 5]
        return %5
    """)


def test_a_batch_over_two_axes_is_walked():
    assert unchanged("""
        %0 = input() : float32[5, 4, 2, 8]
        %1 = input() : float32[5, 8, 6]
        %2 = expand(%1, shape=(5, 4, 8, 6), strides=(48, 0, 6, 1), offset=0) : float32[5, 4, 8, 6]
        %3 = matmul(%0, %2) : float32[5, 4, 2, 6]
        return %3
    """)


def test_a_batch_over_three_axes_that_do_not_merge_is_copied():
    assert legalized("""
        %0 = input() : float32[5, 4, 3, 2, 8]
        %1 = input() : float32[3, 8, 6]
        %2 = permute(%0, shape=(3, 4, 5, 2, 8), strides=(16, 48, 192, 8, 1), offset=0) : float32[3, 4, 5, 2, 8]
        %3 = expand(%1, shape=(3, 4, 5, 8, 6), strides=(48, 0, 0, 6, 1), offset=0) : float32[3, 4, 5, 8, 6]
        %4 = matmul(%2, %3) : float32[3, 4, 5, 2, 6]
        return %4
    """) == plain("""
        %0 = input() : float32[5, 4, 3, 2, 8]
        %1 = input() : float32[3, 8, 6]
        %2 = permute(%0, shape=(3, 4, 5, 2, 8), strides=(16, 48, 192, 8, 1), offset=0) : float32[3, 4, 5, 2, 8]
        %3 = expand(%1, shape=(3, 4, 5, 8, 6), strides=(48, 0, 0, 6, 1), offset=0) : float32[3, 4, 5, 8, 6]
        %4 = clone(%2) : float32[3, 4, 5, 2, 8]
        %5 = clone(%3) : float32[3, 4, 5, 8, 6]
        %6 = matmul(%4, %5) : float32[3, 4, 5, 2, 6]
        return %6
    """)


# ---- reductions ----


def test_a_reduction_of_one_element_is_a_view():
    assert legalized("""
        %0 = input() : float32[3, 1]
        %1 = exp(%0) : float32[3, 1]
        %2 = sum(%1, axes=(1,)) : float32[3]
        %3 = neg(%2) : float32[3]
        return %3
    """) == plain("""
        %0 = input() : float32[3, 1]
        %1 = exp(%0) : float32[3, 1]
        %2 = reshape(%1, shape=(3,), strides=(1,), offset=0) : float32[3]
        %3 = neg(%2) : float32[3]
        return %3
    """)


def test_the_place_of_the_largest_of_one_is_zero():
    assert legalized("""
        %0 = input() : float32[3, 1]
        %1 = argmax(%0, axes=(1,)) : int64[3]
        %2 = neg(%1) : int64[3]
        return %2
    """) == plain("""
        %0 = input() : float32[3, 1]
        %1 = constant(value=0) : int64[]
        %2 = expand(%1, shape=(3,), strides=(0,), offset=0) : int64[3]
        %3 = neg(%2) : int64[3]
        return %3
    """)


# ---- outputs ----


def test_a_broadcast_output_is_copied():
    assert legalized("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = expand(%1, shape=(2, 3), strides=(0, 1), offset=0) : float32[2, 3]
        return %2
    """) == plain("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = expand(%1, shape=(2, 3), strides=(0, 1), offset=0) : float32[2, 3]
        %3 = clone(%2) : float32[2, 3]
        return %3
    """)


def test_a_whole_view_is_an_output_as_it_is():
    assert unchanged("""
        %0 = input() : float32[6]
        %1 = exp(%0) : float32[6]
        %2 = reshape(%1, shape=(2, 3), strides=(3, 1), offset=0) : float32[2, 3]
        return %2
    """)


def test_two_outputs_do_not_share_memory():
    assert legalized("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = reshape(%1, shape=(1, 3), strides=(3, 1), offset=0) : float32[1, 3]
        return %1, %2
    """) == plain("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = reshape(%1, shape=(1, 3), strides=(3, 1), offset=0) : float32[1, 3]
        %3 = clone(%2) : float32[1, 3]
        return %1, %3
    """)


def test_what_is_only_read_may_share_memory():
    assert unchanged("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = slice(%1, shape=(2,), strides=(1,), offset=1) : float32[2]
        return %1, %2
    """, saved=1)


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


# ---- gathers and host operations ----


def test_what_is_gathered_from_is_in_memory():
    assert legalized("""
        %0 = iota() : int64[4]
        %1 = input() : int64[2]
        %2 = gather(%0, %1, dim=0) : int64[2]
        return %2
    """) == plain("""
        %0 = iota() : int64[4]
        %1 = input() : int64[2]
        %2 = clone(%0) : int64[4]
        %3 = gather(%2, %1, dim=0) : int64[2]
        return %3
    """)


def test_what_python_computes_from_is_in_memory():
    assert legalized("""
        %0 = iota() : int64[4]
        %1 = cumsum(%0, dim=0) : int64[4]
        return %1
    """) == plain("""
        %0 = iota() : int64[4]
        %1 = clone(%0) : int64[4]
        %2 = cumsum(%1, dim=0) : int64[4]
        return %2
    """)


def test_a_value_set_apart_is_read_from_a_copy():
    graph = parsed("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = neg(%1) : float32[3]
        return %1, %2
    """)
    assert shown(set_apart(graph, {1})) == plain("""
        %0 = input() : float32[3]
        %1 = exp(%0) : float32[3]
        %2 = clone(%1, apart=True) : float32[3]
        %3 = neg(%2) : float32[3]
        return %2, %3
    """)
