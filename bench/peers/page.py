"""The report as a page: one file, no network, a bar for each row."""

from html import escape

import report

STYLE = """
:root { --ink: #1c2430; --dim: #667085; --paper: #fff; --line: #e4e7ec; --ahead: #12805c; --near: #b7791f;
        --behind: #c0392b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --dim: #98a2b3; --paper: #14181f; --line: #2b323d;
        --ahead: #3fbf8f; --near: #d9a441; --behind: #e5675b; } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
       max-width: 92rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p, small { color: var(--dim); }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap;
         font-variant-numeric: tabular-nums; }
th { color: var(--dim); font-weight: 600; } th:first-child, td:first-child { text-align: left; }
.bar { width: 30%; text-align: left; } td.fastest { font-weight: 600; }
svg { display: block; width: 100%; height: 16px; } text { fill: currentColor; font-size: 11px; }
.ahead { fill: var(--ahead); } .near { fill: var(--near); } .behind { fill: var(--behind); }
.mark { stroke: var(--ink); } .spread { stroke: var(--dim); } .aim { stroke: var(--ink); stroke-dasharray: 2 2; }
"""

WIDEST = 6.0  # times the fastest peer, at the right end of a bar


def place(ratio):
    """Percent of the bar's width."""
    return 100.0 * min(ratio, WIDEST) / WIDEST


def bar(row):
    """Our speed beside the fastest peer's, which is the line at 1; the aim is dashed, the quartiles a thin line."""
    if row["ratio"] is None:
        return "<small>no peer has this</small>"
    kind = "behind" if row["ratio"] < 1 else "near" if row["ratio"] < row["aim"] else "ahead"
    low, high = place(row["ratio_low"]), place(row["ratio_high"])
    lines = [
        f'<rect class="{kind}" width="{place(row["ratio"]):.1f}%" height="12" y="2"><title>{escape(report.ratio(row))}'
        f'</title></rect>',
        f'<line class="spread" x1="{low:.1f}%" x2="{high:.1f}%" y1="8" y2="8"/>',
        f'<line class="mark" x1="{place(1):.1f}%" x2="{place(1):.1f}%" y1="0" y2="16"/>',
    ]
    if row["aim"] <= WIDEST:
        lines.append(f'<line class="aim" x1="{place(row["aim"]):.1f}%" x2="{place(row["aim"]):.1f}%" y1="0" y2="16"/>')
    return f'<svg role="img" aria-label="{escape(report.ratio(row))} times the fastest peer">{"".join(lines)}</svg>'


def line(row):
    cells = [f"<td>{escape(row['name'])}</td>", f"<td>{report.duration(row['ns'])}</td>"]
    for key in report.KEYS:
        kind = ' class="fastest"' if key == row["fastest"] else ""
        hint = f' title="{escape(row["modes"].get(key, ""))}; {row["allocs"].get(key, 0):.0f} heap calls"'
        cells.append(f"<td{kind}{hint}>{report.duration(row['peers'].get(key))}</td>")
    cells += [
        f"<td>{row['ratio']:.2f}</td>" if row["ratio"] is not None else "<td>-</td>",
        f"<td>{row['aim']:g}</td>",
        f"<td>{report.percent(row)}</td>",
        f"<td>{row['allocs']['mica']:.0f}</td>",
        f'<td class="bar">{bar(row)}</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"


def table(rows):
    names = ["row", "Mica", *(report.NAMES[key] for key in report.KEYS), "ratio", "aim", "of the limit", "heap calls"]
    head = "".join(f"<th>{name}</th>" for name in names)
    note = '<th class="bar">against the fastest peer</th>'
    return f"<table><thead><tr>{head}{note}</tr></thead><tbody>{''.join(map(line, rows))}</tbody></table>"


def html(machine, rows):
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Mica and its peers</title><style>{STYLE}</style><h1>Mica and its peers</h1>",
        f"<p>{escape(report.about(machine))}</p><p>{escape(report.score(rows))} A bar is our speed beside the "
        f"fastest peer's: the line is 1, dashed the aim, the end {WIDEST:g} or more, thin the quartiles. Where the "
        f"pointer rests on a peer's time, its mode and heap calls are told.</p>",
    ]
    for threads in sorted({row["threads"] for row in rows}):
        parts.append(f"<h2>{report.plural(threads)}</h2>")
        parts.append(table([row for row in rows if row["threads"] == threads]))
    return "\n".join(parts) + "\n</html>\n"
