"""Vocabulary and casing of HuggingFace folders old and new."""

import json

import pytest
import tokenizers

from bert_tf.base.errors import UsageError
from bert_tf.vocabulary.files import (
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
def test_the_vocabulary_decides_where_nothing_else_does(tmp_path, extra, expected):
    assert read_lowercase(tmp_path, [*VOCAB, extra]) is expected


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"do_lower_case": True, "strip_accents": False}, "strip_accents"),
        ({"do_lower_case": True, "strip_accents": True}, None),
        ({"do_lower_case": False, "strip_accents": False}, None),
        ({"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True}, None),
        ({"tokenizer_class": "DistilBertTokenizerFast", "unk_token": {"content": "[UNK]"}}, None),
        ({"tokenize_chinese_chars": False}, "tokenize_chinese_chars"),
        ({"word_tokenizer_type": "mecab"}, "word_tokenizer_type"),
        ({"tokenizer_class": "RobertaTokenizer"}, "tokenizer_class"),
        ({"do_basic_tokenize": False}, "do_basic_tokenize"),
        ({"never_split": ["<url>"]}, "never_split"),
        ({"unk_token": "<unk>"}, "unk_token"),
        ({"cls_token": {"content": "<s>"}}, "cls_token"),
    ],
)
def test_options_that_give_other_tokens_are_refused(tmp_path, settings, refused):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    if refused is None:
        assert isinstance(read_lowercase(tmp_path, VOCAB), bool)
        return
    with pytest.raises(UsageError, match=rf"_config.json: {refused} is .*other tokens than BERT's"):
        read_lowercase(tmp_path, VOCAB)


@pytest.mark.parametrize(
    ("file", "document"),
    [
        ("added_tokens.json", {"<url>": 7}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"7": {"content": "<url>"}}}),
    ],
)
def test_added_tokens_are_refused_wherever_they_stand(tmp_path, file, document):
    (tmp_path / file).write_text(json.dumps(document))
    with pytest.raises(UsageError, match=f"{file}: adds the token '<url>'"):
        read_lowercase(tmp_path, VOCAB)


def test_files_that_disagree_are_refused(tmp_path):
    write_vocabulary_files(tmp_path, VOCAB, lowercase=True, max_length=512)
    tokenizer = tokenizers.BertWordPieceTokenizer(
        {piece: index for index, piece in enumerate([*VOCAB, "c"])}, lowercase=False
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UsageError, match=r"do_lower_case True, tokenizer\.json lowercase False"):
        read_lowercase(tmp_path, VOCAB)
    with pytest.raises(UsageError, match=r"vocab\.txt and tokenizer\.json have different entries"):
        read_folder_vocab(tmp_path)
