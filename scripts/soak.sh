#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run the simulated clusters over many seeds, until a signal stops the script.
#
# Usage: scripts/soak.sh [OPTION...]
#
# Builds urnic-sim, and urnic-msg-sim, urnic-am-sim, urnic-session-sim and urnic-stream-sim, whose scenarios are called
# msg:NAME, am:NAME, session:NAME and stream:NAME here, then runs every scenario over one share of the seeds after the other, and prints a line for each scenario and share. A seed that fails is
# printed with the command that runs the seed again. Ctrl-C ends the script. The
# last line is always the sum. The long run of active messages and remote memory at 30 % loss, with restarts and
# revocation, is --scenario am:storm --seeds 1..100000; 100,000 and more faults of sessions are --scenario session:storm --seeds 1..60000.
#
#   --seeds A..B       range of seeds (default: from 1 on, without end)
#   --scenario NAME    scenario, or several with commas between (default: all)
#   --jobs N           number of parallel processes (default: number of CPUs)
#   --share N          number of seeds in a share (default 1000)
#   --without F,F...   faults to leave out (urnic-sim)
#   --recovery R       gbn, selective or mixed (default mixed; urnic-sim)
#   --build DIR        the build folder (default: build, in the project's folder)
#   --help             this text
#
# doc/inside/testing.md describes the simulation.
#
# Exit code: 0 all passed, 1 a seed or the build failed, or all runs together made more
# requests than losses allow, 2 wrong usage, 128 + N after signal N if nothing failed until then.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

build=$project/build
first=1
last=
scenarios=
jobs=$(nproc)
share=1000
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--seeds) need_value "$@"; seeds=$2; shift ;;
	--seeds=*) seeds=${1#*=} ;;
	--scenario) need_value "$@"; scenarios=$2; shift ;;
	--scenario=*) scenarios=${1#*=} ;;
	--jobs) need_value "$@"; jobs=$2; shift ;;
	--jobs=*) jobs=${1#*=} ;;
	--share) need_value "$@"; share=$2; shift ;;
	--share=*) share=${1#*=} ;;
	--without | --recovery) need_value "$@"; options+=("$1" "$2"); shift ;;
	--build) need_value "$@"; build=$2; shift ;;
	--build=*) build=${1#*=} ;;
	--help | -h) print_help; exit 0 ;;
	*) usage_error "unknown argument '$1'" ;;
	esac
	shift
done
if [ -n "${seeds-}" ]; then
	[[ $seeds =~ ^([0-9]{1,15})(\.\.([0-9]{1,15}))?$ ]] ||
		usage_error "--seeds wants a number, or two and '..' between them, not '$seeds'"
	# Seeds are decimal, with zeros in front or without; the shell would read 010 as eight and refuse 08.
	first=$((10#${BASH_REMATCH[1]})) last=$((10#${BASH_REMATCH[3]:-${BASH_REMATCH[1]}}))
	[ "$first" -le "$last" ] || usage_error "--seeds $seeds: the first is behind the last"
fi
[[ $share =~ ^[1-9][0-9]{0,8}$ ]] || usage_error "--share wants a number from 1 on, not '$share'"

configure "$build" --buildtype=release
compile "$build" test/sim/urnic-sim test/sim/msg/urnic-msg-sim test/sim/am/urnic-am-sim test/sim/session/urnic-session-sim \
	test/sim/stream/urnic-stream-sim ||
	die "the simulations do not build; what the compiler said is above"
sim=$build/test/sim/urnic-sim
msg_sim=$build/test/sim/msg/urnic-msg-sim
am_sim=$build/test/sim/am/urnic-am-sim
session_sim=$build/test/sim/session/urnic-session-sim
stream_sim=$build/test/sim/stream/urnic-stream-sim

# A wrong option ends the script here, with the message of urnic-sim.
"$sim" --jobs "$jobs" "${options[@]}" --list >/dev/null || exit 2
mapfile -t all < <(
	"$sim" --list | sed -n '/^scenarios:/,/^faults:/s/^  \([a-z0-9]*\).*/\1/p'
	"$msg_sim" --list | sed -n '/^scenarios:/,/^sabotages:/s/^  \([a-z0-9]*\).*/msg:\1/p'
	"$am_sim" --list | sed -n '/^scenarios:/,/^sabotages:/s/^  \([a-z0-9]*\).*/am:\1/p'
	"$session_sim" --list | sed -n '/^scenarios:/,/^sabotages:/s/^  \([a-z0-9]*\).*/session:\1/p'
	"$stream_sim" --list | sed -n '/^scenarios:/,/^sabotages:/s/^  \([a-z0-9]*\).*/stream:\1/p'
)
if [ -n "$scenarios" ]; then
	IFS=, read -r -a all <<<"$scenarios"
	for s in "${all[@]}"; do
		case $s in
		msg:*) "$msg_sim" --scenario "${s#msg:}" --list >/dev/null || exit 2 ;;
		am:*) "$am_sim" --scenario "${s#am:}" --list >/dev/null || exit 2 ;;
		session:*) "$session_sim" --scenario "${s#session:}" --list >/dev/null || exit 2 ;;
		stream:*) "$stream_sim" --scenario "${s#stream:}" --list >/dev/null || exit 2 ;;
		*) "$sim" --scenario "$s" --list >/dev/null || exit 2 ;;
		esac
	done
