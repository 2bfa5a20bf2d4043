# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of what `meson install` brings: a folder of their own, and a urnicd that ends with them.

unset LD_LIBRARY_PATH
tmp=$(mktemp -d)
daemon=
stop() {
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
	wait
	rm -rf "$tmp"
}
trap stop EXIT

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# install_to BUILD FOLDER [OPTION...]: FOLDER stands for the root of a system
install_to() {
	local build=$1 root=$2

	shift 2
	meson install -C "$build" --no-rebuild --destdir "$root" "$@" >"$tmp/log" 2>&1 || fail "$(cat "$tmp/log")"
}

# start_urnicd PROGRAM CONFIG: programs of this shell find it from then on
start_urnicd() {
	export XDG_RUNTIME_DIR=$tmp URNIC_SOCKET=$tmp/s
	{ printf '[urnicd]\nsocket = %s\nidle = pause\n' "$tmp/s"; cat "$2"; } >"$tmp/c.ini"
	"$1" -c "$tmp/c.ini" 2>"$tmp/said" &
	daemon=$!
	for _ in $(seq 600); do
		! grep -q "listening at" "$tmp/said" || return 0
		sleep 0.1
	done
	fail "urnicd does not listen: $(cat "$tmp/said")"
}
