"""Benchmark settings: everything that changes the figures of a run.

Two runs with equal settings can be continued or compared; others are kept apart.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from worlddb import RecallSettings, embedder_named
from worlddb.errors import InvalidInputError

if TYPE_CHECKING:
    from worlddb import Embedder

MODES = ("retrieval", "qa", "both")
READINGS = ("verbatim", "rules", "model")
POOLINGS = ("attention", "mean")
LANES = ("text", "vector", "graph")
SEED = 20_260_101  # of samples; any number does, as long as it stays


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Everything that changes the figures of a run.

    `reading` is what is read out of a conversation when it is written: nothing, what rules find,
    or what a model tells; `facts` (with their entities) and `summaries` can be left out of that.
    The answerer is given `k` hits of together at most `context_tokens`. `roles` are the names of
    the models, `addresses` where they are asked, `limits` how many tokens each may write, and
    `prompts` the digests of their prompts.
    """

    benchmark: str
    mode: Literal["retrieval", "qa", "both"] = "retrieval"
    reading: Literal["verbatim", "rules", "model"] = "verbatim"
    facts: bool = True
    summaries: bool = True
    k: int = 50
    context_tokens: int | None = None
    lanes: tuple[str, ...] = LANES
    weighed: bool = True
    classes: bool = True
    embedder: str | None = None
    pooling: Literal["attention", "mean"] = "attention"
    adversarial: bool = False
    seed: int = SEED
    roles: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    models_dir: str | None = field(default=None, metadata={"aside": True})
    embedder_key: str | None = field(default=None, repr=False, metadata={"aside": True})

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        for name, known in (("mode", MODES), ("reading", READINGS), ("pooling", POOLINGS)):
            if getattr(self, name) not in known:
                raise InvalidInputError(f"{name}: use one of {', '.join(known)}")
        for name, count in (("k", self.k), ("context_tokens", self.context_tokens)):
            if count is not None and count < 1:
                raise InvalidInputError(f"{name}: give a positive whole number, not {count}")
        self.recall_settings()

    @property
    def asks_model(self) -> bool:
        """Whether questions are answered, not only looked up."""
        return self.mode != "retrieval"

    @property
    def measures_retrieval(self) -> bool:
        """Whether ranks are measured."""
        return self.mode != "qa"

    def recall_settings(self) -> RecallSettings:
        """Return how questions are recalled; gold is what was said, so a session is no hit."""
        weights = dict.fromkeys(self.lanes, 1.0)
        settings = RecallSettings(weights=weights, classes=self.classes, worlds=False)
        return settings if self.weighed else replace(settings, weighing=None)

    def written(self) -> RunSettings:
        """Return the settings with all that concerns asking alone as it is by default."""
        return replace(self, lanes=LANES, weighed=True, classes=True)

    def make_embedder(self) -> Embedder | str | None:
        """Return the embedder that is meant; None for the default."""
        if self.embedder is None or self.embedder == "none":
            return self.embedder
        return embedder_named(self.embedder, models_dir=self.models_dir, api_key=self.embedder_key)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, without what only this machine knows.

        What concerns answers alone is no part of a run that asks for none.
        """
        aside = {item.name for item in fields(self) if item.metadata.get("aside")}
        aside |= set() if self.asks_model else {"k", "context_tokens", "summaries", "adversarial"}
        kept = {name: value for name, value in asdict(self).items() if name not in aside}
        return kept | {"lanes": list(self.lanes)}
