"""The pieces of a report's page, as HTML text; cells and titles are escaped here."""

from collections.abc import Iterable, Sequence
from html import escape

from gradplane.report.style import PAGE

Rows = Sequence[Sequence[str]]


def page(title: str, lead: str, parts: Iterable[str]) -> str:
    """A whole page: title, a line below it, sections."""
    return PAGE.substitute(title=escape(title), lead=escape(lead), body="\n".join(parts))


def section(title: str, body: str) -> str:
    """A part with a heading; the body is HTML."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def grid(*items: str) -> str:
    """Pieces of HTML side by side where there is room."""
    return '<div class="grid">' + "".join(f"<div>{item}</div>" for item in items) + "</div>"


def table(head: Sequence[str], rows: Rows) -> str:
    """A table of text cells under column heads."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def text_table(rows: Rows) -> str:
    """Names and what they stand for."""
    body = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in rows
    )
    return f'<div class="wide"><table class="text"><tbody>{body}</tbody></table></div>'


def details(title: str, text: str) -> str:
    """Preformatted text that opens on a click."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"
