#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run a command on two RDMA nodes, a and b, of a urnicd of its own. Usage: two-nodes.sh COMMAND [ARGUMENT...]
#
# The command finds urnicd by URNIC_SOCKET; `urnic-run --node a PROGRAM` in it puts a program on a node. Needs no root.
# The exit code is the command's.
set -eu
[ $# -gt 0 ] || { echo "usage: two-nodes.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/urnic-two-nodes.XXXXXX")
daemon=
# shellcheck disable=SC2317 # called by a trap
stop() {
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || :
	[ -z "$daemon" ] || wait "$daemon" || :
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export XDG_RUNTIME_DIR="$dir" URNIC_SOCKET="$dir/urnicd.sock"
{ printf '[urnicd]\nsocket = %s\nidle = pause\n' "$URNIC_SOCKET"; cat /usr/share/urnic/two-nodes.ini; } >"$dir/urnicd.ini"
urnicd -c "$dir/urnicd.ini" 2>"$dir/said" &
daemon=$!
while ! grep -q "listening at" "$dir/said"; do
	kill -0 "$daemon" 2>/dev/null || { cat "$dir/said" >&2; daemon=; exit 1; }
	sleep 0.1
done
status=0
urnic-run "$@" || status=$?
exit "$status"
