#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Checks liburnic.so (architecture.md, seam 10): it exports the names of its version map, with the versions
# that the map gives them, and no other; the map has every function of the public headers;
# programs in C and in C++ link with it alone and run, with nothing but the installed headers.
#
# usage: exports.sh SOURCE_ROOT urnic.map liburnic.so
set -eu

root=$1
map=$2
lib=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail()
{
	echo "$*" >&2
	exit 1
}

# "name@@VERSION" of each line of the map, "VERSION" of each of its nodes.
awk '
/^#/ { next }
/\{/ { node = $1; print node; next }
/local:/ { hidden = 1 }
/global:/ { hidden = 0; next }
/\}/ { hidden = 0; next }
!hidden && NF { sub(/;/, ""); print $1 "@@" node }
' "$map" | LC_ALL=C sort >"$tmp/map"
nm -D --defined-only "$lib" | awk '{ print $NF }' | LC_ALL=C sort >"$tmp/lib"
[ "$(wc -l <"$tmp/map")" -ge 70 ] || fail "found too few names in $map"
grep -v @@ "$tmp/lib" | while read -r node; do
	grep -qx "$node" "$tmp/map" || echo "$node"
done >"$tmp/bare"
[ ! -s "$tmp/bare" ] || fail "exported without a version: $(cat "$tmp/bare")"
LC_ALL=C comm -13 "$tmp/map" "$tmp/lib" >"$tmp/more"
LC_ALL=C comm -23 "$tmp/map" "$tmp/lib" >"$tmp/less"
[ ! -s "$tmp/more" ] || fail "exported, and not in the map: $(cat "$tmp/more")"
[ ! -s "$tmp/less" ] || fail "in the map, and not exported: $(cat "$tmp/less")"

# The headers as they are installed, alone.
mkdir -p "$tmp/include/urnic/abi"
cp "$root"/lib/include/urnic/*.h "$tmp/include/urnic/"
cp "$root/lib/abi/cm.h" "$root/lib/abi/msg_codes.h" "$tmp/include/urnic/abi/"
printf '#include <urnic/%s.h>\n' attach cm msg socket >"$tmp/decl.c"
gcc -fsyntax-only "-I$tmp/include" -aux-info "$tmp/decl.txt" "$tmp/decl.c"
grep -E 'include/urnic/[a-z]*\.h:|infiniband/verbs\.h:' "$tmp/decl.txt" | grep ' extern ' |
	sed 's/ (.*//; s/.*[ *]//' | sort -u >"$tmp/names"
[ "$(wc -l <"$tmp/names")" -ge 80 ] || fail "found too few functions in the headers"
while read -r name; do
	case $name in
	urn_*) ;;
	*) name=urn_${name#_} ;;
	esac
	grep -q "^$name@@" "$tmp/map" || echo "$name"
done <"$tmp/names" >"$tmp/missing"
[ ! -s "$tmp/missing" ] || fail "in a public header, and not in the map: $(cat "$tmp/missing")"

# A library of the sanitizers' build wants their run-time.
flags=
if nm -D "$lib" | grep -q __asan_init; then
	flags="-fsanitize=address,undefined"
fi
cp "$lib" "$tmp/liburnic.so"
soname=$(readelf -d "$lib" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ -n "$soname" ] || fail "$lib has no SONAME"
ln -s liburnic.so "$tmp/$soname"
cat >"$tmp/program.c" <<'END'
#include <urnic/attach.h>
#include <urnic/cm.h>

#include <string.h>

int
main(void)
{
	struct urn_abi_cm_connect connect;
	struct urn_cm_ip ip;
	void *p = urn_alloc(100);
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	ibv_free_device_list(list);
	urn_free(p);
	urn_cm_end_close(NULL);
	memset(&connect, 0, sizeof(connect));
	connect.service_id = urn_cm_service(URN_CM_PS_TCP, 7);
	return p == NULL || connect.service_id != 0x01060007 ||
	       urn_cm_ip_read(connect.data, sizeof(connect.data), &ip) == 0;
}
END
cd "$tmp"
for cc in gcc g++; do
	command -v $cc >/dev/null || continue
	lang=c
	[ $cc = gcc ] || lang=c++
	# shellcheck disable=SC2086 # words
	$cc -x $lang -Wall -Wextra -Werror $flags "-I$tmp/include" -o program program.c -x none -L. -lurnic
	LD_LIBRARY_PATH=$tmp ./program || fail "the program of $cc does not work"
done
echo "$(grep -c @@ "$tmp/map") names exported, all in the map"
