#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make manual pages (roff) from the reference pages (Markdown).

usage: man.py [--version V] [--examples FOLDER] LIST OUTPUT_FOLDER

LIST has a line for each manual page: its name, the page beside LIST that it is made
from, the sections of that page, and one line about it. Commands lose the build
folder in front of their names. FOLDER stands for the folder of ready configurations.

The Markdown is that of this project's pages: headings, paragraphs, lists, tables, fenced
blocks, code, emphasis, links.
"""
import argparse
import os
import re
import sys

LINE = 78  # columns of a terminal that tables are laid out for
EMPTY = "\\&"  # in roff: nothing, where an empty line would mean something


class Manual:
    """One line of the list."""

    def __init__(self, line):
        name, self.page, which, self.about = (f.strip() for f in line.split("|"))
        self.name, self.section = name.rsplit(".", 1)
        self.only = [w.strip() for w in which[1:].split(",")] if which.startswith("+") else None
        self.without = [w.strip() for w in which[1:].split(",")] if which.startswith("-") else []

    def title(self):
        return f"{self.name}({self.section})"

    def has(self, heading):
        """True when this section of the page belongs to the manual page; None: the text before the first."""
        return heading in self.only if self.only else heading not in self.without


def plain(text):
    """Text that roff prints as it stands."""
    text = text.replace("\\", "\\e").replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
    return re.sub(r"(?m)^(?=[.'])", r"\\&", text)


def code(text):
    return plain(text).replace("-", "\\-").replace("'", "\\(aq")


def breakable(text):
    """Long words of a cell may go on in the next line behind a sign."""
    return re.sub(r"\S{9,}", lambda m: re.sub(r"([/=,:|]|\\-)(?=\w)", r"\1\\:", m[0]), text)


class Writer:
    """Writes one manual page. manuals: all of them; their pages are linked to."""

    def __init__(self, manual, manuals, options):
        self.manual, self.options = manual, options
        self.titles = {os.path.basename(m.page): m.title() for m in reversed(manuals)}
        self.also = set()
        self.out = []

    def installed(self, text):
        """Commands and files as they are called once installed."""
        text = re.sub(r"\bbuild/apps/[\w-]+/", "", text)
        return re.sub(r"\bconfig/(?=[\w-]+\.ini)", self.options.examples + "/", text)

    def link(self, m):
        text, target = m.groups()
        title = self.titles.get(os.path.basename(target.partition("#")[0]))
        if title == self.manual.title() or not title:
            return text
        self.also.add(title)
        bare = text.strip("`")
        return f"\x02{title}\x03" if bare in (target.partition("#")[0], title.partition("(")[0]) else f"{text} (\x02{title}\x03)"

    def inline(self, text):
        """One paragraph's text, with fonts."""
        parts = re.split(r"(``.+?``|`[^`]+`)", re.sub(r"\[((?:`[^`]*`|[^\]`])+)\]\(([^)\s]+)\)", self.link, " ".join(text.split())))
        for i, part in enumerate(parts):
            if i % 2:
                parts[i] = "\\fB" + code(self.installed(part.strip("`"))) + "\\fR"
                continue
            part = plain(part.replace("\\|", "|").replace("\\_", "_"))
            part = re.sub(r"\*\*(.+?)\*\*", r"\\fB\1\\fR", part)
            part = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?!\w)", r"\\fI\1\\fR", part)
            parts[i] = part.replace("\x02", "\\fB").replace("\x03", "\\fR")
        return re.sub(r"^(?=[.'])", r"\\&", "".join(parts))

    def fence(self, lines):
        self.out += [".PP", ".RS 4", ".nf", *(code(self.installed(line)) or EMPTY for line in lines), ".fi", ".RE"]

    def table(self, lines):
        rows = [[c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
        head, rows = rows[0], rows[2:] # the second is a ruler
        if len(head) == 2:
            for tag, text in rows:
                self.out += [".TP", self.inline(tag), self.inline(text) or EMPTY]
            self.out.append(".PP")
            return
        rows = [r[:len(head)] for r in rows]
        self.out += [".PP", ".TS", "tab(\t);", self.layout(["\n".join(c) for c in zip(head, *rows)])]
        if any(head):
            rows.insert(0, [f"**{c}**" if c else "" for c in head])
        for row in rows:
            self.out.append("\t".join(f"T{{\n{breakable(self.inline(c)) or EMPTY}\nT}}" for c in row))
        self.out += [".TE", ".PP"]

    @staticmethod
    def layout(cells):
        """Each column has its longest word's width, of up to 24, and its share of the rest by what is in it."""
        cells = [re.sub(r"[`*]|\]\(.*?\)|\[", "", c) for c in cells]
        least = [min(24, max([3, *map(len, c.split())])) for c in cells]
        most = [min(60, max(map(len, c.split("\n")))) for c in cells]
        rest = max(0, LINE - 8 - 3 * len(cells) - sum(least))
        more = [max(0, m - n) for m, n in zip(most, least)]
        part = min(1, rest / max(1, sum(more)))
        return " ".join(f"lw({n + int(m * part)}n)" for n, m in zip(least, more)) + "."

    def items(self, lines):
        """A list: each item with the lines that belong to it."""
        items = []
        for line in lines:
            m = re.match(r"\s*([-*]|\d+\.) +(.*)", line)
            if m:
                items.append(["\\(bu" if m[1] in "-*" else m[1], m[2]])
            else:
                items[-1][1] += " " + line.strip()
        for mark, text in items:
            self.out += [f".IP {mark} 4", self.inline(text)]
        self.out.append(".PP")

    def block(self, lines):
        """Lines without a blank one between them."""
        at = 0
        while at < len(lines):
            first, end = lines[at], at + 1
            if first.startswith("|"):
                while end < len(lines) and lines[end].startswith("|"):
                    end += 1
                self.table(lines[at:end])
            elif re.match(r"([-*]|\d+\.) ", first):
                end = len(lines)
                self.items(lines[at:end])
            else:
                while end < len(lines) and not re.match(r"\||([-*]|\d+\.) ", lines[end]):
                    end += 1
                self.out += [".PP", self.inline("\n".join(lines[at:end]))]
            at = end

    def body(self, text):
        """The page's text, which begins behind its title."""
        wanted, heading, block = self.manual.has(None) if not self.manual.only else False, None, []
        if wanted:
            self.out.append(".SH DESCRIPTION")
        fenced = None
        for line in [*text.split("\n"), ""]:
            head = re.match(r"(##+) (.*)", line) if fenced is None else None
            if fenced is not None:
                if line.startswith("```"):
                    if wanted:
                        self.fence(fenced)
                    fenced = None
                else:
                    fenced.append(line)
                continue
            if line.startswith("```") or head or not line.strip():
                if block and wanted:
                    self.block(block)
                block = []
            if line.startswith("```"):
                fenced = []
            elif head:
                if len(head[1]) == 2:
                    heading = head[2]
                    wanted = self.manual.has(heading)
                if wanted:
                    self.out.append((".SH " if len(head[1]) == 2 else ".SS ") + self.inline(head[2]))
            elif line.strip():
                block.append(line)

    def page(self, text):
        m = self.manual
        self.body(re.sub(r"^# .*\n", "", text))
        if self.also:
            self.out += [".SH SEE ALSO", ",\n".join(f"\\fB{code(t)}\\fR" for t in sorted(self.also))]
        # A paragraph's beginning says nothing at a heading, at the end, and twice.
        lines = []
        for line in self.out:
            if lines and lines[-1] == ".PP" and (line.startswith((".SH", ".SS", ".PP", ".IP", ".TP", ".TS"))):
                lines.pop()
            if line == ".PP" and lines and lines[-1].startswith((".SH", ".SS")):
                continue
            lines.append(line)
        if lines[-1] == ".PP":
            lines.pop()
        top = ["'\\\" t", ".\\\" Made by scripts/man.py from doc/" + m.page + ".",
               f'.TH {m.name.upper()} {m.section} "" "urnic {self.options.version}" "urnic"',
               ".ad l", ".nh", ".SH NAME", f"{code(m.name)} \\- {plain(m.about)}"]
        return "\n".join(top + lines) + "\n"


def read_list(path):
    with open(path, encoding="utf-8") as f:
        return [Manual(line) for line in f if line.strip() and not line.startswith("#")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="")
    parser.add_argument("--examples", default="/usr/share/urnic")
    parser.add_argument("list")
    parser.add_argument("folder")
    options = parser.parse_args()
    manuals = read_list(options.list)
    for manual in manuals:
        with open(os.path.join(os.path.dirname(options.list), manual.page), encoding="utf-8") as f:
            text = Writer(manual, manuals, options).page(f.read())
        with open(os.path.join(options.folder, f"{manual.name}.{manual.section}"), "w", encoding="utf-8") as f:
            f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
