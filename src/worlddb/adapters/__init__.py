"""Adapters: WorldDB behind the interfaces of agent frameworks, one module for each framework.

Each module needs its framework, which an extra of the same name installs; nothing here is imported
before it is asked for.
"""
