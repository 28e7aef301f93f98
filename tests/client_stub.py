"""Write src/worlddb/faces/client_calls.pyi: the types of Client, AsyncMemory and AsyncClient.

    python tests/client_stub.py

The types are those of the methods of Memory. A test fails when the file is not what this writes.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from types import ModuleType

from worlddb.faces import client_calls
from worlddb.faces.calls import CALLS
from worlddb.faces.http import token_desk
from worlddb.faces.server_calls import SERVER_CALLS
from worlddb.memory import (
    endings,
    listings,
    memory,
    prompt_context,
    reads,
    receipts,
    scope_grants,
    scope_policies,
    scoped_graph,
    version_keepers,
    writes,
)

STUB = Path(client_calls.__file__).with_suffix(".pyi")
HEAD = '''"""Types of the calls. Written by tests/client_stub.py; run it instead of editing."""
'''
Method = ast.FunctionDef | ast.AsyncFunctionDef
DECLARED = {*(call.name for call in CALLS), *client_calls.MEMORY_ONLY}
PARTS = (
    (version_keepers, "ScopedFiles"),
    (version_keepers, "BranchKeeper"),
    (scope_policies, "TrustKeeper"),
    (scope_grants, "GrantKeeper"),
    (reads, "MemoryReader"),
    (writes, "MemoryWriter"),
    (endings, "MemoryEnder"),
    (scoped_graph, "ScopedGraph"),
)


def methods(module: ModuleType, name: str) -> dict[str, Method]:
    """Return the methods of a class, without what they do."""
    tree = ast.parse(inspect.getsource(module))
    [found] = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name]
    return bare(found.body)


def bare(statements: list[ast.stmt]) -> dict[str, Method]:
    """Return the functions among some statements, without what they do."""
    made = {one.name: one for one in statements if isinstance(one, Method)}
    for one in made.values():
        one.body = [ast.Expr(ast.Constant(...))]
        one.decorator_list = []
    return made


def functions(module: ModuleType) -> dict[str, Method]:
    """Return the public functions of a module as methods: the reader that they take is `self`."""
    made = bare(ast.parse(inspect.getsource(module)).body)
    made = {name: one for name, one in made.items() if name in DECLARED and one.args.args}
    for one in made.values():
        one.args.args[0] = ast.arg("self")
    return made


def changed(method: Method, *, returns: str = "", awaited: bool = False) -> Method:
    """Return a method with another result, or as a coroutine."""
    made = deepcopy(method)
    if returns:
        made.returns = ast.Name(returns)
    if awaited:
        return ast.AsyncFunctionDef(**dict(ast.iter_fields(made)), lineno=0)
    return made


def remote(method: Method, declared: set[str]) -> Method:
    """Return a method of Memory with the parameters that a request can carry."""
    made = deepcopy(method)
    kept = [
        (one, default)
        for one, default in zip(made.args.kwonlyargs, made.args.kw_defaults, strict=True)
        if one.arg in declared
    ]
    made.args.kwonlyargs = [one for one, _ in kept]
    made.args.kw_defaults = [default for _, default in kept]
    for one in made.args.kwonlyargs:
        if one.arg == "extractor":
            one.annotation = ast.parse("str | None", mode="eval").body
    return made


def classes() -> list[tuple[str, list[Method]]]:
    """Return the classes of the file with their methods."""
    ours: dict[str, Method] = {}
    for module, name in PARTS:
        ours |= methods(module, name)
    ours |= methods(scope_policies, "RetentionKeeper")
    for module in (listings, prompt_context, receipts):
        ours |= functions(module)
    ours |= methods(memory, "Memory")
    client = methods(client_calls, "Client")
    coroutines = methods(client_calls, "AsyncCalls")
    served = methods(token_desk, "TokenDesk")
    sent = [remote(ours[one.name], {p.name for p in one.parameters}) for one in CALLS if one.path]
    sent += [served[one.name] for one in SERVER_CALLS]
    local = [ours[one] for one in (*(call.name for call in CALLS), *client_calls.MEMORY_ONLY)]
    init = changed(ours["__init__"])
    store = init.args.args[1]
    store.annotation = ast.parse(f"{ast.unparse(store.annotation or store)} | Memory").body[0].value  # type: ignore[attr-defined]
    both = [coroutines["close"], coroutines["__aexit__"]]

    def enter(name: str) -> Method:
        return changed(coroutines["__aenter__"], returns=name)

    opened = [client[name] for name in ("__init__", "close", "__enter__", "__exit__")]
    bound = [changed(ours[name], returns="AsyncMemory") for name in ("bound", "signed")]
    awaited = [changed(one, awaited=True) for one in local]
    return [
        ("Client", [*opened, *sent]),
        ("AsyncMemory", [init, *bound, *both, enter("AsyncMemory"), *awaited]),
        (
            "AsyncClient",
            [
                client["__init__"],
                *both,
                enter("AsyncClient"),
                *(changed(one, awaited=True) for one in sent),
            ],
        ),
    ]


def imports(text: str) -> str:
    """Return the import lines for the names in `text`, found where the modules import them."""
    homes = {"Memory": memory.__name__} | dict.fromkeys(
        ("Decision", "QueryInput"), scoped_graph.__name__
    )
    for module in (token_desk, listings, prompt_context, receipts, *dict(PARTS), memory):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom):
                homes |= {name.name: str(node.module) for name in node.names}
            elif isinstance(node, ast.ClassDef):
                homes[node.name] = module.__name__
    names = sorted(set(re.findall(r"\b[A-Z]\w+", text)) & set(homes))
    return "import os\n" + "".join(f"from {homes[name]} import {name}\n" for name in names)


def stub() -> str:
    """Return the whole file."""
    held = {"AsyncMemory": "    calls: Memory\n", "AsyncClient": "    calls: Client\n"}
    text = ""
    for name, body in classes():
        lines = "\n".join(ast.unparse(one) for one in body)
        text += f"class {name}:\n{held.get(name, '')}{re.sub('^', '    ', lines, flags=re.M)}\n\n"
    text = "MEMORY_ONLY: tuple[str, ...]\n\n" + text
    for options in (["check", "--quiet", "--fix", "--exit-zero"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *options, f"--stdin-filename={STUB}", "-"]
        given = text if options[0] == "format" else HEAD + imports(text) + text
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
