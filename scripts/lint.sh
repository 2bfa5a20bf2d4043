#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Look for faults that compilers do not report: clang-tidy, shellcheck, format.
#
# Usage: scripts/lint.sh [OPTION...] [FILE.c...]
#
# clang-tidy (.clang-tidy) checks every source file of the programs and libraries,
# or the named ones, and takes some minutes for all. shellcheck checks every script,
# clang-format (.clang-format) the changed lines, scripts/prose.py the sentences of
# comments, documents and messages, scripts/structs.py structs of one name in a program,
# scripts/sizes.py the lengths of files and functions.
# The script installs nothing: scripts/setup.sh --dev installs the linters.
#
#   --since REV    check the format of lines changed since this commit, committed
#                  or not (default HEAD: changes that are not committed)
#   --jobs N       number of parallel files (default: number of CPUs)
#   --build DIR    the build folder whose compiler options are used; made if missing
#                  (default: build, in the project's folder)
#   --quick        clang's analyzer follows a third of the paths through a function that
#                  it otherwise would, in half the time
#   --help         this text
#
# Exit code: 0 no finding, 1 a finding or a failure, 2 wrong usage.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

build=$project/build
since=HEAD
jobs=$(nproc)
analyzer=()
files=()
while [ $# -gt 0 ]; do
	case $1 in
	--since) need_value "$@"; since=$2; shift ;;
	--since=*) since=${1#*=} ;;
	--jobs) need_value "$@"; jobs=$2; shift ;;
	--jobs=*) jobs=${1#*=} ;;
	--build) need_value "$@"; build=$2; shift ;;
	--build=*) build=${1#*=} ;;
	--quick) analyzer=(-Xclang -analyzer-config -Xclang max-nodes=75000) ;; # 225,000 by default
	--help | -h) print_help; exit 0 ;;
	-*) usage_error "unknown option '$1'" ;;
	*) files+=("$(realpath -- "$1")") ;;
	esac
	shift
done
[[ $jobs =~ ^[1-9][0-9]{0,3}$ ]] || usage_error "--jobs wants a number from 1 on, not '$jobs'"

for f in "${files[@]}"; do
	[ -f "$f" ] || die "there is no file '$f'"
	[[ $f == *.c ]] || die "'$f' is no C source; headers are looked at with the sources that include them"
done
for tool in clang-tidy clang-format git-clang-format shellcheck; do
	command -v $tool >/dev/null ||
		die "there is no $tool; install what is missing with: scripts/setup.sh --dev"
done

failed=
step() {
	say "$1"
	shift
	"$@" || failed=yes
}

shell_lint() {
	shellcheck -x scripts/*.sh test/e2e/*.sh test/interop/*.sh test/unit/lib/*.sh packaging/*.sh packaging/completion.bash .ci/run
}

# Tests are left out, because cmocka's macros would be most of the findings.
sources() {
	if [ ${#files[@]} -gt 0 ]; then
		printf '%s\0' "${files[@]}"
	else
		# The kernel's verifier judges the program for its BPF machine, which is compiled by other options.
		find apps dataplane examples lib pmd_glue -name '*.c' ! -name '*.bpf.c' -print0 | sort -z
	fi
}

# Lines such as "N warnings generated" are left out, because they count the system's headers.
tidy() {
	local arguments=(-Wno-unknown-warning-option -Wreserved-identifier "${analyzer[@]}")

	sources | xargs -0 -n 1 -P "$jobs" clang-tidy -p "$build" --quiet "${arguments[@]/#/--extra-arg=}" 2> >(
		grep -vE '^[0-9]+ (warnings?|errors?)( and [0-9]+ errors?)? generated|^(Suppressed|Use -header-filter)' >&2)
}

changed_format() {
	local out

	git rev-parse --git-dir >/dev/null 2>&1 || { say "no git checkout: no lines to look at"; return 0; }
	git rev-parse -q --verify "$since^{commit}" >/dev/null || die "there is no commit '$since'"
	out=$(git clang-format --diff --extensions c,h "$since") || true
	case $out in
	'' | 'no modified files to format' | 'clang-format did not modify any files') return 0 ;;
	esac
	printf '%s\n' "$out"
	return 1
}

# The headers that the build makes: clang cannot read a source that includes one that is not there.
made_headers() {
	local made

	mapfile -t made < <(ninja -C "$build" -t targets all | sed -n 's/^\([^:]*\.h\): CUSTOM_COMMAND.*/\1/p')
	[ ${#made[@]} -eq 0 ] || compile "$build" "${made[@]}" || die "cannot make ${made[*]}; what the build said is above"
}

cd "$project"
[ -e "$build/compile_commands.json" ] || configure "$build" --buildtype=release
made_headers
step "shellcheck" shell_lint
step "clang-format, lines changed since $since" changed_format
step "sentences" scripts/prose.py
step "names of structs" scripts/structs.py
step "lengths" scripts/sizes.py
step "clang-tidy" tidy
[ -z "$failed" ] || die "something was found; it is above"
say "nothing found"
