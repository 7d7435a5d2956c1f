"""The sentence splitter on golden-rule sets for English, and on other scripts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.sentences import split_sentences


def split(text):
    data = np.frombuffer(text.encode(), np.uint8)
    starts, stops, counts = split_sentences(data, np.array([0]), np.array([len(data)]))
    assert counts.tolist() == [len(starts)]
    return [data[start:stop].tobytes().decode() for start, stop in zip(starts, stops, strict=True)]


# A bar marks each border.
@pytest.mark.parametrize(
    "marked",
    [
        "",
        "no end",
        "One.|Two!|Three?|Four",
        "Hello!!|Long time no see.|What?!|Is that you?",
        "We met Mr. Brown, Dr. Lee and Prof. Sato.|They left.",
        "My name is Jonas E. Smith.|J. R. R. Tolkien wrote it.",
        "You and I.|Did you see Albert I. Jones?",
        "The tenant pays.|(b) The landlord repairs.|(c) Both sign, as in sec. (b) of it. (d",
        "He said so. (a)",
        "A. We went home.|It was late.",
        "He chose plan B.|We went home.",
        "ii. Nobody found it.|They left.",
        "Who won?|I.|The others lost.",
        "Кто это сделал?|Я.|Он не поверил.",
        "Hvem gjorde det?|Vi.|Det var os alle.",
        "Please turn to p. 55, Fig. 3 and No. 7.|Then stop.",
        "I work for the U.S. Government.|I live in the U.S.|How about you?",
        "He came at 5 p.m. on Monday.|At 6 a.m.|He left.",
        "Pitt, Briggs & Co. at noon.|Briggs & Co.|It closed.",
        "It cost $100.00.|That is a lot.|Version 2.5 is out.",
        "Write to jane.doe@example.com.|See https://www.example.com/a.html.|Thanks.",
        '"This is great." she said.|"This is great."|She left.',
        "She works at Yahoo! in sales.|(He agreed.)|So did I.",
        "I never meant that...|She left.",
        "well ... maybe",
        "Il dit « Oui. »|Puis il partit.",
        "A saint and martyr.[1]|The emperor came.",
        '"Bohr [...] used it [...]" (Smith 55).',
        "1. First item.|2. Second item.",
        "they ran away .|one died . . . slowly , but surely .",
        "Das gilt z. B. hier.|Am 3. Januar kam er.|Er blieb.",
        "Он родился в 1950 г. в Москве.|Потом уехал.",
        "这是一句。|这是第二句！|是吗？|对。",
        "彼は「はい。」と言った。|終わり。",
        # Speech within a sentence, in scripts with and without capitals.
        "« Où vas-tu ? » demanda Hélène.|Personne ne répondit.",
        "– Tu viens ? demanda-t-il.|– Non !",
        "Quoi ! vous partez déjà ? dit le maire.|Personne !",
        "“你要去哪里？”桂花问道。|没有人回答。|“为什么？”|“不知道。”",
        "“你要去哪里？”|“我要去市场！”她走了。",
        "「どこへ行くの？」と花子が尋ねた。|「学校。」|誰も答えなかった。",
        "«لماذا أغلقوا السوق؟» سأل سليم.|لم يجب أحد.",
        "“पुल क्यों बंद है?” हरीश ने पूछा।|किसी ने उत्तर नहीं दिया।",
        "`` where are you going ? '' asked barnaby .|nobody answered .|`` home . ''|he left .",
        '" where are you going ? " asked barnaby .|nobody answered .',
        "who was it ?|nobody .|he left .",
        "The ? key is broken.|It fell.",
        # Letters without capitals.
        "ის წავიდა სახლში.|არავინ უპასუხა.|სად მიდიხარ?|„აქ!“ უპასუხა მან.",
        # Ordinals and abbreviations.
        "Im 19. Jahrhundert wuchs die Stadt.|Die Bahn kam 1850.|Er blieb bis 1870.",
        "Dies ist nun der 17. Versuch.|Er gelang.",
        "Sie wohnt in der Hauptstr. 12, z. B. im dritten Stock.|Dort ist es hell.",
        "De zgn. Eerste Kamer besliste.|Niemand weet het.",
        "Mötet är kl. 14.|Idag är det tisdag.",
        "O total, aprox. 500 reais, foi pago.|A Dra. Conceição mora na Av. Brasil.|Fim.",
        "Le chap. 3 et l’art. 5 traitent de ce point.|Voir p. 12.",
        "Vive en EE. UU. desde 1990.|Le gusta.",
        "Mieszka przy ul. Długiej 5.|Przyjechał o godz. 9.",
        "Esim. Aino tuli.|Muut jäivät.",
        "Dl. Popescu și dna. Ionescu au venit.|Așteaptă.",
        "डॉ. शर्मा आए।|वे थके थे।",
        "قال د. سليم ذلك.|ثم خرج.",
        "TS. Nguyễn đến lúc 9 giờ.|Ông mệt.",
        "I don't.|They've gone.|We'll see.|It's John's.|Fine.",
        "यह पहला वाक्य है।|यह दूसरा है।",
        "ما اسمك؟|اسمي علي.",
        "कः त्वम्॥|रामः।",
        "یہ پہلا ہے۔|یہ دوسرا ہے۔",
        "አንድ።|ሁለት፡ቃል።፡|ሦስት።",
        "ᠨᠢᠭᠡ᠃|ᠬᠣᠶᠠᠷ᠃",
        "ပထမ၊ ဒုတိယ။|တတိယ။",
        "មួយ។|ពីរ។",
        "ꕉꕜ꘎|ꔳꕪ꘏|ꕉ",
        "Τι κάνεις;|Είμαι καλά.|Πού; πότε;|Όχι: «Ναι;»|Ίσως.",
        "Write a; B stays.",
        "¿Qué hora es?|¡Son las dos!|Adiós.",
        "Er sagte: „Ja.“|Dann ging er.",
        "No space.After a stop",
        "etc., and more; e.g., this (i.e., that).",
        "Cafe\u0301.|Über alles.",
        "Die 2. Auflage erschien.|Siehe Abb. 3 und Kap. 4.|Gut.",
        "Nel sec. XIX era così.|No séc. XIX.|Depois não.|În sec. XX a murit.",
        "IV. Béla király volt.|Pl. Anna eljött.|Kb. 300 ember jött.",
        "MM. Durand et Cie. ont signé.|Né le 5 janv. 1900.|Mort.",
        "I met him in Mix.|V is a letter.|It was World War II.|We won.",
        "Św. Jan i im. Anny.|Zob. rozdz. 3.|Dobrze.",
        # Words that begin sentences of other languages, after units; names after initials.
        "On a rendez-vous à 14 h.|Ne sois pas en retard.",
        "Prisen er 50 kr. pr. stk.|Det er dyrt.|Det tar ca. 3 min.|Han venter.",
        "Es dauert max. 5 Min.|Danach ist Schluss.",
        "Het gaat om max. 20 personen.|Cena je cca. 300 Kč.|To není moc.",
        "Il habite Av. Foch.|Rome fut prise en 410 apr. J.-C.|Tous fuirent.",
        "Высота ок. 20 м.|Это много.|Βλ. κεφ. 3 και εικ. 2.|Εκεί φαίνεται.",
        "We met J. Han, Y. Ono and K. Ten Boom.|They left.",
        # Words that are abbreviations in other languages.
        "Strömmen stängdes av.|Alla gick hem.|Lyset ble slått av.|Sedan gikk de.",
        "They took the bus.|20 minutes later they arrived.|I was ok.|5 minutes passed.",
        "Das war ok.|12 Leute kamen.|Er fährt mit dem Bus.|12 Leute warten.",
        "That is odd.|12 people came.|Získal bod.|3 minuty zbývaly.|Er sucht ein Klo.|2 gibt es.",
    ],
)
def test_sentences_end_where_the_bars_are(marked):
    joins = set("。！？」።፡។")
    text = ""
    for part in marked.split("|"):
        text += part if not text or text[-1] in joins else " " + part
    assert split(text) == [part for part in marked.split("|") if part]


@given(st.text(st.sampled_from("aB1.!?…。\"')(“”[] -I,é"), max_size=40))
def test_nothing_but_spaces_is_lost(text):
    clean = " ".join(text.split())
    sentences = split(clean)
    assert "".join(sentences).replace(" ", "") == clean.replace(" ", "")
    assert all(sentence and sentence.strip() == sentence for sentence in sentences)


def test_many_paragraphs_at_once_keep_apart():
    data = np.frombuffer(b"Ab. Cd.|e|Of. Go!", np.uint8)
    starts, stops, counts = split_sentences(data, np.array([0, 8, 8, 10]), np.array([7, 8, 9, 17]))
    assert counts.tolist() == [2, 0, 1, 2]
    assert starts.tolist() == [0, 4, 8, 10, 14]
    assert stops.tolist() == [3, 7, 9, 13, 17]


def test_time_grows_with_the_text_not_its_square():
    sentences = split('He said "Stop. (Now." and Mr. X. left ... ' * 50_000)
    assert len(sentences) > 50_000
