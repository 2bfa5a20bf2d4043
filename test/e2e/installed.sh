#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `meson install` brings all that a program and a person need: headers, both libraries and urnic.pc, manual pages without
# errors, completion in bash that knows every option, the service and its file. The example builds with no DPDK in sight.
#
# usage: installed.sh PROJECT BUILD
set -eu
# shellcheck source=test/e2e/installed_common.sh
. "$(dirname "$0")/installed_common.sh"

project=$1
build=$2
root=$tmp/root
mkdir -p "$root"
install_to "$build" "$root"
prefix=$root$(meson introspect --buildoptions "$build" | python3 -c '
import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')

# ---- headers and libraries
for header in "$project"/lib/include/urnic/*.h; do
	[ -f "$prefix/include/urnic/${header##*/}" ] || fail "the header ${header##*/} is not installed"
done
pc=$(find "$prefix" -name urnic.pc)
[ -n "$pc" ] || fail "there is no urnic.pc"
libdir=$(dirname "$(dirname "$pc")")
[ "$(readlink "$libdir/liburnic.so")" = liburnic.so.1 ] || fail "liburnic.so does not lead to liburnic.so.1"
readelf -d "$libdir/liburnic.so.1" >"$tmp/dynamic"
grep -q 'SONAME.*\[liburnic\.so\.1\]' "$tmp/dynamic" || fail "liburnic.so.1 has another name inside"
# The archive holds its objects: a thin one names files of the build folder.
[ "$(head -c 7 "$libdir/liburnic.a")" = '!<arch>' ] || fail "liburnic.a is a thin archive"
! nm -A "$libdir/liburnic.a" 2>/dev/null | grep -q ' U rte_' || fail "liburnic.a wants DPDK"

# Each public header compiles by itself, with nothing but what was installed.
flags=$(PKG_CONFIG_LIBDIR=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags urnic)
for header in "$prefix"/include/urnic/*.h; do
	# shellcheck disable=SC2086
	printf '#include <urnic/%s>\n' "${header##*/}" | cc -Wall -Werror $flags -fsyntax-only -x c - || fail "${header##*/} does not compile"
done

# ---- the example, shared and static, beside an installed urnicd
start_urnicd "$prefix/bin/urnicd" "$prefix/share/urnic/two-nodes.ini"
for static in "" --static; do
	# shellcheck disable=SC2046,SC2086
	cc ${static:+-static} -o "$tmp/hello" "$project/examples/hello_attached.c" \
		$(PKG_CONFIG_LIBDIR=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config $static --cflags --libs urnic) ||
		fail "the example does not build ${static:-shared}"
	LD_LIBRARY_PATH=$libdir "$tmp/hello" >"$tmp/out" 2>&1 || fail "the example, ${static:-shared}: $(cat "$tmp/out")"
	grep -q 'WRITE: success; node b has: "hello from node a' "$tmp/out" || fail "the example, ${static:-shared}: $(cat "$tmp/out")"
	readelf -d "$tmp/hello" >"$tmp/dynamic"
	! grep -q librte "$tmp/dynamic" || fail "the example is linked against DPDK"
	[ -n "$static" ] || grep -q 'NEEDED.*liburnic\.so\.1' "$tmp/dynamic" || fail "the example is not linked against liburnic.so.1"
done

# ---- manual pages: one for each page of the reference and each program
for page in "$project"/doc/reference/*.md; do
	grep -q "| reference/${page##*/} *|" "$project/doc/man.list" || fail "doc/man.list makes no manual page of ${page##*/}"
done
for program in "$prefix"/bin/*; do
	[ -f "$prefix/share/man/man1/${program##*/}.1" ] || [ -f "$prefix/share/man/man8/${program##*/}.8" ] ||
		fail "there is no manual page of ${program##*/}"
done
find "$prefix/share/man" -type f | sort >"$tmp/pages"
[ "$(wc -l <"$tmp/pages")" = "$(grep -c '^[^#]' "$project/doc/man.list")" ] || fail "manual pages: $(cat "$tmp/pages")"
xargs mandoc -Tlint -W error <"$tmp/pages" >"$tmp/lint" 2>&1 || fail "mandoc: $(head -n 20 "$tmp/lint")"
mandoc -Tutf8 "$prefix/share/man/man1/urnic-run.1" | sed 's/.\x08//g' >"$tmp/text"
for option in $("$prefix/bin/urnic-run" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
	grep -q -e "$option" "$tmp/text" || fail "the manual page of urnic-run does not have $option"
done

# ---- completion: every option of --help, and words
complete_words() {
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _urnic "$1"; printf "%s\n" "${COMPREPLY[@]}"' \
		- "$prefix/share/bash-completion/completions/$(basename "$1")" "$@"
}
for program in "$prefix"/bin/*; do
	complete_words "$program" - >"$tmp/words"
	"$program" --help | grep -oE '(^|[[:space:],[|])--[a-z][a-z0-9-]*' | grep -oE -- '--.*' | sort -u >"$tmp/options"
	[ -s "$tmp/options" ] || fail "${program##*/} --help names no option"
	left=$(comm -13 <(sort "$tmp/words") "$tmp/options")
	[ -z "$left" ] || fail "completion of ${program##*/} does not know: $left"
done
expect_word() {
	local word=$1

	shift
	complete_words "$@" >"$tmp/words"
	grep -qx -e "$word" "$tmp/words" || fail "completion of '$*' has no $word: $(cat "$tmp/words")"
}
expect_word counters "$prefix/bin/urnicctl" show co
expect_word down "$prefix/bin/urnicctl" --json port p0 ""
expect_word write_lat "$prefix/bin/urnic-perf" wri
expect_word cat "$prefix/bin/urnic-run" --node a ca
expect_word "$tmp/c.ini" "$prefix/bin/urnicd" -c "$tmp/c"

# ---- the service
unit=$(find "$root" -name urnicd.service)
start=$(sed -n 's/^ExecStart=//p' "$unit")
program=${start%% *} config=${start##* }
[ -x "$root$program" ] || fail "the unit starts $program, which is not installed"
"$root$program" --check -c "$root$config" >"$tmp/out" 2>&1 || fail "the installed configuration is wrong: $(cat "$tmp/out")"
echo "# mine" >>"$root$config"
install_to "$build" "$root"
grep -qx "# mine" "$root$config" || fail "a second installation replaced the administrator's $config"
grep -q '^u urnic ' "$(find "$root" -path '*sysusers.d/urnic.conf')" || fail "no user for the service"
echo "installed: all there"
