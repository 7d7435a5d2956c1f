"""Writes the features of HuggingFace's `run_qa.py` for questions, and its first loss.

    python tests/parity/question_answering_steps.py tests/golden/models/question_answering \
        tests/golden/question_answering_steps.json

Uses the model of the first folder, without dropout. `training_features` is `prepare_train_features`
of transformers' examples/pytorch/question-answering/run_qa.py, with three things in mind. Questions
come one at a time: `stride` is the overlap of two windows there and `doc_stride` the step between
them here, so that one follows from the other by the length of the question. No answer is the last
token of a window alone: run_qa.py has it start at the end of the padding ("we could go after the
last offset"). And the loss is the mean over windows without padding, whose tokens are candidates
for start and end there, so that a loss depends on the other rows of a batch. Runs in an environment
made from requirements.in.
"""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path

import torch
import transformers

MAX_SEQ_LENGTH = 20
DOC_STRIDE = 5
CONTEXTS = {
    "w1 w2 w3, W4 w5 w6 w7 (w8) w9 w10 w11 w12 w13 w14-w15 w16 w17 w18 w19 w20 w21 w22 w23": [
        ("w5 w6?", "w6 w7"),  # in one window of several
        ("what w14", "w14-w15 w16"),
        ("w22", "w22 w23"),  # at the end
        ("w9", "9 w1"),  # begins and ends within a token
        ("w3 w4 w5 w6 w7", None),
    ],
    "w30 w31.": [("w30?", "w30 w31"), ("w1", None), ("w31", "w31.")],
}


def training_features(tokenizer, question: str, context: str, answer: str | None):
    """Windows of one question with their targets, as run_qa.py makes them."""
    asked = len(tokenizer(question, add_special_tokens=False)["input_ids"])
    tokenized = tokenizer(
        question,
        context,
        truncation="only_second",
        max_length=MAX_SEQ_LENGTH,
        stride=MAX_SEQ_LENGTH - 3 - asked - DOC_STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding="max_length",
    )
    starts, ends = [], []
    for i, offsets in enumerate(tokenized.pop("offset_mapping")):
        input_ids = tokenized["input_ids"][i]
        cls_index = input_ids.index(tokenizer.cls_token_id)
        sequence_ids = tokenized.sequence_ids(i)
        if answer is None:
            starts.append(cls_index)
            ends.append(cls_index)
            continue
        start_char = context.index(answer)
        end_char = start_char + len(answer)
        token_start_index = 0
        while sequence_ids[token_start_index] != 1:
            token_start_index += 1
        token_end_index = len(input_ids) - 1
        while sequence_ids[token_end_index] != 1:
            token_end_index -= 1
        if not (
            offsets[token_start_index][0] <= start_char and offsets[token_end_index][1] >= end_char
        ):
            starts.append(cls_index)
            ends.append(cls_index)
            continue
        while token_start_index < len(offsets) and offsets[token_start_index][0] <= start_char:
            token_start_index += 1
        starts.append(token_start_index - 1)
        while offsets[token_end_index][1] >= end_char:
            token_end_index -= 1
        ends.append(token_end_index + 1)
    del tokenized["overflow_to_sample_mapping"]
    return {**tokenized, "start_positions": starts, "end_positions": ends}


def case(tokenizer, model: torch.nn.Module, *, unanswerable: bool) -> dict[str, object]:
    """Return the questions as SQuAD JSON, their windows, and the mean loss of these."""
    paragraphs, windows = [], []
    for context, asked in CONTEXTS.items():
        qas = []
        for question, answer in asked:
            if answer is None and not unanswerable:
                continue
            listed = [] if answer is None else [(answer, context.index(answer))]
            answers = [{"text": text, "answer_start": start} for text, start in listed]
            qas.append({"id": f"{context}{question}", "question": question, "answers": answers})
            windows.append(training_features(tokenizer, question, context, answer))
        paragraphs.append({"context": context, "qas": qas})
    batch = {name: [*chain.from_iterable(each[name] for each in windows)] for name in windows[0]}
    losses = []
    for row, mask in enumerate(batch["attention_mask"]):
        window = {name: torch.tensor([values[row]]) for name, values in batch.items()}
        for name in tokenizer.model_input_names:
            window[name] = window[name][:, : sum(mask)]
        with torch.no_grad():
            losses.append(model(**window).loss)
    return {
        "squad": {"data": [{"title": "", "paragraphs": paragraphs}]},
        "features": batch,
        "loss": float(torch.stack(losses).mean()),
    }


def main() -> None:
    folder, output = map(Path, sys.argv[1:])
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True)
    model = transformers.BertForQuestionAnswering.from_pretrained(folder).eval()
    document = {
        "made_with": f"torch {torch.__version__}, transformers {transformers.__version__}",
        "max_seq_length": MAX_SEQ_LENGTH,
        "doc_stride": DOC_STRIDE,
        "cases": {
            "answerable": case(tokenizer, model, unanswerable=False),
            "unanswerable": case(tokenizer, model, unanswerable=True),
        },
    }
    output.write_text(json.dumps(document) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
