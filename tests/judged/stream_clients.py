"""Clients of the event stream as a program of their own, so that the server cannot borrow time from them.

    python -m tests.judged.stream_clients silent NUMBER URL           # connect, and never read again
    python -m tests.judged.stream_clients healthy NUMBER URL EVENTS   # read until the last event has come

Both print `ready` when all are connected. The healthy ones then print a line of JSON each: how many of the events came,
whether in order, and what they were told besides.
"""

import json
import os
import socket
import sys
import threading
from base64 import b64encode
from urllib.parse import urlsplit

from websockets.sync.client import connect

CONNECT_WITHIN_S = 30.0
SILENCE_S = 60.0
LAST_WORD = "silence"


def be_silent(number: int, url: str) -> None:
    """Connect, and leave it at that until the parent closes our input."""
    sockets = [_shake_hands(url) for _ in range(number)]
    _say("ready")
    sys.stdin.read()
    assert len(sockets) == number


def _shake_hands(url: str) -> socket.socket:
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=CONNECT_WITHIN_S)
    key = b64encode(os.getrandom(16)).decode()
    connection.sendall(
        f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    answer = connection.recv(12)
    assert answer == b"HTTP/1.1 101", answer
    return connection


def be_healthy(number: int, url: str, events: int) -> None:
    """Read everything, on a thread for each client."""
    connected = threading.Barrier(number + 1)
    threads = [threading.Thread(target=_read_all, args=(url, events, connected)) for _ in range(number)]
    for thread in threads:
        thread.start()
    connected.wait(CONNECT_WITHIN_S)
    _say("ready")
    for thread in threads:
        thread.join()


def _read_all(url: str, events: int, connected: threading.Barrier) -> None:
    came: list[int] = []
    words: list[object] = []
    with connect(url, max_size=None) as client:
        words.append(json.loads(client.recv(CONNECT_WITHIN_S))["control"])
        connected.wait(CONNECT_WITHIN_S)
        try:
            while not came or came[-1] < events - 1:
                message = json.loads(client.recv(SILENCE_S))
                if "control" in message:
                    words.append(message)
                else:
                    came.append(message["metadata"]["n"])
        except TimeoutError:
            words.append(LAST_WORD)
        except Exception as error:  # noqa: BLE001 - whatever happens is reported to the test
            words.append(repr(error))
    report = {"came": len(came), "in_order": came == sorted(set(came)), "words": words}
    _say(json.dumps(report))


def _say(line: str) -> None:
    """Print a line at once and by one write, so that no other thread's comes in between."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    role, count, address, *rest = sys.argv[1:]
    if role == "silent":
        be_silent(int(count), address)
    else:
        be_healthy(int(count), address, int(rest[0]))
