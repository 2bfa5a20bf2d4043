#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/bench.sh: its options and errors; it measures with the programs beside urnic
# or without them, writes the files that it names, and leaves nothing after a signal.
# The figures themselves are not checked, because other work on the machine changes them.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"
bench=("$project/scripts/bench.sh" --no-install --build "$2")

# Files that were in /dev/shm before the test do not count.
shared() { find /dev/shm -maxdepth 1 -name 'urnic-bench*' | sort; }
before=$(shared)

check_help bench.sh

try "${bench[@]}" --rounds 0
expect "no rounds" 2 "--rounds wants a number"
try "${bench[@]}" --seconds 0.0
expect "no time" 2 "--seconds wants a time"
try "${bench[@]}" --only size,nonsense
expect "unknown section" 2 "size, qps, latency, loss, stages, speed"
try "${bench[@]}" --kills 0 --only session
expect "no kills" 2 "--kills wants a number"
try "${bench[@]}" --only speed --out /proc/no
expect "a folder that cannot be made" 1 "/proc/no"

# On a machine without any of the programs beside urnic, the bench names them and leaves them out.
mkdir "$place/few"
for tool in bash sh cat sed grep dirname basename id stat mktemp rm tail python3 ninja pkg-config cc \
	meson env ls true git gcc ar ccache clang nproc uname; do
	found=/usr/bin/$tool
	[ -x "$found" ] || found=$(command -v $tool) || continue
	ln -s "$found" "$place/few/$tool"
done
try env PATH="$place/few" "${bench[@]}" --quick --rounds 1 --seconds 0.1 --only speed --out "$place/out"
expect "without peers" 0 "64 KiB WRITE, of limit" "64 B SEND, 16 QPs, of limit" "10,000 QPs, of 16" \
	"memory of an idle QP" "there is no ucx_perftest"
check "a ratio was measured" grep -q '^1,speed,write_limit,WRITE beside limit,write_limit,ratio,' \
	"$place/out/raw.csv"
check "the page has the table" grep -q "64 KiB WRITE, of limit" "$place/out/index.html"
check "the page says first if the machine was quiet" sh -c "grep -n 'machine was' '$place/out/index.html' | head -n 1 | grep -Eq 'The machine was quiet|was NOT QUIET'"
check "no verdict on a machine that is not quiet" sh -c "! grep -q 'NOT QUIET' '$place/out/index.html' || ! grep -Eq 'class=.(reached|MISSED)' '$place/out/index.html'"
check "the text says it, too" sh -c "head -n 1 '$place/out/summary.txt' | grep -q 'machine was'"
check "the cores' state" grep -Eq "^cores' state: *(near|far|one core)" "$place/out/summary.txt"
check "terms are explained" grep -q "<b>of limit</b>: " "$place/out/index.html"
check "all files" test -s "$place/out/summary.csv" -a -s "$place/out/summary.txt"
clean "without peers"

# Unmodified programs are measured under urnic-run, those that there are.
for tool in as ld ib_write_bw; do
	ln -s "$(command -v $tool)" "$place/few/$tool"
done
try env PATH="$place/few" "${bench[@]}" --quick --rounds 1 --seconds 0.1 --only dropin --out "$place/out"
expect "unmodified programs" 0 "ib_write_bw --share 64 KiB, of urnic-perf" "there is no ib_send_lat" "there is no ucx_perftest" \
	"there is no mpicc.openmpi"
for one in "write,urnic-perf WRITE,write,gbps" "write,ib_write_bw,write,gbps" "write_share,ib_write_bw --share,write_share,gbps" \
	"reg_4k,reg_mr 4 KiB,reg_4k,us" "reg_1m_share,reg_mr 1 MiB --share,reg_1m_share,us"; do
	check "measured: $one" grep -q "^1,dropin,$one,[0-9.]*[1-9]" "$place/out/raw.csv"
done
clean "unmodified programs"

# Half a second is enough for a message even where threads wait for a busy core.
# Only JSON goes to stdout. A program beside urnic that prints nonsense is no reason to fail.
fake ucx_perftest <<-'END'
echo babble
END
faked "${bench[@]}" --rounds 1 --seconds 0.5 --only latency --json --out "$place/out" \
	>"$place/json" 2>"$place/said" </dev/null
code=$? out=$(cat "$place/said")
expect "JSON" 0 "written: $place/out/index.html"
check "JSON holds percentiles and who failed" python3 - "$place/json" <<-'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["facts"]["machine"] and d["facts"]["commit"], d["facts"]
assert len(d["quiet"]["rounds"]) == 1 and d["quiet"]["rounds"][0]["kept"], d["quiet"]
found = {s["x"] for s in d["summary"] if s["series"] == "urnic SEND"}
assert found == {25, 50, 75, 90, 99, 99.9, 99.99}, found
assert any(n["series"] == "ucx tag_lat, posix" for n in d["not_measured"]), d["not_measured"]
END
clean "JSON"

# A signal ends the bench early: figures so far are written, no program runs on, no other file is left.
"${bench[@]}" --only qps --seconds 5 --out "$place/cut" >"$place/said" 2>&1 </dev/null &
pid=$!
for _ in $(seq 600); do
	[ -e "$place/cut/raw.csv" ] && pgrep -P $pid urnic-perf >/dev/null && break
	sleep 0.1
done
child=$(pgrep -P $pid urnic-perf)
kill -TERM $pid
code=0
wait $pid || code=$?
out=$(cat "$place/said")
expect "ended by a signal" 143 "ended early"
check "the child is gone" test ! -d "/proc/$child"
check "a page is there" test -s "$place/cut/index.html"
clean "ended by a signal"
check "nothing in /dev/shm" test "$(shared)" = "$before"
exit $failed
