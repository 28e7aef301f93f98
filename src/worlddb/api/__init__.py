"""What an open store can be asked: writing, reading, and the store as a whole."""
