"""Object files of exported programs: a C program links one with libc alone, and computes what the function does."""

import shutil
import subprocess

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.pytree import leaves_of
from tests.shipping import programs

CC = shutil.which("cc") or shutil.which("gcc")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")
_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "net.h"

/* argv: weights, number of inputs, then for each input its file, then for each output a file and its bytes */
int main(int argc, char **argv) {
    const void *inputs[8]; void *outputs[8];
    int given = atoi(argv[2]), results = (argc - 3 - given) / 2;
    for (int k = 0; k < given; k++) {
        FILE *file = fopen(argv[3 + k], "rb");
        void *memory = malloc(1 << 16);
        if (!file || fread(memory, 1, 1 << 16, file) == 0) return 90;
        inputs[k] = memory;
    }
    for (int k = 0; k < results; k++) outputs[k] = malloc(atoi(argv[3 + given + 2 * k + 1]));
    if (net_run(inputs, outputs) != -1) return 91;  /* nothing is loaded */
    if (net_load("missing") != 1 || net_load(argv[3]) != 2) return 92;
    int status = net_load(argv[1]);
    if (!status) status = net_run(inputs, outputs);
    if (!status) status = net_run(inputs, outputs);  /* again, with the same memory */
    for (int k = 0; k < results; k++) {
        FILE *file = fopen(argv[3 + given + 2 * k], "wb");
        fwrite(outputs[k], 1, atoi(argv[3 + given + 2 * k + 1]), file);
        fclose(file);
    }
    net_free();
    return status;
}
"""


def run_in_c(folder, wanted, *arguments):
    """The exit status of a C program that runs `net` on the arguments, and its results."""
    (folder / "main.c").write_text(_MAIN)
    command = [CC, "-Wall", "-Werror", "-Wl,--no-as-needed", "main.c", "net.o", "-lm", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    files = []
    for k, x in enumerate(arguments):
        (folder / f"in{k}").write_bytes(np.ascontiguousarray(x.numpy()).tobytes())
        files.append(f"in{k}")
    results = [part for k, one in enumerate(wanted) for part in (f"out{k}", str(one.nbytes))]
    ran = subprocess.run(["./main", "net.weights", str(len(arguments)), *files, *results], cwd=folder, env={}, check=False)
    return ran.returncode, [np.fromfile(folder / f"out{k}", one.dtype).reshape(one.shape) for k, one in enumerate(wanted)]


def values_of(function, arguments):
    return [leaf.detach().numpy() for leaf in leaves_of(function(*arguments)) if isinstance(leaf, genesis.Tensor)]


def layouts(x):
    """Results of which none is a buffer of the program's own."""
    y = x * 3
    return y.T, x, y.T, y[1:, ::2], y.sum(), (y > 0).T, genesis.arange(5) * 0.5


@needs_cc
@pytest.mark.parametrize("function, arguments", [
    (programs.mlp(), [genesis.randn(4, 5)]), (programs.cnn(), [genesis.randn(2, 2, 8, 8)]),
    (programs.GPT().eval(), [genesis.randint(0, 17, (2, 16))]), (nn.LSTM(3, 4), [genesis.randn(5, 2, 3)]),
    (layouts, [genesis.randn(3, 4)]), (genesis.ao.quantization.quantize_dynamic(programs.mlp()), [genesis.randn(4, 5)]),
    (lambda x, y: (x @ y).sort(0).values.softmax(0), [genesis.randn(40, 6), genesis.randn(6, 3)]),
], ids=["mlp", "cnn", "gpt", "lstm", "layouts", "int8", "sorted"])
def test_a_c_program_computes_what_the_function_does(tmp_path, function, arguments):
    wanted = values_of(function, arguments)
    genesis.export(function, *arguments).to_object(tmp_path, "net")
    status, found = run_in_c(tmp_path, wanted, *arguments)
    assert status == 0
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@needs_cc
def test_an_index_out_of_range_is_a_status(tmp_path):
    table = genesis.randn(3, 2)
    genesis.export(lambda i: table[i], genesis.tensor([0, 2])).to_object(tmp_path, "net")
    wanted = [np.zeros((2, 2), np.float32)]
    assert run_in_c(tmp_path, wanted, genesis.tensor([0, 7]))[0] == 4
    assert run_in_c(tmp_path, wanted, genesis.tensor([1, 2]))[0] == 0


def test_what_needs_python_is_refused_with_its_line(tmp_path):
    program = genesis.export(genesis.linalg.inv, genesis.eye(3))
    assert program(genesis.eye(3)).tolist() == genesis.eye(3).tolist()
    with pytest.raises(genesis.ExportError, match=r"is computed by Python's libraries"):
        program.to_object(tmp_path)
    norm = genesis.export(nn.BatchNorm1d(3), genesis.randn(4, 3))
    with pytest.raises(genesis.ExportError, match="running_mean"):
        norm.to_object(tmp_path)
    with pytest.raises(ValueError, match="identifier"):
        program.to_object(tmp_path, "my net")
