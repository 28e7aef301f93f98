"""Write docs/reference/python.md from the package's own signatures and docstrings.

python docs/reference/generate.py
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import worlddb

PAGE = Path(__file__).parent / "python.md"
HEADER = """# Python reference

Made by `python docs/reference/generate.py` from the docstrings; a test keeps it up to date.

Ids go in as `Id`, 32 bytes, 64 hex digits or a unique prefix of at least 4 digits; they come out as
`Id`. Times go in as aware `datetime` or ISO-8601 text with an offset; they come out as aware UTC
`datetime`.
"""
GROUPS = {
    "Memories": [
        *("Memory", "Written", "Linked", "Remembered", "MemoryPage", "Retired"),
        *("PromptContext",),
        *("Scope", "ScopePage", "ScopeName", "Undone", "Restored", "Kept", "Split"),
        *("MergeProposal", "ProposalPage", "ToldConflict", "ConflictPage", "CommitPage"),
        *("Soundness", "Proven", "EdgeTypes", "EdgeTypeEntry"),
        *("Client", "AsyncMemory", "AsyncClient"),
        *("CallerAccess", "TokenList", "TokenEntry", "IssuedToken", "RevokedToken"),
        "TenantErasure",
        *("Diagnosis", "DoctorFinding"),
    ],
    "The store": ["open", "WorldDB", "Transaction", "Ontology", "verify_proof", "verify_history"],
    "Asking": [
        *("QueryBuilder", "QuerySpec", "TextMatch", "Subgraph", "Plan", "AsOf", "NOW"),
        *("Recall", "Hit", "LaneRank", "PathStep", "Outdated", "MaybeOutdated"),
        *("RecallSettings", "Weights"),
    ],
    "Files": [
        *("Files", "FileChanges", "FileText", "FileEntry", "FileVersion", "FileChange"),
        *("FileMatch", "FileList", "FilePaths", "FileMatches"),
    ],
    "Taking text in": [
        *("Ingested", "Reclustered", "ResolverSettings", "Identity"),
        *("Extractor", "Message", "Draft", "DraftNode", "DraftEdge", "Span"),
    ],
    "Models": [
        *("chat_from", "Chat", "ChatSettings", "Usage", "LlmExtractor", "LlmSummarizer"),
        *("LlmTiebreaker", "Pending", "Extracted", "Claim"),
    ],
    "Consolidating": [
        *("ConsolidationReport", "SummaryChange", "InferredEdge", "Contradiction"),
        *("Summarizer", "ExtractiveSummarizer", "Background", "BackgroundRun"),
        *("RetentionSettings", "Fading", "FadingMemory", "FadingPage"),
        *("PendingMemory", "PendingPage", "Interior"),
    ],
    "Embedders": ["embedder_named", "Embedder"],
    "Values": [
        *("Id", "Node", "Edge", "NodeDraft", "EdgeDraft", "Commit", "Change", "Diff"),
        *("Proposal", "Conflict", "Problem", "Proof", "Receipt", "Limits"),
        *("Branch", "Branches", "Merged", "MergeConflict"),
        *("HistoryProof", "Checkpoint", "Verification", "ScopeExport", "ReadPage", "ReadEntry"),
        *("TrustSettings", "Grant", "Grants"),
        *("RetentionPolicies", "RetentionPolicy", "RetentionReport", "DueMemories"),
    ],
    "Handlers": ["EdgeHandler", "EdgeDeclaration", "WriteContext", "Query"],
}


def signature(name: str, member: object) -> str:
    """Return a signature on one line, without the noise of annotations' modules."""
    text = str(inspect.signature(member))  # type: ignore[arg-type]
    text = text.replace("(self, ", "(").replace("(self)", "()").replace("'", "")
    return re.sub(r"<function .*? at 0x[0-9a-f]+>|<built-in function \w+>", "…", f"{name}{text}")


def paragraphs(doc: str | None) -> str:
    """Return a docstring with its list of errors as a Markdown list."""
    text = inspect.cleandoc(doc or "")
    lines = []
    for line in text.splitlines():
        if line.startswith("    "):
            name, _, rest = line.strip().partition(": ")
            lines.append(f"- {name}: {rest}" if rest else f"  {line.strip()}")
        else:
            lines.append("Raises:\n" if line == "Raises:" else line)
    return "\n".join(lines)


def members(cls: type) -> list[str]:
    """Return what the page says about a class's public methods, properties and fields."""
    parts = []
    if dataclasses.is_dataclass(cls):
        fields = ", ".join(f"`{item.name}`" for item in dataclasses.fields(cls))
        parts.append(f"Fields: {fields}.\n")
    # A class made of parts shows all of them; what they share with every value it does not.
    shown = {
        name: member
        for part in (cls, *cls.__bases__)
        if part.__module__.startswith("worlddb.") and part.__name__ != "Plain"
        for name, member in vars(part).items()
    }
    for name, member in shown.items():
        if name.startswith("_") or name == "to_dict":
            continue
        if isinstance(member, property):
            parts.append(f"**`{name}`** (property)\n\n{paragraphs(member.__doc__)}\n")
        elif isinstance(member, classmethod):
            title = signature(name, member.__func__).replace("(cls, ", "(")
            parts.append(f"**`{title}`** (class method)\n\n{paragraphs(member.__doc__)}\n")
        elif hasattr(member, "__signature__") and cls is not worlddb.Memory:
            continue  # A call of Memory, made from its declaration.
        elif inspect.isfunction(member):
            parts.append(f"**`{signature(name, member)}`**\n\n{paragraphs(member.__doc__)}\n")
    return parts


def page() -> str:
    """Return the whole page."""
    parts = [HEADER]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        for name in names:
            value = getattr(worlddb, name)
            parts.append(f"### `{name}`\n")
            if name == "NOW":
                parts.append("`AsOf()`: the present on both clocks.\n")
            elif name == "TextMatch":
                parts.append(f"`{value}`: how the words of a text start set must occur.\n")
            elif name == "open":
                title = signature("open", value.__init__)
                parts.append(f"`{title.removesuffix(' -> None')} -> WorldDB`\n")
                parts.append("Another name of `WorldDB`: opening a store is making the object.\n")
            elif inspect.isclass(value):
                parts += [paragraphs(value.__doc__) + "\n", *members(value)]
            else:
                parts.append(f"`{signature(name, value)}`\n\n{paragraphs(value.__doc__)}\n")
    parts.append("## Errors\n")
    for name in sorted(name for name in worlddb.__all__ if name.endswith("Error")):
        parts.append(f"### `{name}`\n\n{paragraphs(getattr(worlddb, name).__doc__)}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
