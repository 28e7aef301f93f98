"""Graph calls: the calls of Memory on edges, identity and history, for the table in `calls.py`."""

from __future__ import annotations

from typing import Any

from worlddb.faces.call_parts import (
    AS_OF,
    CURSOR,
    DRY_RUN,
    KNOWN_AT,
    METADATA,
    SCOPES,
    Call,
    Parameter,
    flag,
    limit,
    needed,
)

QUERY_CHARS_MAX = 1 << 16  # The engine's limit of a query line in bytes.
SAID_NAME_CHARS_MAX = 1_000  # The limit of URL paths in common proxies.
IDS_MAX = 1_000  # Memories of one split, or commits of one undo; corrections are smaller.

QUERY = needed(
    "query",
    "query",
    "Steps with | between them, such as: text apple | traverse refers_to | limit 5. Starts: "
    "text WORDS, seeds IDS. Steps: traverse TYPES [in|out|both] [HOPS], filter_type TYPES, "
    "filter_time START END, where KEY=VALUE, where_connected TYPE DIRECTION ID, in_world ID, "
    "as_of TIME, include_superseded, prefer_summaries, limit N. Or the same as a JSON object.",
    most=QUERY_CHARS_MAX,
    command_help="steps with | between them, or a JSON object; '-' reads stdin",
)
EDGE = needed(
    "id", "id", "The edge's id in hex, or its first 4 or more digits if no other id has them."
)
NODE = needed("id", "id", "The id in hex of a memory or a name, or its first 4 or more digits.")
NAME = needed(
    "id",
    "text",
    "A name as it occurs in the scope; or the id in hex of a name or memory, or its first 4 or "
    "more digits.",
    most=SAID_NAME_CHARS_MAX,
)


def _end(name: str, verb: str) -> Parameter:
    help = f"The memory or name that the edge {verb}: its id in hex, or a name as it occurs here."
    return needed(name, "text", help, most=SAID_NAME_CHARS_MAX)


def _number(name: str, help: str, **more: Any) -> Parameter:
    return Parameter(name=name, type="whole", least=0, help=help, **more)


TRAITS = {
    "functional": "A source has one target at a time; more are flagged as contradictions.",
    "newer_ends_older": "A newer edge of a source ends the older ones.",
    "symmetric": "The edge holds in both directions.",
    "transitive": "a to b and b to c give a to c, when the store is consolidated.",
    "acyclic": "An edge that closes a circle is refused.",
    "pierces": "A query may follow the edge out of its world.",
}

