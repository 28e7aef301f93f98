"""Programs that measure WorldDB and print what they measured."""
