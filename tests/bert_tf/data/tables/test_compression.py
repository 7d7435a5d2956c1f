"""Compressed files as others write them: several members, padding, long windows, damage."""

import bz2
import gzip
import io

import pytest
import zstandard

from bert_tf.data.tables import compression
from bert_tf.data.tables.compression import uncompressed

PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
WORLD = b"world" * 50_000


def read(data: bytes, ending: str) -> bytes:
    return uncompressed(io.BytesIO(data), f"a.txt.{ending}").read()


@pytest.mark.parametrize("ending", PACKERS)
def test_members_follow_one_another_and_zeros_are_padding(ending):
    pack = PACKERS[ending]
    assert read(pack(b"hello ") + pack(WORLD), ending) == b"hello " + WORLD
    padded = pack(b"hello ") + bytes(200_000) + pack(WORLD) + bytes(512)
    assert read(padded, ending) == b"hello " + WORLD
    assert read(b"", ending) == b""


@pytest.mark.slow
@pytest.mark.parametrize("ending", PACKERS)
def test_a_bomb_unpacks_a_part_at_a_time(ending, monkeypatch):
    bomb = PACKERS[ending](bytes(1 << 27))
    assert len(bomb) < 1 << 20
    parts = []
    monkeypatch.setattr(compression, "PartStream", lambda found: map(parts.append, map(len, found)))
    for _ in uncompressed(io.BytesIO(bomb), f"a.txt.{ending}"):
        assert parts[-1] <= 1 << 26
        if len(parts) == 5:
            break


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("damage", ["cut", "cut later", "garbage", "plain"])
def test_damage_is_an_error(ending, damage):
    pack = PACKERS[ending]
    data = {
        "cut": pack(WORLD)[:-3],
        "cut later": pack(b"hello ") + pack(WORLD)[:-3],
        "garbage": pack(b"hello ") + b"garbage garbage",
        "plain": b"plain text that is not compressed",
    }[damage]
    with pytest.raises(OSError, match=r"\w"):
        read(data, ending)


def test_after_damage_every_read_fails():
    stream = uncompressed(io.BytesIO(gzip.compress(b"hello ") + b"garbage garbage"), "a.txt.gz")
    assert stream.read(6) == b"hello "
    for _ in range(2):
        with pytest.raises(OSError, match=r"\w"):
            stream.read(6)


@pytest.mark.parametrize("ending", PACKERS)
def test_what_only_its_name_calls_compressed_is_told(ending):
    with pytest.raises(OSError, match="its content does not match its extension"):
        read(b"plain text", ending)
    with pytest.raises(OSError, match=r"^(?!it is not)"):
        read(PACKERS[ending](b"hello ") + b"plain text", ending)


def test_a_dictionary_of_zstd_is_asked_for():
    words = zstandard.train_dictionary(500, [b"The bridge is closed %d" % i * 9 for i in range(99)])
    with pytest.raises(OSError, match="needs the dictionary .* -D DICTIONARY"):
        read(zstandard.ZstdCompressor(dict_data=words).compress(WORLD), "zst")


def test_zstd_that_refers_back_over_more_than_128_mib():
    parameters = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = stream.compress(b"a row\n") + stream.flush()
    assert zstandard.get_frame_parameters(data).window_size == 1 << 28
    assert read(data, "zst") == b"a row\n"
