"""Activation: how names lead from a question to texts, and from these to further texts.

    names in the question ──▶ entities ──about──▶ texts            `lifted`
    the best texts ──mention──▶ entities ──about──▶ further texts  `passed_on`

A text is *about* its subjects and *mentions* other names. Both are `refers_to` edges; the metadata
of the former say `"role": "about"`. What lives inside a node is about it, too. A name that a text
says counts as a mention even if no edge says so: the node may be younger than the text. One entity
leads to another where an edge between them names a relation ("sister").

S1  Every step goes to visible nodes along edges that hold at the moment, through accepted classes.
S2  What an entity gives is shared by the texts about it: each gets 1/√n; and it is less the more
    nodes have the words of its name, since many texts mention "Belgium". An entity with more than
    `hub_max` texts gives nothing, so the cost is bounded.
S3  A text gets the most that one other text gives it, not the sum: many weak hints are no strong
    one. Equal stores and questions give equal results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.claims.claim_edges import (
    ABOUT,
    ABOUT_METADATA,
    REFERENCES,
    References,
    as_stored,
    relation_in,
    relation_of,
    said_relation,
    stated,
    valid_references,
)
from worlddb.index.ranking_numbers import SCALARS
from worlddb.language.proper_names import name_key, said_words
from worlddb.language.ranking_features import asked_claims
from worlddb.language.rival_frames import is_rival
from worlddb.language.statement import statement_of
from worlddb.language.text_tokens import folded
from worlddb.model.address import Id, trusted_id
from worlddb.model.inputs import Plain
from worlddb.model.records import NOT_NAMED, Node
from worlddb.recall.question import (
    KnownNames,
    SaidName,
    longest,
    name_spans,
    named_rows,
    one_person,
    question_names,
)
from worlddb.store.interface import Reader
from worlddb.store.rows import BodyRow, ReferenceRow
from worlddb.view.node_filters import TrustLevels
from worlddb.view.visibility import Moment, View, accepted_class

if TYPE_CHECKING:
    from worlddb.index.bm25 import WordCover

SAYS, INSIDE = "says", "inside"
FOUND = "found"
SUBJECT_TYPES = frozenset({"Entity", "Person"})
"""Types of nodes that something can be claimed about."""
ANY_METADATA = ("{",)
SAID_NAMES_MAX = 100  # names of a question; more than anybody asks about
READ_CHARS_MAX = 4_000
"""How much of a text is searched for names: a passage. What else a longer text mentions is too much
to pass on to."""


class GraphStep(NamedTuple):
    """One step: along which relation and edge (None: a name that is said) to which node."""

    relation: str
    row: int
    edge: Id | None


class Way(NamedTuple):
    """The score that a text gets, and the steps that lead to it."""

    gain: float
    steps: tuple[GraphStep, ...]


class Texts(NamedTuple):
    """The texts about the nodes of one name, and those that only mention them, with the steps."""

    about: Mapping[int, tuple[GraphStep, ...]]
    mentioning: Mapping[int, tuple[GraphStep, ...]]


class NameGains(NamedTuple):
    """A name in a question, and the score that it gives to texts."""

    key: str
    ways: Mapping[int, Way]


def _each_once(said: Iterable[SaidName]) -> list[SaidName]:
    """Return the names of a question, each once; one that is said twice counts twice.

    So a question that repeats one name costs no more than one that says it once.
    """
    found: dict[tuple[str, frozenset[int]], SaidName] = {}
    for name in said:
        key = name.key, frozenset(name.rows)
        before = found[key].sureness if key in found else 0.0
        found[key] = name._replace(sureness=before + name.sureness)
    return list(found.values())[:SAID_NAMES_MAX]


class Spreading:
    """The spreading of one question on one snapshot. What was read is kept for the next hop."""

    def __init__(self, names: KnownNames, reader: Reader, moment: Moment, classes: bool) -> None:
        self._names = names
        self._reader = reader
        self._moment = moment
        self._classes = classes and reader.has_proposals()
        self._asked: set[int] = set()  # What the question names: no text leads there again.
        self._onward: dict[int, dict[int, Way]] = {}
        self._references = References(reader, moment, names.inside, names.references)
        self._bodies: dict[int, BodyRow] = {}

    def lifted(self, question: str, also: Sequence[str] = ()) -> list[NameGains]:
        """Return the score, at most 1, that each name in a question gives to texts.

        Words that may be no name give less. Names that are given `also` count as said. The texts
        about names without a question are all worth the same, however many there are.
        """
        found: list[NameGains] = []
        at = self._names, self._reader, self._moment, self._classes
        names = _each_once(question_names(*at[:3], question, self._classes))
        found_rows = [said.rows for said in names]
        for name in dict.fromkeys(also):
            if (rows := named_rows(*at, name)) and rows not in found_rows:
                names.append(SaidName(0, name_key(name), rows))
        self._references.newest = not question.strip()
        power = -0.5 if question.strip() else 0.0
        for said in names:
            named = self._class_of(said.rows)
            self._asked |= named
            texts = self._texts(named)
            own = self._names.keep(named)
            part = said.sureness * max(1, len(own)) ** power
            gains = {row: Way(part, (GraphStep(SAYS, row, None),)) for row in own}
            for share, reached in ((1.0, texts.about), (SCALARS.mention_share, texts.mentioning)):
                part = said.sureness * share * max(1, len(reached)) ** power
                gains |= {row: Way(part, steps) for row, steps in reached.items()}
            found.append(NameGains(said.key, gains))
        return found

    def claimed(self, question: str, asker: str) -> dict[int, Way]:
        """Return the texts that state what a question asks about somebody."""
        found: dict[int, Way] = {}
        for owner, relations in asked_claims(question):
            rows = self._subjects(owner or asker)
            if owner and not rows:
                firsts = self._names.first_named(folded(" ".join(said_words(owner))))
                rows = one_person(self._names, self._reader, firsts, self._moment, self._classes)
            if not rows:
                continue
            same = self._class_of(rows)
            stating = [
                item
                for item, said in stated(self._reader, same, relations, self._moment)
                if said.value
            ]
            inside = self._names.keep({item.source for item in stating})
            for item in stating:
                if item.source in inside:
                    last = GraphStep(relation_in(item.edge.metadata), item.source, item.edge.id)
                    found[item.source] = Way(1.0, (GraphStep(SAYS, item.target, None), last))
        part = 1.0 / np.log2(1 + len(found)) if found else 0.0
        return {row: Way(float(part), way.steps) for row, way in found.items()}

    def _subjects(self, name: str) -> set[int]:
        """Return the nodes of a name that are of a type with claims: persons and things."""
        key = folded(" ".join(said_words(name)))
        rows = self._names.bearers_of([key]).get(key, set())
        bodies = self._reader.bodies(sorted(rows), self._moment.known)
        return {body.row for body in bodies if body.type in SUBJECT_TYPES}

    def passed_on(self, given: Mapping[int, float]) -> dict[int, Way]:
        """Return what texts pass on to texts about what they mention; `given` is by row."""
        current = self._current(list(given))
        self._look(current)
        found: dict[int, Way] = {}
        for row in current:
            amount = given[row]
            for target, way in self._onward[row].items():
                gain = amount * way.gain
                if target not in found or gain > found[target].gain:
                    found[target] = Way(gain, (GraphStep(FOUND, row, None), *way.steps))
        return found

    def _current(self, rows: Sequence[int]) -> list[int]:
        """Return texts without those that a later one of them may have replaced."""
        told = [
            (body.parent, (body.valid_from, row), said)
            for row, body in self._read(rows).items()
            if (said := statement_of(body.content)) is not None
        ]
        replaced = {
            since[1]
            for place, since, old in told
            for other, began, new in told
            if began > since and place == other and old.may_be_rival(new) and is_rival(old, new)
            if not self._outranks(since[1], began[1])
        }
        return [row for row in rows if row not in replaced]

    def _read(self, rows: Collection[int]) -> dict[int, BodyRow]:
        """Return the bodies of nodes; each is read once for a question."""
        bodies = self._bodies
        if new := sorted(row for row in rows if row not in bodies):
            bodies.update((it.row, it) for it in self._reader.bodies(new, self._moment.known))
        return {row: bodies[row] for row in rows if row in bodies}

    def _outranks(self, row: int, other: int) -> bool:
        """Return whether a text is more trusted than another one."""
        nodes = self._reader.nodes([row, other], self._moment.known)
        if not nodes[other].origins:
            return False
        levels = TrustLevels(self._reader, self._moment.known)
        return levels.of(nodes[row]) > levels.of(nodes[other])

    # -- what a text leads to ----------------------------------------------------------------------

    def _look(self, rows: Collection[int]) -> None:
        """Read where texts lead to, all of them in a handful of statements."""
        new = [row for row in rows if row not in self._onward]
        if not new:
            return
        mentioned = {
            row: {entity: step for entity, step in steps.items() if entity not in self._asked}
            for row, steps in self._mentioned(new).items()
        }
        entities = {entity for steps in mentioned.values() for entity in steps}
        related = self._related(entities)
        beyond = {step.row for steps in related.values() for step in steps}
        texts = self._texts_of_each(entities | beyond)
        keys = {row: name_key(it.name) for row, it in self._read(entities | beyond).items()}
        said = self._names.worth(keys.values())
        worth = {row: said[key] for row, key in keys.items()}
        for row in new:
            onward: dict[int, Way] = {}
            for entity, step in mentioned[row].items():
                self._add(onward, row, (step,), texts[entity], worth[entity])
                for further in related.get(entity, ()):
                    way = step, further
                    self._add(onward, row, way, texts[further.row], worth[further.row])
            self._onward[row] = onward

    def _add(
        self,
        onward: dict[int, Way],
        row: int,
        steps: tuple[GraphStep, ...],
        texts: Mapping[int, GraphStep],
        worth: float,
    ) -> None:
        """Add the texts about an entity, unless the text that leads there is one of them."""
        if row in texts or not texts:
            return
        gain = worth * len(texts) ** -0.5
        for target, last in texts.items():
            if target not in onward or gain > onward[target].gain:
                onward[target] = Way(gain, (*steps, last))

    def _mentioned(self, rows: Collection[int]) -> dict[int, dict[int, GraphStep]]:
        """Return the entities that texts mention, each with the step that leads there."""
        found: dict[int, dict[int, GraphStep]] = {row: {} for row in rows}
        for item in self._leaving(rows):
            step = GraphStep(relation_of(item), item.target, trusted_id(item.id))
            found[item.source].setdefault(item.target, step)
        opens = self._names.may_open
        spans = {
            row: name_spans(body.content[:READ_CHARS_MAX], opens, capitals=True)
            for row, body in self._read(rows).items()
        }
        bearers = self._names.bearers_of({span.key for each in spans.values() for span in each})
        for row, each in spans.items():
            for _, named in longest(each, bearers):
                # What opens like the text itself speaks of the same thing and leads nowhere new.
                for entity in sorted(named) if row not in named else ():
                    found[row].setdefault(entity, GraphStep(SAYS, entity, None))
        return found

    def _related(self, entities: Collection[int]) -> dict[int, list[GraphStep]]:
        """Return the entities that facts between entities lead to, in both directions."""
        found: dict[int, list[GraphStep]] = {}
        for item in self._leaving(entities):
            relation = said_relation(item)
            if isinstance(relation, str):
                step = GraphStep(relation, item.target, trusted_id(item.id))
                found.setdefault(item.source, []).append(step)
        return found

    def _leaving(self, rows: Collection[int]) -> list[ReferenceRow]:
        """Return the valid references from some nodes to nodes inside the view."""
        reader, moment = self._reader, self._moment
        if moment.known is None:
            leaving = reader.sweep.leaving(sorted(rows), REFERENCES[0])
        else:
            then = reader.edges_at(sorted(rows), "out", REFERENCES, moment.known)
            leaving = list(map(as_stored, then))
        inside = self._names.inside({item.target for item in leaving})
        return [item for item in valid_references(leaving, moment) if item.target in inside]

    # -- the texts of an entity --------------------------------------------------------------------

    def _class_of(self, rows: Collection[int]) -> set[int]:
        """Return nodes and those accepted as the same, as far as they are inside the view."""
        if not self._classes:
            return set(rows)
        inside = self._names.inside
        return inside(accepted_class(self._reader, rows, self._moment, inside=inside))

    def _texts_of_each(self, entities: Iterable[int]) -> dict[int, Mapping[int, GraphStep]]:
        """Return the texts about each entity's class, with the last step to each text."""
        named = set(entities)
        known = self._moment.known
        merges = self._reader.proposals("accepted", named, known) if self._classes else ()
        merged = {row for item in merges for row in (item.low, item.high)}
        classes = {one: self._class_of({one}) if one in merged else {one} for one in named}
        alone = [one for one, rows in classes.items() if rows == {one}]
        hubs = self._references.hubs(alone, self._names.keep)
        everyone = {row for one, rows in classes.items() if one not in hubs for row in rows}
        steps: dict[int, dict[int, bytes | None]] = {row: {} for row in everyone}
        for item in self._references.arriving(everyone, ABOUT_METADATA):
            steps[item.target][item.source] = item.id
        for row in self._names.keep(everyone):
            steps[row][row] = None
        kept = self._names.keep({row for each in steps.values() for row in each})
        found: dict[int, Mapping[int, GraphStep]] = {hub: {} for hub in hubs}
        for entity in classes.keys() - hubs:
            each = [steps[one].items() for one in sorted(classes[entity])]
            texts = {row: edge for known in each for row, edge in known if row in kept}
            found[entity] = {
                row: GraphStep(ABOUT, row, None if edge is None else trusted_id(edge))
                for row, edge in (texts.items() if len(texts) <= SCALARS.hub_max else ())
            }
        return found

    def _texts(self, named: set[int]) -> Texts:
        """Return the texts about the nodes of a name, and those that only mention them."""
        about = {
            item.source: (
                GraphStep(SAYS, item.target, None),
                GraphStep(ABOUT, item.source, trusted_id(item.id)),
            )
            for item in self._references.arriving(named, ABOUT_METADATA)
        }
        first = min(named, default=0)
        for row in self._names.filed_under(named, SCALARS.hub_max):
            about.setdefault(row, (GraphStep(SAYS, first, None), GraphStep(INSIDE, row, None)))
        kept = self._names.keep(about.keys() - named)
        about = {row: steps for row, steps in about.items() if row in kept}
        mentioning = {
            item.source: (
                GraphStep(SAYS, item.target, None),
                GraphStep(relation_of(item), item.source, trusted_id(item.id)),
            )
            for item in self._references.arriving(named, ANY_METADATA)
            if item.source not in about and item.source not in named
        }
        kept = self._names.keep(mentioning)
        return Texts(about, {row: steps for row, steps in mentioning.items() if row in kept})