GRAPH_CALLS: tuple[Call, ...] = (
    Call(
        name="query",
        title="Query the graph",
        summary="Run a query over memories, names and the edges between them",
        help="""\
Follow edges between memories and names, step by step: who mentions whom, what causes what.

For a question in plain words use {recall}. Every step stays inside the scope.""",
        parameters=(QUERY, *SCOPES),
        result="Subgraph",
        effect="search",
        path="/v1/query",
        tool="memory_query",
        toolset="graph",
        command="query",
    ),
    Call(
        name="explain",
        title="Explain a query",
        summary="Say how a query would be answered, without answering it",
        help=(
            "Explain how a query runs: its start, its index, its steps, and the rules of edge "
            "types."
        ),
        parameters=(QUERY, *SCOPES),
        result="Plan",
        effect="read",
        path="/v1/query/explain",
        command="query",
    ),
    Call(
        name="interior",
        title="List the nodes of a world",
        summary="List what lives in a world, with sizes",
        help="List the nodes that live in a world, the newest first, with the size of each.",
        parameters=(
            NODE._replace(
                required=False,
                help="The id of a world; by default the scope itself, or the first of them.",
            ),
            Parameter("type", "text", "Only nodes of this type, such as Entity.", most=100),
            limit(50, 20),
            CURSOR,
            AS_OF,
            KNOWN_AT,
            *SCOPES,
        ),
        result="Interior",
        effect="read",
        method="GET",
        path="/v1/interior",
        command="query",
    ),
    # Edges.
    Call(
        name="link",
        title="Link two memories",
        summary="Write an edge between two memories or names",
        help="""\
Say how two memories or names are related: one causes, precedes, implies or contradicts the other.

Give names, or ids from {recall} or {query}. The type's own rules decide what follows.""",
        parameters=(
            needed(
                "type",
                "text",
                "The edge type: causes, precedes, implies, contradicts, refers_to, "
                "supersedes, same_as, instance_of, subtype_of, derived_from, contains, or one "
                "of your own.",
                most=200,
                command_help="the edge type, such as causes or contradicts",
            ),
            _end("source", "leaves"),
            _end("target", "leads to"),
            Parameter(
                "valid_from",
                "time",
                "Start of validity, ISO-8601 with a time zone; by default that of the source.",
            ),
            Parameter(
                "valid_to",
                "time",
                "End of validity, ISO-8601 with a time zone; leave it out if the edge is still "
                "valid.",
            ),
            METADATA,
            *SCOPES,
        ),
        result="Edge",
        effect="change",
        path="/v1/edges",
        tool="memory_link",
        toolset="graph",
        command="link",
        examples=(
            "link causes 3f2a 77c1           # the first led to the second",
            "link contradicts 3f2a 77c1      # both cannot be right",
            'link implies "Ada Lovelace" Ada # names as they occur in the scope',
        ),
    ),
    Call(
        name="unlink",
        title="Delete an edge",
        summary="Delete an edge; what was known before still has it",
        help="Delete an edge by its id, with the edges that were inferred from it.",
        parameters=(EDGE, *SCOPES),
        result="Edge",
        effect="change",
        idempotent=False,
        path="/v1/edges/{id}/unlink",
        command="unlink",
        examples=("unlink 90aa                     # the edge with this id",),
    ),
    # Identity.
    Call(
        name="proposals",
        title="List merge proposals",
        summary="List which names may be the same, the surest first",
        help="""\
List pairs of names that may be the same, with the evidence. Nothing is merged without a decision.

Decide with {decide_merge}, once the user has said who is who.""",
        parameters=(
            Parameter(
                "status",
                "choice",
                "Return proposals with this status only.",
                choices=("pending", "accepted", "rejected", "withdrawn", "all"),
                default="pending",
            ),
            limit(50, 20),
            *SCOPES,
        ),
        result="ProposalPage",
        effect="read",
        method="GET",
        path="/v1/proposals",
        tool="memory_proposals",
        toolset="graph",
        command="proposals",
    ),
    Call(
        name="decide_merge",
        title="Decide a merge",
        summary="Accept a merge proposal, reject it, or undo an accepted one",
        help="""\
Decide whether two names are the same. An accepted merge can be undone, with its effects.

Find proposals with {proposals}.""",
        parameters=(
            EDGE,
            needed(
                "decision",
                "choice",
                "accept: they are the same; reject: they are not; undo: undo an acceptance.",
                choices=("accept", "reject", "undo"),
            ),
            *SCOPES,
        ),
        result="MergeProposal",
        effect="change",
        path="/v1/proposals/{id}",
        tool="memory_decide_merge",
        toolset="graph",
        command="proposals",
    ),
    Call(
        name="split",
        title="Split a name",
        summary="Give a second bearer of a name a node of their own",
        help="Separate two people with one name: give the memories about the second one.",
        parameters=(
            NAME._replace(
                help="The name of the two people, as it occurs in the scope; or its id in hex."
            ),
            needed(
                "memories",
                "names",
                "The ids of the memories about the second one.",
                most=IDS_MAX,
            ),
            *SCOPES,
        ),
        result="Split",
        effect="change",
        idempotent=False,
        path="/v1/split",
        command="proposals",
    ),
    Call(
        name="identity",
        title="Show an identity",
        summary="Show everything that was accepted as the same as a name",
        help="Show the names, sources and merges of everything accepted as the same.",
        parameters=(NAME, *SCOPES),
        result="Identity",
        effect="read",
        method="GET",
        path="/v1/identity/{id}",
        command="identity",
        examples=(
            "identity 'Sarah Chen'           # all names of one person",
            "identity 77c1                   # the same, by the id",
        ),
    ),
    Call(
        name="conflicts",
        title="List conflicts",
        summary="List which memories cannot both be right, the latest first",
        help=(
            "List pairs of memories that cannot both be right. Settle a conflict by amending or "
            "unlinking."
        ),
        parameters=(
            flag("include_settled", "Also return settled conflicts."),
            limit(50, 20),
            *SCOPES,
        ),
        result="ConflictPage",
        effect="read",
        method="GET",
        path="/v1/conflicts",
        command="conflicts",
        examples=(
            "conflicts                       # what cannot both be right",
            "conflicts --include-settled     # and what was",
        ),
        empty="no conflicts",
    ),
    # History and proofs.
    Call(
        name="log",
        title="History",
        summary="List the commits, the latest first",
        help="""\
List the commits, the latest first.

To undo a commit, use {undo} with its number.""",
        parameters=(limit(50, 10), CURSOR, *SCOPES),
        result="CommitPage",
        effect="read",
        method="GET",
        path="/v1/log",
        tool="memory_history",
        toolset="graph",
        command="log",
    ),
    Call(
        name="undo",
        title="Undo a commit",
        summary="Take a commit back, or several together",
        help="""\
Undo a commit: restore the memories that it ended, and retire those that it wrote.

Use it for a wrong write, amendment or retirement; {log} has the numbers. An undo can be undone.""",
        parameters=(
            needed(
                "commit",
                "numbers",
                "The number of the commit, or several.",
                least=1,
                most=IDS_MAX,
                command_help="the number of a commit, or several",
            ),
            DRY_RUN,
            *SCOPES,
        ),
        result="Undone",
        effect="change",
        idempotent=False,
        path="/v1/undo",
        tool="memory_undo",
        toolset="graph",
        command="undo",
        examples=(
            "undo 12                         # take commit 12 back; see 'worlddb log'",
            "undo 12 13 14 --dry-run         # what undoing three together would do",
        ),
    ),
    Call(
        name="diff",
        title="What changed",
        summary="Show what changed between two commits",
        help="Show the nodes, edges and changes of the commits after `first` up to `last`.",
        parameters=(
            _number("first", "The commit before the first change.", required=True, positional=True),
            _number("last", "The last commit to show.", required=True, positional=True),
            Parameter(
                "limit",
                "whole",
                "The maximum number of nodes, of edges and of changes; by default all.",
                least=1,
            ),
            *SCOPES,
        ),
        result="Diff",
        effect="read",
        method="GET",
        path="/v1/diff",
        command="diff",
    ),
    Call(
        name="prove",
        title="Prove a node",
        summary="Prove that a node is in the store",
        help="Return a proof that a node stands under the store's root state.",
        parameters=(NODE,),
        result="Proven",
        effect="read",
        method="GET",
        path="/v1/prove/{id}",
        command="prove",
    ),
    Call(
        name="prove_history",
        title="Prove the history",
        summary="Prove that nothing was rewritten since a commit",
        help="Return the log heads of a commit and of now, and a proof that connects them.",
        parameters=(
            Parameter(
                "since",
                "whole",
                "The earlier commit's number.",
                default=0,
                least=0,
                positional=True,
            ),
        ),
        result="HistoryProof",
        effect="read",
        method="GET",
        path="/v1/prove_history",
        command="prove",
    ),
    # Upkeep and ontology.
    Call(
        name="check",
        title="Check the store",
        summary="Check that the store is sound",
        help=(
            "Hash all rows again, and compare them with the journal and every index; takes a while."
        ),
        parameters=(),
        result="Soundness",
        effect="search",
        method="GET",
        path="/v1/check",
        command="check",
    ),
    Call(
        name="consolidate",
        title="Consolidate",
        summary="Summarise, infer and flag contradictions",
        help="Write summaries, infer edges, and flag contradictions.",
        parameters=(
            _number(
                "min_age", "Only worlds and edges that are at least so many seconds old.", default=0
            ),
            DRY_RUN,
            *SCOPES,
        ),
        result="ConsolidationReport",
        effect="change",
        path="/v1/consolidate",
        command="consolidate",
    ),
    Call(
        name="edge_types",
        title="List edge types",
        summary="List the edge types that hold in a scope",
        help="List the edge types: built-in ones and declared ones.",
        parameters=SCOPES,
        result="EdgeTypes",
        effect="read",
        method="GET",
        path="/v1/ontology",
        command="ontology",
    ),
    Call(
        name="declare",
        title="Declare an edge type",
        summary="Declare an edge type for a scope, or for the whole store",
        help="Declare an edge type as plain data: the rules for edges of that type.",
        parameters=(
            needed("type", "text", "The name of the edge type, such as manages.", most=200),
            *(flag(name, help) for name, help in TRAITS.items()),
            Parameter(
                "inverse",
                "text",
                "The type of the same edge read from its target, such as managed_by.",
                most=200,
            ),
            *SCOPES,
        ),
        result="EdgeDeclaration",
        effect="change",
        path="/v1/ontology",
        tool="memory_declare",
        toolset="graph",
        command="ontology",
    ),
)
