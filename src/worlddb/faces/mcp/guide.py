"""Guide: what an agent is told about using the memory."""

from __future__ import annotations

from typing import Annotated

from mcp.server import MCPServer
from pydantic import Field

INSTRUCTIONS = """\
A lasting memory. Call memory_recall before answering what may depend on the user or on earlier \
conversations; call memory_write when the user says something worth keeping; call memory_amend \
when something remembered has changed. Leave the scope ids out unless you know which to use. The \
prompt use_memory says more."""

GUIDE = """\
You have a lasting memory through the memory_… tools. Use it like this.

Recall first. Before you answer anything that may depend on the user, the people and things they \
know, their work, or what was said or decided earlier, call memory_recall with the question in \
plain words. Ask again in other words or with a larger k if the hits do not answer it. If \
nothing is found, say so; never make a memory up.

Judge what you recall. A hit says since when it is true (valid_from), where it comes from \
(provenance), and which other memories contradict it (conflicts); tell the user of a conflict \
instead of choosing silently. For "what did we believe in May" give known_at; for "what was true \
in May" give as_of; for what has ended give include_retired.

Write what lasts. When the user tells a fact, preference, decision, plan or event worth keeping, \
or says "remember this", call memory_write with one or a few whole sentences that can be \
understood on their own: names instead of "he", dates instead of "tomorrow". Give `at` if it \
happened earlier and `source` if there is one. Do not write passing chatter, secrets such as \
passwords, or what you only guess. Writing the same thing twice is harmless.

Amend what changed. If something remembered is wrong or out of date, find its id with \
memory_recall and call memory_amend with the new sentence. Do not write a second memory beside \
it. If it is simply no longer true or not wanted, call memory_retire.

Keep scopes apart. user_id, agent_id, app_id and run_id say whose memory it is. {scope} Give \
agent_id for what concerns only how you work, and run_id for what matters only in this \
conversation. A memory is found if it is in every scope that a call names. memory_list_scopes \
shows which there are.

Ask before ending much. memory_retire_all and memory_purge_scope end whole scopes: use them only \
when the user asked for exactly that.
"""

USUAL = "Leave them out for the usual user."
NAMED = "The user is {user_id!r}: give user_id={user_id!r} in every call."

UserId = Annotated[str, Field(description="The user this conversation is with; empty for usual")]


def add_guide(server: MCPServer) -> None:
    """Add the prompt to a server."""

    @server.prompt(
        name="use_memory",
        title="Use the memory",
        description="How to use this memory: when to recall, write and amend, and for whom.",
    )
    def use_memory(user_id: UserId = "") -> str:
        return GUIDE.format(scope=NAMED.format(user_id=user_id) if user_id else USUAL)
