#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Checks urnic/verbs.h: nothing that includes it defines or wants a plain ibv_
# symbol, and the library defines none, so a program may link the real
# libibverbs beside it. Nor does it know of DPDK or the dataplane. Compiles with
# each compiler that is installed.
#
# usage: names.sh SOURCE_ROOT liburnic.a
set -eu

root=$1
lib=$2
here=$root/test/unit/lib
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"
# Names that libibverbs exports, with or without leading underscores.
plain='^_*ibv_\|^mult_to_ibv_rate$\|^mbps_to_ibv_rate$\|^verbs_'

fail()
{
	echo "$*" >&2
	exit 1
}

# Global symbols of an object or of an archive's members, defined or not.
symbols()
{
	nm -g "$1" | sed '/:$/d; s/.* //'
}

check()
{
	bad=$(symbols "$1" | grep "$plain" || true)
	[ -z "$bad" ] || fail "$2: plain names: $bad"
	symbols "$1" | grep -q '^urn_' || fail "$2: no urn_ name at all: is this the right object?"
}

compile()
{
	# shellcheck disable=SC2086
	"$@" $warn "-I$root/lib/include" "-I$root/lib" -c -o "$tmp/o.o"
}

# Every function that the installed verbs.h declares, by gcc's own account.
printf '#include <infiniband/verbs.h>\n' > "$tmp/decl.c"
gcc -fsyntax-only -aux-info "$tmp/decl.txt" "$tmp/decl.c"
grep 'infiniband/verbs\.h:' "$tmp/decl.txt" | grep ' extern ' |
	sed 's/ (.*//; s/.*[ *]//' | sort -u > "$tmp/names"
[ "$(wc -l < "$tmp/names")" -ge 60 ] || fail "found too few functions in verbs.h"
{
	echo '#include <urnic/verbs.h>'
	echo 'typedef void (*names_fn)(void);'
	echo 'extern const names_fn names_all[];'
	echo 'const names_fn names_all[] = {'
	sed 's/.*/	(names_fn)&,/' "$tmp/names"
	echo '};'
} > "$tmp/all.c"

found=0
for cc in gcc clang; do
	command -v $cc > /dev/null || continue
	found=1
	for opt in -O0 -O2; do
		compile $cc -std=gnu11 $opt "$tmp/all.c"
		check "$tmp/o.o" "$cc $opt, all functions"
		compile $cc -std=gnu11 $opt "$here/names_calls.c"
		check "$tmp/o.o" "$cc $opt, calls"
	done
done
[ $found = 1 ] || fail "neither gcc nor clang is installed"
# With all inline functions of verbs.h kept, whether called or not.
compile gcc -std=gnu11 -O1 -fkeep-inline-functions "$here/names_calls.c"
check "$tmp/o.o" "gcc, inline functions"
for cxx in g++ clang++; do
	command -v $cxx > /dev/null || continue
	compile $cxx -x c++ -O1 "$here/names_calls.c"
	check "$tmp/o.o" "$cxx, calls"
done

# The other order of includes would mix two libraries: it must not compile.
printf '#include <infiniband/verbs.h>\n#include <urnic/verbs.h>\n' > "$tmp/order.c"
if compile gcc "$tmp/order.c" 2> /dev/null; then
	fail "urnic/verbs.h after infiniband/verbs.h compiles"
fi

# The library: every function is there, and every global name has our prefix.
nm -g --defined-only "$lib" | awk 'NF == 3 {print $3}' | sort -u > "$tmp/defined"
bad=$(grep -v '^urn_\|^__\|^_urn_' "$tmp/defined" || true)
[ -z "$bad" ] || fail "the library defines: $bad"
bad=$(symbols "$lib" | grep "$plain" || true)
[ -z "$bad" ] || fail "the library names: $bad"
bad=$(symbols "$lib" | grep '^rte_\|^eal_' || true)
[ -z "$bad" ] || fail "the library needs DPDK: $bad"
bad=$(grep -rnE '#include *[<"](rte_|pmd_glue/|dataplane/|control/|engine/|host/|transport/|memory/|wire/)' \
	"$root/lib" || true)
[ -z "$bad" ] || fail "the library looks up or sideways: $bad"
sed 's/^_*/urn_/' "$tmp/names" | sort -u | comm -23 - "$tmp/defined" > "$tmp/missing"
[ ! -s "$tmp/missing" ] || fail "the library lacks: $(cat "$tmp/missing")"
echo "$(wc -l < "$tmp/names") functions, all renamed and defined"
