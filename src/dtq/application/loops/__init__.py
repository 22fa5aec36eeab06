"""The loops of a worker: fetch, beat, listen, lead."""
