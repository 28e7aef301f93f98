"""DerivedContract: the part of the store contract about derived rows, listings and erasure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from blake3 import blake3

from worlddb.language.text_tokens import indexed
from worlddb.model.address import content_key, node_address, short_key
from worlddb.model.records import ATTRIBUTE
from worlddb.store.interface import Store, Writer
from worlddb.store.rows import (
    ROOT_ROW,
    CommitRow,
    Head,
    ListedOnly,
    NewEdge,
    NewNode,
    NewText,
    NoteRow,
    PoolRow,
)

# ContractCommit: writes small commits straight through a store's writer, for contract tests.
#
# Ids of nodes are right, for a store may verify them. No handler runs and no digest is right: a
# contract tests the store, not what stands above it.

BEGAN = 1_700_000_000_000_000
"""When everything in a contract becomes valid: a day in 2023, in microseconds."""


def hashed(text: str) -> bytes:
    """Return 32 bytes that stand for an id, a state or a hash."""
    return blake3(text.encode()).digest()


def node_id(row: int, name: str, *, type_: str = "Entity", content: str = "") -> bytes:
    """Return the address of the node that `ContractCommit.node` writes into a row."""
    return node_address(type_, name.encode(), content.encode(), BEGAN + row)


class ContractCommit:
    """One open transaction; it numbers rows as the engine does."""

    def __init__(self, writer: Writer) -> None:
        head = writer.head()
        self.writer = writer
        self.seq = writer.seq
        self._nodes, self._edges, self._notes = head.nodes, head.edges, head.notes

    def node(
        self,
        name: str,
        *,
        type_: str = "Entity",
        content: str = "",
        parent: int = ROOT_ROW,
        valid_to: int | None = None,
        ident: bytes | None = None,
        aliases: Iterable[str] = (),
    ) -> int:
        """Insert a node with its text and aliases; return its row."""
        self._nodes = row = self._nodes + 1
        ident = ident or node_id(row, name, type_=type_, content=content)
        key = short_key(ident)
        new = NewNode(
            *(row, key, ident, type_, name, content, BEGAN + row, parent, BEGAN, valid_to),
            born=self.seq,
            blind=b"",
            content_key=content_key(type_, name, content, parent),
        )
        self.writer.insert_nodes([new])
        self.writer.insert_texts([NewText(row, name, content)])
        for alias in aliases:
            self.note(row, "alias", alias)
        return row

    def note(self, node: int, kind: str, text: str) -> int:
        """Insert a note; return its row."""
        self._notes += 1
        self.writer.insert_notes([NoteRow(self._notes, node, kind, text, self.seq)])
        return self._notes

    def edge(
        self,
        type_: str,
        source: int,
        target: int,
        *,
        world: int = ROOT_ROW,
        valid_to: int | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> int:
        """Insert an edge; return its row."""
        self._edges = row = self._edges + 1
        ident = hashed(f"edge {row}")
        data = json.dumps(metadata or {}, sort_keys=True, separators=(",", ":"))
        new = NewEdge(
            *(row, short_key(ident), ident, type_, source, target, world, BEGAN, valid_to, data),
            generation=0,
            born=self.seq,
        )
        self.writer.insert_edges([new])
        return row

    def seal(self, actor: str) -> Head:
        """Write the commit's row; return the head it makes."""
        seq, time = self.seq, self.writer.time
        state, hash_ = hashed(f"root {seq}"), hashed(f"commit {seq}")
        rows = self._nodes, self._edges, self._notes
        self.writer.insert_commit(CommitRow(seq, time, actor, state, hash_, *rows, changes="[]"))
        return Head(seq, time, hash_, state, *rows)


@contextmanager
def committing(store: Store, actor: str = "contract") -> Iterator[ContractCommit]:
    """Yield a transaction that becomes one commit when the block ends."""
    with store.write() as writer:
        commit = ContractCommit(writer)
        yield commit
        commit.seal(actor)


# DerivedContract.

# ruff: noqa: PT012 - the name of a test says what it tests; a transaction fails as a block.


ALL_ROWS = 1 << 40  # Above every row that a contract writes.


def words(text: str) -> list[str]:
    """Return the analysed words of a text, as a search passes them."""
    return indexed(text).split()


