"""Hooks: a coding client's events become memories, and memories become context, without a model.

    stdin JSON ──dialect──▶ HookEvent ──▶ inject: recall ▶ stdout JSON
                                      └─▶ capture: transcript ▶ new turns ▶ writes, apart

H1  A hook never fails and never blocks: whatever goes wrong is one line in the log.
H2  A turn is written once: by its place in the transcript, and by an idempotency key.
H3  Nothing here is imported before it is needed: a hook starts with every prompt.
"""
