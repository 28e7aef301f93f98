"""Tools: the nine calls on a memory. The docstrings are what a model reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from mcp.server.mcpserver import Resolve
from mcp.types import ToolAnnotations

from worlddb.faces.mcp import answers
from worlddb.faces.mcp import arguments as given
from worlddb.faces.mcp.confirming import Asked, ask_to_purge, ask_to_retire_all, confirmation
from worlddb.faces.mcp.registering import MemoryTool, tool_of
from worlddb.memory.memory import Memory
from worlddb.model.scopes import ScopeIds

K_DEFAULT = 10
LIMIT_DEFAULT = 20
SCOPES_DEFAULT = 100


class Tools:
    """The nine tools over the memory that a caller may use."""

    def __init__(self, memory_for: Callable[[], Memory]) -> None:
        self._memory = memory_for

    def memory_write(
        self,
        text: given.Text = None,
        messages: given.Messages = None,
        user_id: given.UserId = None,
        agent_id: given.AgentId = None,
        app_id: given.AppId = None,
        run_id: given.RunId = None,
        at: given.At = None,
        source: given.Source = None,
        metadata: given.Metadata = None,
        idempotency_key: given.IdempotencyKey = None,
    ) -> answers.WriteAnswer:
        """Remember something for later conversations: a fact, preference, decision or event.

        Give `text`, or `messages` to remember a whole conversation. Use it when the user tells
        something lasting about themselves, their people, work or plans, or asks you to remember
        it. What is known already is not written twice. To correct something remembered, use
        memory_amend instead.
        """
        chat = None
        if messages is not None:
            chat = [message.model_dump(exclude_none=True) for message in messages]
        done = self._memory().write(
            text,
            messages=chat,
            at=at,
            source=source,
            metadata=metadata,
            idempotency_key=idempotency_key,
            **_scopes(user_id, agent_id, app_id, run_id),
        )
        return answers.written(done)

    def memory_recall(
        self,
        query: given.Query,
        user_id: given.UserId = None,
        agent_id: given.AgentId = None,
        app_id: given.AppId = None,
        run_id: given.RunId = None,
        k: given.K = K_DEFAULT,
        max_tokens: given.MaxTokens = None,
        as_of: given.AsOf = None,
        known_at: given.KnownAt = None,
        include_retired: given.IncludeRetired = False,
    ) -> answers.RecallAnswer:
        """Find what is remembered about a question, best first.

        Use it before answering anything that may depend on the user, their people, work, earlier
        decisions or conversations. Each hit says since when it is true, where it comes from and
        what contradicts it. No hits means that nothing is remembered: say so, do not invent.
        """
        found = self._memory().recall(
            query,
            k=k,
            max_tokens=max_tokens,
            as_of=as_of,
            known_at=known_at,
            include_retired=include_retired,
            **_scopes(user_id, agent_id, app_id, run_id),
        )
        return answers.recalled(found)

    def memory_list(
        self,
        user_id: given.UserId = None,
        agent_id: given.AgentId = None,
        app_id: given.AppId = None,
        run_id: given.RunId = None,
        limit: given.Limit = LIMIT_DEFAULT,
        cursor: given.Cursor = None,
        include_retired: given.IncludeRetired = False,
        as_of: given.AsOf = None,
        known_at: given.KnownAt = None,
    ) -> answers.ListAnswer:
        """List the memories of a scope, the latest first, a page at a time.

        To find something particular use memory_recall. For more, call it again with the
        next_cursor of this page as cursor; without one this was the last page.
        """
        page = self._memory().list(
            limit=limit,
            cursor=cursor,
            include_retired=include_retired,
            as_of=as_of,
            known_at=known_at,
            **_scopes(user_id, agent_id, app_id, run_id),
        )
        return answers.listed(page)

    def memory_read(
        self,
        id: given.MemoryId,
        user_id: given.UserId = None,
        agent_id: given.AgentId = None,
        app_id: given.AppId = None,
        run_id: given.RunId = None,
        as_of: given.AsOf = None,
        known_at: given.KnownAt = None,
    ) -> answers.MemoryAnswer:
        """Read one memory in full by its id, retired or not.

        It tells the scopes, the sources, and what it superseded or was superseded by.
        """
        memory = self._memory().read(
            id, as_of=as_of, known_at=known_at, **_scopes(user_id, agent_id, app_id, run_id)
        )
        return answers.remembered(memory)

    def memory_amend(
        self,
        id: given.MemoryId,
        text: given.NewText,
        user_id: given.UserId = None,
        agent_id: given.AgentId = None,
        app_id: given.AppId = None,
        run_id: given.RunId = None,
        at: given.At = None,
        source: given.Source = None,
        metadata: given.Metadata = None,
    ) -> answers.WriteAnswer:
        """Correct a memory or bring it up to date: a new one takes the place of the old.

        Use it when something remembered has changed or was wrong; find its id with memory_recall
        first. The old memory ends, and can still be read as what was believed before.
        """
        done = self._memory().amend(
            id,
            text,
            at=at,
            source=source,
            metadata=metadata,
            **_scopes(user_id, agent_id, app_id, run_id),
        )
        return answers.written(done)

    def memory_retire(
        self,
        id: given.MemoryId,
        user_id: given.UserId = None,
        agent_id: given.AgentId = None,
        app_id: given.AppId = None,
        run_id: given.RunId = None,
        at: given.EndsAt = None,
    ) -> answers.RetireAnswer:
        """End one memory that is no longer true or no longer wanted, with nothing in its place.

        It is not found any more, can still be read by its id, and never comes back. If something
        else is true instead, use memory_amend.
        """
        done = self._memory().retire(id, at=at, **_scopes(user_id, agent_id, app_id, run_id))
        return answers.retired(done)

    def memory_retire_all(
        self,
        asked: Annotated[Asked, Resolve(ask_to_retire_all)],
        user_id: given.UserId = None,
        agent_id: given.AgentId = None,
        app_id: given.AppId = None,
        run_id: given.RunId = None,
        confirm: given.Confirm = None,
        at: given.EndsAt = None,
    ) -> answers.RetireAnswer:
        """End every memory in a scope; the scope itself stays. Only if the user asked for it.

        Name the scope; several ids together mean the memories that are in all of them.
        """
        done = self._memory().retire_all(
            confirm=confirmation(asked, confirm),
            at=at,
            **_scopes(user_id, agent_id, app_id, run_id),
        )
        return answers.retired(done)

    def memory_purge_scope(
        self,
        asked: Annotated[Asked, Resolve(ask_to_purge)],
        user_id: given.UserId = None,
        agent_id: given.AgentId = None,
        app_id: given.AppId = None,
        run_id: given.RunId = None,
        confirm: given.Confirm = None,
    ) -> answers.RetireAnswer:
        """End a whole scope and every memory in it, also those shared with other scopes.

        Only if the user asked for it. Name exactly one scope.
        """
        done = self._memory().purge_scope(
            confirm=confirmation(asked, confirm), **_scopes(user_id, agent_id, app_id, run_id)
        )
        return answers.retired(done)

    def memory_list_scopes(
        self,
        kind: given.Kind = None,
        limit: given.Limit = SCOPES_DEFAULT,
        cursor: given.Cursor = None,
        include_retired: given.IncludeRetired = False,
    ) -> answers.ScopesAnswer:
        """List whose memories there are: users, agents, apps and runs, in the order they came."""
        page = self._memory().list_scopes(
            kind=kind, limit=limit, cursor=cursor, include_retired=include_retired
        )
        return answers.scopes_listed(page)


def nine_tools(memory_for: Callable[[], Memory]) -> list[MemoryTool]:
    """Return the nine tools."""
    tools = Tools(memory_for)
    return [
        tool_of(tools.memory_write, "Remember", hints("adds", idempotent=True)),
        tool_of(tools.memory_recall, "Recall", hints("reads")),
        tool_of(tools.memory_list, "List memories", hints("reads")),
        tool_of(tools.memory_read, "Read a memory", hints("reads")),
        tool_of(tools.memory_amend, "Amend a memory", hints("adds", idempotent=False)),
        tool_of(tools.memory_retire, "Retire a memory", hints("ends")),
        tool_of(tools.memory_retire_all, "Retire all memories of a scope", hints("ends")),
        tool_of(tools.memory_purge_scope, "Purge a scope", hints("ends")),
        tool_of(tools.memory_list_scopes, "List scopes", hints("reads")),
    ]


def hints(does: Literal["reads", "adds", "ends"], *, idempotent: bool = True) -> ToolAnnotations:
    """Return what a client may tell its user of a tool before it runs."""
    return ToolAnnotations(
        read_only_hint=does == "reads",
        destructive_hint=does == "ends",
        idempotent_hint=idempotent,
        open_world_hint=False,
    )


def _scopes(
    user_id: str | None, agent_id: str | None, app_id: str | None, run_id: str | None
) -> ScopeIds:
    return ScopeIds(user_id=user_id, agent_id=agent_id, app_id=app_id, run_id=run_id)
