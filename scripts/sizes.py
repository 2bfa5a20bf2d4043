#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Find C files and functions that are too long to be seen into.

usage: sizes.py [--help] [--project DIR]

Looks at every .c and .h file of the project, tests included: a file has at most 600 lines,
and a function at most 60, from its opening brace to its closing brace.

  --project DIR  look at this copy of the project (default: the script's own)
  --help         this text

Exit code: 0 nothing found, 1 something was, 2 wrong usage.
"""
import pathlib
import re
import sys

FOLDERS = ['apps', 'dataplane', 'examples', 'lib', 'pmd_glue', 'scripts', 'test']
FILE_LINES, FUNCTION_LINES = 600, 60
NAME = re.compile(r'(\w+)\s*\(')


def functions(lines):
    """(name, first line, number of lines) of each function, whose braces stand in the first column."""
    began = None
    for i, line in enumerate(lines):
        if line == '{':
            began = i
        elif line == '}' and began is not None:
            yield name_of(lines, began), began + 1, i - began + 1
            began = None


def name_of(lines, began):
    """The name in front of a function's parameters; the parameters may take several lines."""
    for line in reversed(lines[max(0, began - 12):began]):
        if line[:1].isalpha() or line[:1] == '_':
            found = NAME.search(line)
            return found.group(1) if found else line
    return '?'


def findings(path, shown):
    lines = path.read_text(encoding='utf-8', errors='replace').splitlines()
    if len(lines) > FILE_LINES:
        yield f'{shown}: the file has {len(lines)} lines, {FILE_LINES} at most'
    for name, line, n in functions(lines):
        if n > FUNCTION_LINES:
            yield f'{shown}:{line}: function {name} has {n} lines, {FUNCTION_LINES} at most'


def main(args):
    project = pathlib.Path(__file__).resolve().parent.parent
    if args[:1] == ['--help']:
        print(__doc__.strip())
        return 0
    if len(args) == 2 and args[0] == '--project':
        project = pathlib.Path(args[1])
    elif args:
        print(f"sizes.py: unknown option '{args[0]}'; see --help", file=sys.stderr)
        return 2
    bad = [finding for folder in FOLDERS for path in sorted((project / folder).rglob('*.[ch]'))
           for finding in findings(path, path.relative_to(project))]
    for finding in bad:
        print(finding)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
