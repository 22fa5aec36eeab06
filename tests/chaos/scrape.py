"""Reads the counters of every process again and again, as a monitoring system does."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

import httpx
from msgspec import Struct

from tests.chaos.deployment import Slot

EVERY_S: Final = 1.0
WITHIN_S: Final = 2.0
COUNTED: Final = ("_total{", "_total ", "_count{", "_count ", "_bucket{", "_sum{")
"""What the names of samples end with that may only rise."""


class Scrape(Struct, frozen=True):
    """The counters of one process at one moment."""

    at: float
    who: str
    counters: Mapping[str, float]


class Scraper:
    """Scrapes one slot after another until it is told to stop."""

    def __init__(self, slots: Sequence[Slot], *, begin: float) -> None:
        self._slots = slots
        self._begin = begin
        self._stop = threading.Event()
        self.scrapes: list[Scrape] = []
        self._thread = threading.Thread(target=self._scrape_all, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Scrape no longer."""
        self._stop.set()
        self._thread.join()

    def _scrape_all(self) -> None:
        with httpx.Client(timeout=WITHIN_S) as http:
            while not self._stop.wait(EVERY_S):
                for slot in self._slots:
                    self._scrape(http, slot)

    def _scrape(self, http: httpx.Client, slot: Slot) -> None:
        before = slot.there
        try:
            text = http.get(f"http://127.0.0.1:{slot.port}/metrics").text
        except httpx.TransportError:
            return
        # whoever has been replaced meanwhile may be either
        if slot.there is before:
            who = f"{slot.name} {before.pid}"
            self.scrapes.append(Scrape(time.time() - self._begin, who, counters_of(text)))


def counters_of(text: str) -> dict[str, float]:
    """Read what may only rise, by name and labels."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#") and any(ending in line for ending in COUNTED):
            series, _, value = line.rpartition(" ")
            found[series] = float(value)
    return found
