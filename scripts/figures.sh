#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measure the figures that urnic is held to, and print them beside their marks.
#
# Usage: scripts/figures.sh [OPTION...]
#
# Two nodes in one process on two cores, net_ring, MTU 4096, ICRC on. Rates are
# compared with what the same run moves with no protocol at all (urnic-perf
# limit). What is printed are medians over the rounds; the spread is beside
# them. Leave the machine alone meanwhile: other work shows in every figure.
#
#   --rounds N     how often each is measured, in turn (default 7)
#   --seconds T    how long each is measured (default 1)
#   --no-install   install nothing; say what is missing
#   --build DIR    the build folder (default: build, in the project's folder)
#   --help         this text
#
# doc/performance.md says what was measured where, and why it is as it is.
#
# Exit code: 0 measured, 1 something failed, 2 wrong usage.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

build=$project/build
rounds=7
seconds=1
install=yes
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) need_value "$@"; rounds=$2; shift ;;
	--rounds=*) rounds=${1#*=} ;;
	--seconds) need_value "$@"; seconds=$2; shift ;;
	--seconds=*) seconds=${1#*=} ;;
	--no-install) install= ;;
	--build) need_value "$@"; build=$2; shift ;;
	--build=*) build=${1#*=} ;;
	--help | -h) print_help; exit 0 ;;
	*) usage_error "unknown argument '$1'" ;;
	esac
	shift
done
[[ $rounds =~ ^[1-9][0-9]{0,2}$ ]] || usage_error "--rounds wants a number from 1 to 999, not '$rounds'"
[[ $seconds =~ ^[0-9]{1,3}(\.[0-9]{1,3})?$ ]] || usage_error "--seconds wants a number, not '$seconds'"

if [ -n "$install" ]; then
	"$project/scripts/setup.sh"
else
	"$project/scripts/setup.sh" --check
fi
configure "$build" --buildtype=release -Dtests=false
compile "$build" apps/urnic-perf/urnic-perf || die "the build failed; what the compiler said is above"

python3 - "$build/apps/urnic-perf/urnic-perf" "$rounds" "$seconds" <<-'END'
	import json, signal, statistics, subprocess, sys

	program, rounds, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3]
	RUNS = {
	    "write": ["write_bw", "--size", "65536", "--with-limit"],
	    "send": ["send_bw", "--size", "64", "--qps", "16", "--with-limit"],
	    "many": ["send_bw", "--size", "64", "--qps", "10000"],
	    "lat": ["send_lat", "--size", "8"],
	    "bare": ["limit", "--lat", "--size", "8"],
	}
	signal.signal(signal.SIGINT, signal.SIG_DFL)
	got = {name: [] for name in RUNS}
	for i in range(rounds):
	    for name, args in RUNS.items():
	        print(f"\rround {i + 1} of {rounds}: {name:6}", end="", file=sys.stderr, flush=True)
	        run = subprocess.run([program, *args, "--duration", seconds, "--json"],
	                             capture_output=True, text=True)
	        if run.returncode != 0:
	            sys.exit(f"\n{' '.join(args)} ended with {run.returncode}: {run.stderr.strip()}")
	        got[name].append(json.loads(run.stdout))
	print("\r" + " " * 40 + "\r", end="", file=sys.stderr)


	def row(what, values, form, must, aim):
	    mid, low, high = statistics.median(values), min(values), max(values)
	    spread = f"{form(low)}..{form(high)}"
	    print(f"{what:46} {form(mid):>9}  {spread:>18}  {must:>7}  {aim:>7}")


	def percent(v):
	    return f"{100 * v:.0f} %"


	def micro(v):
	    return f"{v:.3f} us"


	print(f"{'':46} {'median':>9}  {'spread':>18}  {'must':>7}  {'aim':>7}")
	row("64 KiB WRITE, of limit", [d["ratio"] for d in got["write"]], percent, "70 %", "95 %")
	row("64 B SEND, 16 QPs, of limit", [d["ratio"] for d in got["send"]], percent, "35 %", "60 %")
	row("8 B SEND ping-pong, half round trip p50", [d["lat_us"]["p50"] for d in got["lat"]], micro,
	    "0.8 us", "0.6 us")
	row("  the same with no protocol (limit --lat)", [d["lat_us"]["p50"] for d in got["bare"]],
	    micro, "", "")
	row("64 B SEND, 10,000 QPs, of 16 QPs", [m["msg_rate"] / s["msg_rate"]
	    for m, s in zip(got["many"], got["send"])], percent, "60 %", "85 %")
	row("memory of an idle QP, 16 READs on record", [got["send"][0]["qp_bytes"]],
	    lambda v: f"{v} B", "1024 B", "512 B")
	print()
	for name, what in (("write", "Gb/s, 64 KiB WRITE"), ("send", "M/s, 64 B SEND, 16 QPs"),
	                   ("many", "M/s, 64 B SEND, 10,000 QPs")):
	    key, scale = ("gbps", 1) if name == "write" else ("msg_rate", 1e6)
	    print(f"{statistics.median(d[key] for d in got[name]) / scale:8.2f} {what}")
END
