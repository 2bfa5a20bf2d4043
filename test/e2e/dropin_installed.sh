#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `meson install` puts the drop-in library into a folder of its own, and urnic-run finds it there.
#
# usage: dropin_installed.sh BUILD urnicd CONFIG_FOLDER
set -eu
# shellcheck source=test/e2e/installed_common.sh
. "$(dirname "$0")/installed_common.sh"

build=$1
urnicd=$2
config=$3

install_to "$build" "$tmp/root" --tags runtime
find "$tmp/root" -name 'lib*' -printf '%P\n' | sort >"$tmp/list"
grep -q '/urnic/verbs/libibverbs\.so\.1$' "$tmp/list" || fail "no drop-in library: $(cat "$tmp/list")"
[ "$(grep -c libibverbs "$tmp/list")" = 1 ] || fail "more than one libibverbs: $(cat "$tmp/list")"
grep -q '/liburnic\.so\.1$' "$tmp/list" || fail "no liburnic.so.1: $(cat "$tmp/list")"
! grep -q '/liburnic\.so$' "$tmp/list" || fail "programs would link the shared library: $(cat "$tmp/list")"
grep -q '/urnic/verbs/liburnic-paths\.so$' "$tmp/list" || fail "no liburnic-paths.so: $(cat "$tmp/list")"
library=$tmp/root/$(grep /libibverbs "$tmp/list")
readelf -d "$library" >"$tmp/dynamic"
# shellcheck disable=SC2016 # the loader's words, and not the shell's
grep -q 'RUNPATH.*\[\$ORIGIN:\$ORIGIN/\.\.:\$ORIGIN/\.\./\.\.\]' "$tmp/dynamic" || fail "RUNPATH: $(cat "$tmp/dynamic")"
grep -q NODELETE "$tmp/dynamic" || fail "can be unloaded: $(cat "$tmp/dynamic")"

start_urnicd "$urnicd" "$config/two-nodes.ini"
run=$(find "$tmp/root" -path '*/bin/urnic-run' -type f)
"$run" ibv_devices >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
grep -q '^ *a0' "$tmp/out" || fail "no a0: $(cat "$tmp/out")"
"$run" ls /dev/infiniband >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
[ "$(tr '\n' ' ' <"$tmp/out")" = "a0 b0 " ] || fail "devices: $(cat "$tmp/out")"
"$run" cat /proc/self/environ | tr '\0' '\n' >"$tmp/out"
grep -qx "LD_LIBRARY_PATH=$(dirname "$(realpath "$library")")" "$tmp/out" || fail "path: $(cat "$tmp/out")"
"$run" --share true >"$tmp/out" 2>&1 || fail "--share: $(cat "$tmp/out")"
