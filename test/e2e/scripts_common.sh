# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034
# Functions that the tests of the scripts share. $1 of each test is the project's folder.

project=$1
place=$(mktemp -d /tmp/urnic-scripts.XXXXXX) || exit 1
trap 'rm -rf "$place"' EXIT
mkdir "$place/bin" "$place/tmp"
chmod 755 "$place" "$place/bin"
chmod 1777 "$place/tmp"
export TMPDIR=$place/tmp LC_ALL=C.UTF-8
unset CI XDG_RUNTIME_DIR
cd "$place" || exit 1
failed=0
out=
code=0

# Run a command; $out has both its streams, $code its exit code.
try() {
	code=0
	out=$("$@" 2>&1 </dev/null) || code=$?
}

# expect WHAT CODE TEXT...: the last try ended with this exit code and printed these texts.
expect() {
	local what=$1 want=$2 text

	shift 2
	if [ "$code" -ne "$want" ]; then
		printf 'FAILED: %s: exit code %s, not %s; output:\n%s\n' "$what" "$code" "$want" "$out"
		failed=1
	fi
	for text; do
		[[ $out == *"$text"* ]] && continue
		printf "FAILED: %s: '%s' is not in:\n%s\n" "$what" "$text" "$out"
		failed=1
	done
	printf 'done: %s\n' "$what"
}

# check WHAT COMMAND...: the command succeeds.
check() {
	local what=$1

	shift
	"$@" || { printf 'FAILED: %s\n' "$what"; failed=1; }
}

# clean WHAT: the folder for temporary files is empty.
clean() {
	check "$1 leaves nothing in TMPDIR" test -z "$(ls -A "$place/tmp")"
}

# Put a fake in front of a program of the machine: fake NAME <<SCRIPT
fake() {
	{ echo '#!/bin/bash'; cat; } >"$place/bin/$1"
	chmod 755 "$place/bin/$1"
}

# Run a command with the fakes first in PATH; as user nobody when the first word is "nobody".
faked() {
	if [ "$1" = nobody ]; then
		shift
		PATH=$place/bin:$PATH setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		PATH=$place/bin:$PATH "$@"
	fi
}

# check_help SCRIPT: --help names every option that the script takes, and an unknown one is refused.
check_help() {
	local script=$1 option

	try "$project/scripts/$script" --help
	expect "$script --help" 0 "Usage: scripts/$script" "Exit code:"
	while read -r option; do
		[[ $out == *"$option"* ]] && continue
		printf 'FAILED: %s: %s is not in the help\n' "$script" "$option"
		failed=1
	done < <(grep -oE '^	*--[a-z-]+' "$project/scripts/$script" | tr -d '\t' | sort -u)
	try "$project/scripts/$script" --no-such-option
	expect "$script with an unknown option" 2 "--no-such-option" "--help"
}
