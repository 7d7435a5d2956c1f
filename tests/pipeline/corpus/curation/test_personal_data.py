"""Personal data is found in all its forms, replaced by words and counted; the rest stays."""

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig
from pipeline.corpus.curation.personal_data import WORDS, PersonalData, find_suspects
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.raw_block import RawBlock, Texts
from pipeline.corpus.report import facts_of_block

phonenumbers = pytest.importorskip("phonenumbers")

RIGHT = {
    "email": [
        "ada@example.com", "ADA.Lovelace+x@Mail.Example.CO.UK", "o'neil_7@sub-domain.example.org",
        "josé@example.fr", "jürgen@exämple.de", "иван@почта.рф", "jose\u0301@example.fr",
        "a@b.c", "ada@[8.8.8.8]", "ada@example.com@example.org",
    ],
    "ip": [
        "8.8.8.8", "203.104.153.10", "1.2.3.4",  # as in a version: datatrove decides the same
        "2001:4860:4860::8888", "2A00:1450:4001:0830:0000:0000:0000:200E", "2a00:1450::",
    ],
    "phone": [
        "+1 212 736 5000", "(212) 736-5000", "212-736-5000", "212.736.5000", "+12127365000",
        "+44 20 7946 0958", "+49 (0)30 901820", "+33 1 42 68 53 00", "＋４９ ３０ ９０１８２０",
        "+1\u00a0212\u2011736\u20115000", "212-736-5000 ext. 12",
    ],
    "iban": [
        "DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "GB29-NWBK-6016-1331-9268-19",
        "NO93 8601 1117 947", "MT84MALT011000012345MTLCAST001S",
        "RU0204452560040702810412345678901",
    ],
    "card": [
        "4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "4222222222222",
        "3782 822463 10005", "378282246310005", "30569309025904", "3566 0020 2036 0505",
        "6011000990139424", "2223003122003222",
    ],
}  # fmt: skip
WRONG = {
    "email": [
        "@ada", "ada@example", "ada @example.com", "numpy@1.26.4", "3 @ 2.50", "a@b", "a.@b.com",
        "@", "git@github.com:user/project.git", "ssh://git@example.com",
    ],
    "ip": [
        "192.168.0.1", "10.0.0.1", "127.0.0.1", "169.254.1.1", "0.0.0.0", "256.1.1.1", "8.8.8.08",
        "1.2.3", "1.2.3.4.5", "v1.2.3.4", "2001:db8::1", "fe80::1", "::1", "2001:1:2", "20:15:30",
        "section 13.2.5.6", "Chapter 2.3.4.1 Arrays", "§ 8.8.8.8",
    ],
    "phone": [
        "2012-01-02 08:00", "3/10/2011", "555-1234", "1914-1918", "pages 211-227 (2003)",
        "ISBN 0-201-55802-5", "x2127365000y", "$2127365000", "+1 000 000 0000", "12 345 678",
        "1,234,567,890", "0.5772156649", "2.71828182846", "86.6025403784", "merge 5053313562",
        "02:10:32 -0500 2001", "Clause 252.227-7013", "part no 33471-90901", "id: 212-736-5000",
    ],
    "iban": [
        "DE89370400440532013001", "DE8937040044053201300", "XX89370400440532013000",
        "de89370400440532013000", "aDE89370400440532013000", "DE89370400440532013000A",
    ],
    "card": [
        "4111111111111112", "4111 1111-1111 1111", "1234567890123452", "0.4111111111111111",
        "41111111111111111", "4111111111111111.5",
    ],
}  # fmt: skip
ALL = PersonalData(tuple(WORDS), ("US",))


def replaced(lines, personal=ALL):
    """The lines after `replace`, with bytes around them that belong to no line, and the counts."""
    texts = [line.encode() for line in lines]
    data = np.frombuffer(b"4@".join([b"", *texts, b""]), np.uint8)
    lengths = np.array([len(text) for text in texts], np.int64)
    starts = np.cumsum(lengths + 2) - lengths
    data, starts, stops, counts = personal.replace(data, starts, starts + lengths)
    new = [data[start:stop].tobytes().decode() for start, stop in zip(starts, stops, strict=True)]
    return new, counts


