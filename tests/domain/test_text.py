import pytest

from dtq.domain.text import class_name, clean, text_of


@pytest.mark.parametrize(
    "character",
    [
        "\x00",
        "\t",
        "\n",
        "\r",
        "\x1b",
        "\x1f",
        "\x7f",
        "\x80",
        "\x85",
        "\x9f",
        "\u2028",
        "\u2029",
        "\ud800",
        chr(0xDFFF),
        "\u061c",
        "\u200e",
        "\u200f",
        "\u202a",
        "\u202e",
        "\u2066",
        "\u2069",
    ],
)
def test_what_could_forge_a_line_becomes_a_space(character: str) -> None:
    assert "a b" == clean(f"a{character}b")


@pytest.mark.parametrize("text", ["", "plain", "a b", "~\xa0\xad", "äöü", "\u2027\u202f", "a\u200db", "日本", "😀"])
def test_other_text_stays(text: str) -> None:
    assert text == clean(text)


def test_each_character_is_replaced_by_one_space() -> None:
    assert "a    b" == clean("a\r\n\r\nb")


@pytest.mark.parametrize(("length", "kept"), [(499, 499), (500, 500), (501, 500), (100_000, 500)])
def test_text_is_cut_to_five_hundred_characters(length: int, kept: int) -> None:
    assert "x" * kept == clean("x" * length)


def test_the_limit_counts_characters_and_not_bytes() -> None:
    assert "😀" * 3 == clean("😀" * 4, limit=3)


def test_cleaning_twice_changes_nothing_more() -> None:
    once = clean("a\nb" * 400)

    assert once == clean(once)


class Text(str):
    """Text of a kind of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


class Disguised:
    """A value that says it were text."""

    __class__ = property(lambda _: str)

    def __str__(self) -> str:
        return Text("kind")


def test_the_text_of_a_value_is_plain_text() -> None:
    texts = [text_of(value) for value in (1.5, "x", Text("own"), Disguised())]

    assert ["1.5", "x", "own", "kind"] == texts
    assert {str} == {type(text) for text in texts}


def test_the_class_of_a_value_is_called_by_its_own_name() -> None:
    assert ["int", "Text", "Disguised", "type"] == [class_name(one) for one in (1, Text(), Disguised(), int)]
