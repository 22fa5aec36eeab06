"""The commands of dtq as its parser knows them."""

# argparse offers no other way to look at what a parser was told
# ruff: noqa: SLF001

from argparse import Action, ArgumentParser, _HelpAction, _SubParsersAction
from collections.abc import Iterator

from dtq.entrypoints.cli import parser


def commands() -> dict[str, ArgumentParser]:
    """Every command that does something, by what is typed."""
    return dict(_leaves(parser(), "dtq"))


def parsers() -> dict[str, ArgumentParser]:
    """Those, and the groups that they are in."""
    return dict(_all(parser(), "dtq"))


def arguments_of(command: ArgumentParser) -> list[Action]:
    """What a command can be told, help apart."""
    return [action for action in command._actions if not isinstance(action, _HelpAction)]


def _leaves(top: ArgumentParser, name: str) -> Iterator[tuple[str, ArgumentParser]]:
    for path, found in _all(top, name):
        if not _groups(found):
            yield path, found


def _all(top: ArgumentParser, name: str) -> Iterator[tuple[str, ArgumentParser]]:
    yield name, top
    for group in _groups(top):
        for word, below in group.choices.items():
            yield from _all(below, f"{name} {word}")


def _groups(top: ArgumentParser) -> "list[_SubParsersAction[ArgumentParser]]":
    return [action for action in top._actions if isinstance(action, _SubParsersAction)]
