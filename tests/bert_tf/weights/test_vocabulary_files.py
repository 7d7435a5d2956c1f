"""Vocabulary and casing of HuggingFace folders old and new."""

import json

import pytest
import tokenizers

from bert_tf.config.errors import InputError, UsageError
from bert_tf.weights.vocabulary_files import (
    read_folder_vocab,
    read_lowercase,
    write_vocabulary_files,
)

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]


@pytest.fixture(params=[True, False])
def lowercase(request):
    return request.param


def test_written_files_are_read_back(tmp_path, lowercase):
    write_vocabulary_files(tmp_path, VOCAB, lowercase=lowercase, max_length=512)
    assert read_folder_vocab(tmp_path) == VOCAB
    assert read_lowercase(tmp_path, VOCAB) is lowercase


def test_tokenizer_json_alone_is_enough(tmp_path, lowercase):
    # transformers 5 writes no vocab.txt.
    tokenizer = tokenizers.BertWordPieceTokenizer(
        {piece: index for index, piece in enumerate(VOCAB)}, lowercase=lowercase
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert read_folder_vocab(tmp_path) == VOCAB
    assert read_lowercase(tmp_path, VOCAB) is lowercase


@pytest.mark.parametrize(
    ("extra", "expected"), [("Haus", False), ("ß", True), ("[Brackets]", True)]
)
def test_the_vocabulary_tells_where_nothing_else_does(tmp_path, extra, expected):
    assert read_lowercase(tmp_path, [*VOCAB, extra]) is expected


@pytest.mark.parametrize(
    ("file", "settings", "refused"),
    [
        ("tokenizer_config.json", {"do_lower_case": True, "strip_accents": False}, "strip_accents"),
        ("tokenizer_config.json", {"do_lower_case": True, "strip_accents": True}, None),
        ("tokenizer_config.json", {"do_lower_case": False, "strip_accents": False}, None),
        (
            "tokenizer_config.json",
            {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True},
            None,
        ),
        ("tokenizer_config.json", {"tokenize_chinese_chars": False}, "tokenize_chinese_chars"),
        ("tokenizer_config.json", {"word_tokenizer_type": "mecab"}, "word_tokenizer_type"),
        ("tokenizer.json", {"lowercase": False, "strip_accents": True}, "strip_accents"),
        ("tokenizer.json", {"handle_chinese_chars": False}, "handle_chinese_chars"),
    ],
)
def test_options_that_give_other_pieces_are_refused(tmp_path, file, settings, refused):
    document = settings if file == "tokenizer_config.json" else {"normalizer": settings}
    (tmp_path / file).write_text(json.dumps(document))
    if refused is None:
        assert isinstance(read_lowercase(tmp_path, VOCAB), bool)
        return
    with pytest.raises(UsageError, match=rf"{file}: {refused} is .*other pieces than BERT's rules"):
        read_lowercase(tmp_path, VOCAB)


def test_other_tokenizers_and_gaps_are_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"type": "BPE", "vocab": {}}}))
    with pytest.raises(UsageError, match="expected a WordPiece tokenizer, got 'BPE'"):
        read_folder_vocab(tmp_path)
    path.write_text(json.dumps({"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "a": 2}}}))
    with pytest.raises(UsageError, match="ids must run from 0 to 1"):
        read_folder_vocab(tmp_path)
    path.write_text(json.dumps({"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "a": 1}}}))
    with pytest.raises(UsageError, match=r"lacks \[UNK\] \[CLS\] \[SEP\] \[MASK\]"):
        read_folder_vocab(tmp_path)
    path.write_text("{")
    with pytest.raises(InputError, match=r"tokenizer\.json: damaged"):
        read_folder_vocab(tmp_path)
