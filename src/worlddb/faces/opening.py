"""Opening: from settings to the store, its embedder, its extractor and the model they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.places import existing_store, roomy_store

if TYPE_CHECKING:
    from worlddb.bridge.chat import Chat
    from worlddb.embed.protocol import Embedder
    from worlddb.faces.config import Settings
    from worlddb.memory.memory import Memory
    from worlddb.model.drafts import Extractor


def open_memory(settings: Settings, *, create: bool = True, actor: str) -> Memory:
    """Open the store as `worlddb.Memory`; without `create` it has to be there already.

    Raises:
        StorageError, FormatError: it cannot be opened or made.
        InvalidInputError: the embedder, the extractor or the model is badly named.
        ConflictError: the store's vectors are of another embedder.
    """
    from worlddb.memory.memory import Memory

    path = roomy_store(settings.path) if create else existing_store(settings.path)
    return Memory(
        path,
        create=create,
        embedder=embedder_of(settings),
        models_dir=settings.models_dir,
        extractor=extractor_of(settings),
        user_id=settings.user_id,
        actor=actor,
    )


def embedder_of(settings: Settings) -> Embedder | str | None:
    """Return the embedder that is meant; None for the store's own.

    Raises:
        InvalidInputError: there is no such embedder.
    """
    if settings.embedder is None or settings.embedder == "none":
        return settings.embedder
    from worlddb.embed.names import embedder_named

    return embedder_named(
        settings.embedder, models_dir=settings.models_dir, api_key=settings.embedder_key
    )


def extractor_of(settings: Settings) -> Extractor | str:
    """Return what reads texts when they are written.

    Raises:
        InvalidInputError: it is a language model, and none is configured.
    """
    if settings.extractor != "llm":
        return settings.extractor
    from worlddb.bridge.extractor import LlmExtractor

    return LlmExtractor(chat_of(settings))


def chat_of(settings: Settings) -> Chat:
    """Return a client of the language model that is configured.

    Raises:
        InvalidInputError: no model is named, or one of the values is wrong.
    """
    if not settings.llm_provider or not settings.llm_model:
        raise InvalidInputError(
            "no language model is configured; set at least WORLDDB_LLM_PROVIDER and "
            "WORLDDB_LLM_MODEL (and, if needed, WORLDDB_LLM_BASE_URL and WORLDDB_LLM_API_KEY)"
        )
    from worlddb.bridge.configured import chat_from

    return chat_from(
        settings.llm_provider, settings.llm_base_url, settings.llm_model, settings.llm_api_key
    )
