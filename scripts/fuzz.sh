#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzz the code that reads untrusted bytes, built with clang, libFuzzer and sanitizers.
#
# Usage: scripts/fuzz.sh SECONDS [OPTION...]
#        scripts/fuzz.sh --hours [--ledger FILE] [--build DIR] [--fast]
#
# Runs each target for its share of SECONDS: first the inputs kept in test/fuzz,
# then inputs made from those. An input that reaches new code stays in corpus/TARGET
# of the build folder, for the next run. A finding stops its target: its input goes to
# findings/ of the build folder, and the command that replays the input is printed.
#
#   --target NAME  run only this target; may be given again (default: all)
#   --fast         build without sanitizers, in build-fuzz-fast: several times as many
#                  inputs, and only assertions find faults
#   --keep         copy the corpus, reduced to the fewest inputs that reach the same
#                  code, to test/fuzz/corpus of the source
#   --ledger FILE  add a line for each target's run to this file (default: hours, in the
#                  build folder): when it began, target, seconds, executions, sanitizers,
#                  "clean", "found" or "ended" by a signal, and the commit
#   --hours        run nothing; print for each target, with and without sanitizers, the sum of
#                  hours, of runs, of executions and of findings that the ledger has
#   --no-install   install nothing; print the missing packages
#   --build DIR    the build folder (default: build-fuzz, in the project's folder);
#                  an existing folder keeps its choice of sanitizers
#   --help         this text
#
# doc/inside/testing.md describes the targets, and the steps after a finding.
#
# Exit code: 0 no finding, 1 a finding or a failure, 2 wrong usage,
# 128+N ended by signal N.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

all=(parse transport engine queues socket neigh link config cm flow am am_flow stream)
targets=()
seconds=
keep=
install=yes
sanitize=address,undefined
build=
ledger=
hours=
while [ $# -gt 0 ]; do
	case $1 in
	--target) need_value "$@"; targets+=("$2"); shift ;;
	--target=*) targets+=("${1#*=}") ;;
	--fast) sanitize=none ;;
	--keep) keep=yes ;;
	--ledger) need_value "$@"; ledger=$2; shift ;;
	--ledger=*) ledger=${1#*=} ;;
	--hours) hours=yes ;;
	--no-install) install= ;;
	--build) need_value "$@"; build=$2; shift ;;
	--build=*) build=${1#*=} ;;
	--help | -h) print_help; exit 0 ;;
	-*) usage_error "unknown option '$1'" ;;
	*) [ -z "$seconds" ] || usage_error "unknown argument '$1'"; seconds=$1 ;;
	esac
	shift
done
if [ -n "$hours" ]; then
	[ -z "$seconds" ] || usage_error "--hours runs nothing, so it takes no SECONDS"
else
	[[ $seconds =~ ^[1-9][0-9]{0,6}$ ]] ||
		usage_error "SECONDS must be a number from 1 to 9999999, not '$seconds'"
fi
for t in "${targets[@]}"; do
	[[ " ${all[*]} " == *" $t "* ]] || usage_error "there is no target '$t'; there are: ${all[*]}"
done
[ -n "$build" ] || [ $sanitize != none ] || build=$project/build-fuzz-fast
[ -n "$build" ] || build=$project/build-fuzz
[ -n "$ledger" ] || ledger=$build/hours

# Sums of the ledger: a line for each target, and each choice of sanitizers.
print_hours() {
	[ -f "$ledger" ] || die "there is no ledger $ledger; runs of this script make it"
	awk 'NF != 7 || $3 !~ /^[0-9]+$/ || $4 !~ /^[0-9]+$/ { bad++; next }
		{ k = $2 " " $5; if (!(k in n)) order[++kinds] = k; n[k]++; s[k] += $3; e[k] += $4; f[k] += $6 == "found" }
		END {
			for (i = 1; i <= kinds; i++) {
				k = order[i]; split(k, w, " ")
				printf "%-10s %8.2f h  %5d runs  %14.0f executions  %d findings  sanitizers: %s\n", w[1], s[k] / 3600, n[k], e[k], f[k], w[2]
				all += s[k]; found += f[k]
			}
			printf "%-10s %8.2f h  %d findings\n", "together", all / 3600, found
			if (bad) { printf "%d lines are no runs\n", bad; exit 1 }
		}' "$ledger"
}

if [ -n "$hours" ]; then
	print_hours || exit 1
	exit 0
