#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# See urnic work: send files from one dataplane process to another over RoCEv2.
#
# Usage: scripts/run.sh [OPTION...] [FILE...]
#
# Installs what is missing (scripts/setup.sh), builds a release, sends the files
# with urnic-cp, and compares each copy with its original, byte for byte. Without
# a FILE it makes one of random bytes. Needs no huge pages and no NIC, and root
# only to install packages.
#
#   --to DIR       keep the received copies in DIR (default: a folder of its own
#                  that is removed at the end)
#   --size SIZE    bytes of the file it makes: a number, or one with K, M or G
#                  (default 256M)
#   --no-install   install nothing; say what is missing
#   --build DIR    the build folder (default: build, in the project's folder)
#   --help         this text
#
# Leaves the build folder, and the copies with --to; nothing else. TMPDIR says
# where temporary files go (default /tmp).
#
# Exit code: 0 every file arrived, 1 something failed, 2 wrong usage.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

build=$project/build
size=256M
to=
install=yes
files=()
while [ $# -gt 0 ]; do
	case $1 in
	--to) need_value "$@"; to=$2; shift ;;
	--to=*) to=${1#*=} ;;
	--size) need_value "$@"; size=$2; shift ;;
	--size=*) size=${1#*=} ;;
	--build) need_value "$@"; build=$2; shift ;;
	--build=*) build=${1#*=} ;;
	--no-install) install= ;;
	--help | -h) print_help; exit 0 ;;
	--) shift; files+=("$@"); break ;;
	-?*) usage_error "unknown option '$1'" ;;
	*) files+=("$1") ;;
	esac
	shift
done

[[ $size =~ ^[0-9]{1,12}[KMG]?$ ]] ||
	usage_error "--size wants a number, or one with K, M or G, not '$size'"
bytes=$(numfmt --from=iec "$size")

# Before anything takes time.
check_files() {
	local f

	for f in "${files[@]}"; do
		[ -e "$f" ] || die "there is no file '$f'"
		[ ! -d "$f" ] || die "'$f' is a folder; name the files in it"
		[ -f "$f" ] || die "'$f' is not a regular file"
		[ -r "$f" ] || die "user $(id -un) may not read '$f'"
	done
}

# check_room DIR BYTES: a clear word now instead of a full disk later.
check_room() {
	local free

	free=$(df -P -B1 "$1" | awk 'NR == 2 { print $4 }')
	[ "$free" -gt "$2" ] ||
		die "$1 has room for $(numfmt --to=iec "$free"), and this takes $(numfmt --to=iec "$2"); set TMPDIR to a folder with more, or give --to DIR"
}

# compare ORIGINAL COPY
compare() {
	if cmp -- "$1" "$2" >&2; then
		return 0
	fi
	printf '%s: the copy of %s is not what was sent\n' "${0##*/}" "$1" >&2
	return 1
}

check_files
if [ -n "$install" ]; then
	"$project/scripts/setup.sh"
else
	"$project/scripts/setup.sh" --check
fi

configure "$build" --buildtype=release -Dtests=false
compile "$build" apps/urnic-cp/urnic-cp || die "the build failed; what the compiler said is above"

temp=$(mktemp -d "${TMPDIR:-/tmp}/urnic-run.XXXXXX") ||
	die "cannot make a folder in ${TMPDIR:-/tmp}; set TMPDIR"
trap 'rm -rf "$temp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ ${#files[@]} -eq 0 ]; then
	# The file, and its copy unless that goes elsewhere.
	[ -n "$to" ] || bytes_needed=$((2 * bytes))
	check_room "$temp" "${bytes_needed:-$bytes}"
	say "making a file of $size random bytes"
	files=("$temp/random.bin")
	head -c "$bytes" /dev/urandom >"${files[0]}" || die "cannot write to $temp"
elif [ -z "$to" ]; then
	check_room "$temp" "$(stat -L -c %s -- "${files[@]}" | awk '{ s += $1 } END { printf "%.0f", s }')"
fi

say "sending with urnic-cp: two dataplane processes, RoCEv2 over shared memory"
"$build/apps/urnic-cp/urnic-cp" --to "${to:-$temp/received}" -- "${files[@]}" ||
	die "urnic-cp failed; what it said is above"

for f in "${files[@]}"; do
	compare "$f" "${to:-$temp/received}/$(basename -- "$f")" || exit 1
done
if [ -n "$to" ]; then
	say "compared: every copy in $to is byte for byte its original"
else
	say "compared: every copy is byte for byte its original; removing them (--to DIR keeps them)"
fi
