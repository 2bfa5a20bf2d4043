#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Build urnic and run its tests.
#
# Usage: scripts/test.sh [OPTION...] [TEST...]
#
# Installs missing packages (scripts/setup.sh --test; as root --interop, unless
# --fast), builds, and runs every test, or the named ones. The last line says how
# many tests passed and failed.
#
#   --fast         leave out the slow tests (suite "slow")
#   --without S    leave out suite S, or several with commas between
#   --only S       run suite S only, or several with commas between. The run has logs of
#                  its own, meson-logs/testlog-only.*, so that it may run beside another
#   --patience N   multiply the timeouts of tests by N (default 2, with --sanitize 4)
#   --idle         leave the processors to other programs: each test is a session of its own, and
#                  a kernel that shares processors between sessions gives these a tenth of the others'
#   --sanitize     build with address and undefined-behaviour sanitizers; leaves out
#                  tests whose result is the same in every build (suite "once"),
#                  unless tests are named
#   --all          run every test in full: every frame for every judge, every case
#                  in every build. Without --sanitize, --clang and named tests the
#                  linters follow (scripts/lint.sh), the fuzzers for a quarter of
#                  an hour (scripts/fuzz.sh), then the tests with sanitizers, then
#                  the tests built by clang
#   --build-only   build, and run no test
#   --clang        build with clang instead of the default compiler
#   --no-install   install nothing; print the missing packages
#   --build DIR    the build folder (default: build, build-clang, build-asan or
#                  build-clang-asan in the project's folder); --all has DIR-fuzz,
#                  DIR-asan and DIR-clang, too
#   --help         this text
#
# With CI set in the environment, warnings are errors, but not under sanitizers. Some tests need root and
# are skipped, or check less, without it. Logs are in meson-logs/ of the build
# folder; doc/inside/testing.md says how to run one test alone.
#
# Exit code: 0 all passed, 1 some failed or the build did, 2 wrong usage.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

build=
compiler=
sanitize=
install=yes
all=
build_only=
slow=yes
without=
only=
patience=
wrapper=()
tests=()
fuzz_seconds=900 # for all targets together, with --all
while [ $# -gt 0 ]; do
	case $1 in
	--fast) slow='' without+=,slow ;;
	--without) need_value "$@"; without+=,$2; shift ;;
	--without=*) without+=,${1#*=} ;;
	--only) need_value "$@"; only=$2; shift ;;
	--only=*) only=${1#*=} ;;
	--patience) need_value "$@"; patience=$2; shift ;;
	--patience=*) patience=${1#*=} ;;
	--idle) wrapper=(--wrapper "sh -c 'echo 10 2>/dev/null >/proc/self/autogroup; exec \"\$0\" \"\$@\"'") ;;
	--all) all=yes ;;
	--build-only) build_only=yes ;;
	--sanitize) sanitize=yes ;;
	--clang) compiler=clang ;;
	--no-install) install= ;;
	--build) need_value "$@"; build=$2; shift ;;
	--build=*) build=${1#*=} ;;
	--help | -h) print_help; exit 0 ;;
	-*) usage_error "unknown option '$1'" ;;
	*) tests+=("$1") ;;
	esac
	shift
done

