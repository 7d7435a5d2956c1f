"""The PyTorch sides of benchmarks/gpu_throughput.py: transformers' models with sdpa attention.

    python benchmarks/gpu_throughput_pytorch.py SIDE SETTINGS

SIDE is `sdpa` for the model as its users run it, `sdpa-compile` under `torch.compile`, or
`sdpa-compile-cudnn` with cuDNN's attention there, which has no dropout of attention, as ours. Needs
torch and transformers; for its input and output see side.py.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch.nn.functional import cross_entropy

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random_batch(config: transformers.BertConfig, work: dict) -> dict[str, torch.Tensor]:
    """Full rows on the device."""
    rows, length, predictions = (work[key] for key in ("rows", "length", "predictions"))
    generator = torch.Generator().manual_seed(0)

    def draw(limit: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, limit, shape, generator=generator)

    batch = {
        "input_ids": draw(config.vocab_size, rows, length),
        "attention_mask": torch.ones(rows, length, dtype=torch.long),
        "token_type_ids": (torch.arange(length) >= length // 2).long().repeat(rows, 1),
        "positions": draw(length, rows, predictions),
        "masked_ids": draw(config.vocab_size, rows, predictions),
        "labels": draw(2, rows),
    }
    return {name: value.to(DEVICE) for name, value in batch.items()}


def encoder_inputs(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}


def forward_step(
    config: transformers.BertConfig, batch: dict[str, torch.Tensor], *, compiled: bool
) -> Callable[[], Any]:
    """Return the encoder's outputs, weights in bfloat16."""
    model = transformers.BertModel(config).eval().to(DEVICE, torch.bfloat16)
    call = torch.compile(model) if compiled else model

    @torch.inference_mode()
    def step() -> torch.Tensor:
        return call(**encoder_inputs(batch)).last_hidden_state

    return step


def pretraining_step(
    config: transformers.BertConfig, batch: dict[str, torch.Tensor], *, compiled: bool
) -> Callable[[], Any]:
    """Run a step on the masked-LM loss, with logits of only the masked positions."""
    model = transformers.BertForMaskedLM(config).train().to(DEVICE)

    def loss() -> torch.Tensor:
        hidden = model.bert(**encoder_inputs(batch)).last_hidden_state
        index = batch["positions"].unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
        logits = model.cls(hidden.gather(1, index))
        return cross_entropy(logits.flatten(0, 1).float(), batch["masked_ids"].flatten())

    return _optimized(model, loss, compiled=compiled)


def finetuning_step(
    config: transformers.BertConfig, batch: dict[str, torch.Tensor], *, compiled: bool
) -> Callable[[], Any]:
    model = transformers.BertForSequenceClassification(config).train().to(DEVICE)

    def loss() -> torch.Tensor:
        return cross_entropy(model(**encoder_inputs(batch)).logits.float(), batch["labels"])

    return _optimized(model, loss, compiled=compiled)


def _optimized(
    model: torch.nn.Module, loss: Callable[[], torch.Tensor], *, compiled: bool
) -> Callable[[], Any]:
    call = torch.compile(loss) if compiled else loss
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=DEVICE == "cuda")

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            value = call()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return value

    return step


def matmul_step(size: int) -> Callable[[], Any]:
    """One matrix product."""
    matrix = torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16)
    return lambda: matrix @ matrix


def finish() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds_per_step(step: Callable[[], Any], steps: int) -> float:
    step()
    finish()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    finish()
    return (time.perf_counter() - start) / steps


def main() -> None:
    side, settings = sys.argv[1], json.loads(sys.argv[2])
    config = transformers.BertConfig(**settings["config"], attn_implementation="sdpa")
    if side == "sdpa-compile-cudnn":
        config.attention_probs_dropout_prob = 0.0
        for enable in (torch.backends.cuda.enable_flash_sdp, torch.backends.cuda.enable_math_sdp):
            enable(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(True)
    makers = {
        "pretraining": pretraining_step,
        "finetuning": finetuning_step,
        "scoring": forward_step,
    }
    work = {each["name"]: each for each in settings["work"]}
    steps: dict[str, Callable[[], Any]] = {}

    def made(request: str) -> Callable[[], Any]:
        """Run a step, compiled at its first turn, so that each answer comes as soon as it can."""
        if request == "matmul":
            return matmul_step(settings["peak_size"])
        batch = random_batch(config, work[request])
        compiled = side.startswith("sdpa-compile")
        return makers[work[request]["kind"]](config, batch, compiled=compiled)

    print("ready", flush=True)
    for line in sys.stdin:
        request = line.strip()
        if request not in steps:
            steps[request] = made(request)
            seconds_per_step(steps[request], 2)
        answer: dict[str, Any] = {"seconds": seconds_per_step(steps[request], settings["steps"])}
        # Of all kinds of work together, whose models and batches stay on the card.
        answer["memory"] = torch.cuda.max_memory_allocated() if DEVICE == "cuda" else 0
        if request == "matmul":
            answer["operations_per_second"] = 2 * settings["peak_size"] ** 3 / answer["seconds"]
            answer["device"] = torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu"
            answer["versions"] = (
                f"torch {torch.__version__}, transformers {transformers.__version__}"
            )
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
