#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/fuzz.sh: its options, how it shares the time, its messages about a finding, and its ledger of hours.
# Compiler and fuzzers are fakes; .ci/run runs the real ones.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"

check_help fuzz.sh
fuzz=$project/scripts/fuzz.sh
for bad in "" "0" "x" "10 --fly" "10 20" "10 --target none" "2" "10 --target" "10 --hours" "10 --ledger"; do
	# shellcheck disable=SC2086
	try "$fuzz" $bad
	expect "wrong usage: '$bad'" 2 "fuzz.sh: "
done

# The build folder is there already, and its fuzzers print what libFuzzer prints.
build=$place/build
mkdir -p "$build/test/fuzz"
touch "$build/build.ninja"
fake meson <<E2
echo "\$*" >>"$place/meson"
echo '[{"name": "fuzz", "value": true}, {"name": "b_sanitize", "value": "address,undefined"}]'
E2
fake ninja </dev/null
for t in parse transport engine queues socket neigh link config cm flow am am_flow stream; do
	cat >"$build/test/fuzz/fuzz_$t" <<E2
#!/bin/bash
echo "\$*" >>"$place/log"
if [ -e "$place/long-$t" ]; then
	trap 'echo "stat::number_of_executed_units: 99"; exit 72' TERM
	touch "$place/runs-$t"
	while :; do read -r -t 1 <>"$place/never"; done
fi
echo '#9	NEW    cov: 11 ft: 12 corp: 13/99b lim: 4'
if [ -e "$place/bad-$t" ]; then
	echo 'node_check.c:1: one == two does not hold'
	echo "artifact_prefix='x'; Test unit written to $build/findings/$t-crash-1"
	exit 77
fi
echo 'stat::number_of_executed_units: 4321'
E2
	chmod 755 "$build/test/fuzz/fuzz_$t"
done
run() {
	: >"$place/log"
	try faked "$fuzz" --no-install --build "$build" "$@"
}

run 65
# Without clang's libraries the script names what is missing, and nothing else can be tested.
if [[ $out == *"these are missing"* ]]; then
	expect "without clang" 1 "scripts/setup.sh --fuzz"
	exit $failed
fi
expect "nothing found" 0 "parse: 4321 executions, 11 edges and 12 features covered, 13 inputs" "neigh: 4321"
check "each has its share" test "$(grep -c -- "-max_total_time=5 " "$place/log")" -eq 13
check "what was kept is run" grep -q "test/fuzz/corpus/parse" "$place/log"
check "seeds are made" test -n "$(ls -A "$build/seeds/transport")"
run 30 --target neigh
expect "one target" 0 "neigh: 4321"
check "it has all the time" grep -q -- "-max_total_time=30 " "$place/log"
check "no other is run" test "$(wc -l <"$place/log")" -eq 1
check "it is not weighed how rare is what inputs reach" grep -q -- "-entropic=0" "$place/log"
for how in "" --fast; do
	mkdir -p "$place/new$how/test"
	cp -r "$build/test/fuzz" "$place/new$how/test"
	: >"$place/meson"
	# shellcheck disable=SC2086
	try faked "$fuzz" 30 --no-install --build "$place/new$how" --target parse $how
	expect "a new build folder, option '$how'" 0 "parse: 4321 executions"
	check "sanitizers, option '$how'" \
		grep -q -- "-Db_sanitize=$([ -z "$how" ] && echo address,undefined || echo none)" "$place/meson"
done

# The ledger: a line for each run, and sums of its lines.
run 30 --target neigh --ledger "$place/ledger"
check "a run is in the ledger" grep -qE '^20..-..-..T..:..:..Z neigh [0-9]+ 4321 address,undefined clean [^ ]+$' "$place/ledger"
check "... and nothing else is" test "$(wc -l <"$place/ledger")" -eq 1
check "the build folder's ledger has runs without the option" test "$(grep -c " clean " "$build/hours")" -eq 14
cat >>"$place/ledger" <<E2
2026-01-01T00:00:00Z cm 5400 1000 address,undefined clean abc
2026-01-02T00:00:00Z cm 1800 10 address,undefined found abc
2026-01-02T01:00:00Z cm 3600 5 none clean abc
E2
try "$fuzz" --hours --ledger "$place/ledger"
expect "hours" 0
for line in "cm 2.00 h 2 runs 1010 executions 1 findings sanitizers: address,undefined" "cm 1.00 h 1 runs 5 executions 0 findings sanitizers: none" \
	"neigh 0.00 h 1 runs 4321 executions" "together 3.00 h 1 findings"; do
	[[ $(tr -s ' ' <<<"$out") == *"$line"* ]] || { printf "FAILED: '%s' is not in:\n%s\n" "$line" "$out"; failed=1; }
done
echo "no run" >>"$place/ledger"
try "$fuzz" --hours --ledger "$place/ledger"
expect "a line that is no run" 1 "1 lines are no runs"
try "$fuzz" --hours --build "$place/none"
expect "no ledger" 1 "there is no ledger $place/none/hours"

# A signal ends a target: the time until then counts.
mkfifo "$place/never"
touch "$place/long-cm"
rm -f "$place/ledger"
(exec env "PATH=$place/bin:$PATH" "$fuzz" --no-install --build "$build" 600 --target cm --ledger "$place/ledger" >/dev/null 2>&1 </dev/null) &
script=$!
until [ -e "$place/runs-cm" ] || ! kill -0 $script 2>/dev/null; do sleep 0.1; done
kill -TERM $script
code=0
wait $script || code=$?
expect "a signal" 143
check "the run that it ended is in the ledger" grep -qE ' cm [0-9]+ 99 address,undefined ended ' "$place/ledger"

rm "$place/long-cm"
touch "$place/bad-transport"
run 30
expect "a finding" 1 "transport: FOUND" "does not hold" "neigh: 4321" \
	"replay it with: $build/test/fuzz/fuzz_transport $build/findings/transport-crash-1"
check "the finding is in the ledger" grep -qE ' transport [0-9]+ 0 address,undefined found ' "$build/hours"
clean "fuzz.sh"
exit $failed
