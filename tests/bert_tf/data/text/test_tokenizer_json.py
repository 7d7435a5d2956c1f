"""A `tokenizer.json` of HuggingFace's package for BERT is read; any other is refused."""

import copy
import json

import pytest
import tokenizers
from tokenizers import normalizers, pre_tokenizers, processors

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.json_files import JsonFolder
from bert_tf.data.text.casing import KEEP_ACCENTS
from bert_tf.data.text.tokenizer_json import read_tokenizer_file

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"]
IDS = {piece: index for index, piece in enumerate(VOCAB)}
TEMPLATE = processors.TemplateProcessing(
    single="[CLS]:0 $A:0 [SEP]:0",
    pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
    special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
)


def bert(lowercase=True):
    strips = False if lowercase == KEEP_ACCENTS else None
    return tokenizers.BertWordPieceTokenizer(
        IDS, lowercase=bool(lowercase), strip_accents=strips
    )._tokenizer


def read(tmp_path, tokenizer):
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer if isinstance(tokenizer, str) else tokenizer.to_str())
    return read_tokenizer_file(JsonFolder(tmp_path))


@pytest.mark.parametrize("lowercase", [True, KEEP_ACCENTS, False])
@pytest.mark.parametrize("is_sequence", [True, False])
def test_berts_own_rules_are_read(tmp_path, lowercase, is_sequence):
    tokenizer = bert(lowercase)
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding()
    tokenizer.post_processor = TEMPLATE
    if is_sequence:
        tokenizer.normalizer = normalizers.Sequence([tokenizer.normalizer])
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([tokenizer.pre_tokenizer])
        tokenizer.post_processor = processors.Sequence([TEMPLATE])
    found = read(tmp_path, tokenizer)
    assert (found.vocab, found.lowercase) == (VOCAB, lowercase)


NORMALIZERS = {
    "normalizer is NFKC": normalizers.NFKC(),
    "normalizer is Sequence of BertNormalizer, NFC": normalizers.Sequence(
        [normalizers.BertNormalizer(), normalizers.NFC()]
    ),
    "normalizer is Sequence of NFD, Lowercase, StripAccents": normalizers.Sequence(
        [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]
    ),
    "normalizer.clean_text is False": normalizers.BertNormalizer(clean_text=False),
    "normalizer.handle_chinese_chars is False": normalizers.BertNormalizer(
        handle_chinese_chars=False
    ),
    "normalizer.strip_accents is True": normalizers.BertNormalizer(
        strip_accents=True, lowercase=False
    ),
}


@pytest.mark.parametrize("message", NORMALIZERS)
def test_another_normalizer_is_refused_with_what_it_holds(tmp_path, message):
    tokenizer = bert()
    tokenizer.normalizer = NORMALIZERS[message]
    with pytest.raises(UsageError, match=f"{message}, which gives other tokens than BERT's rules"):
        read(tmp_path, tokenizer)


def test_other_splits_and_templates_are_refused(tmp_path):
    tokenizer = bert()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    with pytest.raises(UsageError, match="pre_tokenizer is Whitespace"):
        read(tmp_path, tokenizer)
    for other in (
        processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)),
        processors.BertProcessing(("[SEP]", 2), ("[CLS]", 3)),
        processors.TemplateProcessing(
            single="[CLS]:0 $A:0 [SEP]:0",
            pair="[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        ),
    ):
        tokenizer = bert()
        tokenizer.post_processor = other
        with pytest.raises(UsageError, match=r"post_processor is \w+"):
            read(tmp_path, tokenizer)


def test_added_tokens_have_their_ids(tmp_path):
    tokenizer = bert()
    tokenizer.add_tokens(["<url>"])
    tokenizer.add_special_tokens(["<user>"])
    file = read(tmp_path, tokenizer)
    assert file.added == {"<url>": len(file.vocab), "<user>": len(file.vocab) + 1}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("normalizer",), None, "normalizer is None"),
        (("pre_tokenizer",), None, "pre_tokenizer is None"),
        (("post_processor",), None, "post_processor is None"),
        (("normalizer", "lowercase"), None, "normalizer.lowercase is None"),
        (("normalizer", "lowercase"), "yes", "normalizer.lowercase is 'yes'"),
        (("model", "type"), "BPE", "expected a WordPiece tokenizer, got 'BPE'"),
        (("model",), [], r"expected a WordPiece tokenizer, got \[\]"),
        (("model", "unk_token"), "<unk>", "model.unk_token is '<unk>'"),
        (("model", "continuing_subword_prefix"), "@@", "continuing_subword_prefix is '@@'"),
        (("model", "max_input_chars_per_word"), 7, "max_input_chars_per_word is 7"),
        (("model", "vocab", "a"), 9, "ids must run from 0 to 6"),
        (("model", "vocab"), {"[PAD]": 0, "a": 1}, r"lacks \[UNK\] \[CLS\] \[SEP\] \[MASK\]"),
    ],
)
def test_every_part_that_decides_ids_is_looked_at(tmp_path, path, value, message):
    document = copy.deepcopy(json.loads(bert().to_str()))
    part = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    with pytest.raises(UsageError, match=message):
        read(tmp_path, json.dumps(document))


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"model": {"vocab": {"[PAD]": "0"}}}', '{"model": {"vocab": {"a": true}}}'],
)
def test_damage_is_an_input_error(tmp_path, content):
    with pytest.raises(InputError, match=r"tokenizer\.json: damaged"):
        read(tmp_path, content)
