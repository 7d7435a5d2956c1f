"""Vocabulary and casing of HuggingFace folders old and new."""

import json
import re

import pytest
import tokenizers

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.text.casing import KEEP_ACCENTS
from bert_tf.data.text.vocabulary_files import read_folder_vocabulary, write_vocabulary_files

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]


@pytest.fixture(params=[True, KEEP_ACCENTS, False])
def lowercase(request):
    return request.param


def test_written_files_are_read_back(tmp_path, lowercase):
    write_vocabulary_files(tmp_path, VOCAB, lowercase=lowercase, max_length=512)
    read = read_folder_vocabulary(tmp_path)
    assert (read.vocab, read.lowercase, read.notes) == (VOCAB, lowercase, ())


@pytest.mark.parametrize(
    ("of_config", "of_tokenizer", "refused"),
    [
        ({"tokenizer_class": "BertJapaneseTokenizer"}, {}, "config.json"),
        ({"tokenizer_class": "XLMRobertaTokenizer"}, {}, "config.json"),
        ({"tokenizer_class": "BertTokenizer"}, {}, None),
        ({"tokenizer_class": None}, {}, None),
        ({"tokenizer_class": "XLNetTokenizer"}, {"tokenizer_class": "BertTokenizer"}, None),
        ({"tokenizer_class": "BertJapaneseTokenizer"}, {"word_tokenizer_type": "basic"}, None),
        ({}, {"tokenizer_class": "BertJapaneseTokenizer"}, "tokenizer_config.json"),
    ],
)
def test_a_tokenizer_may_be_named_by_the_config_of_the_model(
    tmp_path, of_config, of_tokenizer, refused
):
    write_vocab(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(of_config))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(of_tokenizer))
    if refused is None:
        assert read_folder_vocabulary(tmp_path).vocab == VOCAB
    else:
        with pytest.raises(UsageError, match=rf"/{refused}: tokenizer_class is '\w+', which gives"):
            read_folder_vocabulary(tmp_path)


@pytest.mark.parametrize("file", ["tokenizer_config.json", "tokenizer.json"])
def test_cutting_at_the_beginning_is_said(tmp_path, file):
    write_vocabulary_files(tmp_path, VOCAB, lowercase=True, max_length=512)
    fast = str(tmp_path / "tokenizer.json")
    pieces = {piece: index for index, piece in enumerate(VOCAB)}
    tokenizers.BertWordPieceTokenizer(pieces).save(fast)
    tokenizer = tokenizers.Tokenizer.from_file(fast)
    tokenizer.enable_truncation(16, direction="left" if file == "tokenizer.json" else "right")
    tokenizer.save(fast)
    if file == "tokenizer_config.json":
        path = tmp_path / file
        settings = {**json.loads(path.read_text()), "truncation_side": "left"}
        path.write_text(json.dumps(settings))
    (note,) = read_folder_vocabulary(tmp_path).notes
    assert "lose their end here, and their beginning in the model's own library" in note


