"""Where programs begin: HTTP, command line, worker, and the composition that all of them share."""
