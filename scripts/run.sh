#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Show urnic at work: two dataplane processes (urnicd) joined by shared memory, and two
# programs attached to the two urnicd, one of which sends files to the other over RoCEv2.
#
# Usage: scripts/run.sh [OPTION...] [FILE...]
#
# Installs missing packages (scripts/setup.sh), builds a release, starts two urnicd
# and two urnic-cp, stops them, and compares each copy with its original, byte for
# byte. Without a FILE the script makes one of random bytes. Needs no huge pages and no NIC,
# and root only to install packages.
#
#   --to DIR       keep the received copies in DIR (default: a folder of its own
#                  that is removed at the end)
#   --size SIZE    bytes of the file that is made: a number, or one with K, M or G
#                  (default 256M)
#   --no-install   install nothing; print the missing packages
#   --build DIR    the build folder (default: build, in the project's folder)
#   --help         this text
#
# The script leaves only the build folder, and with --to the copies. TMPDIR says
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

# Check the files before anything takes time.
check_files() {
	local f

	for f in "${files[@]}"; do
		[ -e "$f" ] || die "there is no file '$f'"
		[ ! -d "$f" ] || die "'$f' is a folder; name the files in it"
		[ -f "$f" ] || die "'$f' is not a regular file"
		[ -r "$f" ] || die "user $(id -un) may not read '$f'"
	done
}

# check_room DIR BYTES: end the script now, with a message, instead of filling the disk later.
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

# Stop the programs that still run, and remove the temporary folder.
stop_all() {
	[ -z "$receiver" ] || kill "$receiver" 2>/dev/null || :
	[ ${#dataplanes[@]} -eq 0 ] || kill "${dataplanes[@]}" 2>/dev/null || :
	wait
	rm -rf "$temp"
}

# wait_for PID PATH: wait until a program has made its socket; false when it has ended, or after 20 s.
wait_for() {
	for _ in $(seq 1000); do
		[ ! -S "$2" ] || return 0
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}

# start_dataplane NODE NUMBER ROLE: an urnicd with one node, at one end of the memif.
start_dataplane() {
	cat >"$temp/$1.ini" <<-EOF
		[urnicd]
		socket = $temp/$1.sock
		# Two dataplanes and two programs share what CPUs there are.
		idle = pause
		empty_polls = 64

		[port p0]
		device = net_memif0,role=$3,socket=$temp/memif.sock

		[adapter urnic0]
		node = $1
		port = p0
		ipv4 = 10.0.0.$2
	EOF
	TMPDIR=$temp XDG_RUNTIME_DIR=$temp "$build/apps/urnicd/urnicd" -c "$temp/$1.ini" 2>"$temp/$1.log" &
	dataplanes+=($!)
	wait_for $! "$temp/$1.sock" || {
		cat "$temp/$1.log" >&2
		die "the dataplane of node $1 did not start; what it said is above"
	}
}

check_files
if [ -n "$install" ]; then
	"$project/scripts/setup.sh"
else
	"$project/scripts/setup.sh" --check
fi

configure "$build" --buildtype=release -Dtests=false
compile "$build" apps/urnicd/urnicd apps/urnic-cp/urnic-cp || die "the build failed; what the compiler said is above"

temp=$(mktemp -d "${TMPDIR:-/tmp}/urnic-run.XXXXXX") ||
	die "cannot make a folder in ${TMPDIR:-/tmp}; set TMPDIR"
dataplanes=()
receiver=
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ ${#files[@]} -eq 0 ]; then
	# The temporary folder holds the file, and also the copy unless --to is given.
	[ -n "$to" ] || bytes_needed=$((2 * bytes))
	check_room "$temp" "${bytes_needed:-$bytes}"
	say "making a file of $size random bytes"
	files=("$temp/random.bin")
	head -c "$bytes" /dev/urandom >"${files[0]}" || die "cannot write to $temp"
elif [ -z "$to" ]; then
	check_room "$temp" "$(stat -L -c %s -- "${files[@]}" | awk '{ s += $1 } END { printf "%.0f", s }')"
fi

say "starting two dataplanes (urnicd), joined by shared memory: node a, 10.0.0.1, and node b, 10.0.0.2"
start_dataplane a 1 server
start_dataplane b 2 client

say "starting a program on each (urnic-cp): b receives, a sends"
"$build/apps/urnic-cp/urnic-cp" --attach "$temp/b.sock" --listen "$temp/cp.sock" \
	--to "${to:-$temp/received}" >/dev/null 2>"$temp/receiver.log" &
receiver=$!
wait_for "$receiver" "$temp/cp.sock" || {
	cat "$temp/receiver.log" >&2
	die "urnic-cp failed; what it said is above"
}
"$build/apps/urnic-cp/urnic-cp" --attach "$temp/a.sock" --peer "$temp/cp.sock" -- "${files[@]}" || {
	cat "$temp/receiver.log" >&2
	die "urnic-cp failed; what it said is above"
}
wait "$receiver" || die "the receiver failed: $(tail -n 1 "$temp/receiver.log")"
receiver=

# A dataplane that is told to stop ends with 0, unless something went wrong.
for pid in "${dataplanes[@]}"; do
	kill "$pid" || :
	wait "$pid" || die "a dataplane did not stop in order: $(cat "$temp"/[ab].log)"
done
dataplanes=()
say "both dataplanes have stopped"

for f in "${files[@]}"; do
	compare "$f" "${to:-$temp/received}/$(basename -- "$f")" || exit 1
done
if [ -n "$to" ]; then
	say "compared: every copy in $to is byte for byte its original"
else
	say "compared: every copy is byte for byte its original; removing them (--to DIR keeps them)"
fi