def test_tokenizer_json_alone_is_enough(tmp_path, lowercase):
    # transformers 5 writes no vocab.txt.
    tokenizer = tokenizers.BertWordPieceTokenizer(
        {piece: index for index, piece in enumerate(VOCAB)},
        lowercase=bool(lowercase),
        strip_accents=lowercase is True,
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    read = read_folder_vocabulary(tmp_path)
    assert (read.vocab, read.lowercase, read.notes) == (VOCAB, lowercase, ())


def write_vocab(folder, vocab=VOCAB):
    (folder / "vocab.txt").write_text("\n".join([*vocab, ""]), encoding="utf-8")


@pytest.mark.parametrize(
    ("extra", "lowercase", "reason"),
    [
        (["Haus"], False, "texts keep their capitals, since 1 of 3 entries with letters holds"),
        (["ß"], True, "texts are lower-cased, since 0 of 3 entries with letters hold capitals;"),
        (["[Brackets]"], True, "0 of 2 entries"),
        ([f"w{i}" for i in range(30)] + ["COVID"], True, "1 of 33 .*: COVID; if that is wrong"),
    ],
)
def test_the_vocabulary_decides_where_nothing_else_does_and_says_why(
    tmp_path, extra, lowercase, reason
):
    write_vocab(tmp_path, [*VOCAB, *extra])
    read = read_folder_vocabulary(tmp_path)
    assert read.lowercase is lowercase
    (note,) = read.notes
    assert re.search(reason, note)
    # The note says how to state the other.
    (tmp_path / "tokenizer_config.json").write_text(re.search(r"{.*}", note)[0])
    assert read_folder_vocabulary(tmp_path).lowercase is not lowercase


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"do_lower_case": False, "strip_accents": True}, "strip_accents"),
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
    write_vocab(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    if refused is None:
        assert isinstance(read_folder_vocabulary(tmp_path).lowercase, bool)
        return
    with pytest.raises(UsageError, match=rf"_config.json: {refused} is .*other tokens than BERT's"):
        read_folder_vocabulary(tmp_path)


@pytest.mark.parametrize(
    ("file", "document"),
    [
        ("added_tokens.json", {"<url>": 7, "covid19": 9}),
        (
            "tokenizer_config.json",
            {
                "do_lower_case": True,
                "added_tokens_decoder": {
                    "0": {"content": "[PAD]"},
                    "7": {"content": "<url>"},
                    "9": "covid19",
                },
            },
        ),
    ],
)
def test_added_tokens_become_entries_wherever_they_stand(tmp_path, file, document):
    write_vocab(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    (tmp_path / file).write_text(json.dumps(document))
    read = read_folder_vocabulary(tmp_path, vocab_size=10)
    assert read.vocab == [*VOCAB, "<url>", "[unused0]", "covid19"]
    split, words = read.notes
    assert "the added token '<url>'" in split
    assert "the added token 'covid19', found here only as whole words" in words


def test_added_tokens_without_a_row_are_left_out(tmp_path):
    write_vocab(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    (tmp_path / "added_tokens.json").write_text('{"<url>": 7, "<user>": 8}')
    read = read_folder_vocabulary(tmp_path, vocab_size=8)
    assert read.vocab == [*VOCAB, "<url>"]
    assert "leaves out the added token '<user>', for which the embeddings" in read.notes[0]


def test_lower_casing_against_the_vocabulary_is_said(tmp_path):
    write_vocab(tmp_path, [*VOCAB, "Haus"])
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    read = read_folder_vocabulary(tmp_path)
    assert read.lowercase is True
    (note,) = read.notes
    assert "as tokenizer_config.json says, but 1 of 3 entries with letters holds capitals" in note


def test_added_tokens_of_tokenizer_json_become_entries(tmp_path):
    tokenizer = tokenizers.BertWordPieceTokenizer(
        {piece: index for index, piece in enumerate(VOCAB)}, lowercase=True
    )
    tokenizer.add_tokens(["<url>", "<user>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert read_folder_vocabulary(tmp_path).vocab == [*VOCAB, "<url>", "<user>"]
    write_vocab(tmp_path)
    assert read_folder_vocabulary(tmp_path).vocab == [*VOCAB, "<url>", "<user>"]
    write_vocab(tmp_path, [*VOCAB, "<url>", "<user>"])
    assert read_folder_vocabulary(tmp_path).vocab == [*VOCAB, "<url>", "<user>"]


@pytest.mark.parametrize(
    ("added", "error", "message"),
    [
        ({"<url>": 5}, UsageError, "'<url>' has the id 5, which the vocabulary has for 'a'"),
        ({"a": 7}, UsageError, "'a' has the id 7"),
        ({"<url>": 10**9}, UsageError, "id 1000000000, beyond the vocabulary"),
        ({"<url>": None}, InputError, "damaged added token '<url>'"),
        ({"<url>": -1}, InputError, "damaged added token '<url>' with the id -1"),
    ],
)
def test_added_tokens_that_cannot_be_are_refused(tmp_path, added, error, message):
    write_vocab(tmp_path)
    (tmp_path / "added_tokens.json").write_text(json.dumps(added))
    with pytest.raises(error, match=message):
        read_folder_vocabulary(tmp_path)


def test_an_id_of_too_many_digits_is_damage(tmp_path):
    write_vocab(tmp_path)
    settings = {"added_tokens_decoder": {"9" * 5000: {"content": "<url>"}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="damaged added token '<url>'"):
        read_folder_vocabulary(tmp_path)


def test_rows_beyond_the_vocabulary_get_entries_that_no_text_has(tmp_path):
    write_vocab(tmp_path, [*VOCAB, "[unused1]"])
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    read = read_folder_vocabulary(tmp_path, vocab_size=16)
    added = [f"[unused{number}]" for number in (0, 2, 3, 4, 5, 6, 7, 8)]
    assert read.vocab == [*VOCAB, "[unused1]", *added]
    assert "has 8 entries, the embeddings 16 rows" in read.notes[0]


@pytest.mark.parametrize("vocab_size", [6, 2000])
def test_embeddings_of_another_vocabulary_are_refused(tmp_path, vocab_size):
    write_vocab(tmp_path)
    with pytest.raises(UsageError, match=r"has 7 entries, but vocab_size .* of the same model"):
        read_folder_vocabulary(tmp_path, vocab_size=vocab_size)


def test_files_that_disagree_are_refused(tmp_path):
    write_vocabulary_files(tmp_path, VOCAB, lowercase=True, max_length=512)
    tokenizer = tokenizers.BertWordPieceTokenizer(
        {piece: index for index, piece in enumerate([*VOCAB, "c"])}, lowercase=False
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UsageError, match=r"vocab\.txt and tokenizer\.json have different entries"):
        read_folder_vocabulary(tmp_path)
    write_vocab(tmp_path, [*VOCAB, "c"])
    with pytest.raises(UsageError, match=r"do_lower_case True, tokenizer\.json lowercase False"):
        read_folder_vocabulary(tmp_path)
