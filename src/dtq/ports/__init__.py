"""What the core needs from the world, as protocols whose docstrings are the contract of every adapter."""
