# SPDX-License-Identifier: BSD-3-Clause
"""One HTML page that needs nothing else: facts, the table, plots by gnuplot, the figures."""
import base64
import html
import math
import shutil
import subprocess

import report

# Families of colours, by the first word of a series' name.
FAMILIES = {
    "urnic": ("#0b6e4f", "#2ca25f", "#8fd19e"),
    "ucx": ("#c0392b", "#e08e79"),
    "fi_pingpong": ("#8e44ad", "#c39bd3"),
    "iperf3": ("#2471a3",),
    "kernel": ("#2471a3",),
    "sockperf": ("#7fb3d5",),
    "limit": ("#222222",),
    "memcpy": ("#888888",),
    "testpmd": ("#d4ac0d",),
    "DCQCN": ("#0b6e4f",),
    "delay": ("#2471a3",),
    "neither": ("#c0392b",),
    "direct": ("#d4ac0d",),
    "pipelined": ("#2471a3",),
    "tagged": ("#0b6e4f",),
    "RC": ("#222222",),
    "messages": ("#74c476", "#85c1e9", "#d98880"),
    "net_ring": ("#2ca25f", "#e08e79", "#8fd19e", "#7fb3d5", "#c39bd3"),
}
OTHERS = ("#999999",)
# Colours of stages, from the program down to the port and up again; idle last.
STAGES = ("#74c476", "#2ca25f", "#0b6e4f", "#c7e9c0", "#555555", "#c0392b", "#e08e79", "#8e44ad",
          "#c39bd3", "#2471a3", "#7fb3d5", "#d4ac0d", "#dddddd")

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em;
       color: #222; background: #fff; }
