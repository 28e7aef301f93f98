"""What is left after a writer dies, the power goes, or any single call fails."""
