"""Nearly all words of a corpus in any layout are in some record within the passes."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from behavior.corpora import TOKEN, corpora

from bert_tf.base.arrays import offsets_of
from bert_tf.config.section import build_section
from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.data.examples.flat_documents import FlatDocuments
from pipeline.beam.files import match_files
from pipeline.corpus.document_block import document_hashes
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.readers.formats import look_at_text, make_reader
from pipeline.corpus.readers.splits import WHOLE_FILE
from pipeline.examples.pool import ExampleMaker, sort_pool
from pipeline.examples.tokenized import TokenizedDocuments, concatenate

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CORPORA = dict(corpora())


def tokenized(config: PreprocessConfig, ids: dict[str, int]) -> TokenizedDocuments:
    files = match_files(config.input)
    layouts = look_at_text(config, files).layouts
    parts = []
    for file in files:
        reader = make_reader(file.path, config, layouts).resolved(file.path)
        for raw in reader.read_split(file.path, WHOLE_FILE, 1 << 24):
            block = make_block(raw, DocumentRules())
            sentences = [
                [ids[word] for word in TOKEN.findall(sentence.lower())] or [ids["[UNK]"]]
                for sentence in block.sentences.to_pylist()
            ]
            tokens = np.array([*itertools.chain(*sentences)], np.int32)
            lengths = np.array([len(sentence) for sentence in sentences], np.int64)
            documents = FlatDocuments(tokens, offsets_of(lengths), block.document_offsets)
            parts.append(TokenizedDocuments(documents, document_hashes(block)))
    return concatenate(parts)


def ids_in(runs) -> set[int]:
    """Ids of the tokens of all records, as they were before masking."""
    found: set[int] = set()
    for run in runs:
        for data, offsets in run.records:
            for begin, end in itertools.pairwise(offsets):
                example = tf.train.Example.FromString(bytes(data[begin + 12 : end - 4]))
                features = example.features.feature
                ids = np.array(features["input_ids"].int64_list.value)
                masked = features["masked_lm_weights"].float_list.value
                count = int(sum(masked))
                places = features["masked_lm_positions"].int64_list.value[:count]
                ids[list(places)] = features["masked_lm_ids"].int64_list.value[:count]
                found.update(ids.tolist())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("pair_task", ["nsp", "sop", "none"])
def test_nearly_all_words_are_in_some_record(name, pair_task, tmp_path):
    words = sorted(CORPORA[name].words())
    vocab = [*SPECIALS, *words]
    config = build_section(
        PreprocessConfig,
        {
            "input": CORPORA[name].write(tmp_path),
            "vocab": "v",
            "output": "o",
            "pair_task": pair_task,
        },
    )
    pool = sort_pool(
        tokenized(config, {token: number for number, token in enumerate(vocab)}),
        seed=config.seed,
        eval_fraction=0.0,
        is_only_pool=True,
    )
    runs, _ = ExampleMaker(config, vocab).make_runs(pool, train_shards=1, eval_shards=0)
    found = ids_in(runs) & set(range(len(SPECIALS), len(vocab)))
    assert len(found) >= 0.99 * len(words)
