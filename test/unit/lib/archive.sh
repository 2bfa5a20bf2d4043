#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Checks that liburnic.a can be installed: alone in another folder, without the
# build's objects, a program links with it and runs.
#
# usage: archive.sh SOURCE_ROOT liburnic.a
set -eu

root=$1
lib=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

[ "$(head -c 7 "$lib")" = "!<arch>" ] || {
	echo "$lib does not hold its objects: $(head -c 7 "$lib")" >&2
	exit 1
}
cp "$lib" "$tmp/liburnic.a"
cat >"$tmp/program.c" <<'EOF'
#include <urnic/attach.h>
int
main(void)
{
	void *p = urn_alloc(100);

	urn_free(p);
	return p == NULL;
}
EOF
cd "$tmp"
# A library of the sanitizers' build wants their run-time.
flags=
if nm liburnic.a | grep -q __asan_init; then
	flags="-fsanitize=address,undefined"
fi
# shellcheck disable=SC2086 # words
${CC:-cc} -std=gnu11 -Werror $flags -I"$root/lib/include" -o program program.c -L. -lurnic -pthread -ldl
./program
