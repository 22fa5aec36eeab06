"""The server's own file is read as it was meant: blocks of commands, whole ones only."""

from pathlib import Path

import pytest

from tests.chaos.aof import FOLDER, Block, MalformedFileError, read_blocks


def written(folder: Path, *parts: bytes) -> Path:
    (folder / FOLDER).mkdir()
    (folder / FOLDER / "appendonly.aof.1.incr.aof").write_bytes(b"".join(parts))
    return folder


def command(*words: str) -> bytes:
    return b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)])


def test_what_was_done_as_one_is_one_block(tmp_path: Path) -> None:
    done = command("MULTI"), command("SET", "a", "1"), command("DEL", "b"), command("EXEC"), command("SET", "c", "2")

    blocks = list(read_blocks(written(tmp_path, b"#TS:1700000000\r\n", *done)))

    assert [
        Block(1700000000.0, [["SET", "a", "1"], ["DEL", "b"]]),
        Block(1700000000.0, [["SET", "c", "2"]]),
    ] == blocks


@pytest.mark.parametrize("missing", range(1, len(command("SET", "c", "2"))))
def test_an_end_that_was_cut_off_is_left_out(tmp_path: Path, missing: int) -> None:
    cut = (command("SET", "a", "1") + command("SET", "c", "2"))[:-missing]

    assert [Block(0.0, [["SET", "a", "1"]])] == list(read_blocks(written(tmp_path, cut)))


def test_a_transaction_that_was_cut_off_is_none(tmp_path: Path) -> None:
    assert [] == list(read_blocks(written(tmp_path, command("MULTI"), command("SET", "a", "1"))))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedFileError):
        list(read_blocks(written(tmp_path, b"REDIS0011 and so on\r\n")))
