"""What a store shows: its worlds, its journal, its soundness, and its answers to bad questions."""
