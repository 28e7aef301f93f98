"""Adapters: WorldDB behind the interfaces of agent frameworks, one module for each framework.

Each module needs its framework, which the extra of the same name installs. No module is imported
until it is used.
"""
