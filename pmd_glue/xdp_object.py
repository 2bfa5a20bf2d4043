# SPDX-License-Identifier: BSD-3-Clause
"""Write a file as an array of C: xdp_object.py FILE HEADER"""
import sys

with open(sys.argv[1], "rb") as f:
    data = f.read()
with open(sys.argv[2], "w", encoding="ascii") as f:
    f.write("/* Made from xdp_filter.bpf.c. */\nstatic const unsigned char urn_xdp_object[] = {\n")
    for i in range(0, len(data), 20):
        f.write("\t" + ", ".join(str(b) for b in data[i:i + 20]) + ",\n")
    f.write("};\n")
