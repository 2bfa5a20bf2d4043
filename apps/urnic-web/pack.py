#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make one program of the sources of urnic-web.

usage: pack.py PROGRAM.py MODULE.py... PAGE... OUTPUT VERSION

The modules and the texts of the page take the place of the program's line @PARTS@; a line of the program that imports
a module falls away. A program that is one file can't be led to files of others, neither by its folder nor by a request."""

import os
import re
import sys


def literal(text):
    """A text as Python has it, in lines that a person can read."""
    if "'''" in text or text.endswith("\\"):
        raise SystemExit("pack.py: a page has three quotes in a row, or ends with a backslash")
    return "r'''" + text + "'''"


def module(path):
    """The text of a module without its first lines, which are those of the licence and the imports."""
    with open(path, encoding="utf-8") as f:
        head, _, body = f.read().partition("# ---- the module\n")
    if not body:
        raise SystemExit(f"pack.py: {path} does not say where the module begins")
    return "\n".join(re.findall(r"^import \w+$", head, re.M)) + "\n\n" + body.strip("\n") + "\n"


def main(program, *rest):
    *parts, output, version = rest
    modules = [p for p in parts if p.endswith(".py")]
    with open(program, encoding="utf-8") as f:
        text = f.read().replace("@VERSION@", version)
    for name in [os.path.basename(p)[:-len(".py")] for p in modules]:
        text = re.sub(rf"^from {name} import .*\n", "", text, flags=re.M)
    packed = "\n\n".join(module(p) for p in modules) + "\n\nFILES = {\n"
    for path in [p for p in parts if p not in modules]:
        with open(path, encoding="utf-8") as f:
            packed += f"    {os.path.basename(path)!r}: {literal(f.read())},\n"
    before, _, after = text.partition("# @PARTS@\n")
    with open(output, "w", encoding="utf-8") as f:
        f.write(before + packed + "}\n" + after)
    os.chmod(output, 0o755)


if __name__ == "__main__":
    main(*sys.argv[1:])
