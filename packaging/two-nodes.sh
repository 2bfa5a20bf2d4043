#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run a command on two RDMA nodes, a and b, of a urnicd of its own. Usage: two-nodes.sh COMMAND [ARGUMENT...]
#
# `urnic-run --node a PROGRAM` in the command puts a program on a node. Needs no root. The exit code is the command's, and
# signals go to the command.
[ $# -gt 0 ] || { echo "usage: two-nodes.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
exec urnic-run --start two-nodes "$@"
