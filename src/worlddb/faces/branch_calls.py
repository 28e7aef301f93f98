"""Branch calls: make, compare, merge and drop branches of a store; for administrators."""

from __future__ import annotations

from worlddb.faces.call_parts import Call, Parameter

BRANCH_NAME_CHARS_MAX = 64  # As many as a store takes.

BRANCH_NAME = Parameter(
    name="name",
    type="text",
    required=True,
    positional=True,
    most=BRANCH_NAME_CHARS_MAX,
    help="The name of the branch.",
)


def branch_calls(dry_run: Parameter) -> tuple[Call, ...]:
    """Return the calls."""
    name = BRANCH_NAME
    return (
        Call(
            name="branches",
            title="List branches",
            summary="List the branches of the store",
            help="List the branches of the store: where each was forked, and the space it takes.",
            parameters=(),
            result="Branches",
            effect="read",
            method="GET",
            path="/v1/branches",
            command="branch",
        ),
        Call(
            name="create_branch",
            title="Make a branch",
            summary="Make a branch of the store",
            help="Make a branch: a store of its own that begins as this one is now.",
            parameters=(name,),
            result="Branch",
            effect="change",
            idempotent=False,
            path="/v1/branches",
            command="branch",
        ),
        Call(
            name="branch_diff",
            title="What a branch has",
            summary="Show what was written to a branch and not merged yet",
            help="Show the nodes, edges and changes of a branch that were not merged yet.",
            parameters=(name,),
            result="Diff",
            effect="read",
            method="GET",
            path="/v1/branches/{name}/diff",
            command="branch",
        ),
        Call(
            name="merge",
            title="Merge a branch",
            summary="Write what a branch says into the store",
            help="Write what a branch says into the store, as one commit; {undo} takes it back.",
            parameters=(name, dry_run),
            result="Merged",
            effect="change",
            path="/v1/branches/{name}/merge",
            command="merge",
        ),
        Call(
            name="drop_branch",
            title="Drop a branch",
            summary="Remove a branch",
            help="Remove a branch with all that was written to it; return those that are left.",
            parameters=(name,),
            result="Branches",
            effect="end",
            idempotent=False,
            path="/v1/branches/{name}/drop",
            command="branch",
        ),
    )
