"""What a scrape says, as Prometheus reads it."""

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

TYPES: Final = "# TYPE "


class Scraped:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._families = list(text_string_to_metric_families(text))

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each metric, by the name that its line of the text has."""
        lines = [line.removeprefix(TYPES).split() for line in self.text.splitlines() if line.startswith(TYPES)]
        return {line[0]: line[1] for line in lines}

    @property
    def series(self) -> int:
        """How many samples there are."""
        return sum(len(family.samples) for family in self._families)

    def labels_of(self, name: str) -> set[str]:
        """The names of the labels that a metric's samples have; of a histogram, le apart."""
        samples = [sample for family in self._families for sample in family.samples if sample.name.startswith(name)]
        return {label for sample in samples for label in sample.labels} - {"le"}

    def values_of(self, label: str) -> set[str]:
        """Every value that a label has in any sample."""
        samples = [sample for family in self._families for sample in family.samples]
        return {sample.labels[label] for sample in samples if label in sample.labels}

    def of(self, name: str) -> dict[tuple[str, ...], float]:
        """The samples of this very name, by the values of their labels in the order of the labels' names."""
        return {
            tuple(value for _, value in sorted(sample.labels.items())): sample.value
            for family in self._families
            for sample in family.samples
            if sample.name == name
        }

    def value(self, name: str, **labels: str) -> float | None:
        """The value of one sample, or None."""
        return self.of(name).get(tuple(value for _, value in sorted(labels.items())))


def summed(scrapes: Iterable[Scraped], name: str) -> float:
    """What `sum(name)` is over processes scraped side by side."""
    return sum(value for scraped in scrapes for value in scraped.of(name).values())
