"""Names and aliases over REST."""

from __future__ import annotations

from typing import Any

from .serving import Site


def test_names_and_aliases_are_taken(site: Site) -> None:
    names: dict[str, Any] = {
        "names": ["Sarah Chen"],
        "aliases": {"Sarah Chen": ["SC"]},
        "user_id": "named",
    }
    site.post("/v1/memories", text="the figures are late", **names)
    site.post("/v1/memories", text="the printer is new", user_id="named")
    found = site.post("/v1/recall", query="", names=["SC"], user_id="named")
    assert [hit["node"]["content"] for hit in found.data["hits"]] == ["the figures are late"]
