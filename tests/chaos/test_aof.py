"""The server's own file is read as it was meant: blocks of commands, whole ones only."""

from pathlib import Path

import pytest

from tests.chaos.aof import FOLDER, Block, MalformedFileError, cut_last_second, entry_added, leaves_nothing, read_blocks


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


def test_an_entry_is_read_whatever_options_stand_before_it() -> None:
    words = ["XADD", "letters", "NOMKSTREAM", "MAXLEN", "~", "10000", "LIMIT", "100", "5-1", "task_id", "t", "n", "7-7"]

    assert ("5-1", {"task_id": "t", "n": "7-7"}) == entry_added(words)


def test_an_empty_stream_has_no_entry() -> None:
    assert leaves_nothing(["XADD", "s", "MAXLEN", "0", "0-1", "x", "y"])
    assert not leaves_nothing(["XADD", "s", "5-1", "x", "y"])


def test_of_a_lost_second_nothing_is_left(tmp_path: Path) -> None:
    kept, lost = command("SET", "a", "1"), command("SET", "b", "2")
    folder = written(tmp_path, b"#TS:1700000000\r\n", kept, b"#TS:1700000001\r\n", lost)

    cut_last_second(folder)

    assert [Block(1700000000.0, [["SET", "a", "1"]])] == list(read_blocks(folder))
