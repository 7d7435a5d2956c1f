"""The PyTorch sides of benchmarks/training_step.py: transformers' BertForPreTraining.

    python benchmarks/training_step_pytorch.py SIDE SETTINGS

SIDE is `eager` or `compile` for the model as its users run it, with vocabulary logits for all
positions, or `gathered` for the same encoder and heads with logits for only the masked positions.
Needs torch and transformers; for the protocol see side.py.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import torch
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForPreTraining


def make_batch(settings: dict) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows, length, predictions = (settings[k] for k in ("batch_size", "length", "predictions"))

    def draw(limit: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, limit, shape, generator=generator)

    positions = draw(length, rows, predictions)
    masked_ids = draw(settings["vocab_size"], rows, predictions)
    labels = torch.full((rows, length), -100).scatter(1, positions, masked_ids)
    return {
        "input_ids": draw(settings["vocab_size"], rows, length),
        "attention_mask": torch.ones(rows, length, dtype=torch.long),
        "token_type_ids": (torch.arange(length) >= length // 2).long().repeat(rows, 1),
        "labels": labels,
        "next_sentence_label": draw(2, rows),
        "positions": positions,
        "masked_ids": masked_ids,
    }


def whole_loss(model, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    inputs = {name: batch[name] for name in batch if name not in ("positions", "masked_ids")}
    return model(**inputs).loss


def gathered_loss(model, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    names = ("input_ids", "attention_mask", "token_type_ids")
    encoded = model.bert(**{name: batch[name] for name in names})
    hidden = encoded.last_hidden_state
    index = batch["positions"].unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
    logits = model.cls.predictions(hidden.gather(1, index))
    masked = cross_entropy(logits.flatten(0, 1).float(), batch["masked_ids"].flatten())
    nsp = model.cls.seq_relationship(encoded.pooler_output)
    return masked + cross_entropy(nsp.float(), batch["next_sentence_label"])


def main() -> None:
    side, settings = sys.argv[1], json.loads(sys.argv[2])
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=settings["vocab_size"],
        hidden_size=settings["width"],
        num_hidden_layers=settings["layers"],
        num_attention_heads=settings["width"] // 64,
        intermediate_size=4 * settings["width"],
        hidden_dropout_prob=settings["dropout"],
        attention_probs_dropout_prob=settings["dropout"],
    )
    model = BertForPreTraining(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, eps=1e-6)
    batch = make_batch(settings)
    compute_loss = gathered_loss if side == "gathered" else whole_loss
    if side == "compile":
        model = torch.compile(model)
    bfloat16 = settings["precision"] == "bfloat16"

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            loss = compute_loss(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()

    step()
    print("ready", flush=True)
    for _ in sys.stdin:
        step()  # not counted: waiting may have cost a process its memory
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(settings["steps"]):
            step()
        answer = {
            "seconds": (time.perf_counter() - wall) / settings["steps"],
            "processor_seconds": (time.process_time() - processor) / settings["steps"],
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
