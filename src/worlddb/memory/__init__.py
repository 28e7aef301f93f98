"""The agent-facing API: `Memory`, its scopes and its results."""
