"""Words before a full stop that do not end a sentence, and words that begin one.

Of several languages at once: a list too many costs less than a split after `Dr.`
"""

# ruff: noqa: SIM905  (word lists read best as lines of words)

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from bert_tf.base.kernels import fnv1a

# In all lists a word in lower case also means its capitalized form and its form in capitals; a
# capitalized word does not mean lower case ("Ill." is Illinois, "ill." ends a sentence).

# Something always follows these: a name, a thing, the rest of the sentence.
_NEVER_LAST = """
mr mrs ms messrs mmes dr drs prof profs lt capt cpt cmdr sgt cpl pvt supt mt ft vs viz cf ca approx
st Fr Rev Hon Gen Col Maj Gov Sen Rep Reps Pres Insp Ste esp incl e.g i.e eg ie resp
mme mlle mlles dipl Ing hr frl fam z.b z.t u.a d.h o.ä s.o s.u v.a bzw bspw ggf vgl evtl inkl zzgl
sog geb gest sra srta dña ud uds vd lic excmo sig sigg dott avv Arch
dhr mevr bijv d.w.z o.a m.n t.a.v т.е т.к т.н напр см ср им акад доц проф
""".split()
# A sentence may end here; it does if a word that begins sentences follows.
_MAY_BE_LAST = """
inc co corp ltd plc llc bros jr sr esq etc al pm ph.d dept univ assn assoc
Ave Blvd Rd Hwy Jan Feb Mar Apr Jun Jul Aug Sept Sep Oct Nov Dec Mon Tue Tues Wed Thu Thurs Fri Sat
Sun Ariz Ark Calif Colo Conn Del Fla Ga Ill Ind Kan Ky La Mass Md Mich Minn Miss Mo Mont Neb Nev
Okla Ore Pa Penn Tenn Tex Va Vt Wash Wis Wyo
usw u.s.w bd jh jhd mio mrd str ges gmbh cie c.à.d p.ex ecc enz
т.д т.п др пр гг вв руб коп ул тыс млн млрд
""".split()
# A number belongs to these.
_BEFORE_NUMBER = """
no nos nr n° nº n.º num p pp pg pag pág s ss vol vols fig figs tab sec sect ch chap art arts par
para eq eqs abs kap ziff anm bl lig fol ed nl núm cap tel § стр с гл рис табл п пп ст №
""".split()
# These begin a sentence after an abbreviation that may end one; names do not.
# They are also how a language is told.
WORDS_OF_LANGUAGES = {
    "English": """
the a an this that these those there here it its he his him she her they their we our you your i my
in on at by for from to of with without and but or so yet nor if when while after before since
because although though as until once during however moreover meanwhile then now today yesterday
tomorrow how what why who whom whose where which is are was were do did does have has had can could
will would shall should may might must let please no not yes all some many most one two another each
every both few several such according despite
""".split(),
    "German": """
der die das ein eine er sie es wir ihr ich und aber oder wenn als nach vor bei mit im in am
""".split(),
    "French": """
le la les un une des il elle ils elles nous vous je et mais ou ce cette ces dans en
""".split(),
    "Spanish": """
el los las una ella ellos nosotros yo y pero o este esta en lo
""".split(),
    "Italian": """
lo gli uno una lui lei loro noi voi io e ma nel nella
""".split(),
    "Dutch": """
de het een hij zij wij en maar
""".split(),
    "Russian": """
он она оно они мы вы я и а но или в на по это эта этот для при после как что если когда
""".split(),
}
_MONTHS = """
januar februar märz april mai juni juli august september oktober november dezember jänner
""".split()


def word_hash(word: bytes) -> int:
    return int(fnv1a(np.frombuffer(word, np.uint8), 0, len(word)))


def _hashes(words: list[str]) -> np.ndarray:
    forms = {form for word in words for form in (word, word.capitalize(), word.upper())}
    return np.array(sorted(word_hash(form.encode()) for form in forms), np.uint64)


class WordLists(NamedTuple):
    """Sorted uint64 hashes of the words that the splitter asks for."""

    never_last: np.ndarray
    may_be_last: np.ndarray
    before_number: np.ndarray
    beginners: np.ndarray
    months: np.ndarray


@functools.cache
def word_lists() -> WordLists:
    return WordLists(
        never_last=_hashes(_NEVER_LAST),
        may_be_last=_hashes(_MAY_BE_LAST),
        before_number=_hashes(_BEFORE_NUMBER),
        beginners=_hashes(
            [word.capitalize() for words in WORDS_OF_LANGUAGES.values() for word in words]
        ),
        months=_hashes([word.capitalize() for word in _MONTHS]),
    )