class DerivedContract:
    """Text index, lookups, embeddings, listings, whole tables, erasure."""

    # -- texts -------------------------------------------------------------------------------------

    def test_a_text_is_found_by_any_of_its_words_best_first(self, store: Store) -> None:
        with committing(store) as tx:
            one = tx.node("Ada", content="engines and looms")
            both = tx.node("Babbage", content="engines engines for everybody")
            tx.node("Turing", content="machines")
        with store.read() as reader:
            hits = reader.texts.match(words("engines everybody"), 10)
            assert [hit.row for hit in hits] == [both, one]
            assert hits[0].score > hits[1].score > 0
            assert [hit.row for hit in reader.texts.match(words("engines"), 1)] == [both]
            assert reader.texts.match(words("unheard"), 10) == []

    def test_all_words_and_phrases_are_told_apart(self, store: Store) -> None:
        with committing(store) as tx:
            near = tx.node("one", content="the blue house by the lake")
            apart = tx.node("two", content="a house that was painted blue")
            tx.node("three", content="a house")
        with store.read() as reader:
            texts = reader.texts
            asked = words("blue house")
            assert {hit.row for hit in texts.match_all(asked, False, 10)} == {near, apart}
            assert [hit.row for hit in texts.match_all(asked, True, 10)] == [near]
            assert texts.latest(asked, 10) == [apart, near]
            assert texts.latest(asked, 1) == [apart]

    def test_a_name_is_found_by_its_words_in_order(self, store: Store) -> None:
        with committing(store) as tx:
            ada = tx.node("Ada Lovelace")
            tx.node("Lovelace Ada")
            tx.node("nobody", content="Ada Lovelace")
            later = tx.node("Countess Ada Lovelace")
        with store.read() as reader:
            assert reader.texts.named(indexed("Ada Lovelace")) == [ada, later]

    def test_words_are_never_syntax(self, store: Store) -> None:
        with committing(store) as tx:
            row = tx.node("this or that and not near")
            tx.node("something else")
        with store.read() as reader:
            asked = words("this or that and not near")
            assert {"or", "and", "not", "near"} <= set(asked)
            for word in asked:
                assert reader.texts.latest([word], 5) == [row]
            assert [hit.row for hit in reader.texts.match(["zzz", "or", "not"], 5)] == [row]
            assert reader.texts.match_all(["or", "zzz"], False, 5) == []

    def test_words_are_counted(self, store: Store) -> None:
        with committing(store) as tx:
            for number in range(5):
                tx.node(f"node {number}", content="common" if number else "common rare")
        with store.read() as reader:
            common, rare, none = words("common rare absent")
            counts = reader.texts.counts([common, rare, none], 6)
            assert counts == {common: 5, rare: 1, none: 0}
            assert 2 < reader.texts.average_length() < 4

    # -- lookups -----------------------------------------------------------------------------------

    def test_keys_find_the_newest_nodes_of_each(self, store: Store) -> None:
        with store.derive() as session:
            session.lookups.put([(-7, 2), (-7, 5), (-7, 3), (9, 4), (9, 4)])
            session.lookups.put([(9, 4)])
        with store.read() as reader:
            found = reader.lookups.find([9, -7, 1], 2)
            assert found == {9: [4], -7: [5, 3], 1: []}
            assert reader.lookups.find([], 2) == {}
            assert reader.lookups.find_rare([9, -7, 1], 2) == {9: [4], -7: [], 1: []}
            assert reader.lookups.find_rare([9, -7], 3) == {9: [4], -7: [5, 3, 2]}
            assert reader.lookups.find_rare([], 2) == {}
            assert reader.lookups.counts([-7, 9, 1]) == {-7: 3, 9: 1, 1: 0}

    def test_the_lookup_index_knows_how_far_it_has_come(self, store: Store) -> None:
        with store.read() as reader:
            assert not reader.lookups.is_begun(3)
            assert reader.lookups.reached() == (1, 0)
        with store.derive() as session:
            session.lookups.begin(3)
            assert session.lookups.reached() == (1, 0)
            session.lookups.set_reached(5, 7)
            assert session.lookups.reached() == (5, 7)
            session.lookups.add_names({1: 2, 5: 1})
            session.lookups.add_names({1: 3})
        with store.read() as reader:
            assert reader.lookups.is_begun(3)
            assert not reader.lookups.is_begun(4)
            assert reader.lookups.reached() == (5, 7)
            assert [reader.lookups.names(world) for world in (1, 5, 9)] == [5, 1, 0]

    def test_a_lookup_index_of_another_version_begins_again(self, store: Store) -> None:
        with store.derive() as session:
            session.lookups.begin(3)
            session.lookups.put([(9, 4)])
            session.lookups.add_names({1: 2})
            session.lookups.set_reached(5, 7)
            session.lookups.begin(4)
        with store.read() as reader:
            assert reader.lookups.is_begun(4)
            assert reader.lookups.reached() == (1, 0)
            assert reader.lookups.counts([9]) == {9: 0}
            assert reader.lookups.names(1) == 0

    def test_moved_nodes_wait_for_the_lookup_index_once_it_is_begun(self, store: Store) -> None:
        with committing(store) as tx:
            home, early, late = tx.node("home"), tx.node("early"), tx.node("late")
            tx.writer.set_parent(early, home)
        with store.derive() as session:
            assert session.lookups.moved() == []
            session.lookups.set_reached(late, 0)
        with committing(store) as tx:
            tx.writer.set_parent(late, home)
        with store.derive() as session:
            assert session.lookups.moved() == [late]
            session.lookups.set_reached(late, 0)
            assert session.lookups.moved() == []

    def test_attributes_are_read_from_metadata_in_the_order_of_writing(self, store: Store) -> None:
        with committing(store) as tx:
            ada = tx.node("Ada")
            tx.note(ada, "metadata", json.dumps({f"{ATTRIBUTE}city": "London"}))
            before = tx.note(ada, "metadata", json.dumps({"page": 3}))
            tx.note(ada, "metadata", json.dumps({f"{ATTRIBUTE}city": "Paris"}))
        with store.read() as reader:
            stated = reader.lookups.attributes([ada])
            assert [[*row.attributes.values()] for row in stated] == [["London"], ["Paris"]]
            assert reader.lookups.attributes_after(before) == stated[1:]
            assert {row.node for row in stated} == {ada}

    # -- embeddings --------------------------------------------------------------------------------

    def test_the_first_model_is_active_until_another_is_activated(self, store: Store) -> None:
        with store.derive() as session:
            first = session.derived.add_model("first", 2, "mean")
            second = session.derived.add_model("second", 3, "attention")
            session.derived.put_vectors(first.number, [(2, b"aa")])
            session.derived.set_embedded(second.number, 4)
        with store.read() as reader:
            models = [(model.id, bool(model.active)) for model in reader.derived.models()]
            assert models == [("first", True), ("second", False)]
        with store.derive() as session:
            session.derived.activate(second.number)
        with store.read() as reader:
            (model,) = reader.derived.models()
            assert (model.id, model.dim, model.embedded, model.active) == ("second", 3, 4, 1)
            assert reader.derived.vectors(first.number, [2]) == []

    def test_effective_vectors_are_those_of_pools_where_there_are_any(self, store: Store) -> None:
        with store.derive() as session:
            number = session.derived.add_model("m", 2, "mean").number
            session.derived.put_vectors(number, [(4, b"d"), (2, b"b"), (3, b"c")])
            session.derived.put_vectors(number, [(4, b"D")])
            session.derived.put_pools(number, [PoolRow(3, 1, 1.0, b"t", b"pool 3")], 5)
            session.derived.put_pools(number, [PoolRow(2, 2, 0.5, b"t", b"pool 2")], 7)
            session.derived.set_composed(number, 4, 7)
        with store.read() as reader:
            assert sorted(reader.derived.vectors(number, [2, 4, 9])) == [(2, b"b"), (4, b"D")]
            every = list(reader.derived.vectors_after(number, 2, 0))
            assert every == [(2, b"pool 2"), (3, b"pool 3"), (4, b"D")]
            assert list(reader.derived.vectors_after(number, 4, 6)) == [(4, b"D"), (2, b"pool 2")]
            assert reader.derived.composed_after(number, 6) == {2}
            assert [p.children for p in reader.derived.pools(number, [2, 4])] == [2]
            assert [v.node for v in reader.derived.all_vectors()] == [2, 3, 4]
            assert [(p.seq, p.pool.node) for p in reader.derived.all_pools()] == [(7, 2), (5, 3)]
        with store.derive() as session:
            session.derived.start_pools(number, "attention")
            model = session.derived.models()[0]
            assert (model.pooling, model.composed, model.seq) == ("attention", 1, -1)
            assert session.derived.pools(number, [2, 3]) == []

    def test_word_vectors_are_made_for_embedded_texts(self, store: Store) -> None:
        with committing(store) as tx:
            ada, empty, bob, late = tx.node("Ada"), tx.node(""), tx.node("Bob"), tx.node("late")
        with store.derive() as session:
            number = session.derived.add_model("m", 2, "mean").number
            session.derived.set_embedded(number, bob)
            assert session.derived.without_tokens(number, ROOT_ROW, 9) == [ada, bob]
            session.derived.put_tokens(number, [(ada, b"1234")])
            assert session.derived.without_tokens(number, ROOT_ROW, 9) == [bob]
            assert session.derived.tokens(number, [ada, empty, late]) == [(ada, b"1234")]
            assert [tuple(row) for row in session.derived.all_tokens()] == [(number, ada, 4)]

    def test_deriving_makes_no_commit_and_lands_whole_or_not_at_all(self, store: Store) -> None:
        with store.read() as reader:
            before = reader.head()
        with pytest.raises(ZeroDivisionError), store.derive() as session:
            session.derived.add_model("m", 2, "mean")
            session.lookups.set_reached(3, 3)
            raise ZeroDivisionError
        with store.read() as reader:
            assert reader.derived.models() == []
            assert reader.lookups.reached() == (1, 0)
            assert reader.head() == before

    # -- listings ----------------------------------------------------------------------------------

    def test_a_world_is_listed_newest_first_with_its_members(self, store: Store) -> None:
        with committing(store) as tx:
            home = tx.node("home")
            child = tx.node("child", parent=home)
            member, past = tx.node("member"), tx.node("past member")
            young = tx.node("young", parent=home)
            tx.edge("contains", home, member)
            tx.edge("contains", home, past, valid_to=BEGAN + 5)
        with store.read() as reader:
            placed, now = reader.placed, BEGAN + 10
            assert placed.latest([home], ALL_ROWS, now, 9) == [young, member, child]
            assert placed.latest([home], ALL_ROWS, now, 2) == [young, member]
            assert placed.latest([home], young, now, 9) == [member, child]
            assert placed.holders([child, past]) == {home, ROOT_ROW}
            assert placed.ending(0, ALL_ROWS) == placed.ended_later() == []
            assert [one.row for one in placed.traits(member, past)] == [member, past]
            only = ListedOnly(at=now, begun=True, lasting=True, known=None, types=None)
            assert placed.candidates([home], ALL_ROWS, 9, only) == [young, member, child]
            assert placed.candidates([home], young, 1, only) == [member]
            early = only._replace(at=BEGAN - 1)
            assert child not in placed.candidates([home], ALL_ROWS, 9, early)
            other = only._replace(types=("Other", "More"))
            assert placed.candidates([home], ALL_ROWS, 9, other) == [member]
            then = only._replace(known=reader.head().seq)
            assert placed.candidates([home], ALL_ROWS, 9, then) == [young, past, member, child]
            before = only._replace(known=reader.head().seq - 1)
            assert past not in placed.candidates([home], ALL_ROWS, 9, before)

    def test_children_are_listed_by_type_and_start_of_name(self, store: Store) -> None:
        with committing(store) as tx:
            first = tx.node("user:ada", type_="Scope")
            tx.node("agent:ada", type_="Scope")
            tx.node("user:eve")
            second = tx.node("user:bob", type_="Scope", valid_to=BEGAN + 1)
        with store.read() as reader:
            listed = reader.placed.typed(ROOT_ROW, "Scope", "user:", 0, 9)
            assert listed == [first, second]
            assert reader.placed.typed(ROOT_ROW, "Scope", "user:", first, 9) == [second]
            assert reader.placed.ended(listed, BEGAN + 2) == {second}

    def test_worlds_and_edge_types_are_read_as_a_whole(self, store: Store) -> None:
        with committing(store) as tx:
            home, other = tx.node("home"), tx.node("other")
            child = tx.node("child", content="text", parent=home)
            tx.edge("contains", other, child)
            cause = tx.edge("causes", home, other, metadata={"inferred": True})
            gone = tx.edge("causes", other, home)
        with committing(store) as tx:
            tx.writer.delete_edge(gone)
        with store.read() as reader:
            sweep = reader.sweep
            assert sweep.worlds() == [ROOT_ROW, home, other]
            inside = [(r.world, r.row, bool(r.is_member)) for r in sweep.inside([other, home])]
            assert inside == [(home, child, False), (other, child, True)]
            causes = [(e.row, e.gone is None, e.inferred is None) for e in sweep.typed("causes")]
            assert causes == [(cause, True, False), (gone, False, True)]
            assert [e.row for e in sweep.covers([home, other], ["causes"])] == [cause]
            assert [e.row for e in sweep.covers([other], ["causes"], "in")] == [cause]
            assert sweep.covers([home], ["causes"], "in") == []
            late = 1 << 60  # Long after the test; its source has not ended then.
            text = '"inferred":true'
            assert sweep.saying([other], "causes", [text]) == [cause]
            assert sweep.saying_of([home, other], "causes", [text]) == {other: [cause]}
            assert sweep.saying_of([other], "causes", [text], cause - 1) == {other: [cause]}
            assert sweep.saying_of([other], "causes", [text], cause) == {}
            (plain,) = sweep.references([cause])
            assert (plain.source, plain.target, plain.metadata) == (home, other, f"{{{text}}}")
            assert plain.id == reader.edges([cause])[0].edge.id
            assert sweep.references([]) == []
            assert sweep.leaving([home, other], "causes") == [plain]
            assert sweep.leaving([other], "causes") == sweep.leaving([], "causes") == []
            (found,) = sweep.standing([other], "causes", {text: ""}, (late, late))
            assert (found.row, found.source, found.topic, found.ends) == (cause, home, 0, None)
            assert (found.since, found.stands_for) == ("", "")
            assert sweep.standing([other], "causes", {text: text}, (late, late)) == []

    def test_recalls_are_added_up(self, store: Store) -> None:
        with committing(store) as tx:
            ada, bob = tx.node("Ada"), tx.node("Bob")
            tx.edge("refers_to", ada, bob)
        with store.read() as reader:
            assert [r.recalls for r in reader.sweep.recalls([ada, bob])] == [0, 0]
        with store.derive() as session:
            session.sweep.add_recalls([(ada, 2, 50)])
            session.sweep.add_recalls([(ada, 1, 40)])
        with store.read() as reader:
            found = [(r.row, r.recalls, r.last, r.links) for r in reader.sweep.recalls([bob, ada])]
            assert found == [(ada, 3, 50, 1), (bob, 0, None, 1)]

    def test_tables_are_read_as_stored_by_row(self, store: Store) -> None:
        with committing(store) as tx:
            ada = tx.node("Ada", aliases=["A."])
            bob = tx.node("Bob")
            tx.edge("refers_to", ada, bob, metadata={"page": 3})
        with store.read() as reader:
            scan = reader.scan
            assert [node.row for node in scan.nodes()] == [ROOT_ROW, ada, bob]
            assert [node.name for node in scan.nodes(ada, ada)] == ["Ada"]
            assert [edge.metadata for edge in scan.edges()] == ['{"page":3}']
            assert [(note.node, note.text) for note in scan.notes()] == [(ada, "A.")]
            assert scan.schema_problems() == scan.text_problems() == []
        assert store.verify() == []

    # -- erasure -----------------------------------------------------------------------------------

    def test_an_erased_node_keeps_its_row_and_loses_its_texts(self, store: Store) -> None:
        with committing(store) as tx:
            ada = tx.node("Ada", content="secret", aliases=["A."])
            bob = tx.node("Bob")
            born = tx.seq
            edge = tx.edge("refers_to", ada, bob, metadata={"quote": "secret"})
        with store.derive() as session:
            number = session.derived.add_model("m", 2, "mean").number
            session.derived.put_vectors(number, [(ada, b"\1\2"), (bob, b"\3\4")])
            session.lookups.put([(9, ada), (9, bob)])
        with committing(store) as tx:
            assert tx.writer.born(ada) == born
            assert not tx.writer.is_erased(ada)
            assert tx.writer.erase_nodes([ada]) == {born}
            assert [item.row for item in tx.writer.erase_edges([ada])] == [edge]
            tx.writer.erase_derived([ada])
            assert tx.writer.is_erased(ada)
        with store.read() as reader:
            node = reader.nodes([ada])[ada]
            assert (node.name, node.content, node.aliases, node.erased) == ("", "", (), True)
            assert reader.edges([edge])[0].edge.metadata == {}
            assert reader.texts.match(words("secret"), 9) == []
            assert dict(reader.derived.vectors(number, [ada, bob])) == {ada: b"\0\0", bob: b"\3\4"}
            assert reader.lookups.find([9], 9) == {9: [bob]}