@pytest.mark.parametrize("kind", RIGHT)
def test_values_are_replaced_wherever_they_stand(kind):
    word = WORDS[kind]
    around = ["{}", "at {}", "{}, or", "({})", "“{}”", "前 {}。", "ф: {};", "a\u200d {} 😀", "{}?"]
    for value in RIGHT[kind]:
        lines = [each.format(value) for each in around]
        expected = [each.format(word) for each in around]
        if value.endswith(" ext. 12"):
            expected = [re.sub(r"(?<=phonenumber).*", "", each) for each in expected]
            lines = [each.partition(value)[0] + value for each in lines]
        for only in (ALL, PersonalData((kind,), ("US",))):
            assert replaced(lines, only) == (expected, {kind: len(around)}), value


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_value_stays(kind):
    for text in WRONG[kind]:
        for line in (text, f"see {text} there"):
            assert replaced([line], PersonalData((kind,), ("US",))) == ([line], {}), text


def test_words_before_a_number_make_it_one_of_a_phone():
    lines = [
        "Contact number: +49 30 12345678", "Contact No: +91 98765 43210", "no +1 212 736 5000",
        "My number: (650) 253-0000", "Contact us at 6502530000",
    ]  # fmt: skip
    expected = [
        "Contact number: phonenumber", "Contact No: phonenumber", "no phonenumber",
        "My number: phonenumber", "Contact us at phonenumber",
    ]  # fmt: skip
    assert replaced(lines, PersonalData(("phone",), ("US",)))[0] == expected


def test_text_after_an_address_makes_it_no_path():
    lines = ["john@example.com:hunter2", "a@b.com:please reply", "a@b.com:7", "mailto://a@b.com"]
    expected = ["email:hunter2", "email:please reply", "email:7", "mailto://email"]
    assert replaced(lines, PersonalData(("email",), ()))[0] == [
        line.replace("email", WORDS["email"]) for line in expected
    ]
    paths = ["git@host.com:~me/code", "git@host.com:/srv/code", "git@host.com:code.git"]
    assert replaced(paths, PersonalData(("email",), ()))[0] == paths


def test_numbers_of_headings_are_no_addresses():
    lines = ["13.2.5.6 Tag open state", "8.8.8.8 Answers. It does.", "203.104.153.10 Answers"]
    expected = [lines[0], "ipaddress Answers. It does.", "ipaddress Answers"]
    assert replaced(lines, PersonalData(("ip",), ()))[0] == expected


def test_bare_numbers_are_those_of_phones_where_a_word_says_so():
    lines = ["call 2127365000 now", "Tel.: 2127365000", "merged 2127365000 now", "+12127365000"]
    expected = ["call phonenumber now", "Tel.: phonenumber", lines[2], "phonenumber"]
    assert replaced(lines, PersonalData(("phone",), ("US",)))[0] == expected


def test_scripts_without_spaces_may_touch_a_value():
    lines = ["邮箱ada@example.com联系", "地址8.8.8.8。", "電話+1 212 736 5000まで"]
    expected = ["邮箱emailaddress联系", "地址ipaddress。", "電話phonenumberまで"]
    assert replaced(lines)[0] == expected


def test_numbers_of_a_country_are_found_only_if_it_is_given():
    line = "030 901820 or +49 30 901820"
    assert replaced([line], PersonalData(("phone",), ())) == (
        ["030 901820 or phonenumber"],
        {"phone": 1},
    )
    assert replaced([line], PersonalData(("phone",), ("US", "DE")))[1] == {"phone": 2}


def test_lists_of_numbers_are_searched_and_tables_are_not():
    values = [f"212-736-{number}" for number in range(5000, 5020)]
    for between in (" ", " / ", ", ", " - "):
        listed = between.join(values)
        assert replaced([listed])[0] == [between.join(["phonenumber"] * 20)]
    table = " ".join(str(year) for year in range(1990, 2010))
    assert replaced([table, "12.50 13.25 17.00 18.75 212.50"])[1] == {}


VALUES = st.sampled_from([(kind, value) for kind, values in RIGHT.items() for value in values])
FILLER = st.text("aZé中я.,;!?-'\u0301 \u200d😀", max_size=8).map(lambda text: f" {text} ")


@pytest.mark.slow  # many examples
@given(st.lists(st.tuples(FILLER, st.lists(st.tuples(VALUES, FILLER), max_size=3)), max_size=4))
def test_the_rest_of_any_text_stays_byte_for_byte(lines):
    def joined(show):
        return [
            begin + "".join(show(kind, value) + filler for (kind, value), filler in rest)
            for begin, rest in lines
        ]

    found, counts = replaced(joined(lambda kind, value: value.removesuffix(" ext. 12")))
    assert found == joined(lambda kind, value: WORDS[kind])
    assert sum(counts.values()) == sum(len(rest) for _, rest in lines)
    assert replaced(found) == (found, {})


