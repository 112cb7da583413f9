"""Names around files, pipes of data, compilers and the engine: what they answer is what PyTorch's answer."""

import hashlib
import io
import os
import sys

import numpy as np
import pytest
import torch

import genesis
from genesis.as_torch.finder import look_up
from genesis.codegen.cpu.tiling import vector_bytes


def of(path: str):
    home, _, name = path.rpartition(".")
    return look_up(home, name)


@pytest.mark.parametrize("name", [
    "DEFAULT_PROTOCOL", "INT_SIZE", "LONG_SIZE", "SHORT_SIZE", "MAGIC_NUMBER", "PROTOCOL_VERSION", "STORAGE_KEY_SEPARATOR",
    "IS_WINDOWS", "MAP_PRIVATE", "MAP_SHARED",
])
def test_constants_of_files_are_pytorchs(name):
    assert of(f"torch.serialization.{name}") == getattr(torch.serialization, name)


def test_vector_instructions_are_told_as_pytorch_tells_them():
    ours = of("torch.backends.cpu.get_cpu_capability")()
    assert (ours, vector_bytes()) in {("AVX512", 64), ("AVX2", 32), ("DEFAULT", 16)}
    if not os.environ.get("GENESIS_TARGET") and torch.backends.cpu.get_cpu_capability() == "AVX2":
        assert ours == "AVX2"


def test_names_that_a_file_asks_for_are_told():
    file, theirs = io.BytesIO(), io.BytesIO()
    genesis.save({"a": genesis.ones(2), "b": np.random.RandomState(0), "c": {1}}, file)
    torch.save({"a": torch.ones(2), "b": np.random.RandomState(0), "c": {1}}, theirs)
    told = of("torch.serialization.get_unsafe_globals_in_checkpoint")
    for written in (file, theirs):
        written.seek(0)
        found = told(written)
        assert any("random" in name for name in found) and not any("Tensor" in name or "torch" in name for name in found)
    plain = io.BytesIO()
    genesis.save({"a": genesis.ones(2)}, plain)
    assert told(plain) == []


def test_locations_and_versions():
    storage = genesis.ones(2).storage()
    assert of("torch.serialization.location_tag")(storage) == torch.serialization.location_tag(torch.ones(2).storage()) == "cpu"
    assert of("torch.serialization.default_restore_location")(storage, "cpu") is storage
    with pytest.raises(RuntimeError, match="tagged with nowhere"):
        of("torch.serialization.default_restore_location")(storage, "nowhere")
    assert of("torch.serialization.storage_to_tensor_type")(storage) == "torch.FloatTensor"
    for version, at_least in (("1.2.3", (1, 2)), ("1.2.3", (1, 3)), ("2.0.1", (1, 9, 9))):
        module = type(sys)("module")
        module.__version__ = version
        answers = [lib.check_module_version_greater_or_equal(module, at_least) for lib in (
            torch.serialization, type("", (), {"check_module_version_greater_or_equal": staticmethod(
                of("torch.serialization.check_module_version_greater_or_equal"))}))]
        assert answers[0] == answers[1]
    lines, first, path = of("torch.serialization.get_source_lines_and_file")(of)
    assert lines[0].startswith("def of") and path == __file__ and first > 1


def test_pipes_of_data_make_others():
    class Numbers(of("torch.utils.data.IterDataPipe")):
        def __iter__(self):
            yield from range(7)

    odd = Numbers().filter(lambda x: x % 2).map(lambda x: x * 10)
    assert [*odd.batch(2)] == [[10, 30], [50]] and [*odd.batch(2, drop_last=True)] == [[10, 30]]
    assert sorted(Numbers().shuffle(buffer_size=3)) == [*range(7)]
    assert [*genesis.utils.data.DataLoader(Numbers(), batch_size=4)][1].tolist() == [4, 5, 6]

    class Squares(of("torch.utils.data.MapDataPipe")):
        def __getitem__(self, index):
            return index ** 2

        def __len__(self):
            return 3

    mapped = Squares().map(lambda x: -x)
    assert len(mapped) == 3 and mapped[2] == -4


def test_assert_allclose_minds_neither_dtypes_nor_nan():
    same = np.array([1.0, np.nan])
    of("torch.testing.assert_allclose")(genesis.tensor(same), genesis.tensor(same, dtype=genesis.float32))
    with pytest.raises(AssertionError):
        of("torch.testing.assert_allclose")(genesis.ones(2), [1, 2])


