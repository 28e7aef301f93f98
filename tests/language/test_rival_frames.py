"""Rival frames: pairs of statements that nobody tuned on, in some fifteen languages.

The pairs were written after the rules were fixed. A pair that fails is a reason to look for what is
wrong in general, not for a rule of its own.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path

import pytest

from worlddb.language import rival_frames
from worlddb.language.rival_frames import frame_of, is_rival
from worlddb.language.statement import Phrases, listed, statement_of

DATA = Path(__file__).parents[2] / "bench" / "data"

FALSE_MAX = 2  # As measured when the pairs were written; a false link is worse than a missed one.
LINKED_MIN = 37

BOTH_CAN_BE_SO = (
    ("I bought 3 lemons.", "I bought 6 lemons."),
    ("We watched a film about whales.", "We watched a film about wolves."),
    ("My sister loves sushi.", "My sister loves ramen."),
    ("The kids played football.", "The kids played chess."),
    ("I have a meeting with Laura.", "I have a meeting with Ivan."),
    ("Our team includes Pedro.", "Our team includes Nadia."),
    ("Tom speaks Dutch.", "Tom speaks Polish."),
    ("The report mentions Berlin.", "The report mentions Madrid."),
    ("I slept 6 hours.", "I slept 8 hours."),
    ("She donated 50 dollars to the shelter.", "She donated 80 dollars to the shelter."),
    ("My neighbours are from Chile.", "My neighbours are from Kenya."),
    ("The box contains screws.", "The box contains nails."),
    ("I am interested in pottery.", "I am interested in astronomy."),
    ("Grandpa told us about the war.", "Grandpa told us about the farm."),
    ("The train to Lyon was 10 minutes late.", "The train to Lyon was 25 minutes late."),
    ("I called Mark twice.", "I called Jenny twice."),
    ("Ich habe 20 Seiten gelesen.", "Ich habe 35 Seiten gelesen."),
    ("Meine Tochter mag Pferde.", "Meine Tochter mag Hunde."),
    ("Wir waren in Prag.", "Wir waren in Wien."),
    ("J'ai mangé une pomme.", "J'ai mangé une poire."),
    ("Mon frère joue du piano.", "Mon frère joue du violon."),
    ("Compré pan en la tienda.", "Compré leche en la tienda."),
    ("Mi abuela cocina paella.", "Mi abuela cocina lentejas."),
    ("Ho visto Roma.", "Ho visto Napoli."),
    ("昨日カレーを食べました。", "昨日ラーメンを食べました。"),
    ("弟はサッカーが好きです。", "弟は野球が好きです。"),
    ("我昨天买了苹果。", "我昨天买了香蕉。"),
    ("我妹妹会说法语。", "我妹妹会说德语。"),
    ("他去过上海。", "他去过广州。"),
    ("Я купил хлеб.", "Я купил молоко."),
    ("Моя кошка любит рыбу.", "Моя кошка любит курицу."),
    ("Eu corri 5 km.", "Eu corri 9 km."),
    ("나는 사과를 먹었다.", "나는 배를 먹었다."),
    ("Köpeğim 2 elma yedi.", "Köpeğim 3 elma yedi."),
    ("Ik heb een fiets.", "Ik heb een auto."),
    ("The conference covers privacy.", "The conference covers security."),
    ("Anna is afraid of spiders.", "Anna is afraid of heights."),
    ("My friend is Paulo.", "My friend is Lucy."),
    ("The soup has carrots.", "The soup has leeks."),
    ("Sam is good at chess.", "Sam is good at maths."),
)
ONE_CAN_BE_SO = (
    ("The wifi password is tulip77.", "The wifi password is rose41."),
    ("My rent is 900 euros.", "My rent is 950 euros."),
    ("The standup is at 9:30.", "The standup is at 10:15."),
    ("Our office is on the 3rd floor.", "Our office is on the 5th floor."),
    ("The capital of the region is Odra.", "The capital of the region is Velin."),
    ("My blood type is A.", "My blood type is B."),
    ("Leo's birthday is May 4.", "Leo's birthday is May 9."),
    ("The project lead is Hana.", "The project lead is Omar."),
    ("The gym opens at 6.", "The gym opens at 7."),
    ("Sofia lives in Turin.", "Sofia lives in Genoa."),
    ("My flight leaves at 14:20.", "My flight leaves at 16:05."),
    ("The warranty lasts 24 months.", "The warranty lasts 36 months."),
    ("The server runs on port 8080.", "The server runs on port 9000."),
    ("My mother's maiden name is Keller.", "My mother's maiden name is Brandt."),
    ("The meeting room is Atlas.", "The meeting room is Zephyr."),
    ("My shoe size is 42.", "My shoe size is 43."),
    ("Der Türcode ist 4411.", "Der Türcode ist 5520."),
    ("Die Miete beträgt 800 Euro.", "Die Miete beträgt 870 Euro."),
    ("Meine Chefin ist Frau Lang.", "Meine Chefin ist Frau Vogt."),
    ("Le code du garage est 1234.", "Le code du garage est 9876."),
    ("Mon médecin s'appelle Martin.", "Mon médecin s'appelle Petit."),
    ("La contraseña del wifi es sol22.", "La contraseña del wifi es luna33."),
    ("El presupuesto es de 5000 euros.", "El presupuesto es de 7000 euros."),
    ("L'affitto è di 700 euro.", "L'affitto è di 750 euro."),
    ("会議は3時からです。", "会議は4時からです。"),
    ("私の電話番号は1234です。", "私の電話番号は5678です。"),
    ("我的生日是五月三号。", "我的生日是六月八号。"),
    ("房租是3000元。", "房租是3500元。"),
    ("我们公司的总部在北京。", "我们公司的总部在上海。"),
    ("Пароль от сейфа 1122.", "Пароль от сейфа 3344."),
    ("Мой начальник — Олег.", "Мой начальник — Борис."),
    ("A senha do portão é 4040.", "A senha do portão é 5151."),
    ("Kira 9000 lira.", "Kira 11000 lira."),
    ("De huur is 1200 euro.", "De huur is 1300 euro."),
    ("우리 집 비밀번호는 1212입니다.", "우리 집 비밀번호는 3434입니다."),
    ("Hyran är 8000 kronor.", "Hyran är 8500 kronor."),
    ("Kod do bramy to 2580.", "Kod do bramy to 1470."),
    ("رمز الباب هو 1234.", "رمز الباب هو 5678."),
    ("Ο κωδικός είναι 4455.", "Ο κωδικός είναι 6677."),
    ("The dentist appointment is on Tuesday.", "The dentist appointment is on Friday."),
)


def linked(pairs: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    found = []
    for pair in pairs:
        old, new = map(statement_of, pair)
        if old is not None and new is not None and is_rival(old, new):
            found.append(pair)
    return found


def test_what_can_both_be_so_is_hardly_ever_a_conflict() -> None:
    found = linked(BOTH_CAN_BE_SO)
    assert len(found) <= FALSE_MAX, found


def test_what_cannot_both_be_so_mostly_is_one() -> None:
    found = linked(ONE_CAN_BE_SO)
    assert len(found) >= LINKED_MIN, set(ONE_CAN_BE_SO) - set(found)


def test_the_weights_come_from_the_frames_in_the_repository() -> None:
    path = Path(rival_frames.__file__).with_name("rival_frames.json")
    learned = json.loads(path.read_text(encoding="utf-8"))
    frames = DATA / learned["data"]
    assert learned["data_sha256"] == hashlib.sha256(frames.read_bytes()).hexdigest()


def test_most_everyday_conflicts_are_linked_and_hardly_any_other_pair() -> None:
    rows = map(json.loads, (DATA / "conflict_pairs.jsonl").read_text("utf-8").splitlines())
    pairs = {True: [], False: []}  # type: dict[bool, list[tuple[str, str]]]
    for row in rows:
        pairs[row["conflict"]].append((row["old"], row["new"]))
    # As `python -m bench.conflicts` printed when the weights were fitted: 78 of 103, 3 of 170.
    assert len(linked(tuple(pairs[True]))) >= 75
    assert len(linked(tuple(pairs[False]))) <= 3


@pytest.mark.parametrize(
    ("old", "new", "before"),
    [
        ("Мою начальницу зовут Вера.", "Мою начальницу зовут Нина.", "мою начальницу зовут"),
        ("اسم كلبي ركس.", "اسم كلبي بوبي.", "اسم كلبي"),
        ("हमारे कुत्ते का नाम शेरू है।", "हमारे कुत्ते का नाम टॉमी है।", "हमारे कुत्ते का नाम"),
        ("房租是3000元。", "房租是3500元。", "房 租 是"),
    ],
)
def test_only_the_value_differs_in_any_script(old: str, new: str, before: str) -> None:
    one, other = statement_of(old), statement_of(new)
    assert one is not None
    assert other is not None
    frame = frame_of(one, other)
    assert frame is not None
    assert " ".join(frame.before) == before
    common = len(frame.before) + len(frame.after)
    assert [len(one.words), len(other.words)] == [common + 1, common + 1]


def test_two_people_can_have_one_occupation() -> None:
    assert not linked((("Colin Irwin is a citizen of Peru.", "Rosa Kahn is a citizen of Peru."),))
    assert not linked((("Tom is a doctor.", "Anna is a doctor."),))


@pytest.mark.parametrize("section", ["change", "turn", "end", "past", "ago", "doubt"])
def test_phrases_are_found_by_their_words_as_by_their_pattern(section: str) -> None:
    rng, phrases, listing = random.Random(section), Phrases(section), sorted(listed(section))
    fillers = ["I", "told", "me", "it's", "peut-etre", "not", "the", "2", "x_y", "no-longer", "été"]
    found = 0
    for _ in range(3_000):
        phrase = rng.choice(listing)
        if rng.random() < 0.5:
            phrase = " ".join(rng.sample(phrase.split(" "), len(phrase.split(" "))))
        said = [*rng.choices(fillers, k=3), rng.choice(["", "-", "'", "3"]) + phrase.title()]
        text = rng.choice([" ", "  ", "\n", "-"]).join(rng.sample(said, len(said)))
        runs = frozenset(re.findall(r"[^\W\d_]+", text.lower()))
        found += phrases.are_in(runs, text)
        assert phrases.are_said(runs, text) == phrases.are_in(runs, text), text
    assert found


SECTIONS = ["change", "turn", "end", "past", "ago", "doubt"]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_text_with_a_phrase_has_the_words_of_the_phrase(section: str) -> None:
    phrases = Phrases(section)
    for phrase in sorted(listed(section)):
        for text in (f"so {phrase} it was", f"he said {phrase}"):
            runs = frozenset(re.findall(r"[^\W\d_]+", text.lower()))
            assert phrases.may_be_said(runs, text), text
            assert phrases.cut(text) != text


def test_no_frame_is_lost_to_the_quick_look_at_both_ends() -> None:
    rng, found = random.Random(5), 0
    for _ in range(20_000):
        old = [rng.choice("abc") for _ in range(rng.randint(2, 14))]
        new = old[:]
        at = rng.randrange(len(new))
        new[at : at + rng.randint(0, 7)] = [rng.choice("abcxy") for _ in range(rng.randint(0, 7))]
        texts = [" ".join(f"w{word}" for word in words) for words in (old, new)]
        one, other = (statement_of(text) for text in texts)
        if one is None or other is None or frame_of(one, other) is None:
            continue
        found += 1
        ends = one.words[:2] == other.words[:2] or one.words[-2:] == other.words[-2:]
        assert one.may_be_rival(other) == ends, texts
    assert found > 1_000
