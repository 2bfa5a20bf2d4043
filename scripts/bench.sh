#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measure urnic and other stacks in turn on this machine.
#
# Usage: scripts/bench.sh [OPTION...]
#
# The programs beside urnic-perf are ucx_perftest and fi_pingpong, over shared memory
# and over TCP, iperf3 and sockperf over loopback, dpdk-testpmd on the same kind of
# port, the same bytes through the same port with no protocol, and memcpy. All
# take turns, round after round, because a machine's speed changes with time.
# Leave the machine idle meanwhile: other work changes every figure. A reference loop
# between rounds, and the processor time of others during each, tell if the machine is
# quiet: a round that drifts is measured again (one in two at most) or marked, and
# without a quiet machine there are no verdicts. The section urnicd measures
# programs attached to a dataplane process, and once kills 1,000 of them
# (50 with --quick); dropin measures unmodified programs under urnic-run; session kills
# 200 adapters of sessions.
#
# The output is text, and a folder with index.html (plots, needs nothing else),
# summary.txt, summary.csv (medians) and raw.csv (every round). A program that is
# missing is named and left out.
#
#   --quick          fewer sizes, shorter, 3 rounds: some minutes
#   --rounds N       number of rounds (default 5)
#   --seconds T      seconds of each measurement (default 0.5); some programs
#                    count whole seconds
#   --only S[,S...]  measure only these sections: size, qps, latency, loss, stages, speed, urnicd,
#                    congestion, msg, am, dropin, session
#   --kills N        adapters that section session kills (default 200, 10 with --quick); of other
#                    losses it has as many, at most 20 of a kind (3 with --quick)
#   --out DIR        folder for the output (default: bench, in the build folder)
#   --json           print JSON instead of text
#   --no-install     install nothing; measure with the programs that are there
#   --build DIR      the build folder (default: build, in the project's folder);
#                    a second folder, DIR-stages, has the build that counts cycles by
#                    stage, and a third, DIR-tests, the simulations of congestion and
#                    of sessions
#   --help           this text
#
# doc/inside/performance.md explains each plot and has measured figures.
#
# Exit code: 0 measured, 1 something failed, 2 wrong usage, 128 + N ended by
# signal N (figures measured until then are written).

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

build=$project/build
rounds=
seconds=
only=
kills=
out=
install=yes
flags=()
while [ $# -gt 0 ]; do
	case $1 in
	--quick | --json) flags+=("$1") ;;
	--rounds) need_value "$@"; rounds=$2; shift ;;
	--rounds=*) rounds=${1#*=} ;;
	--seconds) need_value "$@"; seconds=$2; shift ;;
	--seconds=*) seconds=${1#*=} ;;
	--only) need_value "$@"; only=$2; shift ;;
	--only=*) only=${1#*=} ;;
	--kills) need_value "$@"; kills=$2; shift ;;
	--kills=*) kills=${1#*=} ;;
	--out) need_value "$@"; out=$2; shift ;;
	--out=*) out=${1#*=} ;;
	--no-install) install= ;;
	--build) need_value "$@"; build=$2; shift ;;
	--build=*) build=${1#*=} ;;
	--help | -h) print_help; exit 0 ;;
	*) usage_error "unknown argument '$1'" ;;
	esac
	shift
done
if [[ " ${flags[*]} " == *" --quick "* ]]; then
	rounds=${rounds:-3} seconds=${seconds:-0.2}
fi
rounds=${rounds:-5} seconds=${seconds:-0.5}
out=${out:-$build/bench}
[[ $rounds =~ ^[1-9][0-9]{0,2}$ ]] || usage_error "--rounds wants a number from 1 to 999, not '$rounds'"
[[ $seconds =~ ^[0-9]{1,3}(\.[0-9]{1,3})?$ && $seconds =~ [1-9] ]] ||
	usage_error "--seconds wants a time of at least 0.001, not '$seconds'"
[[ $only =~ ^((size|qps|latency|loss|stages|speed|urnicd|congestion|msg|am|dropin|session)(,|$))*$ ]] ||
	usage_error "--only '$only': give some of size, qps, latency, loss, stages, speed, urnicd, congestion, msg, am, dropin, session"
[[ $kills =~ ^([1-9][0-9]{0,3})?$ ]] || usage_error "--kills wants a number from 1 to 9999, not '$kills'"
[ -z "$kills" ] || flags+=(--kills "$kills")
can_write "$out" || die "user $(id -un) cannot write to $out; give another folder with --out DIR"

# Messages go to stderr, because stdout has the figures.
{
	if [ -n "$install" ]; then
		"$project/scripts/setup.sh" --bench
	else
		"$project/scripts/setup.sh" --check
	fi
	perf=apps/urnic-perf/urnic-perf
	configure "$build" --buildtype=release -Dtests=false
	targets=("$perf")
	for one in urnic-switch urnicd urnicctl; do
		[ ! -d "$project/apps/$one" ] || targets+=("apps/$one/$one")
	done
	if [ -z "$only" ] || [[ ",$only," == *,dropin,* ]]; then
		targets+=(apps/urnic-run/urnic-run lib/share/liburnic-share.so
			lib/dropin/{libibverbs.so.1,librdmacm.so.1,liburnic-paths.so})
	fi
	compile "$build" "${targets[@]}" || die "the build failed; what the compiler said is above"
	if [ -z "$only" ] || [[ ",$only," == *,stages,* ]]; then
		configure "$build-stages" --buildtype=release -Dtests=false -Dstages=true
		compile "$build-stages" $perf || die "the build failed; what the compiler said is above"
		flags+=(--stages-build "$build-stages")
	fi
	if [ -z "$only" ] || [[ ",$only," == *,congestion,* ]]; then
		configure "$build-tests" --buildtype=release
		compile "$build-tests" test/sim/urnic-incast || die "the build failed; what the compiler said is above"
		flags+=(--incast "$build-tests/test/sim/urnic-incast")
	fi
	if [ -z "$only" ] || [[ ",$only," == *,session,* ]]; then
		# A build folder with tests has the simulation, too.
		sim=test/sim/session/urnic-session-sim at=$build
		ninja -C "$at" -t query $sim >/dev/null 2>&1 || {
			at=$build-tests
			configure "$at" --buildtype=release
		}
		compile "$at" $sim || die "the build failed; what the compiler said is above"
		flags+=(--session-sim "$at/$sim")
	fi
} >&2

PYTHONDONTWRITEBYTECODE=1 exec python3 "$project/scripts/bench/main.py" "${flags[@]}" \
	"$project" "$build" "$perf" "$out" "$rounds" "$seconds" "$only"