fi
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")
share=$((seconds / ${#targets[@]}))
[ "$share" -gt 0 ] || usage_error "$seconds s are too short for ${#targets[@]} targets"

if [ -n "$install" ]; then
	"$project/scripts/setup.sh" --fuzz
else
	"$project/scripts/setup.sh" --fuzz --check
fi
export CC=${URNIC_FUZZ_CC-clang}
configure "$build" --buildtype=debugoptimized "-Db_sanitize=$sanitize" -Db_lundef=false -Dfuzz=true
set_option "$build" fuzz true
compile "$build" "${targets[@]/#/test/fuzz/fuzz_}" || die "the build failed; what the compiler said is above"
[ "$ledger" != "$build/hours" ] || ledger=$(cd "$build" && pwd -P)/hours
build=$(cd "$build" && pwd -P)
: >>"$ledger" || die "cannot write the ledger $ledger"
sanitize=$(get_option "$build" b_sanitize)
commit=$(git -C "$project" rev-parse --short HEAD 2>/dev/null) || commit=-

export ASAN_OPTIONS=${ASAN_OPTIONS-abort_on_error=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS-halt_on_error=1:print_stacktrace=1}
mkdir -p "$build/seeds" "$build/findings"
python3 "$project/test/fuzz/seeds.py" "$project/test/data/rxe_golden.pcap" "$build/seeds" >/dev/null

# Print how many inputs the target's latest run executed.
executions() {
	sed -n 's/^stat::number_of_executed_units: *//p' "$build/fuzz-$1.log"
}

# note TARGET RESULT: add the run of a target, which began at $began, to the ledger.
note() {
	local runs

	runs=$(executions "$1")
	TZ=UTC printf '%(%Y-%m-%dT%H:%M:%SZ)T %s %d %d %s %s %s\n' "$began" "$1" $((EPOCHSECONDS - began)) "${runs:-0}" \
		"$sanitize" "$2" "$commit" >>"$ledger"
}

child=
began=
last=
# A second signal does not keep the line of the first one from the ledger.
ended() {
	trap '' HUP INT TERM
	if [ "$child" = begins ]; then # the signal came before the target's number was kept
		child=${!-}
		[ "$child" != "$last" ] || child=
	fi
	[ -z "$child" ] || { kill "$child" 2>/dev/null; wait "$child" 2>/dev/null; } || true
	[ -z "$child" ] || note "$t" ended
	exit $((128 + $1))
}
trap 'ended 1' HUP
trap 'ended 2' INT
trap 'ended 15' TERM

# Folders that hold inputs of a target: the corpus that grows, then the inputs that were kept.
folders() {
	local dir

	mkdir -p "$build/corpus/$1"
	echo "$build/corpus/$1"
	for dir in "$project/test/fuzz/corpus/$1" "$project/test/fuzz/found/$1" "$build/seeds/$1"; do
		[ ! -d "$dir" ] || echo "$dir"
	done
}

# Run one target for its share of the time. The output of libFuzzer goes to a file.
run() {
	local t=$1 log=$build/fuzz-$1.log artifact runs cover status=0 dirs

	mapfile -t dirs < <(folders "$t")
	: >"$log"
	began=$EPOCHSECONDS
	last=${!-} child=begins
	# -entropic is off: inputs reach so much code that weighing them by its rarity took 9 of 10 ms.
	"$build/test/fuzz/fuzz_$t" -max_total_time="$share" -timeout=30 -rss_limit_mb=4096 -max_len=4096 \
		-len_control=0 -entropic=0 -print_final_stats=1 -artifact_prefix="$build/findings/$t-" "${dirs[@]}" \
		>"$log" 2>&1 </dev/null &
	child=$!
	wait $child || status=$?
	child=
	note "$t" "$([ $status -eq 0 ] && echo clean || echo found)"
	runs=$(executions "$t")
	cover=$(grep -o 'cov: [0-9]* ft: [0-9]* corp: [0-9]*' "$log" | tail -n 1)
	# shellcheck disable=SC2086
	set -- ${cover:-cov: 0 ft: 0 corp: 0}
	say "$t: ${runs:-0} executions, $2 edges and $4 features covered, $6 inputs kept"
	[ $status -ne 0 ] || return 0
	artifact=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
	grep -m 3 -E '^(\.\./|==[0-9]+==)?.*(ERROR|runtime error|does not hold|:[0-9]+: )' "$log" >&2 || tail -n 5 "$log" >&2
	say "$t: FOUND a fault; the whole output is in $log" >&2
	[ -z "$artifact" ] || say "replay it with: $build/test/fuzz/fuzz_$t $artifact" >&2
	return 1
}

# Keep the fewest inputs that reach the same code, small ones first.
keep() {
	local dir=$project/test/fuzz/corpus/$1 fresh dirs

	mapfile -t dirs < <(folders "$1")
	fresh=$(mktemp -d "$build/keep.XXXXXX")
	# Counts of edges are off: with them ten times as many inputs would be kept.
	"$build/test/fuzz/fuzz_$1" -merge=1 -use_counters=0 -max_len=4096 "$fresh" "${dirs[@]}" >"$build/merge-$1.log" 2>&1 ||
		die "libFuzzer could not merge the corpus of $1; see $build/merge-$1.log"
	rm -rf "$dir"
	mv "$fresh" "$dir"
	chmod 755 "$dir"
	say "$1: $(find "$dir" -type f | wc -l) inputs in $dir"
}

failed=
for t in "${targets[@]}"; do
	run "$t" || failed=yes
done
[ -n "$failed" ] || [ -z "$keep" ] || for t in "${targets[@]}"; do
	keep "$t"
done
[ -z "$failed" ]
