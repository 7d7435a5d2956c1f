"""Reads programs as XLA writes them, with no other package."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

_ITEM_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}
_ITEM_BYTES |= {"s64": 8, "u64": 8, "f64": 8}
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.-]+) = (.+?) ([\w-]+)\((.*)$")
_ARRAY = re.compile(r"\b(\w+)\[([\d,]*)\]")
_NAME = re.compile(r"%([\w.-]+)")
# They move nothing, and only name parts of other results.
UNMADE = {"parameter", "tuple", "get-tuple-element", "constant", "bitcast", "while"}


class Instruction(NamedTuple):
    """An operation of XLA's program; `operands` are names of others."""

    name: str
    shape: str
    operation: str
    operands: tuple[str, ...]

    @property
    def bytes(self) -> int:
        return sum(
            _ITEM_BYTES.get(kind, 0) * math.prod(int(size) for size in sizes.split(",") if size)
            for kind, sizes in _ARRAY.findall(self.shape)
        )


def instructions_of(text: str) -> list[Instruction]:
    """Read the entry of a program."""
    return _instructions(text[text.index("\nENTRY ") + 1 :])


def main_computation(text: str) -> list[Instruction]:
    """Read the entry or, in a program with a loop, the body that calls the most kernels."""
    blocks = re.split(r"\n(?=(?:ENTRY )?%[\w.-]+ \()", text)[1:]
    found = [_instructions(block) for block in blocks if not block.startswith("%fused")]
    return max(found, key=lambda made: sum(each.operation == "custom-call" for each in made))


def moved_bytes(program: list[Instruction]) -> tuple[int, int]:
    """Kernels of a program, and the bytes that they read and write.

    A kernel that reads a part of a tensor counts as if it read all of it.
    """
    by_name = {each.name: each for each in program}
    kernels = [each for each in program if each.operation not in UNMADE]
    moved = sum(
        each.bytes + sum(by_name[name].bytes for name in each.operands if name in by_name)
        for each in kernels
    )
    return len(kernels), moved


def _instructions(block: str) -> list[Instruction]:
    found = []
    for line in block.splitlines()[1:]:
        if line.startswith("}"):
            break
        if (matched := _INSTRUCTION.match(line)) is not None:
            _, name, shape, operation, rest = matched.groups()
            operands = tuple(_NAME.findall(rest.split("), ")[0]))
            found.append(Instruction(name, shape, operation, operands))
    return found
