"""The use cases and the worker's loops: they know ports, never an adapter."""
