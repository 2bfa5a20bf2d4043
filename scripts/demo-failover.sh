#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Show a copy of a file that survives the death of two dataplane processes, one after the
# other: two nodes of two urnicd each, joined by a switch, and urnic-cp from node a to node b.
#
# Usage: scripts/demo-failover.sh [OPTION...]
#
# Each node has a session: a primary adapter and a backup, each of an urnicd of its own. In
# mid-copy the process of a's primary adapter is killed by SIGKILL, and the copy goes on over
# the backup. The script starts that urnicd again, waits until both programs trust it, and
# then kills the one of the backup. The copy goes on, and is compared with its original, byte
# for byte. When a copy is over too soon for the second kill, the script takes a file of twice the
# size, up to four times. Needs no root, no huge pages and no NIC, and less than a minute.
#
#   --size SIZE    bytes of the file: a number, or one with K, M or G (default 64M)
#   --plot FILE    draw the rate over time, a .png or .svg; needs gnuplot
#   --build DIR    the build folder (default: build, in the project's folder); the programs
#                  that are not there are built
#   --help         this text
#
# The script leaves only the build folder and the plot. TMPDIR says where temporary files go
# (default /tmp).
#
# Exit code: 0 the file arrived whole, 1 something failed, 2 wrong usage.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

build=$project/build
size=64M
plot=()
while [ $# -gt 0 ]; do
	case $1 in
	--size) need_value "$@"; size=$2; shift ;;
	--size=*) size=${1#*=} ;;
	--plot) need_value "$@"; plot=(--plot "$2"); shift ;;
	--plot=*) plot=(--plot "${1#*=}") ;;
	--build) need_value "$@"; build=$2; shift ;;
	--build=*) build=${1#*=} ;;
	--help | -h) print_help; exit 0 ;;
	*) usage_error "unknown option '$1'" ;;
	esac
	shift
done
[[ $size =~ ^[0-9]{1,9}[KMG]?$ ]] ||
	usage_error "--size wants a number, or one with K, M or G, not '$size'"
bytes=$(numfmt --from=iec "$size")
[ "$bytes" -ge 65536 ] || usage_error "--size wants at least 64K, not '$size'"

declare -A pid=() # processes by name: an adapter (ap, as, bp, bs), switch, receiver, sender

