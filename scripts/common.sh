# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Functions that the scripts share: messages, errors, help, builds.
# Bash scripts source this file; the file is no program.

# The project's folder, wherever the script is called from.
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly project

say() {
	printf '%s: %s\n' "${0##*/}" "$*"
}

# End the script because something failed.
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# End the script because its command line is wrong.
usage_error() {
	printf "%s: %s; see '%s --help'\n" "${0##*/}" "$*" "$0" >&2
	exit 2
}

# The comment at a script's head is its help: from the third line to the first
# line that is no comment.
print_help() {
	sed -n -e '1,2d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"
}

# End the script unless an option has its value: need_value "$@" with the option first.
need_value() {
	[ $# -ge 2 ] || usage_error "$1 wants a value"
}

# True when files can be made in this folder, or the folder itself can be made.
can_write() {
	local dir=$1

	while [ ! -e "$dir" ]; do
		dir=$(dirname "$dir")
	done
	[ -d "$dir" ] && [ -w "$dir" ] && [ -x "$dir" ]
}

# Make a build folder unless it is there: configure DIR MESON_OPTION...
# With CI set in the environment, warnings are errors.
configure() {
	local dir=$1 log

	shift
	can_write "$dir" ||
		die "user $(id -un) cannot write to the build folder $dir; run this as its owner, or give another one with --build DIR"
	if [ -e "$dir/build.ninja" ] && [ -w "$dir/build.ninja" ]; then
		return 0
	fi
	[ ! -e "$dir/build.ninja" ] ||
		die "the build folder $dir belongs to $(stat -c %U "$dir/build.ninja"); run this as that user, or give another one with --build DIR"
	say "configuring $dir"
	set -- "-Dwerror=$([ -n "${CI-}" ] && echo true || echo false)" "$@"
	if ! log=$(meson setup "$dir" "$project" "$@" 2>&1 </dev/null); then
		printf '%s\n' "$log" | tail -n 15 >&2
		die "meson could not configure $dir; what it said is above"
	fi
}

# Print the value of a build folder's option: get_option DIR NAME
get_option() {
	meson introspect --buildoptions "$1" | python3 -c '
import json, sys
name = sys.argv[1]
value = next(o["value"] for o in json.load(sys.stdin) if o["name"] == name)
print(str(",".join(value) or "none" if isinstance(value, list) else value).lower())' "$2"
}

# Set an option of a build folder unless it has that value: set_option DIR NAME VALUE
set_option() {
	local now

	now=$(get_option "$1" "$2")
	[ "$now" = "$3" ] || meson configure "$1" "-D$2=$3"
}

# Compile: compile DIR [TARGET...]. The output of ninja is shown only when ninja fails.
compile() {
	local dir=$1 log

	shift
	say "building in $dir"
	log=$(mktemp "${TMPDIR:-/tmp}/urnic-build.XXXXXX") || die "cannot make a file in ${TMPDIR:-/tmp}"
	if ! ninja -C "$dir" "$@" >"$log" 2>&1 </dev/null; then
		tail -n 60 "$log" >&2
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}
