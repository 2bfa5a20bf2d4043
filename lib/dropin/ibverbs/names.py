#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the version map and the jumps of the drop-in libibverbs.so.1 from its list of names.

usage: names.py names.txt MAP JUMPS.S"""

import sys

# The tag of rdma-core's private interface: releases 35 to 56, 60 to 63, and from 64. A program is linked against the
# node of its system's rdma-core; the first is the one that a reference without a version gets.
PRIVATE = ("34", "59", "64")

HEAD = """/* Made by names.py. */
#if defined(__x86_64__)
#define JUMP(to) jmp to@PLT
#elif defined(__aarch64__)
#define JUMP(to) b to
#else
#error "how does this processor jump to another library?"
#endif
	.section .note.GNU-stack,"",%progbits
"""


def read(path):
    """The list's rows. returns: (nodes, name, answer): nodes: pairs of node, and "@" or "@@" in front of it"""
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split("#")[0].split()
            if not words:
                continue
            node, name, answer = words
            if node == "PRIVATE":
                nodes = [("IBVERBS_PRIVATE_" + tag, "@" if i else "@@") for i, tag in enumerate(PRIVATE)]
            else:
                nodes = [(node.lstrip("@"), "@" if node[0] == "@" else "@@")]
            yield nodes, name, answer


def full(name, node):
    return name.replace("PABI", node.rsplit("_", 1)[1])


def target(name, answer):
    """The function that a name jumps to."""
    if answer == "urnic":
        return "urn_" + name.lstrip("_")
    return "urn_dropin_" + (name if answer == "here" else answer)


def version_map(rows):
    names = {}
    for nodes, name, _ in rows:
        for node, _ in nodes:
            names.setdefault(node, set()).add(full(name, node))
    text, before = "", ""
    for node, all_names in names.items():
        local = "" if before else "local:\n\t*;\n"
        text += f"{node} {{\nglobal:\n" + "".join(f"\t{n};\n" for n in sorted(all_names)) + f"{local}}}{before};\n"
        before = " " + node
    return text


def jumps(rows):
    """Each name is a place of its own in this file, with a symbol for each of its versions."""
    text = HEAD
    for i, (nodes, name, answer) in enumerate(rows):
        kind = "object" if answer == "byte" else "function"
        text += "\t.data\n" if answer == "byte" else "\t.text\n\t.p2align 4\n"
        symbols = [f"urn_name_{i}_{j}" for j in range(len(nodes))]
        for s, (node, at) in zip(symbols, nodes):
            text += f"\t.globl {s}\n\t.type {s}, %{kind}\n\t.symver {s}, {full(name, node)}{at}{node}\n{s}:\n"
        text += "\t.byte 0\n" if answer == "byte" else f"\tJUMP({target(name, answer)})\n"
        text += "".join(f"\t.size {s}, . - {s}\n" for s in symbols)
    return text


def main():
    rows = list(read(sys.argv[1]))
    for path, text in ((sys.argv[2], version_map(rows)), (sys.argv[3], jumps(rows))):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


main()