h1 { margin-bottom: 0.2em; } h2 { margin-top: 2em; }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0; }
td, th { padding: 0.15em 0.7em; text-align: right; border-bottom: 1px solid #ddd; }
td:first-child, th:first-child { text-align: left; }
.facts td { text-align: left; } img { width: 100%; height: auto; }
.MISSED { color: #b00; font-weight: bold; } .reached { color: #0b6e4f; } .withheld { color: #888; }
.unquiet { border: 2px solid #b00; padding: 0.6em 1em; font-weight: bold; }
p.note { color: #555; } details { margin: 1em 0; } .wide { overflow-x: auto; }
"""


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def x_of(plot, x):
    """The place of a value on the axis."""
    if plot.logx == "nines":
        return -math.log10(1 - x / 100)
    return float(x)


def axis(plot, xs):
    """gnuplot's lines for the x axis, and the place of each x on it."""
    if plot.logx == "loss":
        # 0 has no logarithm, so the rates have equal distances.
        place = {x: float(i) for i, x in enumerate(xs)}
    else:
        place = {x: x_of(plot, x) for x in xs}
    ticks = ", ".join(f"{quoted(report.point_name(x))} {place[x]:.6g}" for x in xs)
    lines = [f"set xtics ({ticks})"]
    if plot.logx is True:
        lines.append("set logscale x 2")
        lines.append(f"set xrange [{min(place.values()) / 1.3:.6g}:{max(place.values()) * 1.3:.6g}]")
    else:
        lines.append(f"set xrange [{min(place.values()) - 0.2:.6g}:{max(place.values()) + 0.2:.6g}]")
    return lines, place


def head(plot, height=500):
    return [f"set terminal svg size 960,{height} dynamic noenhanced font 'sans,13' background '#ffffff'",
            f"set title {quoted(plot.title)}", f"set xlabel {quoted(plot.xlabel)}",
            f"set ylabel {quoted(plot.ylabel)}", "set grid ytics lc rgb '#dddddd'",
            "set border 3", "set tics nomirror", "set key outside right top vertical samplen 2"]


def colors(names):
    """A colour for each series, the same in every plot."""
    used, found = {}, []
    for name in names:
        family = FAMILIES.get(name.split()[0].strip(",:"), OTHERS)
        n = used[family] = used.get(family, -1) + 1
        found.append(family[n % len(family)])
    return found


def lines_script(section, plot, summary):
    """A gnuplot script: a line for each series, medians with the spread over the rounds."""
    mine = [s for s in summary if s.section == section.name and s.metric == plot.metric]
    names = report.unique(s.series for s in mine)
    xs = sorted(report.unique(s.x for s in mine))
    if not xs:
        return None
    more, place = axis(plot, xs)
    once = {s.name for s in section.series if s.once}
    out = head(plot) + more
    out.append("set logscale y" if plot.logy else "set yrange [0:*]")
    drawn = []
    for i, (name, color) in enumerate(zip(names, colors(names))):
        of = sorted((s for s in mine if s.series == name), key=lambda s: place[s.x])
        if name in once:
            of = [of[0]._replace(x=x) for x in (xs[0], xs[-1])]
        out.append(f"$d{i} << EOD")
        out += [f"{place[s.x]:.6g} {s.median * plot.scale:.6g} {s.low * plot.scale:.6g} "
                f"{s.high * plot.scale:.6g}" for s in of]
        out.append("EOD")
        look = f"lc rgb '{color}'"
        if name in once:
            drawn.append(f"$d{i} using 1:2 with lines lw 1.5 dt 2 {look} title {quoted(name)}")
        else:
            drawn.append(f"$d{i} using 1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.4 {look} "
                         f"title {quoted(name)}")
    out.append("plot " + ", ".join(drawn))
    return "\n".join(out) + "\n"


def bars_script(section, plot, summary):
    """A gnuplot script: a stacked bar for each point, series and node."""
    mine = [s for s in summary if s.section == section.name and s.metric == plot.metric]
    if not mine:
        return None
    bars = report.unique((s.point, s.series, s.x.split(": ")[0]) for s in mine)
    stages = report.unique(s.x.split(": ")[1] for s in mine)
    value = {(s.point, s.series, *s.x.split(": ")): s.median for s in mine}
    out = head(plot, 560) + ["set style data histograms", "set style histogram rowstacked",
                             "set style fill solid 0.9 border rgb '#ffffff'", "set boxwidth 0.75",
                             "set yrange [0:*]", "set key invert", "set xtics font ',10'", "set bmargin 6"]
    out.append("$bars << EOD")
    for point, series, node in bars:
        label = f"{point}\\n{series}\\n{node}".replace(", ", "\\n").replace('"', "")
        out.append(f'"{label}" ' + " ".join(f"{value.get((point, series, node, s), 0):.4g}"
                                            for s in stages))
    out.append("EOD")
    out.append("plot " + ", ".join(
        f"$bars using {i + 2}{':xtic(1)' if i == 0 else ''} lc rgb '{STAGES[i % len(STAGES)]}' "
        f"title {quoted(s)}" for i, s in enumerate(stages)))
    return "\n".join(out) + "\n"


def draw(script):
    """gnuplot's SVG, or None with a reason."""
    if shutil.which("gnuplot") is None:
        return None, "there is no gnuplot; scripts/setup.sh --bench installs it"
    done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, check=False)
    if done.returncode != 0 or "</svg>" not in done.stdout:
        return None, f"gnuplot failed: {done.stderr.strip()[:300]}"
    return done.stdout, None


def image(title, svg):
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/svg+xml;base64,{data}">'


def html_table(title, columns, rows):
    cells = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
    body = "".join(
        f"<tr><td>{html.escape(name)}</td>" +
        "".join(f"<td>{'-' if v is None else report.figure(v)}</td>" for v in values) + "</tr>"
        for name, values in rows)
    return (f"<details><summary>{html.escape(title)}</summary><div class=wide><table><tr><th></th>"
            f"{cells}</tr>{body}</table></div></details>")


def html_speed(verdicts):
    head_cells = "".join(f"<th>{h}</th>" for h in report.SPEED_HEAD)
    body = []
    for cells in report.speed_rows(verdicts):
        look = (cells[-1].split() or [""])[-1]
        body.append("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells[:-1]) +
                    f'<td class="{html.escape(look)}">{html.escape(cells[-1])}</td></tr>')
    return f"<table><tr>{head_cells}</tr>{''.join(body)}</table>"


def html_terms(found):
    """Words that stand above, explained."""
    if not found:
        return ""
    return '<p class="note">' + "; ".join(f"<b>{html.escape(term)}</b>: {html.escape(meaning)}"
                                          for term, meaning in found.items()) + ".</p>"


def section_html(section, summary):
    parts = [f"<h2>{html.escape(section.title)}</h2>"]
    for plot in section.plots:
        script = (bars_script if plot.kind == "bars" else lines_script)(section, plot, summary)
        if script is None:
            continue
        svg, why = draw(script)
        parts.append(image(plot.title, svg) if svg else
                     f'<p class="note">No plot: {html.escape(why)}</p>')
    parts.append(f'<p class="note">{html.escape(section.note)}</p>' + html_terms(report.plot_terms(section)))
    parts += [html_table(*t) for t in report.tables(section, summary)]
    return parts


def page(facts, sections, summary, verdicts, notes, rounds, is_quiet=True, quiet="", looks=None):
    """is_quiet, quiet: the machine was quiet, and a paragraph that says so or why not; looks: a table of the looks at it"""
    facts_rows = "".join(f"<tr><td>{html.escape(k)}</td><td>{html.escape(v)}</td></tr>"
                         for k, v in facts.items())
    parts = ["<!doctype html><html lang=en><head><meta charset=utf-8>"
             '<meta name=viewport content="width=device-width">'
             f"<title>urnic and other stacks</title><style>{STYLE}</style></head><body>",
             "<h1>urnic and other stacks</h1>",
             f'<p class="{"note" if is_quiet else "unquiet"}">{html.escape(quiet)}</p>' if quiet else "",
             f"<table class=facts>{facts_rows}</table>",
             f'<p class="note">Medians of {rounds} round{"s" if rounds != 1 else ""}, in which all '
             "take turns; bars reach from the lowest round to the highest. Figures of one machine "
             "say little about another: compare lines, not numbers.</p>"]
    for section in sorted(sections, key=lambda s: not s.rows):
        if section.rows:
            parts.append(f"<h2>{html.escape(section.title)}</h2>" + html_speed(verdicts[section.name]) +
                         html_terms(report.speed_terms(verdicts[section.name])) +
                         f'<p class="note">{html.escape(section.note)}</p>' +
                         html_table(*report.speed_runs(summary, section.name)))
        else:
            parts += section_html(section, summary)
    if looks:
        parts.append(html_table(*looks))
    if notes:
        items = "".join(f"<li>{html.escape(n)}</li>" for n in report.note_lines(notes))
        parts.append(f"<h2>Not measured</h2><ul>{items}</ul>")
    parts.append("</body></html>\n")
    return "\n".join(parts)
