"""A comparison as one page of HTML that needs nothing else: the picture is inside, and there are no scripts."""

from collections.abc import Callable, Sequence
from html import escape

from daws.compare.summary import Cell

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #333; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
figure { margin: 0; } figure svg { width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child { text-align: left; } caption { text-align: left; color: #666; padding: .3rem 0; }
td.best { font-weight: bold; } code { background: #f3f3f3; padding: .1rem .3rem; }
.scroll { overflow-x: auto; }
"""


def page_of(cells: Sequence[Cell], title: str, command: str, facts: Sequence[tuple[str, str]], svg: bytes) -> str:
    """The page as HTML. `facts` are the names and values of the settings."""
    asked = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"<figure>{_inline(svg)}</figure>\n"
        f"{_table(cells, 'Makespan in s: mean ± standard deviation', _makespan, lowest=True)}\n"
        f"{_table(cells, 'Share of the makespan that no schedule could have saved, in %', _share, lowest=False)}\n"
        f'<h2>What was run</h2>\n<div class="scroll"><table>{asked}</table></div>\n'
        f"<p>Again: <code>{escape(command)}</code></p>\n</body>\n</html>\n"
    )


def _makespan(cell: Cell) -> tuple[float, str]:
    return cell.makespan_s, f"{cell.makespan_s:,.4g} ± {cell.makespan_spread_s:,.2g}"


def _share(cell: Cell) -> tuple[float, str]:
    return cell.bound_share, f"{100 * cell.bound_share:.1f} ± {100 * cell.bound_share_spread:.1f}"


def _table(cells: Sequence[Cell], caption: str, shown: Callable[[Cell], tuple[float, str]], lowest: bool) -> str:
    """Sizes down, strategies across; the best of each row stands out."""
    strategies = list(dict.fromkeys(cell.strategy for cell in cells))
    by_place = {(cell.nodes, cell.strategy): shown(cell) for cell in cells}
    head = "".join(f"<th>{escape(strategy)}</th>" for strategy in strategies)
    rows = []
    for nodes in dict.fromkeys(cell.nodes for cell in cells):
        values = [by_place[nodes, strategy][0] for strategy in strategies if (nodes, strategy) in by_place]
        best = min(values) if lowest else max(values)
        texts = []
        for strategy in strategies:
            value, text = by_place.get((nodes, strategy), (None, "–"))
            texts.append(f'<td class="best">{text}</td>' if value == best else f"<td>{text}</td>")
        rows.append(f"<tr><th>{nodes:,}</th>{''.join(texts)}</tr>")
    return (
        f"<h2>{escape(caption)}</h2>\n"
        f'<div class="scroll"><table><tr><th>nodes</th>{head}</tr>{"".join(rows)}</table></div>'
    )


def _inline(svg: bytes) -> str:
    """The SVG without the header that only files of their own have."""
    text = svg.decode()
    return text[text.index("<svg") :].strip()
