#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/figures.sh: its options, its errors, and that it measures every figure.
# How large the figures are is not looked at: that is for a machine left alone.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"
figures=("$project/scripts/figures.sh" --no-install --build "$2")

check_help figures.sh

try "${figures[@]}" --rounds 0
expect "no rounds" 2 "--rounds wants a number"
try "${figures[@]}" --seconds x
expect "bad time" 2 "--seconds wants a number"
try "${figures[@]}" --nonsense
expect "unknown option" 2 "unknown argument '--nonsense'"

try "${figures[@]}" --rounds 1 --seconds 0.05
expect "one round" 0 "64 KiB WRITE, of limit" "64 B SEND, 16 QPs, of limit" "ping-pong" \
	"10,000 QPs, of 16 QPs" "memory of an idle QP"
clean "one round"
exit $failed
