"""What Dockerfile and compose.yaml say, read without an engine."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # its types are a package of their own, not worth one file

PROJECT = Path(__file__).resolve().parents[2]
DOCKERFILE = (PROJECT / "Dockerfile").read_text()
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")

Service = dict[str, Any]
Instruction = tuple[str, str]


def instructions(text: str) -> Iterator[Instruction]:
    """Each instruction of a Dockerfile, in capitals, and what follows it; continued lines are joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            yield word.upper(), rest.strip()


def stages(text: str) -> dict[str, list[Instruction]]:
    """The instructions of each named stage, with those of the stage that it is built on before them."""
    found: dict[str, list[Instruction]] = {}
    name = ""
    for word, rest in instructions(text):
        if word == "FROM":
            base, _, name = rest.split()
            found[name] = list(found.get(base, []))
        elif name:
            found[name].append((word, rest))
    return found


def last(stage: list[Instruction], word: str) -> str:
    """What the last instruction of this *word* says, which is the one that counts."""
    return [rest for found, rest in stage if found == word][-1]


def compose(variables: Mapping[str, str]) -> dict[str, Any]:
    """The compose file with its variables filled in. Raises KeyError for one that must be given and is not."""

    def value(found: re.Match[str]) -> str:
        name, kind, default = found.groups()
        return variables[name] if name in variables or kind != "-" else default

    document: dict[str, Any] = yaml.safe_load(VARIABLE.sub(value, (PROJECT / "compose.yaml").read_text()))
    return document


def services(**variables: str) -> dict[str, Service]:
    """The services of the compose file."""
    found: dict[str, Service] = compose({"DTQ_API_KEY": "a-key", **variables})["services"]
    return found


def seconds(duration: str) -> int:
    """A duration such as '45s'; any other form of it is not used here."""
    number, _, unit = duration.partition("s")
    if unit:
        raise ValueError(f"{duration!r} is not a number of seconds")
    return int(number)
