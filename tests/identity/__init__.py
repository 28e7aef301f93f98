"""The resolver: names read, compared, kept apart, judged; and what is made of it."""
