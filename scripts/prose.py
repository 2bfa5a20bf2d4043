#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Find sentences that are hard to read: in comments, in documents, and in texts of programs.

usage: prose.py [OPTION...] [FILE...]

A sentence begins with its subject, and the subject is a noun: doc/glossary.md has
the nouns. One that begins with What, Whose, Who, Whom, Whoever, Whatever, Of or As
is found, and one that begins with It, They, Its or Their, or with This, That, These
or Those and a verb. A clause behind a semicolon or a colon does not begin with what,
who or whose. A comment of C asks no question: the comment on a predicate begins
"True when".

Texts of programs are strings of two words or more: messages and --help. Parts that go
on from other words are allowed in them: a small "of ..." or "as ...", "its ...", and
questions.

Looks at the named files, or at those of the folders that are held to it: comments
of .c, .h, .py, .sh, .ini and meson.build, strings of .c, .h and .py, and the text of .md (no
code, no headings).

  --count   how many there are in each folder, and no more
  --help    this text

Exit code: 0 nothing found, 1 something was, 2 wrong usage.
"""
import ast
import collections
import io
import os
import re
import sys
import tokenize

HELD = (".ci/run", "README.md", "apps", "config", "dataplane", "doc", "examples", "lib", "meson.build", "packaging", "pmd_glue", "scripts", "test")
# Not held: their bytes are the key of the guest's image in the cache, so a changed comment would build the image anew.
KEYS = ("test/interop/guest-build.sh", "test/interop/guest-init.sh", "test/interop/guest-agent.sh")
OPENER = re.compile(r"(?:What|Whose|Who|Whom|Whoever|Whatever|Of|As)\b(?! if\b)", re.IGNORECASE)
# A noun is missing behind the second group, because a verb stands there.
PRONOUN = re.compile(r"(?:It|They|Its|Their)\b|(?:This|That|These|Those) (?:is|are|was|were|has|have|had|does|do|did|"
                     r"can|cannot|could|may|might|must|will|would|should|needs?|costs?|holds?|keeps?|makes?|takes?|gives?|follows?|suits|wakes|loses|sets|tests|change|run|of|that|with)\b|That the\b")
CLAUSE = re.compile(r"[;:] (what|who|whose|whoever|whatever)(?= )")
COMMENT = re.compile(r"""/\*(?P<block>.*?)\*/|//(?P<line>[^\n]*)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
# In texts of programs these may begin a part that goes on from other words, and pronouns have small letters, too.
PART = re.compile(r"(?:of|as|its|their)\b")
SMALL = re.compile(PRONOUN.pattern, re.IGNORECASE)
# A string of C, and all that may stand between two strings that are one text: blanks, the end of a macro's line, a macro's name.
STRING = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?P<string>(?:\\.|[^"\\\n])*)"|(?P<between>\s+|\\\n)|(?P<macro>[A-Z]\w*)|"""
                    r"""'(?:\\.|[^'\\\n])*'|\w+|.""", re.DOTALL)
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


def texts_of_c(source):
    """Yields (line, sentence) for each sentence in strings of two words or more."""
    text, began = "", None
    for m in [*STRING.finditer(source), None]:
        kind = m.lastgroup if m else None
        if kind == "string":
            began = m.start() if began is None else began
            text += m["string"]
        elif began is not None and kind == "macro":
            text += "%s"
        elif began is not None and not (kind == "between" or m and m.group().startswith(("/*", "//"))):
            if " " in text.strip():
                line = source.count("\n", 0, began) + 1
                lines = text.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
                for _, sentence in paragraphs(lines, 0):
                    yield line, sentence
            text, began = "", None


def of_python(source):
    """Yields the sentences of comments, those of neighbouring lines together, and of doc strings."""
    comments = [(t.start[0], t.start[1], t.string) for t in tokenize.generate_tokens(io.StringIO(source).readline)
                if t.type == tokenize.COMMENT]
    yield from of_hashes(comments)
    for node in doc_strings(source):
        yield from paragraphs(node.value, node.lineno)


def doc_strings(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield node.body[0].value


def texts_of_python(source):
    """Yields (line, sentence) for each sentence in strings of two words or more that document nothing."""
    documents = {(n.lineno, n.col_offset) for n in doc_strings(source)}
    for node in ast.walk(ast.parse(source)):
        if (isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip()
                and (node.lineno, node.col_offset) not in documents):
            for _, sentence in paragraphs(node.value, 0):
                yield node.lineno, sentence


def of_script(source):
    """Yields the sentences of comments that begin with # at the start of a line, or behind blanks and no quote."""
    comments = []
    for number, line in enumerate(source.split("\n"), 1):
        m = re.match(r"(\s*(?:[^\s#\"'][^#\"']*\s)?)(#.*)", line)
        if m:
            comments.append((number, len(m.group(1)), m.group(2)))
    yield from of_hashes(comments)


def of_hashes(comments):
    """Yields the sentences of (line, column, text) of comments; those of one column in lines that follow are one text."""
    text, began, last = [], 0, None
    for line, column, comment in [*comments, (-1, -1, "")]:
        if text and (line, column) != last:
            yield from paragraphs("\n".join(text), began)
            text = []
        if not text:
            began = line
        text.append(re.sub(r"^#+!? ?", "", comment))
        last = (line + 1, column)


def paragraphs(text, line):
    """Yields the sentences of a text whose paragraphs have blank lines, or rows of options, between them."""
    for paragraph in re.split(r"(\n[ \t]*(?=\n)|\n(?=[ \t]+-))", text):
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


def texts(path, source):
    if path.endswith((".c", ".h")):
        return of_c(source)
    if path.endswith(".md"):
        return of_markdown(source)
    return of_python(source) if path.endswith(".py") else of_script(source)


def findings(path):
    with open(path, encoding="utf-8") as f:
        source = f.read()
    if path.endswith((".c", ".h")):
        yield from of_strings(texts_of_c(source))
    elif path.endswith(".py"):
        yield from of_strings(texts_of_python(source))
    for line, text in texts(path, source):
        bare = text.lstrip("*_`\"'([ ")
        clause = CLAUSE.search(text)
        if OPENER.match(bare):
            yield line, "begins with " + bare.split()[0].rstrip(",.:;"), text
        elif PRONOUN.match(bare):
            yield line, "begins with " + PRONOUN.match(bare).group(), text
        elif clause:
            yield line, "has a clause that begins with " + clause.group(1), text[clause.start():]
        elif path.endswith((".c", ".h")) and text.endswith("?"):
            yield line, "is a question", text


def of_strings(pairs):
    """Yields the findings in sentences of strings, which are (line, sentence)."""
    for line, text in pairs:
        bare = text.lstrip("*_`\"'([ ")
        clause = CLAUSE.search(text)
        if PART.match(bare):
            continue
        if OPENER.match(bare) or SMALL.match(bare):
            yield line, "a text begins with " + bare.split()[0].rstrip(",.:;"), text
        elif clause:
            yield line, "a text has a clause that begins with " + clause.group(1), text[clause.start():]


def held():
    for top in HELD:
        if os.path.isfile(top):
            yield top
        for folder, _, names in sorted(os.walk(top)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith((".c", ".h", ".md", ".py", ".sh", ".ini", "meson.build")) and path not in KEYS:
                    yield path


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
