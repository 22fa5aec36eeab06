"""The ports made real: one package or module for each technology, none of which knows another."""