[ -z "$all" ] || [ -z "$without$only" ] || usage_error "--all leaves nothing out; --fast, --without and --only do"
[ -z "$build_only" ] || [ ${#tests[@]} -eq 0 ] || usage_error "--build-only runs no test; give no '${tests[0]}'"
[[ $without =~ ^(,[a-z0-9]+)*$ ]] || usage_error "--without wants names of suites with commas between, not '${without#,}'"
[[ $only =~ ^([a-z0-9]+(,[a-z0-9]+)*)?$ ]] || usage_error "--only wants names of suites with commas between, not '$only'"
[[ $patience =~ ^([1-9][0-9]{0,3})?$ ]] || usage_error "--patience wants a number from 1 on, not '$patience'"
[ -z "$sanitize" ] || [ -n "$all" ] || [ ${#tests[@]} -gt 0 ] || without+=,once
select=()
for suite in ${without//,/ }; do
	select+=(--no-suite "$suite")
done
for suite in ${only//,/ }; do
	select+=(--suite "$suite")
done
[ -z "$all" ] || export URNIC_TEST_ALL=1

# finish PASSED FAILED SKIPPED: print the last line of a run that got as far as building, and end it.
finish() {
	printf '%s passed, %s failed' "$1" "$2"
	[ "$3" -eq 0 ] || printf ', %s skipped' "$3"
	echo
	[ "$2" -eq 0 ] && [ "$1" -gt 0 ] || exit 1
	exit 0
}

# Sum up meson's log of the run, a JSON object a line: print a line for each test that
# did not pass, then three numbers: passed, failed, skipped.
summarise() {
	python3 - "$1" <<-'END'
	import json, sys
	good, bad, skipped = 0, 0, 0
	for line in open(sys.argv[1], encoding="utf-8"):
	    test = json.loads(line)
	    if test["result"] in ("OK", "EXPECTEDFAIL"):
	        good += 1
	    elif test["result"] == "SKIP":
	        skipped += 1
	        print(f"skipped: {test['name']}", file=sys.stderr)
	    else:
	        bad += 1
	        print(f"{test['result'].lower()}: {test['name']}, {test['duration']:.1f} s",
	              file=sys.stderr)
	print(good, bad, skipped)
	END
}

no_install=()
[ -n "$install" ] || no_install=(--no-install)

# Run all tests in another build: again FOLDER OPTION. The results are added to passed, failed and skipped.
again() {
	local last

	last=$("$project/scripts/test.sh" --all "$2" --build "$1" "${no_install[@]}" | tee /dev/stderr | tail -n 1)
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
	else
		failed=$((failed + 1))
	fi
}

# Run a script of the project that counts as one test: one_test SCRIPT [OPTION...]
one_test() {
	if "$project/scripts/$1" "${@:2}"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
}

# The end of --all: run the linters and the fuzzers, then all tests in the other builds.
lint_fuzz_and_other_builds() {
	say "linters"
	one_test lint.sh --build "$build"
	say "fuzzers, $fuzz_seconds s"
	one_test fuzz.sh $fuzz_seconds --build "$build-fuzz" "${no_install[@]}"
	say "the tests with sanitizers"
	again "$build-asan" --sanitize
	say "the tests built by clang"
	again "$build-clang" --clang
}

# Only root can boot a guest, so only root needs the packages for guests.
packages=--test
[ "$(id -u)" -ne 0 ] || [ -z "$slow" ] || packages=--interop
if [ -n "$install" ]; then
	"$project/scripts/setup.sh" $packages
else
	"$project/scripts/setup.sh" --test --check
fi
if [ -n "$compiler" ] && ! command -v "$compiler" >/dev/null; then
	die "there is no $compiler; install it with: scripts/setup.sh --dev"
fi

options=(--buildtype=release)
if [ -n "$sanitize" ]; then
	options=(--buildtype=debugoptimized "-Db_sanitize=address,undefined" -Db_lundef=false)
	# The tests take as long with -O1 as with -O2, and the compiler takes a third less. CI only needs line numbers,
	# for reports of the sanitizers; variables for a debugger cost time to compile.
	options+=(-Doptimization=1)
	[ -z "${CI-}" ] || options+=(-Dc_args=-g1 -Dwerror=false)
	export ASAN_OPTIONS=${ASAN_OPTIONS-halt_on_error=1:abort_on_error=1}
	export UBSAN_OPTIONS=${UBSAN_OPTIONS-halt_on_error=1:abort_on_error=1:print_stacktrace=1}
fi
: "${build:=$project/build${compiler:+-$compiler}${sanitize:+-asan}}"
if [ -n "$compiler" ]; then
	export CC=$compiler
fi
configure "$build" "${options[@]}"
set_option "$build" tests true
# Warnings depend on the optimisations, so only those of a release build are errors.
set_option "$build" werror "$([ -n "${CI-}" ] && [ -z "$sanitize" ] && echo true || echo false)"
if ! compile "$build"; then
	say "the build failed; what the compiler said is above"
	finish 0 1 0
fi

[ -z "$build_only" ] || exit 0

# Timeouts are multiplied, because instrumented code is slow and other work may share the machine.
[ -n "$patience" ] || patience=$([ -n "$sanitize" ] && echo 4 || echo 2)
logs=testlog${only:+-only}
log=$build/meson-logs/$logs${wrapper:+-sh}.json # meson puts the wrapper's name behind
rm -f "$log"
status=0
# One test more than processors at a time, because many wait more than they compute.
meson test -C "$build" --no-rebuild --print-errorlogs --num-processes "$(($(nproc) + 1))" --timeout-multiplier "$patience" --logbase "$logs" \
	"${wrapper[@]}" "${select[@]}" "${tests[@]}" </dev/null || status=$?
[ -s "$log" ] || { say "meson ran no test"; finish 0 1 0; }
numbers=$(summarise "$log")
# shellcheck disable=SC2086
set -- $numbers
passed=$1 failed=$2 skipped=$3
# A crash of meson itself must not be taken for success.
if [ $status -ne 0 ] && [ "$failed" -eq 0 ]; then
	say "meson test ended with $status"
	failed=1
fi
[ -z "$all" ] || [ -n "$compiler$sanitize" ] || [ ${#tests[@]} -gt 0 ] || lint_fuzz_and_other_builds
finish "$passed" "$failed" "$skipped"
