# SPDX-License-Identifier: BSD-3-Clause
"""Text for people, CSV and JSON for programs."""
import csv
import statistics

import terms

UNITS = {"gbps": ("Gb/s", 1), "msg_rate": ("million messages/s", 1e-6), "us": ("us", 1),
         "mean_us": ("us, mean", 1), "cycles": ("cycles a data packet", 1),
         "retransmits": ("packets sent again", 1), "conn_rate": ("connections/s", 1),
         "cpu": ("% of a core", 100), "kills": ("killed", 1), "seconds": ("s", 1),
         "faults": ("errors and leaks", 1), "first_us": ("us, the first time", 1),
         "reg_us": ("us, ibv_reg_mr", 1), "dereg_us": ("us, ibv_dereg_mr", 1),
         "sim_faults": ("simulated faults", 1)}
# Metrics in tables of figures with marks; all others are in summary.csv.
MADE_OF = ("gbps", "msg_rate", "us", "conn_rate", "cpu", "kills", "seconds", "faults", "first_us", "reg_us",
           "dereg_us", "sim_faults")


def figure(value):
    """A number with three significant digits."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) >= 1 else \
        f"{value:.3f}"


def point_name(point):
    """A size or a count in the usual short form."""
    if isinstance(point, int) and point >= 1024 and point % 1024 == 0:
        return f"{point // 1048576}Mi" if point % 1048576 == 0 else f"{point // 1024}Ki"
    return str(point)


def unique(values):
    return list(dict.fromkeys(values))


def tables(section, summary):
    """(title, columns, [(name, [value or None, ...])]) for each metric of a section."""
    found = []
    mine = [s for s in summary if s.section == section.name]
    for metric in unique(s.metric for s in mine):
        of = [s for s in mine if s.metric == metric]
        unit, scale = UNITS.get(metric, (metric, 1))
        if metric == "cycles":
            found += stage_tables(of, unit)
            continue
        columns = unique(s.x for s in of)
        if all(isinstance(c, (int, float)) for c in columns):
            columns.sort()
        value = {(s.series, s.x): s.median * scale for s in of}
        rows = [(name, [value.get((name, c)) for c in columns])
                for name in unique(s.series for s in of)]
        found.append((f"{section.title}: {unit}", [point_name(c) for c in columns], rows))
    return found


def stage_tables(of, unit):
    """Stages stand below each other: a table for each workload, a column for each node."""
    found = []
    for point in unique(s.point for s in of):
        mine = [s for s in of if s.point == point]
        columns = unique((s.series, s.x.split(": ")[0]) for s in mine)
        value = {(s.series, s.x): s.median for s in mine}
        rows = [(stage, [value.get((series, f"{node}: {stage}")) for series, node in columns])
                for stage in unique(s.x.split(": ")[1] for s in mine)]
        sums = [sum(r[1][i] or 0 for r in rows if r[0] != "idle") for i in range(len(columns))]
        rows.append(("all but idle", sums))
        found.append((f"Cost per packet by stage, {point}: {unit}",
                      [f"{node}, {series}" for series, node in columns], rows))
    return found


def text_table(title, columns, rows):
    width = max([len(name) for name, _ in rows] + [10])
    wide = [max(9, len(c) + 2) for c in columns]
    lines = [title, " " * width + "".join(c.rjust(w) for c, w in zip(columns, wide))]
    for name, values in rows:
        cells = ("-" if v is None else figure(v) for v in values)
        lines.append(name.ljust(width) + "".join(c.rjust(w) for c, w in zip(cells, wide)))
    return "\n".join(lines)


def speed_rows(verdicts):
    """Cells of the table: what, median, spread, must, aim, verdict."""
    found = []
    for v in verdicts:
        form = v.row.form
        found.append((v.row.what,
                      "-" if v.median is None else form(v.median),
                      "-" if v.median is None else f"{form(v.low)}..{form(v.high)}",
                      "" if v.row.must is None else form(v.row.must),
                      "" if v.row.aim is None else form(v.row.aim), v.verdict))
    return found


def speed_runs(summary, section="speed"):
    """A table of the runs behind the figures: medians over all rows that use a run."""
    mine = [s for s in summary if s.section == section]
    metrics = [m for m in MADE_OF if any(s.metric == m for s in mine)]
    rows = []
    for name in unique(s.series for s in mine):
        values = []
        for metric in metrics:
            of = [s.median * UNITS[metric][1] for s in mine
                  if (s.series, s.metric) == (name, metric)]
            values.append(statistics.median(of) if of else None)
        rows.append((name, values))
    return ("The values behind the figures", [UNITS[m][0] for m in metrics], rows)


SPEED_HEAD = ("what", "median", "spread", "must", "aim", "verdict")


def text_speed(section, verdicts):
    lines = [section.title + ": medians over the rounds, of ratios within a round"]
    rows = [SPEED_HEAD] + speed_rows(verdicts)
    wide = max(46, *(len(r[0]) for r in rows))
    for what, mid, spread, must, aim, verdict in rows:
        lines.append(f"{what:{wide}} {mid:>9} {spread:>21} {must:>8} {aim:>8}  {verdict}".rstrip())
    return "\n".join(lines)


def speed_terms(verdicts):
    """Terms of a table of figures with marks"""
    return terms.used([*SPEED_HEAD, *(cell for row in speed_rows(verdicts) for cell in row)])


def plot_terms(section):
    """Terms of the names of series"""
    return terms.used(s.name for s in section.series)


def text_terms(found):
    return ["\n".join(f"  {term}: {meaning}" for term, meaning in found.items())] if found else []


def text(facts, sections, summary, verdicts, notes, quiet="", looks=None):
    """verdicts: {name: [...]} of the sections that are tables of figures with marks; quiet: a paragraph that says
    if the machine was quiet; looks: a table of the looks at it"""
    parts = [quiet] if quiet else []
    parts.append("\n".join(f"{k + ':':10} {v}" for k, v in facts.items()))
    for section in sections:
        if not section.rows:
            parts += [text_table(*t) for t in tables(section, summary)] + text_terms(plot_terms(section))
    for section in sections:
        if section.rows:
            parts.append(text_speed(section, verdicts[section.name]))
            parts += text_terms(speed_terms(verdicts[section.name]))
            parts.append(text_table(*speed_runs(summary, section.name)))
    if looks:
        parts.append(text_table(*looks))
    if notes:
        parts.append("Not measured:\n" + "\n".join(f"  {n}" for n in note_lines(notes)))
    return "\n\n".join(parts) + "\n"


def note_lines(notes):
    """notes: {(section, series): why}; series that share a reason share a line."""
    same = {}
    for (section, series), why in notes.items():
        same.setdefault((section, why), []).append(series)
    return [f"{section}: {', '.join(unique(names))}: {why}" for (section, why), names in same.items()]


class RawFile:
    """raw.csv, written as it is measured."""

    HEAD = ("round", "section", "point", "series", "x", "metric", "value")

    def __init__(self, path):
        self.file = open(path, "w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file)
        self.writer.writerow(self.HEAD)

    def write(self, row):
        self.writer.writerow([*row[:-1], f"{row.value:.9g}"])
        self.file.flush()

    def close(self):
        self.file.close()


def write_summary(path, summary):
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        out.writerow(("section", "point", "series", "x", "metric", "median", "low", "high", "rounds"))
        for s in summary:
            out.writerow([*s[:5], *(f"{v:.9g}" for v in s[5:8]), s.rounds])


def as_json(facts, summary, verdicts, notes):
    def table(found):
        return [{"key": v.row.key, "what": v.row.what, "must": v.row.must, "aim": v.row.aim,
                 "median": v.median, "low": v.low, "high": v.high, "rounds": v.rounds,
                 "verdict": v.verdict} for v in found]

    return {
        "facts": facts,
        "summary": [s._asdict() for s in summary],
        "speed": table(verdicts.get("speed", [])),
        "urnicd": table(verdicts.get("urnicd", [])),
        "am": table(verdicts.get("am", [])),
        "dropin": table(verdicts.get("dropin", [])),
        "session": table(verdicts.get("session", [])),
        "not_measured": [{"section": s, "series": n, "why": w} for (s, n), w in notes.items()],
    }
