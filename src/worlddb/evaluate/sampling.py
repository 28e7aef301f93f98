"""Sampling: what recall finds for a few questions of a run, to know how long its prompts will be.

Found turns are not as long as others are: where one speaker is brief and the other is not, recall
may prefer either. So a few conversations are written and asked before anything is paid for.
Nothing leaves this machine, and it has to be quick: an embedder behind an address, or one that
takes its time, is replaced by the usual one; and turns stand for what a model would read in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from worlddb.db import WorldDB
from worlddb.evaluate.answering import found_for, memories_of
from worlddb.evaluate.cases import load_cases
from worlddb.evaluate.cost import context_tokens
from worlddb.evaluate.plan import Planned, works_of
from worlddb.evaluate.running import reader_of
from worlddb.evaluate.settings import RunSettings
from worlddb.evaluate.writing import write_case
from worlddb.recall.hits import tokens_of

QUICK = ("none", "hash")
"""Embedders that cost nothing; any other is replaced by the default."""
CONVERSATIONS = 8
QUESTIONS_OF_EACH = 4


def context_scale(data: str, settings: RunSettings, left: Sequence[Planned]) -> float:
    """Return how many times as long prompts are as the mean length of all turns would have it.

    Raises:
        FormatError: the file is damaged.
    """
    local = replace(
        settings,
        reading="verbatim" if settings.reading == "model" else settings.reading,
        embedder=settings.embedder if settings.embedder in QUICK else None,
    )
    numbers = list(dict.fromkeys(one.case for one in left))
    # From all over the file, which may be sorted by category.
    numbers = numbers[:: max(1, -(-len(numbers) // CONVERSATIONS))]
    chosen = {
        (one.case, one.place): one
        for number in numbers
        for one in islice((one for one in left if one.case == number), QUESTIONS_OF_EACH)
    }
    expected = taken = 0
    for work in works_of(load_cases(data, settings.benchmark), chosen.values()):
        with WorldDB(":memory:", embedder=local.make_embedder(), pooling=local.pooling) as db:
            written = write_case(db, work.case, local, reader_of(local, None))
            for place in work.wanted:
                found = found_for(db, work.case, work.case.questions[place], local)
                hits = [(hit, written.places.get(hit.node.id, [])) for hit in found]
                taken += tokens_of(memories_of(work.case, hits))
                expected += context_tokens(chosen[work.number, place], local)
    return taken / expected if expected else 1.0
