"""Tesla, Q1 to Q3: a company changes its mind, and the memory keeps both the change and the past.

Run it: `python examples/tesla.py`. It builds a small world in memory, asks six questions whose
answers are exact sets, and proves one fact. `tests/examples/test_tesla.py` holds every answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import worlddb
from worlddb import Id, Subgraph, WorldDB

Q1 = "2024-01-24T00:00:00+00:00"
Q3 = "2024-07-23T00:00:00+00:00"
DURING_Q1 = "2024-03-01T00:00:00+00:00"
NOW = "2024-09-01T00:00:00+00:00"


@dataclass
class Scenario:
    """The store and the ids of what is in it, by short names."""

    db: WorldDB
    ids: dict[str, Id] = field(default_factory=dict)

    def names(self, found: Subgraph) -> set[str]:
        """Return the short names of the nodes of an answer."""
        known = {ident: name for name, ident in self.ids.items()}
        return {known[node.id] for node in found.nodes}


DECISIONS = {
    # name: (quarter, who decided, what)
    "cheap_car": ("q1", "elon", "Build a car for 25,000 dollars on a new platform"),
    "mexico": ("q1", "elon", "Break ground for the factory in Mexico"),
    "hiring": ("q1", "vaibhav", "Hire for the next growth wave"),
    "robotaxi": ("q3", "elon", "Put the robotaxi before the cheap car"),
    "old_lines": ("q3", "elon", "Build new models on the existing lines"),
    "mexico_pause": ("q3", "elon", "Pause the factory in Mexico"),
    "layoffs": ("q3", "vaibhav", "Cut more than a tenth of the staff"),
}
CONTRADICTS = {
    "robotaxi": "cheap_car",
    "old_lines": "cheap_car",
    "mexico_pause": "mexico",
    "layoffs": "hiring",
}


def build(db: WorldDB) -> Scenario:
    """Write the scenario: a topic, two quarters inside it, decisions, people and an outlook."""
    scene = Scenario(db)
    ids = scene.ids
    with db.transaction(actor="reporter") as tx:
        ids["tesla"] = tx.create_node(type="Topic", name="Tesla", created_at=Q1).id
        for quarter, when in (("q1", Q1), ("q3", Q3)):
            ids[quarter] = tx.create_node(
                type="Event", name=f"Earnings call {quarter}", parent=ids["tesla"], created_at=when
            ).id
        for person, name in (("elon", "Elon Musk"), ("vaibhav", "Vaibhav Taneja")):
            ids[person] = tx.create_node(
                type="Entity", name=name, parent=ids["tesla"], created_at=Q1
            ).id
        for name, (quarter, person, text) in DECISIONS.items():
            ids[name] = tx.create_node(
                type="Decision",
                name=name,
                content=text,
                parent=ids[quarter],
                created_at=Q1 if quarter == "q1" else Q3,
                source=f"earnings call {quarter}",
            ).id
            tx.write_edge("refers_to", ids[name], ids[person], metadata={"role": "decided by"})
        for quarter, when, text in (
            ("q1", Q1, "Volume grows notably slower than in 2023; the cheap car comes in 2025"),
            ("q3", Q3, "New, more affordable models start in the first half of 2025"),
        ):
            ids[f"outlook_{quarter}"] = tx.create_node(
                type="Fact", name="outlook", content=text, parent=ids["tesla"], created_at=when
            ).id
    with db.transaction(actor="analyst") as tx:
        tx.write_edge("supersedes", ids["outlook_q3"], ids["outlook_q1"], valid_from=Q3)
        for new, old in CONTRADICTS.items():
            tx.write_edge(
                "contradicts", ids[new], ids[old], metadata={"reason": "a change of plan"}
            )
    return scene


def questions(scene: Scenario) -> dict[str, set[str]]:
    """Ask the six questions; each answer is an exact set."""
    db, ids = scene.db, scene.ids
    elons = db.query().seeds([ids["elon"]]).traverse("refers_to", "in").filter_type("Decision")
    inside = db.query().in_world(ids["tesla"])
    asked = {
        "What is the outlook?": inside.filter_type("Fact").as_of(valid=NOW),
        "What was the outlook in Q1?": inside.filter_type("Fact").as_of(valid=DURING_Q1),
        "What was decided in Q1?": db.query().in_world(ids["q1"]).filter_type("Decision"),
        "What has Elon decided?": elons,
        "Which of Elon's decisions turned the cheap car around?": elons.where_connected(
            "contradicts", "out", ids["cheap_car"]
        ),
        "Which decisions of Q3 go back on one of Q1?": db.query()
        .seeds([ids[name] for name in DECISIONS if DECISIONS[name][0] == "q1"])
        .traverse("contradicts", "in")
        .filter_time(start=Q3),
    }
    return {question: scene.names(query.execute()) for question, query in asked.items()}


def main() -> None:
    """Build, ask, and prove."""
    with worlddb.open(":memory:") as db:
        scene = build(db)
        for question, answer in questions(scene).items():
            print(question)
            for name in sorted(answer):
                print(f"    {name}: {db.get(scene.ids[name]).content}")
        proof = db.prove(scene.ids["robotaxi"])
        print(f"root state {db.root_state.short}…, and the robotaxi decision is in it:", end=" ")
        print(worlddb.verify_proof(proof, db.root_state))
        print("problems found by check():", len(db.check()))


if __name__ == "__main__":
    main()
