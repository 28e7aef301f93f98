"""View: what a reader can see."""
