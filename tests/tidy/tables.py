"""Reads the tables of the documents."""


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """The tables under a heading: what stands in the first cell, without quotes, and the other cells."""
    level = heading.partition(" ")[0]
    text = page.partition(f"\n{heading}\n")[2].partition(f"\n{level} ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}
