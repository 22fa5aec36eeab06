"""The rules of dtq: pure functions over immutable values, without I/O, clock or chance."""