def test_settings_are_remembered_within_their_contexts():
    enabled = of("torch.autograd.is_multithreading_enabled")
    with of("torch.autograd.set_multithreading_enabled")(False):
        assert not enabled()
    assert enabled()
    for name in ("torch.compiler.keep_tensor_guards_unsafe", "torch.compiler.skip_guard_on_globals_unsafe"):
        assert of(name)([1, 2]) == [True, True]
    of("torch.serialization.set_crc32_options")(False)
    assert of("torch.serialization.get_crc32_options")() is False
    of("torch.serialization.set_crc32_options")(True)
    before = of("torch.get_autocast_dtype")("cpu")
    of("torch.set_autocast_dtype")("cpu", genesis.float16)
    of("torch.set_autocast_enabled")("cpu", True)
    try:
        assert (genesis.ones(2, 2) @ genesis.ones(2, 2)).dtype is genesis.float16
    finally:
        of("torch.set_autocast_enabled")("cpu", False)
        of("torch.set_autocast_dtype")("cpu", before)
    assert (genesis.ones(2, 2) @ genesis.ones(2, 2)).dtype is genesis.float32
    with genesis.autograd.detect_anomaly():
        assert of("torch.is_anomaly_enabled")()
    assert not of("torch.is_anomaly_enabled")()


def test_weights_are_fetched_once(tmp_path):
    source = tmp_path / "weights-0.pt"
    genesis.save({"w": genesis.ones(2)}, source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    named = tmp_path / f"weights-{digest[:8]}.pt"
    source.rename(named)
    of("torch.hub.set_dir")(tmp_path / "hub")
    try:
        assert of("torch.hub.get_dir")() == str(tmp_path / "hub")
        fetch = of("torch.hub.load_state_dict_from_url")
        assert fetch(named.as_uri(), check_hash=True)["w"].tolist() == [1, 1]
        kept = tmp_path / "hub" / "checkpoints" / named.name
        assert kept.exists()
        named.unlink()
        assert fetch(named.as_uri())["w"].tolist() == [1, 1]
        with pytest.raises(RuntimeError, match="invalid hash value"):
            of("torch.hub.download_url_to_file")(kept.as_uri(), tmp_path / "other", hash_prefix="00000000ff")
        assert not (tmp_path / "other").exists()
    finally:
        look_up("torch.hub", "get_dir").__globals__["_directory"].clear()


@pytest.mark.parametrize("name", [
    "flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled", "cudnn_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed", "is_flash_attention_available",
])
def test_settings_of_attention_on_gpus_are_pytorchs_at_first(name):
    assert of(f"torch.backends.cuda.{name}")() is getattr(torch.backends.cuda, name)()


def test_settings_of_attention_on_gpus_are_stored():
    sets, enabled = of("torch.backends.cuda.enable_flash_sdp"), of("torch.backends.cuda.flash_sdp_enabled")
    sets(False)
    assert enabled() is False and of("torch.backends.cuda.math_sdp_enabled")() is True
    sets(True)
    assert of("torch.backends.cuda.preferred_linalg_library")("magma") == "magma"
    assert of("torch.backends.cuda.preferred_linalg_library")() == "magma"


def test_precision_of_products_on_gpus_is_one_setting():
    products = of("torch.backends.cuda.matmul")
    assert products.fp32_precision == torch.backends.cuda.matmul.fp32_precision == "none"
    products.fp32_precision = "tf32"
    assert products.allow_tf32 and genesis.backends.cuda.matmul.allow_tf32
    products.allow_tf32 = False
    assert genesis.get_float32_matmul_precision() == "highest"
    products.allow_bf16_reduced_precision_reduction = False
    assert not products.allow_bf16_reduced_precision_reduction


def test_padding_has_zeros_unless_the_fast_path_is_disabled():
    def results(library, x, padding):
        encoder = library.nn.TransformerEncoder(library.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1).eval()
        for parameter in encoder.parameters():
            library.nn.init.constant_(parameter, 0.1)
        run = genesis.compile(encoder) if library is genesis else encoder
        mha, found = library.backends.mha, []
        for enabled in (True, False, True):
            mha.set_fastpath_enabled(enabled)
            assert mha.get_fastpath_enabled() is enabled
            with library.no_grad():
                found.append(run(x, src_key_padding_mask=padding).numpy())
        return found

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 4) ** 3
    padding = np.array([[False, False, True]])
    ours = results(genesis, genesis.from_numpy(x), genesis.from_numpy(padding))
    theirs = results(torch, torch.from_numpy(x), torch.from_numpy(padding))
    assert np.all(theirs[0][0, 2] == 0) and np.any(theirs[1][0, 2] != 0)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-6)
