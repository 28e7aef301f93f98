"""Exit codes: one number per branch of the error tree, so that scripts can tell what happened."""

from __future__ import annotations

from worlddb import errors

OK = 0  # By convention.
FOUND = 1  # As of `grep` and `diff`: the command worked and found something.
BUG = 70  # EX_SOFTWARE of sysexits.h.
INTERRUPTED = 130  # 128 + SIGINT, as shells report it.
BROKEN_PIPE = 141  # 128 + SIGPIPE, as if the signal had ended us.

BY_ERROR: dict[type[Exception], int] = {
    errors.InvalidInputError: 2,
    errors.NotFoundError: 3,
    errors.ConflictError: 4,
    errors.RejectedError: 5,
    errors.FormatError: 6,
    errors.CorruptionError: 7,
    errors.StorageError: 8,
    OSError: 8,
    errors.ProviderError: 9,
    errors.StoreKeyError: 10,
    errors.WorldDBError: BUG,  # The root itself is never raised; each branch has its own number.
}

MEANINGS: dict[int, str] = {
    OK: "done; for `check` the store is sound, for `prove --verify` the proof holds",
    FOUND: "a check or a test failed, a proof does not verify, a question was denied",
    2: "the command line or a value in it is wrong",
    3: "no such node, edge or commit at that time",
    4: "another writer holds the store, or it has another history; try again or elsewhere",
    5: "an edge handler refused the write",
    6: "the file is not a WorldDB store, export or proof, or has a newer format",
    7: "stored bytes contradict each other",
    8: "the disk said no: missing, existing already, full, read-only, unreadable",
    9: "a model or an embedding endpoint failed",
    10: "the key of an encrypted store is missing or wrong",
    BUG: "a bug in worlddb; a traceback is on stderr",
    INTERRUPTED: "interrupted by Ctrl-C",
    BROKEN_PIPE: "the reader of our output went away (as with `head`); nothing is printed",
}


def exit_code(error: Exception) -> int:
    """Return the code of the closest class of `error` in the table."""
    for kind in type(error).__mro__:
        if kind in BY_ERROR:
            return BY_ERROR[kind]
    return BUG
