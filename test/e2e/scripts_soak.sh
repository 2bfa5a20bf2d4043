#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/soak.sh: its options, its errors, its sum, and what ends it.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"
soak=("$project/scripts/soak.sh" --build "$2")

check_help soak.sh

try "${soak[@]}" --seeds x
expect "bad seeds" 2 "--seeds wants a number"
try "${soak[@]}" --seeds 9..3
expect "seeds the wrong way round" 2 "the first is behind the last"
try "${soak[@]}" --share 0
expect "no share" 2 "--share wants a number"
try "${soak[@]}" --seeds 1 --scenario small,none
expect "unknown scenario" 2 "there is no scenario 'none'"
try "${soak[@]}" --seeds 1 --jobs 0
expect "no jobs" 2 "--jobs 0"
try "${soak[@]}" --seeds 1 --without rain
expect "unknown fault" 2 "there is no fault 'rain'"

try "${soak[@]}" --seeds 1..25 --share 10 --scenario small,atomics --jobs 2 --without late
expect "three shares of two scenarios" 0 "seeds 1..10, small: 10 runs" "seeds 11..20, atomics: 10 runs" \
	"seeds 21..25, atomics: 5 runs" "50 passed, 0 failed"
try "${soak[@]}" --seeds 7 --scenario small
expect "one seed" 0 "1 passed, 0 failed"
try "${soak[@]}" --seeds 08..011 --scenario small
expect "zeros in front of seeds" 0 "seeds 8..11, small: 4 runs" "4 passed, 0 failed"
clean "soak.sh"

# Without --seeds the script runs until a signal ends it, here one to the script alone.
for sig in INT TERM; do
	# Background jobs of a shell ignore SIGINT, so Python restores the default action for the script.
	python3 - "$sig" "${soak[@]}" --scenario small --share 100 >out 2>&1 <<-'END' || code=$?
	import os, signal, subprocess, sys
	signal.signal(signal.SIGINT, signal.SIG_DFL)
	p = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True)
	for line in p.stdout:
	    print(line, end="")
	    if "seeds 1..100" in line:
	        p.send_signal(getattr(signal, "SIG" + sys.argv[1]))
	sys.exit(p.wait() - (128 + getattr(signal, "SIG" + sys.argv[1])))
	END
	out=$(<out)
	expect "SIG$sig" 0 " passed, 0 failed"
	clean "SIG$sig"
	code=0
done
exit $failed
