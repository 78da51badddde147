"""Small tables for notebooks, without scripts or styles of their own. All text is escaped."""

from collections.abc import Iterable
from html import escape


def table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A title, and a row for each name with its value. Rows with an empty value are left out."""
    lines = [
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in rows
        if value != ""
    ]
    return f"<div><b>{escape(title)}</b><table>{''.join(lines)}</table></div>"


def text(title: str, lines: str) -> str:
    """A title, and lines of text as they are."""
    return f"<div><b>{escape(title)}</b><pre>{escape(lines)}</pre></div>"


def size(size_bytes: float) -> str:
    """A number of bytes in a form for people."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:,.0f} {unit}" if unit == "bytes" else f"{size_bytes:,.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:,.1f} TB"
