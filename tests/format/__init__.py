"""The bytes on disk and in proofs: golden addresses, kept files, a verifier of its own."""
