"""Ids are uuid4s, and nobody gives one twice: no thread, and no child of a process that has made some ahead."""

import os
from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122, UUID

from dtq.adapters.system import UuidIds


def test_ids_are_random_uuids() -> None:
    made = [UUID(UuidIds().task()) for _ in range(1_000)]

    assert {(4, RFC_4122)} == {(one.version, one.variant) for one in made}
    fixed = UUID("00000000-0000-4000-8000-000000000000").int
    free = UUID("ffffffff-ffff-4fff-bfff-ffffffffffff").int
    always, ever = free, 0
    for one in made:
        always, ever = always & one.int, ever | one.int
    assert (fixed, free) == (always, ever)


def test_threads_give_no_id_twice() -> None:
    def make(_: int) -> list[str]:
        ids = UuidIds()
        return [ids.token() for _ in range(5_000)]

    with ThreadPoolExecutor(4) as pool:
        made = [one for batch in pool.map(make, range(4)) for one in batch]

    assert 20_000 == len(set(made))


def test_a_child_gives_no_id_of_its_parent() -> None:
    ids = UuidIds()
    ids.task()
    reading, writing = os.pipe()

    child = os.fork()
    if child == 0:
        try:
            os.write(writing, " ".join(ids.task() for _ in range(100)).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        of_child = pipe.read().split()

    assert 100 == len(of_child)
    assert set(of_child).isdisjoint(ids.task() for _ in range(100))