# Stop the programs that still run, and remove the temporary folder.
stop_all() {
	trap '' INT TERM
	[ ${#pid[@]} -eq 0 ] || kill "${pid[@]}" 2>/dev/null || :
	wait
	rm -rf "$temp"
}

# until_true SECONDS COMMAND...: wait until a command succeeds; false when it does not.
until_true() {
	local end=$((SECONDS + $1))

	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

runs() {
	[ -n "${pid[$1]:-}" ] && kill -0 "${pid[$1]}" 2>/dev/null
}

# has NAME PATH: a program has made its socket, or has ended.
has() {
	[ -S "$2" ] || ! runs "$1"
}

# launch NAME SOCKET PROGRAM...: start a program, and wait for its socket.
launch() {
	local name=$1 socket=$2

	shift 2
	rm -f "$socket"
	TMPDIR=$temp XDG_RUNTIME_DIR=$temp "$@" >"$temp/$name.out" 2>"$temp/$name.err" &
	pid[$name]=$!
	if ! until_true 20 has "$name" "$socket" || [ ! -S "$socket" ]; then
		cat "$temp/$name.err" >&2
		die "$name did not start; its messages are above"
	fi
}

# start_adapter NAME NUMBER: an urnicd with one adapter, on a port of the switch.
start_adapter() {
	cat >"$temp/$1.ini" <<-END
		[urnicd]
		socket = $temp/$1.sock
		log = off
		# All programs share the processors that there are.
		idle = pause
		empty_polls = 4

		[port p0]
		device = net_memif0,role=client,socket=$temp/$1.memif

		[adapter $1]
		node = ${1%[ps]}
		port = p0
		ipv4 = 10.0.0.$2
	END
	launch "$1" "$temp/$1.sock" "$build/apps/urnicd/urnicd" -c "$temp/$1.ini"
}

# session NODE: the two adapters of a node.
session() {
	printf '%s' "$temp/$1p.sock:$1p,$temp/$1s.sock:$1s"
}

# with_session NODE COMMAND...: run a program of a node, which logs the steps of its session.
with_session() {
	local node=$1

	shift
	URNIC_SESSION=$(session "$node") URNIC_SESSION_LOG=$temp/$node.log URNIC_SESSION_PROBE=20 \
		URNIC_SESSION_SILENCE=30000 exec "$@"
}

# True when both programs trust all four paths again, of which they had lost some; or when the
# copy is over.
healed() {
	local node

	runs sender || return 0
	for node in a b; do
		[ "$(grep -c ' trusted path=' "$temp/$node.log")" -ge 2 ] || return 1
		grep ' trusted path=' "$temp/$node.log" | tail -n 1 | grep -q ' alive=4$' || return 1
	done
}

# True when a process has ended, and is known to have; the shell says so in a message of its own.
ended() {
	! runs "$1"
}

# kill_adapter NAME: by SIGKILL; nothing of it is left but its sockets.
kill_adapter() {
	kill -KILL "${pid[$1]}"
	wait "${pid[$1]}" 2>/dev/null || :
	unset "pid[$1]"
}

# Copy a file of so many bytes. returns: 0; 1 when the copy was over before the second kill
copy() {
	local cp=$build/apps/urnic-cp/urnic-cp

	say "making a file of $(numfmt --to=iec "$1") random bytes"
	head -c "$1" /dev/urandom >"$temp/random.bin" || die "cannot write to $temp"
	rm -rf "$temp/received" "$temp"/[ab].log
	: >"$temp/a.log"
	: >"$temp/b.log"
	launch receiver "$temp/cp.sock" with_session b "$cp" --session auto --listen "$temp/cp.sock" \
		"--to=$temp/received"
	say "copying from a to b; at a quarter of the file a's primary urnicd is killed"
	with_session a "$cp" --session auto --peer "$temp/cp.sock" --chunk 64K --depth 4 \
		"--kill-adapter-at=25%:kill" "${plot[@]}" "$temp/random.bin" \
		>"$temp/sender.out" 2>"$temp/sender.err" &
	pid[sender]=$!
	# The shell would tell of the kill in a line of its own.
	until_true 120 either_ended 2>/dev/null || die "the copy does not reach a quarter of the file"
	until_true 5 ended ap 2>/dev/null || {
		finish
		die "the copy ended, and a's primary urnicd still runs"
	}
	wait "${pid[ap]}" 2>/dev/null || :
	unset "pid[ap]"
	say "a's primary urnicd is dead; starting it again while the copy goes on over the backup"
	start_adapter ap 1
	until_true 40 healed || die "the adapter did not come back in 40 seconds: $(tail -n 3 "$temp/a.log")"
	runs sender || return 1
	say "both programs trust it again; killing the urnicd of a's backup"
	kill_adapter as
}

either_ended() {
	ended ap || ended sender
}

# Wait for both programs of a copy.
finish() {
	local who

	for who in sender receiver; do
		wait "${pid[$who]}" || {
			cat "$temp/$who.err" >&2
			die "the $who failed; its messages are above"
		}
		unset "pid[$who]"
	done
}

compile_all() {
	local programs=(apps/urnicd/urnicd apps/urnic-cp/urnic-cp apps/urnic-switch/urnic-switch) p

	for p in "${programs[@]}"; do
		[ -x "$build/$p" ] && continue
		configure "$build" --buildtype=release -Dtests=false
		compile "$build" "${programs[@]}" || die "the build failed; the compiler's messages are above"
		return
	done
}

compile_all
temp=$(mktemp -d "${TMPDIR:-/tmp}/urnic-demo.XXXXXX") ||
	die "cannot make a folder in ${TMPDIR:-/tmp}; set TMPDIR"
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "starting a switch and four urnicd: a primary and a backup for each of the nodes a and b"
ports=()
for name in ap as bp bs; do
	# A wire of some hundred kilometres, so that the copy takes a few seconds.
	ports+=(--port "$name=memif:$temp/$name.memif" --impair "$name.in:delay=2ms")
done
launch switch "$temp/bs.memif" "$build/apps/urnic-switch/urnic-switch" "${ports[@]}"
number=0
for name in ap as bp bs; do
	start_adapter "$name" $((++number))
done

for attempt in 1 2 3 4; do
	killed=yes
	copy "$bytes" || killed=no
	finish
	moves=$(grep -c -- '-> MIGRATED ' "$temp/a.log") || :
	[ "$killed" = no ] || [ "$moves" -lt 2 ] || break
	[ "$attempt" -lt 4 ] || die "each copy was over too soon for the second kill; give a larger --size"
	# The copy may have ended at the very kill, and did not move then.
	[ "$killed" = no ] || start_adapter as 2
	say "the copy was over too soon for the second kill; once more with twice the size"
	bytes=$((2 * bytes))
done
cat "$temp/sender.out"
cmp -- "$temp/random.bin" "$temp/received/random.bin" >&2 || die "the copy is not the file"
say "compared: the copy is byte for byte its original, after $moves migrations of the connection"