DIGITS = st.text("0123456789０1 2127365000-().+/x:,a\n\u00a0%$", max_size=60)


@pytest.mark.slow  # many examples
@given(DIGITS)
def test_phone_numbers_are_those_that_the_library_finds_in_whole_texts(text):
    lines = text.split("\n")
    assume(max(sum(map(str.isdigit, line)) for line in lines) < 20)  # more are a table
    expected = []
    for line in lines:
        for match in reversed(list(phonenumbers.PhoneNumberMatcher(line, "US"))):
            is_bare = match.raw_string.isdigit() and match.raw_string[0] != "0"
            if is_bare or re.search(r"\d(?:\.|:\d{0,2})$", line[: match.start], re.ASCII):
                continue
            line = f"{line[: match.start]}phonenumber{line[match.end :]}"
        expected.append(line)
    found = replaced(lines, PersonalData(("phone",), ("US",)))[0]  # keeps a bracket before

    def shown(texts):
        return [re.sub(r"[(\[](?=phonenumber)", "", text) for text in texts]

    assert shown(found) == shown(expected)


@pytest.mark.slow  # many examples
@given(st.lists(st.text("0123456789.:abDE2@ -", max_size=40), max_size=4))
def test_lines_without_suspicion_have_no_value(lines):
    found = [ALL.replace_in(line)[0] for line in lines]
    assert replaced(lines)[0] == found


def test_clean_lines_are_not_even_looked_at():
    lines = ["Of 1,234 pages in 2015, at 12:30:", "he (born 1999-2001) said", "U.S. @ home", ""]
    texts = [line.encode() for line in lines]
    bounds = np.cumsum([0, *map(len, texts)])
    data = np.frombuffer(b"".join(texts), np.uint8)
    assert find_suspects(data, bounds[:-1], bounds[1:]).tolist() == [False, True, False, False]


def block_of(text, **values):
    config = PreprocessConfig(input=("x",), vocab="v", output="o", **values)
    raw = RawBlock(source="x", index=0, texts=Texts.of_rows([text.encode()], [1]))
    return make_block(raw, DocumentRules.from_config(config))


@pytest.mark.parametrize("splitter", ["rules", "none"])
def test_values_are_replaced_before_sentences_are_split(splitter):
    text = "Write to J. Doe. Mail Doe.J.@x. or j.doe@example.com. Call +1 (212) 736. 5000 now."
    block = block_of(text, personal_data=("email,phone",), sentence_splitter=splitter)
    assert " ".join(block.sentences.to_pylist()) == (
        "Write to J. Doe. Mail Doe.J.@x. or emailaddress. Call phonenumber now."
    )
    assert facts_of_block(block).report.counts()["replaced"] == {"email": 1, "phone": 1}


def test_a_value_may_be_wrapped_at_the_margin():
    lines = [
        "The office in New York is called at +1 212",
        "736 5000 at any time, by day and by night,",
        "by everyone who wants to know how to count",
        "all words up to this margin.",
    ]
    block = block_of("\n".join(lines), personal_data=("phone",))
    (sentence,) = block.sentences.to_pylist()
    assert sentence.startswith("The office in New York is called at phonenumber at any time")


def test_rules_judge_the_text_as_it_was():
    block = block_of(
        "One ada@example.com", personal_data=("all",), curation=("c4_min_line_words=3",)
    )
    assert (block.num_documents, block.evidence.replaced) == (0, {})


def test_nothing_is_replaced_by_default():
    assert block_of("ada@example.com").sentences.to_pylist() == ["ada@example.com"]


def test_kinds_and_regions_that_do_not_exist_are_refused():
    values = {"input": ["x"], "vocab": "v", "output": "o", "personal_data": ["emial"]}
    with pytest.raises(ConfigError, match="personal_data: no kind 'emial'; known kinds: email, ip"):
        build_section(PreprocessConfig, values)
    with pytest.raises(UsageError, match="phone_regions: no region 'UK'; expected ISO codes"):
        block_of("", personal_data=("phone",), phone_regions=("US,UK",))
