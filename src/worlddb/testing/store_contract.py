"""StoreContract: the tests that every store of WorldDB has to pass.

    class TestMyStore(StoreContract):
        def make_store(self) -> Store:
            return MyStore(...)            # new and empty

A store that keeps its data gives `reopen`, too; a store that can be written around its interface
gives `insert_raw_edge`. Tests of what a store does not give are skipped.
"""

# ruff: noqa: PT012 - the name of a test says what it tests; a transaction fails as a block.

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from worlddb.errors import InvalidInputError
from worlddb.store.interface import Store
from worlddb.store.rows import (
    CHILDREN,
    EDGES,
    ROOT_ROW,
    ConflictRow,
    Head,
    NodePlace,
    ProposalRow,
    SetChange,
    SetPage,
    StateChange,
)
from worlddb.testing.derived_contract import (
    BEGAN,
    ContractCommit,
    DerivedContract,
    committing,
    hashed,
    node_id,
    words,
)

PATIENCE_S = 30
"""How long a test waits for another thread: only a store that hangs takes that long."""


class StoreContract(DerivedContract):
    """Subclass it under a name that begins with `Test`, and give `make_store`."""

    readers_block_writers = False
    """Whether a session of `read()` keeps writers waiting, as in a store with one connection."""

    def make_store(self) -> Store:
        """Return a new, empty store that is open for writing."""
        raise NotImplementedError

    def reopen(self, store: Store) -> Store:
        """Close a store and return it opened again."""
        pytest.skip("this store keeps nothing")

    def insert_raw_edge(self, store: Store) -> None:
        """Insert a row into the edge table of a store from outside, as another program would."""
        pytest.skip("this store cannot be written from outside")

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        """Yield a new store."""
        store = self.make_store()
        yield store
        store.close()

    # -- transactions ------------------------------------------------------------------------------

    def test_a_new_store_has_the_root_world_and_the_first_commit(self, store: Store) -> None:
        with store.read() as reader:
            head = reader.head()
            assert (head.seq, head.nodes, head.edges, head.notes) == (0, ROOT_ROW, 0, 0)
            root = reader.nodes([ROOT_ROW])[ROOT_ROW]
            assert (root.parent, bytes(root.state)) == (None, head.root_state)
            assert reader.children(ROOT_ROW) == []

    def test_a_commit_is_the_head_of_the_next_session(self, store: Store) -> None:
        with store.write() as writer:
            commit = ContractCommit(writer)
            ada = commit.node("Ada")
            made = commit.seal("me")
        with store.read() as reader:
            assert reader.head() == made
            assert reader.nodes([ada])[ada].name == "Ada"
        with store.write() as writer:
            assert (writer.head(), writer.seq) == (made, made.seq + 1)
            assert writer.time > made.time

    def test_a_transaction_sees_its_own_writes_and_nobody_else_does(self, store: Store) -> None:
        def count() -> int:
            with store.snapshot() as reader:
                return len(reader.children(ROOT_ROW))

        with ThreadPoolExecutor(1) as other, committing(store) as tx:
            ada = tx.node("Ada")
            assert tx.writer.nodes([ada])[ada].name == "Ada"
            assert tx.writer.children(ROOT_ROW) == [ada]
            if not self.readers_block_writers:
                assert other.submit(count).result(PATIENCE_S) == 0
        assert count() == 1

    def test_a_transaction_that_fails_leaves_nothing(self, store: Store) -> None:
        with committing(store) as tx:
            ada, bob = tx.node("Ada"), tx.node("Bob")
            edge = tx.edge("same_as", ada, bob)
        with store.read() as reader:
            before = reader.head()
        with pytest.raises(ZeroDivisionError), committing(store) as tx:
            self._change_everything(tx, ada, bob, edge)
            raise ZeroDivisionError
        with store.read() as reader:
            assert reader.head() == before
            assert reader.children(ROOT_ROW) == [ada, bob]
            node = reader.nodes([ada])[ada]
            assert (node.valid_to, node.aliases) == (None, ())
            assert len(reader.edges_at([ada], "both")) == 1
            assert not reader.has_proposals()
            assert [*reader.conflicts(), *reader.registrations(), *reader.waiting()] == []
            assert [*reader.scan.history(), *reader.texts.match(words("never"), 5)] == []
            assert reader.page(ROOT_ROW, CHILDREN, "") is None

    def _change_everything(self, tx: ContractCommit, ada: int, bob: int, edge: int) -> None:
        never = tx.node("never", aliases=["at all"])
        tx.note(ada, "alias", "nobody")
        tx.edge("refers_to", ada, never)
        writer = tx.writer
        writer.set_valid_to("node", ada, BEGAN + 1)
        writer.set_parent(bob, ada)
        writer.delete_edge(edge)
        writer.put_proposal(ProposalRow(edge, ada, bob, "pending", "exact", 1.0, "{}"))
        writer.put_conflict(ConflictRow(edge, ada, bob, "so", None))
        writer.put_registration(ROOT_ROW, "likes", "1", True)
        writer.unseen()
        writer.put_pages(ROOT_ROW, CHILDREN, {"": (0, b"never")})
        writer.keep_changes([SetChange(tx.seq, ROOT_ROW, CHILDREN, [hashed("x") * 2], [])])
        writer.write_pages()

    def test_a_thread_in_a_transaction_opens_no_other_and_closes_no_store(
        self, store: Store
    ) -> None:
        with committing(store) as tx:
            with pytest.raises(InvalidInputError), store.write():
                pass  # pragma: no cover
            with pytest.raises(InvalidInputError):
                store.close()
            tx.node("Ada")
        with store.read() as reader:
            assert reader.head().seq == 1

    def test_writers_take_turns(self, store: Store) -> None:
        def write(number: int) -> None:
            with committing(store) as tx:
                tx.node(f"node {number}")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(12)))
        with store.read() as reader:
            assert (reader.head().seq, len(reader.children(ROOT_ROW))) == (12, 12)

    def test_a_snapshot_stays_as_it_was_while_others_commit(self, store: Store) -> None:
        with committing(store) as tx:
            ada = tx.node("Ada")
        with store.snapshot() as old:
            head = old.head()
            with committing(store) as tx:
                tx.node("Bob")
                tx.writer.set_valid_to("node", ada, BEGAN + 1)
            with ThreadPoolExecutor(1) as other:
                assert other.submit(old.children, ROOT_ROW).result(PATIENCE_S) == [ada]
            assert (old.nodes([ada])[ada].valid_to, old.head()) == (None, head)
            assert old.texts.match(words("Bob"), 5) == []
        with store.read() as reader:
            assert len(reader.children(ROOT_ROW)) == 2

    def test_a_reader_stays_as_it_was_while_others_commit(self, store: Store) -> None:
        if self.readers_block_writers:
            pytest.skip("writers wait for readers here")

        def write() -> None:
            with committing(store) as tx:
                tx.node("Bob")

        with store.read() as reader, ThreadPoolExecutor(1) as other:
            assert reader.children(ROOT_ROW) == []
            other.submit(write).result(PATIENCE_S)
            with store.read() as inner:
                assert reader.children(ROOT_ROW) == inner.children(ROOT_ROW) == []

    def test_statements_are_counted(self, store: Store) -> None:
        with store.read() as reader:
            before = store.statements
            reader.nodes([ROOT_ROW])
            assert store.statements > before

    # -- the journal -------------------------------------------------------------------------------

    def test_commits_are_numbered_without_gaps_and_their_times_increase(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            with committing(store, actor=name) as tx:
                tx.node(name)
        with store.read() as reader:
            rows = reader.commits(-1, None, False)
            assert [(row.seq, row.actor) for row in rows[1:]] == [(1, "a"), (2, "b"), (3, "c")]
            assert sorted({row.time for row in rows}) == [row.time for row in rows]
            assert [row.seq for row in reader.commits(0, 2, True)] == [3, 2]
            assert [row.seq for row in reader.commits(1, 1, False)] == [2]
            assert [row.nodes for row in rows] == [1, 2, 3, 4]
            hashes = hashed("commit 3"), hashed("root 3")
            assert reader.head() == Head(3, rows[-1].time, *hashes, 4, 0, 0)

    def test_a_commit_is_found_by_its_time(self, store: Store) -> None:
        for number in range(5):
            with committing(store) as tx:
                tx.node(f"node {number}")
        with store.read() as reader:
            rows = reader.commits(-1, None, False)
            assert reader.commit_at(rows[0].time - 1) is None
            assert [reader.commit_at(row.time) for row in rows] == [0, 1, 2, 3, 4, 5]
            assert reader.commit_at(rows[3].time - 1) == 2
            assert reader.commit_at(rows[5].time + 1_000_000) == 5

    # -- nodes -------------------------------------------------------------------------------------

    def test_a_node_comes_back_with_its_notes_in_the_order_of_writing(self, store: Store) -> None:
        with committing(store) as tx:
            home = tx.node("home")
            ada = tx.node("Ada", content="says", parent=home, aliases=["b", "a"])
            tx.note(ada, "source", "a diary")
            tx.note(ada, "metadata", '{"page":1,"x":2}')
            tx.note(ada, "metadata", '{"page":3}')
        with store.read() as reader:
            node = reader.nodes([ada])[ada]
            assert (node.type, node.name, node.content) == ("Entity", "Ada", "says")
            assert node.actor == "contract"
            assert (bytes(node.id), node.state) == (node_id(ada, "Ada", content="says"), node.id)
            assert node.parent == reader.nodes([home])[home].id
            assert (node.aliases, node.provenance) == (("b", "a"), ("a diary",))
            assert node.metadata == {"page": 3, "x": 2}
            assert reader.nodes([ada, 99]).keys() == {ada}
            assert reader.nodes([]) == {}
            assert reader.node_row(node.id) == ada
            assert reader.node_row(hashed("nobody")) is None

    def test_bodies_come_by_row_whatever_order_was_asked_for(self, store: Store) -> None:
        with committing(store) as tx:
            rows = [tx.node(f"node {number}", content=str(number)) for number in range(4)]
        with store.read() as reader:
            bodies = list(reader.bodies([rows[2], 99, rows[0], rows[3]]))
            assert [body.row for body in bodies] == [rows[0], rows[2], rows[3]]
            assert [body.content for body in bodies] == ["0", "2", "3"]

    def test_ids_are_found_by_their_start_in_order(self, store: Store) -> None:
        starts = ["ab10", "ab12", "ab11", "ff00", "00ff", "7fff", "80ff"]
        ids = [bytes.fromhex(start) + bytes(30) for start in starts]
        with committing(store) as tx:
            for ident in ids:
                tx.node("same", ident=ident)
        with store.read() as reader:

            def like(prefix: str, limit: int = 9) -> list[str]:
                return [str(ident)[:4] for ident in reader.ids_like("nodes", prefix, limit)]

            assert like("ab1") == ["ab10", "ab11", "ab12"]
            assert like("ab1", 2) == ["ab10", "ab11"]
            assert like("ab12" + "0" * 60) == ["ab12"]
            assert like("ab12" + "0" * 59 + "1") == []
            assert like("ff") + like("00f") + like("7f") + like("80") == starts[3:]
            assert reader.ids_like("edges", "ab1", 9) == []

    def test_children_come_by_row_and_by_page(self, store: Store) -> None:
        with committing(store) as tx:
            home = tx.node("home")
            rows = [tx.node(f"node {number}", parent=home) for number in range(5)]
        with store.read() as reader:
            assert reader.children(home) == rows
            assert reader.children(home, after=rows[1], limit=2) == rows[2:4]
            assert sorted(reader.children_of([ROOT_ROW, home])) == [home, *rows]
            parents = {rows[0]: home, home: ROOT_ROW, ROOT_ROW: None}
            assert reader.parents([*parents, 99]) == parents
            assert reader.world(home).id == node_id(home, "home")
            assert reader.worlds([home, ROOT_ROW]).keys() == {home, ROOT_ROW}

    def test_nodes_are_found_by_exact_name_and_by_alias(self, store: Store) -> None:
        with committing(store) as tx:
            ada = tx.node("Ada", aliases=["Countess"])
            tx.node("ada")
            sign, again = tx.node("§"), tx.node("Ada")
            note = tx.note(sign, "alias", "paragraph")
            tx.note(again, "alias", "late")
        with store.read() as reader:
            assert reader.rows_named(["§", "Ada", "Bob"]) == [sign, ada, again]
            assert reader.rows_aliased("countess") == [ada]
            assert sorted(reader.aliases([ada, sign])) == [(ada, "Countess"), (sign, "paragraph")]
            assert reader.aliases_after(note) == [(again, "late")]

    def test_a_writer_knows_where_nodes_are(self, store: Store) -> None:
        with committing(store) as tx:
            home = tx.node("home")
            ada = tx.node("Ada", parent=home, aliases=["A."])
            ident, root = node_id(ada, "Ada"), tx.writer.world(ROOT_ROW).id
            places = tx.writer.lookup([ident, root, hashed("nobody")])
            assert places == {
                ident: NodePlace(ada, home, BEGAN),
                root: NodePlace(ROOT_ROW, ROOT_ROW, 0),
            }
            assert tx.writer.lookup([ident])[ident].world == home
            assert tx.writer.has_note(ada, "alias", "A.")
            assert not tx.writer.has_note(ada, "source", "A.")
            assert not tx.writer.was_moved(ada)

    # -- the past ----------------------------------------------------------------------------------

    def test_validity_is_read_as_of_a_commit(self, store: Store) -> None:
        with committing(store) as tx:
            ada, bob = tx.node("Ada"), tx.node("Bob")
            edge = tx.edge("refers_to", ada, bob)
        with committing(store) as tx:
            # Two changes in one commit: the value before the commit is kept.
            tx.writer.set_valid_to("node", ada, BEGAN + 20)
            tx.writer.set_valid_to("node", ada, BEGAN + 10)
            tx.writer.set_valid_to("edge", edge, BEGAN + 10)
        with committing(store) as tx:
            tx.writer.set_valid_to("node", ada, BEGAN + 5)
        with store.read() as reader:
            ends = [next(reader.bodies([ada], known)).valid_to for known in (1, 2, 3, None)]
            assert ends == [None, BEGAN + 10, BEGAN + 5, BEGAN + 5]
            assert reader.nodes([ada], 1)[ada].valid_to is None
            assert reader.nodes([ada], 2)[ada].valid_to is not None
            assert reader.edges([edge], 1)[0].edge.valid_to is None
            assert reader.edges([edge])[0].edge.valid_to is not None
            assert (reader.closed_by([ada, bob], 1), reader.closed_by([ada, bob])) == (set(), {ada})

    def test_nodes_and_notes_of_later_commits_are_left_out(self, store: Store) -> None:
        with committing(store) as tx:
            ada = tx.node("Ada")
        with committing(store) as tx:
            bob = tx.node("Bob")
            tx.note(ada, "alias", "late")
            edge = tx.edge("refers_to", ada, bob)
        with store.read() as reader:
            assert reader.nodes([ada, bob], 1).keys() == {ada}
            assert [body.row for body in reader.bodies([ada, bob], 1)] == [ada]
            assert (reader.children(ROOT_ROW, 1), reader.parents([bob], 1)) == ([ada], {})
            assert (reader.nodes([ada], 1)[ada].aliases, reader.aliases([ada], 1)) == ((), [])
            assert reader.edges_at([ada], "out", known=1) == reader.edges([edge], 1) == []

    def test_a_moved_node_is_where_it_was_then(self, store: Store) -> None:
        with committing(store) as tx:
            home, ada = tx.node("home"), tx.node("Ada")
            live, dead = tx.edge("refers_to", ada, home), tx.edge("implies", ada, home)
            tx.edge("refers_to", home, ada)
        with committing(store) as tx:
            tx.writer.delete_edge(dead)
            moved = tx.writer.set_parent(ada, home)
            assert moved == [hashed(f"edge {live}")]
            assert tx.writer.was_moved(ada)
        with store.read() as reader:
            assert (reader.children(ROOT_ROW, 1), reader.children(home, 1)) == ([home, ada], [])
            assert (reader.children(ROOT_ROW), reader.children(home)) == ([home], [ada])
            assert [reader.parents([ada], 1), reader.parents([ada])] == [
                {ada: parent} for parent in (ROOT_ROW, home)
            ]
            worlds = reader.nodes([ROOT_ROW, home])
            assert reader.nodes([ada], 1)[ada].parent == worlds[ROOT_ROW].id
            assert reader.nodes([ada])[ada].parent == worlds[home].id
            assert [item.world for item in reader.edges([live])] == [home]

    def test_states_are_read_as_of_a_commit(self, store: Store) -> None:
        with committing(store) as tx:
            home = tx.node("home")
        for number in (1, 2):
            with committing(store) as tx:
                before = tx.writer.world(home).state
                root = StateChange(ROOT_ROW, None, hashed("root"))
                tx.writer.set_states([StateChange(home, before, hashed(f"state {number}")), root])
        with store.read() as reader:
            states = [bytes(reader.nodes([home], known)[home].state) for known in (1, 2, 3)]
            assert states == [node_id(home, "home"), hashed("state 1"), hashed("state 2")]
            assert reader.state_count(home) == 2
            roots = [bytes(reader.nodes([ROOT_ROW], known)[ROOT_ROW].state) for known in (1, 3)]
            assert roots == [hashed("root 1"), hashed("root 3")]
            assert reader.world(ROOT_ROW).state == hashed("root 3")

    # -- edges -------------------------------------------------------------------------------------

    def test_edges_are_found_at_their_ends_by_row(self, store: Store) -> None:
        with committing(store) as tx:
            ada, bob, eve = tx.node("Ada"), tx.node("Bob"), tx.node("Eve")
            first = tx.edge("refers_to", ada, bob, metadata={"page": 3})
            second = tx.edge("causes", bob, ada)
            third = tx.edge("refers_to", ada, ada)
            fourth = tx.edge("refers_to", eve, bob)
            fifth = tx.edge("causes", ada, eve)
        with store.read() as reader:
            rows = [
                [item.row for item in reader.edges_at([ada], way)] for way in ("out", "in", "both")
            ]
            both = [first, second, third, fifth]
            assert rows == [[first, third, fifth], [second, third], both]
            typed = reader.edges_at([eve, ada], "both", types=["refers_to"])
            assert [item.row for item in typed] == [first, third, fourth]
            assert reader.edges_at([ada], "out", types=[]) == reader.edges_at([], "out") == []
            found = reader.edges([first])[0]
            assert (found.source, found.target, found.world) == (ada, bob, ROOT_ROW)
            assert (bytes(found.edge.id), found.edge.type) == (hashed(f"edge {first}"), "refers_to")
            assert found.edge.metadata == {"page": 3}
            assert reader.edge_row(found.edge.id) == first
            assert reader.edge_row(hashed("nobody")) is None
            between = reader.edges_between(second, fourth, types=["refers_to"])
            assert [item.row for item in between] == [third, fourth]

    def test_a_deleted_edge_is_still_there_for_earlier_commits(self, store: Store) -> None:
        with committing(store) as tx:
            ada, bob = tx.node("Ada"), tx.node("Bob")
            edge = tx.edge("refers_to", ada, bob)
        with committing(store) as tx:
            tx.writer.delete_edge(edge)
            assert tx.writer.edges_at([ada], "out") == []
        with store.read() as reader:
            assert reader.edges_at([ada], "out") == []
            then, now = reader.edges_at([ada], "out", known=1), reader.edges([edge])
            assert (then[0].edge.known_to, then[0].row) == (None, edge)
            assert now[0].edge.known_to is not None
            assert now[0].edge.known_from < now[0].edge.known_to

    def test_inferred_edges_are_found_by_their_premises(self, store: Store) -> None:
        with committing(store) as tx:
            tx.writer.insert_premises([(1, 7), (1, 4), (2, 7), (1, 7)])
            assert tx.writer.resting_on(1) == [4, 7]
            assert tx.writer.resting_on(3) == []
        with store.read() as reader:
            assert list(reader.scan.premises()) == [(1, 4), (1, 7), (2, 7)]

    def test_nobody_inserts_an_edge_from_outside(self, store: Store) -> None:
        with pytest.raises(Exception):  # noqa: B017, PT011 - the database's own error.
            self.insert_raw_edge(store)
        with store.read() as reader:
            assert list(reader.scan.edges()) == []

    # -- proposals, conflicts, custom edge types ---------------------------------------------------

    def test_proposals_have_the_status_of_their_commit(self, store: Store) -> None:
        with committing(store) as tx:
            ada, bob, eve = tx.node("Ada"), tx.node("Bob"), tx.node("Eve")
            one, two = tx.edge("same_as", ada, bob), tx.edge("same_as", bob, eve)
            tx.writer.put_proposal(ProposalRow(two, bob, eve, "pending", "fuzzy", 0.9, "{}"))
            tx.writer.put_proposal(ProposalRow(one, ada, bob, "pending", "exact", 1.0, '{"a":1}'))
        with committing(store) as tx:
            tx.writer.set_status(one, "accepted")
        with store.read() as reader:
            assert reader.has_proposals()
            assert [row.edge for row in reader.proposals()] == [one, two]
            assert [row.edge for row in reader.proposals("pending")] == [two]
            assert [row.edge for row in reader.proposals("pending", known=1)] == [one, two]
            assert reader.proposals(known=0) == []
            assert [row.evidence for row in reader.proposals(rows=[ada])] == ['{"a":1}']
            assert [row.status for row in reader.proposals(rows=[bob])] == ["accepted", "pending"]

    def test_conflicts_are_open_until_the_commit_that_settles_them(self, store: Store) -> None:
        with committing(store) as tx:
            ada, bob = tx.node("Ada"), tx.node("Bob")
            edge = tx.edge("contradicts", ada, bob)
            tx.writer.put_conflict(ConflictRow(edge, ada, bob, "both say so", None))
        with committing(store) as tx:
            tx.writer.settle_conflict(edge)
        with store.read() as reader:
            assert [row.gone for row in reader.conflicts(known=1)] == [None]
            assert [row.gone for row in reader.conflicts([ada])] == [2]
            assert reader.conflicts([ROOT_ROW]) == reader.conflicts(known=0) == []

    def test_custom_edge_types_are_kept_by_world(self, store: Store) -> None:
        with committing(store) as tx:
            home = tx.node("home")
            tx.writer.put_registration(home, "likes", "1", False)
            tx.writer.put_registration(home, "hates", "1", False)
            tx.writer.put_registration(home, "likes", "2", True)
        with store.read() as reader:
            found = [("hates", "1", False), ("likes", "2", True)]
            assert reader.registrations() == [(node_id(home, "home"), *rest) for rest in found]

    # -- pages of sets -----------------------------------------------------------------------------

    def test_changed_pages_are_those_of_the_next_transaction(self, store: Store) -> None:
        with committing(store) as tx:
            tx.writer.unseen()
            assert tx.writer.page(ROOT_ROW, CHILDREN, "") is None
            tx.writer.put_pages(ROOT_ROW, CHILDREN, {"": (1, b"fork"), "a": (0, b"leaf")})
            assert tx.writer.page(ROOT_ROW, CHILDREN, "a") == SetPage(False, b"leaf")
            change = SetChange(tx.seq, ROOT_ROW, CHILDREN, [hashed("m") * 2], [hashed("n")])
            tx.writer.keep_changes([change])
        with store.read() as reader:
            # The file says it by a waiting change or by the pages.
            told = reader.waiting() or reader.page(ROOT_ROW, CHILDREN, "a")
            assert told in ([change], SetPage(False, b"leaf"))
        with pytest.raises(ZeroDivisionError), committing(store) as tx:
            tx.writer.unseen()
            tx.writer.put_pages(ROOT_ROW, CHILDREN, {"a": (0, b"other"), "b": (0, b"new")})
            raise ZeroDivisionError
        with committing(store) as tx:
            unseen = tx.writer.unseen()
            if unseen:  # The store has forgotten the pages: the change is to be made again.
                assert unseen == [change]
                tx.writer.put_pages(ROOT_ROW, CHILDREN, {"": (1, b"fork"), "a": (0, b"leaf")})
            assert tx.writer.page(ROOT_ROW, CHILDREN, "") == SetPage(True, b"fork")
            assert tx.writer.page(ROOT_ROW, CHILDREN, "a") == SetPage(False, b"leaf")
            tx.writer.put_pages(ROOT_ROW, CHILDREN, {"a": None, "b": None})
            tx.writer.put_pages(ROOT_ROW, EDGES, {"": (0, b"edges")})
            tx.writer.write_pages()
        with store.read() as reader:
            assert reader.waiting() == []
            assert [(page.kind, page.path, page.body) for page in reader.scan.pages()] == [
                (CHILDREN, "", b"fork"),
                (EDGES, "", b"edges"),
            ]
            assert reader.page(ROOT_ROW, CHILDREN, "a") is None

    # -- bulk loads, opening and closing -----------------------------------------------------------

    def test_a_bulk_load_is_a_transaction_like_any_other(self, store: Store) -> None:
        with committing(store) as tx:
            tx.writer.defer_indexes()
            home = tx.node("home")
            rows = [tx.node(f"node {number}", parent=home) for number in range(50)]
            edge = tx.edge("refers_to", rows[0], rows[1])
            assert tx.writer.node_row(node_id(rows[7], "node 7")) == rows[7]
            assert [item.row for item in tx.writer.edges_at([rows[1]], "in")] == [edge]
            tx.writer.build_indexes()
            assert not tx.writer.is_deferred
        with store.read() as reader:
            assert reader.children(home) == rows
            hits = reader.texts.match_all(words("node 49"), True, 9)
            assert [hit.row for hit in hits] == rows[-1:]
            assert reader.scan.schema_problems() == reader.scan.text_problems() == []

    def test_a_bulk_load_that_is_refused_leaves_nothing_to_the_sessions_after_it(
        self, store: Store
    ) -> None:
        with committing(store) as tx:
            kept = tx.node("kept")
        with pytest.raises(ZeroDivisionError), committing(store) as tx:
            tx.writer.defer_indexes()
            tx.node("refused")
            raise ZeroDivisionError
        for session in (store.read, store.derive, store.read):
            with session() as reader:
                found = reader.texts.match(words("kept refused"), 9)
                assert [hit.row for hit in found] == [kept]
        with committing(store) as tx:
            assert not tx.writer.is_deferred
            tx.node("later", parent=kept)
        with store.read() as reader:
            assert reader.scan.schema_problems() == reader.scan.text_problems() == []

    def test_what_was_committed_is_there_when_the_store_is_opened_again(self, store: Store) -> None:
        with committing(store) as tx:
            ada = tx.node("Ada", aliases=["A."])
        with store.read() as reader:
            before = reader.head()
        again = self.reopen(store)
        try:
            with again.read() as reader:
                assert reader.head() == before
                assert reader.nodes([ada])[ada].aliases == ("A.",)
        finally:
            again.close()

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        store.close()
        for session in (store.read, store.write, store.derive, store.snapshot):
            with pytest.raises(InvalidInputError, match="closed"), session():
                pass  # pragma: no cover

    def test_closing_waits_for_open_sessions(self, store: Store) -> None:
        is_reading, may_end = threading.Event(), threading.Event()

        def read() -> int:
            with store.read() as reader:
                is_reading.set()
                may_end.wait(PATIENCE_S)
                return reader.head().seq

        with ThreadPoolExecutor(2) as pool:
            reading = pool.submit(read)
            assert is_reading.wait(PATIENCE_S)
            closing = pool.submit(store.close)
            assert not closing.done()
            may_end.set()
            assert reading.result(PATIENCE_S) == 0
            closing.result(PATIENCE_S)
