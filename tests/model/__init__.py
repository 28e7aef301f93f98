"""The values and what they refuse."""
