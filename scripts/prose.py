#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Find sentences that are hard to read: in comments and in documents.

usage: prose.py [OPTION...] [FILE...]

A sentence begins with its subject. One that begins with What, Whose, Who, Whom,
Whoever, Whatever, Of or As is found, and so is a question in a comment of C: the
comment on a predicate begins "True when". doc/glossary.md has the nouns.

Looks at the named files, or at those of the folders that are held to it: comments
of .c and .h, and the text of .md (no code, no headings).

  --count   how many there are in each folder, and no more
  --help    this text

Exit code: 0 nothing found, 1 something was, 2 wrong usage.
"""
import collections
import os
import re
import sys

HELD = ("apps", "dataplane", "doc", "examples", "lib", "pmd_glue", "README.md")
OPENER = re.compile(r"(?:What|Whose|Who|Whom|Whoever|Whatever|Of|As)\b(?! if\b)", re.IGNORECASE)
COMMENT = re.compile(r"""/\*(?P<block>.*?)\*/|//(?P<line>[^\n]*)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
# A sentence ends before white space and a capital, a quote or a bracket.
END = re.compile(r"(?<=[.?!])\s+(?=[A-Z\"'(`*\[])")


def sentences(text, line):
    """Yields (line, sentence) for each sentence of a text that begins in this line."""
    at = 0
    for part in [*END.finditer(text), None]:
        stop = part.start() if part else len(text)
        body = text[at:stop]
        yield line + text.count("\n", 0, at + len(body) - len(body.lstrip())), " ".join(body.split())
        at = part.end() if part else stop


def of_c(source):
    for m in COMMENT.finditer(source):
        kind = m.lastgroup
        if not kind:
            continue
        first = source.count("\n", 0, m.start()) + 1
        # The stars of a block and the dashes in front of a title are no part of a sentence.
        text = re.sub(r"^[ \t]*\*(?=\s|$)", " ", m.group(kind), flags=re.MULTILINE)
        text = re.sub(r"^([ \t]*)-+ ", r"\1", text.lstrip("*"), flags=re.MULTILINE)
        line = first
        for paragraph in re.split(r"(\n[ \t]*(?=\n)|\n[ \t]*(?=returns\b|[a-z_]+: ))", text):
            yield from sentences(paragraph, line)
            line += paragraph.count("\n")


def of_markdown(source):
    code, paragraph, began = False, [], 0
    for number, line in enumerate([*source.split("\n"), ""], 1):
        fence = line.lstrip().startswith("```")
        apart = fence or code or not line.strip() or re.match(r"\s*(#|\||[-*] |\d+\. |>)", line)
        if apart and paragraph:
            yield from sentences("\n".join(paragraph), began)
            paragraph = []
        if fence:
            code = not code
        elif code or line.lstrip().startswith("#"):
            continue
        elif line.lstrip().startswith("|"):
            for cell in line.strip().strip("|").split(" | "):
                yield from sentences(cell, number)
        elif line.strip():
            if not paragraph:
                began = number
            paragraph.append(re.sub(r"^\s*([-*]|\d+\.|>) ", "", line))


def findings(path):
    with open(path, encoding="utf-8") as f:
        source = f.read()
    c = path.endswith((".c", ".h"))
    for line, text in of_c(source) if c else of_markdown(source):
        bare = text.lstrip("*_`\"'([ ")
        if OPENER.match(bare):
            yield line, "begins with " + bare.split()[0].rstrip(",.:;"), text
        elif c and text.endswith("?"):
            yield line, "is a question", text


def held():
    for top in HELD:
        if os.path.isfile(top):
            yield top
        for folder, _, names in sorted(os.walk(top)):
            yield from (os.path.join(folder, n) for n in sorted(names) if n.endswith((".c", ".h", ".md")))


def main(argv):
    if "--help" in argv or "-h" in argv:
        print(__doc__.strip())
        return 0
    count = "--count" in argv
    files = [a for a in argv if a != "--count"]
    wrong = [f for f in files if f.startswith("-") or not os.path.isfile(f)]
    if wrong:
        print(f"prose.py: {wrong[0]}: no option, and no file; see prose.py --help", file=sys.stderr)
        return 2
    if not files:
        os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    found = collections.Counter()
    for path in files or held():
        for line, why, text in findings(path):
            found[os.path.dirname(path) or "."] += 1
            if not count:
                print(f"{path}:{line}: {why}: {text[:100]}")
    if count:
        for folder, n in sorted(found.items()):
            print(f"{n:5} {folder}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
