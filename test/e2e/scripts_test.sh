#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/test.sh: its options, and what its last line says. meson and ninja are
# fakes: no test is run by this test.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"

check_help test.sh

fake ninja <<<'[ ! -e broken-build ] || { echo "error: it does not compile"; exit 1; }'
fake meson <<'E2'
echo "meson $*" >>log
echo "all ${URNIC_TEST_ALL-}" >>log
case $1 in
setup) mkdir -p "$2" && touch "$2/build.ninja" && echo false >"$2/tests" && echo false >"$2/werror" ;;
introspect) printf '[{"name": "tests", "value": %s}, {"name": "werror", "value": %s}]\n' \
	"$(cat "$3/tests")" "$(cat "$3/werror")" ;;
configure) option=${3#-D}; echo "${option#*=}" >"$2/${option%%=*}" ;;
test) [ -e silent ] && exit 0
	mkdir -p "$3/meson-logs"
	[[ $* =~ --logbase\ ([a-z-]+) ]] && log=${BASH_REMATCH[1]}
	[[ $* =~ --wrapper\ ([a-z]+) ]] && log+=-${BASH_REMATCH[1]}
	cp results "$3/meson-logs/$log.json"
	exit "$(cat status)" ;;
esac
E2
# results STATUS RESULT...: make the fake meson report these results
results() {
	local i=0 r

	echo "$1" >status
	shift
	for r; do
		i=$((i + 1))
		printf '{"name": "unit / t%s", "result": "%s", "duration": 1.5}\n' $i "$r"
	done >results
}
script=$project/scripts/test.sh
run() {
	: >log
	try faked "$script" --no-install --build b "$@"
	last=${out##*$'\n'}
}

results 0 OK OK OK
run
expect "all pass" 0
check "last line of all pass: $last" test "$last" = "3 passed, 0 failed"
check "it was a release" grep -q "meson setup b .*--buildtype=release" log
check "tests are built" grep -qx true b/tests
check "slow tests are run" test -z "$(grep "no-suite" log)"
check "warnings are no errors" grep -qx false b/werror
results 1 OK FAIL TIMEOUT ERROR SKIP UNEXPECTEDPASS EXPECTEDFAIL
run
expect "some fail" 1 "fail: unit / t2" "timeout: unit / t3" "skipped: unit / t5"
check "last line of some fail: $last" test "$last" = "2 passed, 4 failed, 1 skipped"
results 0 OK SKIP
run --fast t1 t2
expect "some are skipped" 0
check "last line of skipped: $last" test "$last" = "1 passed, 0 failed, 1 skipped"
check "--fast leaves slow ones out" grep -q "meson test .*--no-suite slow t1 t2" log
results 0 OK
run --without sim,e2e --fast
check "--without leaves suites out" grep -q "meson test .*--no-suite sim --no-suite e2e --no-suite slow" log
run --without 'sim;'
expect "--without of no suite" 2 "names of suites" "--help"
run --only sim,e2e --without once --patience 30
expect "--only" 0
check "--only runs these suites alone, without others" grep -q "meson test .*--no-suite once --suite sim --suite e2e$" log
check "--only has logs of its own" grep -q "meson test .*--logbase testlog-only " log
check "--patience is the tests'" grep -q "meson test .*--timeout-multiplier 30 " log
check "without --idle tests run as they are" sh -c '! grep -q -e --wrapper log'
run --only sim --idle
expect "--idle" 0
check "--idle is the tests'" grep -q "meson test .*--wrapper sh -c .*/proc/self/autogroup" log
rm b/meson-logs/testlog-only.json
run
check "without --only the logs are the usual ones" test -e b/meson-logs/testlog.json -a ! -e b/meson-logs/testlog-only.json
run --only 'sim;'
expect "--only of no suite" 2 "names of suites"
run --patience 0
expect "--patience 0" 2 "--patience"
run --all --only sim
expect "--all with --only" 2 "leaves nothing out"
run --all --fast
expect "--all with --fast" 2 "leaves nothing out"
# --all calls scripts of its own folder, which here is a copy with fakes.
mkdir -p copy/scripts
cp "$project"/scripts/{test,common}.sh copy/scripts
for fake in fuzz lint setup; do
	printf '#!/bin/bash\necho "%s.sh $*" >>log\n[ ! -e bad-%s ]\n' $fake $fake >copy/scripts/$fake.sh
	chmod 755 copy/scripts/$fake.sh
done
fake clang </dev/null
script=$place/copy/scripts/test.sh
everything="--no-rebuild --print-errorlogs --num-processes [0-9]* --timeout-multiplier 2 --logbase testlog$"
run --all
expect "--all" 0
check "--all leaves nothing out" grep -q "^meson test -C b $everything" log
check "tests are told of --all" grep -qx "all 1" log
check "--all fuzzes" grep -qx "fuzz.sh 900 --build b-fuzz --no-install" log
check "--all lints, and cuts no path short" grep -qx "lint.sh --build b" log
check "--all runs all tests by clang" grep -q "^meson test -C b-clang $everything" log
check "--all runs all tests with sanitizers" grep -q "^meson test -C b-asan ${everything/multiplier 2/multiplier 4}" log
check "--all builds with sanitizers" grep -q "^meson setup b-asan .*b_sanitize=address,undefined" log
check "last line of --all: $last" test "$last" = "5 passed, 0 failed"
touch bad-fuzz
run --all
expect "--all with a finding" 1
check "last line of --all with a finding: $last" test "$last" = "4 passed, 1 failed"
rm bad-fuzz
touch bad-lint
run --all
expect "--all with a finding of the linters" 1
rm bad-lint
touch bad-setup
run --all
expect "--all without packages" 1
rm bad-setup
for more in "t1" "--clang" "--sanitize"; do
	run --all $more
	check "--all $more does not fuzz" test -z "$(grep "fuzz.sh" log)"
	check "--all $more runs tests once" test "$(grep -c "^meson test" log)" -eq 1
done
rm -r b b-clang b-asan
script=$project/scripts/test.sh
run --build-only
expect "--build-only" 0 "building in"
check "--build-only runs no test" test -z "$(grep "^meson test" log)"
run --build-only t1
expect "--build-only with a test" 2 "runs no test"
results 3 OK
run
expect "the runner fails" 1
check "last line of a failed runner: $last" test "$last" = "1 passed, 1 failed"
results 0 SKIP
run
expect "nothing was run" 1
touch silent
run
expect "no result" 1
check "last line of no result: $last" test "$last" = "0 passed, 1 failed"
rm silent
touch broken-build
run
expect "a build that fails" 1 "it does not compile"
check "last line of a failed build: $last" test "$last" = "0 passed, 1 failed"
rm broken-build

results 0 OK
rm -r b
CI=true run --sanitize
expect "--sanitize" 0
check "sanitizers are on" grep -q "b_sanitize=address,undefined" log
built=$(<log)
check "what tells the same in every build is left out" grep -q "meson test .*--no-suite once" log
CI=true run --sanitize --all
check "but not with --all" test -z "$(grep "no-suite" log)"
check "in CI the compiler writes lines alone for a debugger there" grep -q "c_args=-g1" <<<"$built"
check "and its warnings are no errors" grep -qx false b/werror
CI=true run
check "in CI warnings are errors" grep -qx true b/werror
fake pkg-config <<<'exit 1'
run
expect "--no-install with something missing" 1 "libcmocka-dev" "scripts/setup.sh --test"
rm "$place/bin/pkg-config"
clean "everything"
exit $failed
