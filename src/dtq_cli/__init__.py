"""The command line under the import path of the contract; the code is in dtq.entrypoints.cli."""
