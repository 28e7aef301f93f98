"""Chat models behind endpoints, and the three tasks they do: extract, summarize, break ties."""