fi

passed=0 failed=0 together=0 stop=0
trap 'stop=2' INT
trap 'stop=15' TERM
result=$(mktemp "${TMPDIR:-/tmp}/urnic-soak.XXXXXX") || die "cannot make a file in ${TMPDIR:-/tmp}"
trap 'rm -f "$result"' EXIT

# one SCENARIO A..B: run one scenario over these seeds.
one() {
	local line status=0 pid told="" run=("$sim" --scenario "$1" "${options[@]}")

	[[ $1 != msg:* ]] || run=("$msg_sim" --scenario "${1#msg:}")
	[[ $1 != am:* ]] || run=("$am_sim" --scenario "${1#am:}")
	[[ $1 != session:* ]] || run=("$session_sim" --scenario "${1#session:}")
	[[ $1 != stream:* ]] || run=("$stream_sim" --scenario "${1#stream:}")
	# setsid keeps Ctrl-C of the terminal from the simulation: only this script receives Ctrl-C, and passes it on once.
	setsid "${run[@]}" --seeds "$2" --jobs "$jobs" --keep-going >"$result" &
	pid=$!
	while :; do
		status=0
		wait "$pid" || status=$?
		kill -0 "$pid" 2>/dev/null || break
		[ -n "$told" ] || kill -TERM "$pid" 2>/dev/null || true # a signal has ended the waiting
		told=yes
	done
	line=$(tail -n 1 "$result")
	if ! [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
		[ -z "$told" ] || return 0 # the signal came before the simulation had begun
		die "$(basename "${run[0]}") ended with $status and no result"
	fi
	passed=$((passed + BASH_REMATCH[1]))
	failed=$((failed + BASH_REMATCH[2]))
	# No run failed, but all runs together made too many requests; urnic-sim has said so above.
	[ "$status" -ne 1 ] || [ "${BASH_REMATCH[2]}" -ne 0 ] || together=1
	say "seeds $2, $(head -n 1 "$result" | sed 's/, hash .*//')"
}

from=$first
while [ "$stop" -eq 0 ] && { [ -z "$last" ] || [ "$from" -le "$last" ]; }; do
	to=$((from + share - 1))
	[ -z "$last" ] || [ "$to" -le "$last" ] || to=$last
	for s in "${all[@]}"; do
		[ "$stop" -eq 0 ] || break
		one "$s" "$from..$to"
	done
	from=$((to + 1))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$together" -eq 0 ] || exit 1
[ "$stop" -eq 0 ] || exit $((128 + stop))