class GraphLane:
    """The graph lane of one question: its scores, and its spreading among candidates.

    `gains` has what names and claims in the question give, by row. `ways` has the way to each text
    that was reached, by row; it grows while scores are passed on. `names` has the names in the
    question that lead straight to each text, by row.
    """

    def __init__(
        self,
        spreading: Spreading,
        question: str,
        names: Sequence[str],
        asker: str,
        weight: float,
    ) -> None:
        self._spreading = spreading
        self._rows: Sequence[int] = ()
        self._sorted = np.empty(0, dtype=np.int64)
        self._places = np.empty(0, dtype=np.intp)
        self._lifted = spreading.lifted(question, names)
        self._claimed = spreading.claimed(question, asker)
        self.gains: Counter[int] = Counter()
        self.ways: dict[int, Way] = {}
        self.names: dict[int, set[str]] = {}
        for lift in self._lifted:
            for row in lift.ways:
                self.names.setdefault(row, set()).add(lift.key)
        for ways in (*(lift.ways for lift in self._lifted), self._claimed):
            for row, way in ways.items():
                self.gains[row] += way.gain  # type: ignore[assignment]
                if row not in self.ways or weight * way.gain > self.ways[row].gain:
                    self.ways[row] = Way(weight * way.gain, way.steps)
        self.ways |= self._claimed

    def lane(
        self, rows: Sequence[int], numbers: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the score of each candidate; from here on candidates are known by place.

        `numbers` are the rows as an array, if they are at hand.
        """
        self._rows = rows
        numbers = np.array(rows, dtype=np.int64) if numbers is None else numbers
        self._places = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._places]
        scores = np.zeros(len(rows))
        for row, at in self._places_of(self.gains).items():
            scores[at] = self.gains[row]
        return scores

    def meant(self, cover: WordCover) -> NDArray[np.float64]:
        """Return the scores by names and claims; a text that lacks the other words gets less.

        Of the texts that say a name, it speaks for those with most of the question's words. A text
        that says the name mentions it, also without an edge.
        """
        scores = np.zeros(len(self._rows))
        for lift in self._lifted:
            given = np.zeros(len(scores))
            for row, at in self._places_of(lift.ways).items():
                given[at] = lift.ways[row].gain
            saying = cover.saying(lift.key)
            mention = given.max(initial=0.0) * SCALARS.mention_share / max(1, saying.sum()) ** 0.5
            given = np.where(saying, np.maximum(given, mention), given)
            most = cover.shares[(given > 0) & cover.tells].max(initial=0.0)
            if most:
                given *= np.minimum(1.0, cover.shares / most) ** SCALARS.name_cover
            scores += given
        for row, place in self._places_of(self._claimed).items():
            scores[place] += self._claimed[row].gain
        return scores

    def claiming(self, rows: Sequence[int]) -> NDArray[np.bool_] | None:
        """Return which candidates state what the question asks for; None if there are none."""
        found = np.zeros(len(rows), dtype=np.bool_)
        found[list(self._places_of(self._claimed).values())] = True
        return found if found.any() else None

    def _places_of(self, rows: Collection[int]) -> dict[int, int]:
        """Return the place of each row that is a candidate."""
        wanted = np.fromiter(rows, np.int64, len(rows))
        at = np.searchsorted(self._sorted, wanted)
        is_there = at < len(self._sorted)
        is_there[is_there] = self._sorted[at[is_there]] == wanted[is_there]
        return dict(
            zip(wanted[is_there].tolist(), self._places[at[is_there]].tolist(), strict=True)
        )

    def reached(self, scores: Mapping[int, float], share: float) -> set[int]:
        """Return the texts that the best of some texts lead to, by row, hop by hop.

        It goes as far as `ranker.spread`, so that all texts found there are candidates.
        """
        found: dict[int, float] = {}
        for _ in range(SCALARS.spread_hops):
            now = Counter(scores)
            now.update(found)
            best = sorted(now, key=lambda row: (-now[row], row))[: SCALARS.spread_texts]
            gained = self._spreading.passed_on({row: share * now[row] for row in best})
            found |= {row: max(found.get(row, 0.0), way.gain) for row, way in gained.items()}
            share *= SCALARS.spread_decay
        return set(found)

    def passed_on(self, given: Mapping[int, float]) -> dict[int, float]:
        """Return the score that each candidate gets from some candidates; both by place."""
        before = dict(self.ways)
        found = self._spreading.passed_on({self._rows[at]: much for at, much in given.items()})
        for row, way in found.items():
            if row not in self.ways or way.gain > self.ways[row].gain:
                start, *steps = way.steps
                led = before[start.row].steps if start.row in before else (start,)
                if all(step.row != row for step in led):
                    self.ways[row] = Way(way.gain, (*led, *steps))
        return {at: found[row].gain for row, at in self._places_of(found).items()}


# -- the path to a hit -----------------------------------------------------------------------------

NAME_CHARS = 60
"""Characters of a text that stand for it in a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep(Plain):
    """One step of the way to a hit: along which relation to which node.

    `relation` is `about`, `mentions`, `inside` or what an edge calls itself ("sister"); `says` is
    a name in the question or in the text before, `found` a text that the other lanes found. `edge`
    is the edge of the step, if there is one. `name` is the node's name, or how its text begins; of
    a turn always how its text begins.
    """

    relation: str
    node: Id
    name: str
    edge: Id | None = None


def _name_of(node: Node) -> str:
    """Return the label of a node in a path: its name; of a turn, how its text begins."""
    text = node.content[:NAME_CHARS]
    return (text or node.name) if node.type in NOT_NAMED else (node.name or text)


def paths_of(
    view: View, rows: Iterable[int], ways: Mapping[int, Way], known: Mapping[int, Node]
) -> dict[int, tuple[PathStep, ...]]:
    """Return the path to each row that the graph lane reached; some nodes are `known`."""
    chosen = {row: ways[row].steps for row in rows if row in ways}
    passed = {step.row for steps in chosen.values() for step in steps}
    nodes = {**known, **view.reader.nodes(passed - known.keys(), view.moment.known)}
    return {
        row: tuple(
            PathStep(
                relation=step.relation,
                node=nodes[step.row].id,
                name=_name_of(nodes[step.row]),
                edge=step.edge,
            )
            for step in steps
        )
        for row, steps in chosen.items()
    }
