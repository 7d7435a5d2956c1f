"""Recall, false positives and speed of `--personal-data` on values planted into clean text.

    python benchmarks/personal_data.py 'corpus/*.txt.gz' [--values 10000] [--seed 0]

Values of each kind, made by their rules and written in many forms, each go into a sentence of the
corpus. Values found in the corpus as it is are listed, to be judged by eye. If datatrove is
installed, its formatter reads the same sentences.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import ipaddress
import random
import time
from collections.abc import Callable

import numpy as np
import phonenumbers
import pyarrow as pa

from bert_tf.config.sections.data import PreprocessConfig
from pipeline.beam.files import match_files
from pipeline.corpus.curation.personal_data import WORDS, PersonalData
from pipeline.corpus.document_block import offsets_and_data
from pipeline.report.corpus.sample import read_sample

NAMES = [
    "ada",
    "grace",
    "alan",
    "josé",
    "zoë",
    "lin",
    "wei",
    "maria",
    "o'neil",
    "van.dijk",
    "smith",
    "müller",
    "kowalski",
    "иван",
]
HOSTS = ["example", "mail.example", "my-company", "uni-köln", "post", "bücher", "stud.example"]
ENDINGS = ["com", "org", "de", "co.uk", "fr", "info", "io", "museum", "рф"]
AROUND = ["{}", "({})", "{},", "{}.", '"{}"', "<{}>", "— {} —", "[{}];"]
TYPES = phonenumbers.PhoneNumberType
FORMATS = phonenumbers.PhoneNumberFormat
IBANS = {"DE": 18, "FR": 23, "ES": 20, "NL": 14, "GB": 18, "IT": 23, "NO": 11, "PL": 24, "CH": 17}
CARDS = {
    "4": 16,
    "51": 16,
    "55": 16,
    "2221": 16,
    "34": 15,
    "37": 15,
    "36": 14,
    "6011": 16,
    "35": 16,
}


def digits(source: random.Random, number: int) -> str:
    return "".join(source.choices("0123456789", k=number))


def make_email(source: random.Random) -> str:
    parts = source.choices(NAMES, k=source.randint(1, 2))
    name = source.choice([".", "_", "-", ""]).join(parts) + source.choice(
        ["", "7", "+list", "1984"]
    )
    address = f"{name}@{source.choice(HOSTS)}.{source.choice(ENDINGS)}"
    address = source.choice([address, address, address.upper(), address.title()])
    return source.choice(["", "", "", "mailto:"]) + address


def make_address(source: random.Random) -> str:
    while True:
        version = source.choice([4, 4, 6])
        bits = source.getrandbits(32 if version == 4 else 128)
        if version == 6:
            bits = bits >> 3 | 1 << 125  # 2000::/3
            bits &= source.choice([-1, ~(0xFFFF_FFFF << 32), ~(0xFFFF_FFFF_FFFF << 16)])
        address = ipaddress.ip_address(bits) if version == 4 else ipaddress.IPv6Address(bits)
        if address.is_global:
            break
    if version == 4:
        return f"{address}{source.choice(['', '', ':8080', '/24'])}"
    return source.choice([str(address), str(address).upper(), address.exploded])


def make_phone(source: random.Random) -> str:
    while True:
        region = source.choice(["US", *sorted(phonenumbers.SUPPORTED_REGIONS)])
        if source.random() < 0.5:
            region = "US"
        kind = source.choice([TYPES.FIXED_LINE, TYPES.MOBILE])
        number = phonenumbers.example_number_for_type(region, kind)
        if number is None:
            continue
        changed = str(number.national_number)[:-4] + digits(source, 4)
        number.national_number = int(changed)
        if phonenumbers.is_valid_number(number) and len(changed) >= 7:
            break
    form = FORMATS.INTERNATIONAL
    if region == "US":
        form = source.choice([FORMATS.NATIONAL, FORMATS.E164, FORMATS.INTERNATIONAL])
    text = phonenumbers.format_number(number, form)
    if form == FORMATS.NATIONAL:
        text = source.choice([text, text.replace("(", "").replace(") ", "-"), changed])
    return text.replace("-", source.choice("- .\u2011")) + source.choice(["", "", " ext. 12"])


def make_iban(source: random.Random) -> str:
    country, length = source.choice(list(IBANS.items()))
    account = digits(source, length)
    if country in ("GB", "NL"):
        account = "".join(source.choices("ABCDEFGHKLMNPRSTUVWXYZ", k=4)) + account[4:]
    value = "".join(str(int(each, 36)) for each in f"{account}{country}00")
    text = f"{country}{98 - int(value) % 97:02d}{account}"
    return grouped(text, source.choice(["", " ", "-"]), 4)


def make_card(source: random.Random) -> str:
    prefix, length = source.choice(list(CARDS.items()))
    number = prefix + digits(source, length - 1 - len(prefix))
    doubled = [int(each) * (2 - place % 2) for place, each in enumerate(reversed(number))]
    number += str(-sum(each // 10 + each % 10 for each in doubled) % 10)
    between = source.choice(["", " ", "-"])
    return (
        grouped(number, between, 4)
        if length == 16
        else between.join((number[:4], number[4:10], number[10:]))
    )


def grouped(text: str, between: str, size: int) -> str:
    return between.join(text[place : place + size] for place in range(0, len(text), size))


MAKERS: dict[str, Callable[[random.Random], str]] = {
    "email": make_email,
    "ip": make_address,
    "phone": make_phone,
    "iban": make_iban,
    "card": make_card,
}


def replace(lines: list[str], personal: PersonalData) -> tuple[list[str], dict[str, int], float]:
    """Return the new lines, counts, and megabytes per CPU second."""
    offsets, data = offsets_and_data(pa.array(lines, pa.string()))
    bounds = offsets.astype(np.int64)
    begun = time.process_time()
    data, starts, stops, counts = personal.replace(data, bounds[:-1], bounds[1:])
    speed = bounds[-1] / 1e6 / (time.process_time() - begun)
    new = [data[begin:end].tobytes().decode() for begin, end in zip(starts, stops, strict=True)]
    return new, counts, speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--values", type=int, default=10_000)
    parser.add_argument("--megabytes", type=float, default=32)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    config = PreprocessConfig(input=tuple(options.corpus), vocab="", output="")
    sample = read_sample(config, match_files(config.input), most_bytes=int(options.megabytes * 1e6))
    lines = [line for block in sample.blocks for line in block.sentences.to_pylist()]
    personal = PersonalData(tuple(WORDS), ("US",))
    replace([make(random.Random(0)) for make in MAKERS.values()], personal)  # compiles, imports

    new, counts, speed = replace(lines, personal)
    print(
        f"clean text: {sum(map(len, lines)) / 1e6:.1f} million characters, {speed:.0f} MB/s of CPU"
    )
    print(f"found in it: {counts or 'nothing'}")
    changed = [pair for pair in zip(lines, new, strict=True) if pair[0] != pair[1]]
    for before, after in changed[:20]:
        print(f"  {before[:150]}\n  -> {after[:150]}")

    source = random.Random(options.seed)
    fit = [line for line in lines if " " in line and len(line) < 300]
    for kind, make in MAKERS.items():
        values = [make(source) for _ in range(options.values)]
        texts = []
        for value in values:
            words = source.choice(fit).split(" ")
            words.insert(source.randint(0, len(words)), source.choice(AROUND).format(value))
            texts.append(" ".join(words))
        new, _, speed = replace(texts, personal)
        line = f"{kind}: recall {recall(values, new):.2%}, {speed:.2f} MB/s of CPU"
        if kind in ("email", "ip") and importlib.util.find_spec("datatrove"):
            formatter = importlib.import_module("datatrove.pipeline.formatters").PIIFormatter()
            begun = time.process_time()
            theirs = list(map(formatter.format, texts))
            speed = sum(map(len, texts)) / 1e6 / (time.process_time() - begun)
            line += f"; datatrove {recall(values, theirs):.2%}, {speed:.2f} MB/s"
        print(line)
        for value, text in [pair for pair in zip(values, new, strict=True) if is_left(*pair)][:5]:
            print(f"  missed: {value!r} in {text[:150]!r}")


def is_left(value: str, text: str) -> bool:
    """Whether the value, but for a port, mask or extension, is in the text."""
    value = value.removeprefix("mailto:").removesuffix(" ext. 12")
    return value.removesuffix(":8080").removesuffix("/24") in text


def recall(values: list[str], texts: list[str]) -> float:
    return 1 - sum(map(is_left, values, texts)) / len(values)


if __name__ == "__main__":
    main()
