#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Check that no folder includes from a folder above it.
#
# Usage: scripts/layers.sh [--list] [--project DIR]
#
# The table in doc/inside/architecture.md, "Folders", has a row for each folder, the top
# one first, and names the folders that it may include from. Every #include of the
# sources is checked against the table, and every row against the order of rows: a
# folder stands above all folders that it includes from, so that there is no circle.
#
#   --list         print also which folder includes from which, and how often
#   --project DIR  check this copy of the project (default: the script's own)
#   --help         this text
#
# Exit code: 0 every include and row is allowed, 1 one is not, 2 wrong usage.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

list=0
dir=$project
while [ $# -gt 0 ]; do
	case $1 in
	--list) list=1 ;;
	--project) need_value "$@"; dir=$2; shift ;;
	--project=*) dir=${1#*=} ;;
	--help | -h) print_help; exit 0 ;;
	*) usage_error "unknown option '$1'" ;;
	esac
	shift
done
[ -f "$dir/doc/inside/architecture.md" ] || die "there is no doc/inside/architecture.md in '$dir'"
cd "$dir"

sources() {
	find apps dataplane examples lib pmd_glue -name '*.[ch]' | LC_ALL=C sort
}

# Rows of the table (R), then source files (F), then their includes (I), one a line.
facts() {
	sed -n '/^## Folders/,/^## [^F]/s/^| `/R /p' doc/inside/architecture.md
	sources | sed 's/^/F /'
	sources | xargs grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' /dev/null | sed 's/^/I /'
}

facts | awk -v list="$list" '
function fail(what) { print what > "/dev/stderr"; bad = 1 }

# The row for a file: the longest path of the table that the file lies in, or "". When folders inside a
# folder have rows, the row of the folder is only for files directly in it.
function folder(path,   r, own) {
	own = path
	sub(/\/[^\/]*$/, "", own)
	for (path = own; !(path in rank); )
		if (!sub(/\/[^\/]*$/, "", path))
			return ""
	if (path != own)
		for (r in rank)
			if (index(r, path "/") == 1)
				return ""
	return path
}

# The file of the project that an include names, or "". Folders are tried in the order of the compiler options.
function file_of(name, from,   i, n, base, at) {
	sub(/\/[^\/]*$/, "", from)
	n = split(from " dataplane . lib apps lib/include", base, " ")
	for (i = 1; i <= n; i++) {
		at = base[i] == "." ? name : base[i] "/" name
		while (sub(/[^\/.]+\/\.\.\//, "", at))
			;
		if (at in source)
			return at
	}
	return ""
}

# R dataplane/report` | `dataplane/server`, `dataplane/control` | what it is |
/^R / {
	split($0, column, "|")
	n = split(substr(column[1], 3), above, "`")
	m = split(column[2], below, "`")
	rows++
	for (i = 1; i <= n; i += 2) {
		rank[above[i]] = rows
		for (j = 2; j <= m; j += 2) {
			may[above[i], below[j]] = 1
			pair[++pairs] = above[i] "|" below[j]
		}
	}
	next
}
/^F / { source[substr($0, 3)] = 1; next }
/^I / {
	split(substr($0, 3), part, ":")
	name = $0
	sub(/^[^"<]*["<]/, "", name)
	sub(/[">].*$/, "", name)
	target = file_of(name, part[1])
	if (target == "")
		next
	from = folder(part[1])
	to = folder(target)
	includes++
	if (from == "" || to == "")
		fail(part[1] ":" part[2] ": " (from == "" ? part[1] : target) " is in no folder of the table")
	else if (from != to && !((from, to) in may))
		fail(part[1] ":" part[2] ": " from " may not include from " to " (" name ")")
	seen[from "|" to]++
}
END {
	if (!rows || !includes)
		fail("there is no table of folders, or there are no sources")
	for (i = 1; i <= pairs; i++) {
		split(pair[i], p, "|")
		if (!(p[2] in rank))
			fail("doc/inside/architecture.md: " p[1] " may include from " p[2] ", which has no row")
		else if (rank[p[2]] <= rank[p[1]])
			fail("doc/inside/architecture.md: " p[1] " may include from " p[2] ", which does not stand below it")
		else if (!(pair[i] in seen))
			fail("doc/inside/architecture.md: " p[1] " may include from " p[2] ", and never does")
	}
	for (s in seen)
		if (list) {
			split(s, p, "|")
			if (p[1] != p[2])
				printf "%s\t%s\t%d\n", p[1], p[2], seen[s] | "sort"
		}
	if (!bad)
		printf "%d includes, %d folders: none from above\n", includes, rows
	exit bad
}'
