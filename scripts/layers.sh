#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Check that no folder includes from a folder above it, or uses a function from there.
#
# Usage: scripts/layers.sh [--list] [--project DIR]
#
# The table in doc/inside/architecture.md, "Folders", has a row for each folder, the top
# one first, and names the folders that it may include from. Every #include of the
# sources is checked against the table, and every row against the order of rows: a
# folder stands above all folders that it includes from, so that there is no circle.
# A folder may declare, call and name functions and data that are defined in itself, or in
# a folder to which the rows lead from it; a prototype alone makes no way up.
#
#   --list         print also which folder includes from which, and how often
#   --project DIR  check this copy of the project (default: the script's own)
#   --help         this text
#
# Exit code: 0 every include, name and row is allowed, 1 one is not, 2 wrong usage.

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

# Names that a folder may have though they are defined above it: the folder, a pattern of the names, and the reason.
exceptions() {
	cat <<-'END'
		lib/include . public headers, whose functions the folders of the library define
		pmd_glue ^ibv_ functions of the system's libibverbs, which the port's PMD uses
		pmd_glue ^rte_eth_remove_ functions of ethdev, which urnicd calls in its own of the same name
	END
}

# Rows of the table (R), exceptions (X), then source files (F), then their includes (I), one a line.
facts() {
	sed -n '/^## Folders/,/^## [^F]/s/^| `/R /p' doc/inside/architecture.md
	exceptions | sed 's/^/X /'
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

# The name that a line of a .c file at depth 0 defines, or "".
function defined(line) {
	if (line ~ /^(extern|typedef|return|union|enum|struct [a-z0-9_]+;)/)
		return ""
	if (line !~ /^_?[a-z][a-z0-9_]*\(/) {
		if (line !~ /^[a-z_].*[ *][a-z][a-z0-9_]*(\[[^=]*\])*( =.*|;)$/ && line !~ /^static .*\(/)
			return ""
		sub(/ = .*$| =$|;$/, "", line)
		sub(/(\[.*)?(\(.*)?$/, "", line)
		sub(/^.*[ *]/, "", line)
	}
	sub(/\(.*/, "", line)
	return line ~ /^_?[a-z][a-z0-9_]*$/ ? line : ""
}

# Learn the names that a file defines: home[] for the program, own[] for itself.
function learn(path,   line, last, name, at) {
	at = folder(path)
	for (last = ""; (getline line < path) > 0; last = line) {
		name = defined(line)
		if (name == "")
			continue
		if (last ~ /^URN_CALL /)
			continue # a function of the C library that is put in its place
		if (line ~ /^static / || (line ~ /^_?[a-z][a-z0-9_]*\(/ && last ~ /^static /))
			own[path, name] = 1
		else if (index(home[name], "|" at "|") == 0)
			home[name] = home[name] "|" at "|"
	}
	close(path)
}

# A line without strings and comments. In a comment that goes on: comment is 1.
function code(line,   i, j, rest) {
	if (comment) {
		i = index(line, "*/")
		if (!i)
			return ""
		comment = 0
		line = substr(line, i + 2)
	}
	gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
	while ((i = index(line, "/*")) > 0) {
		rest = substr(line, i + 2)
		j = index(rest, "*/")
		comment = !j
		line = substr(line, 1, i - 1) (j ? " " substr(rest, j + 2) : "")
	}
	return line ~ /^#[ \t]*(include|if|ifdef|ifndef|elif|undef)/ ? "" : line
}

# True when a folder may use the name. A public header is below all who are not of the library; drop-in libraries,
# the preload library of sockets and the shell of byte streams are programs of it.
function usable(from, name,   n, h, i) {
	if ((name in public) && (from !~ /^lib\// || from ~ /^lib\/(dropin\/|sockets$|stream\/shell$)/))
		return from == "lib/include" || ((from, "lib/include") in reach)
	n = split(home[name], h, "|")
	for (i = 1; i <= n; i++)
		if (h[i] == from || ((from, h[i]) in reach))
			return 1
	return 0
}

function excepted(from, name,   i) {
	for (i = 1; i <= exceptions; i++)
		if (x_folder[i] == from && name ~ x_name[i])
			return ++x_used[i]
	return 0
}

# Hold each name in a file against the folder that defines the name.
function hold(path,   line, at, name, before, from) {
	from = folder(path)
	comment = 0
	for (at = 1; (getline line < path) > 0; at++) {
		line = code(line)
		for (before = ""; match(line, /[A-Za-z_][A-Za-z0-9_]*/); before = name) {
			name = substr(line, RSTART, RLENGTH)
			before = before substr(line, 1, RSTART - 1)
			line = substr(line, RSTART + RLENGTH)
			if (!(name in home) || ((path, name) in own) || before ~ /(struct |union |enum |\.|->)$/)
				continue
			if (from == "lib/include")
				public[name] = 1
			used++
			if (!usable(from, name) && !excepted(from, name))
				fail(path ":" at ": " from " may not use " name " of " substr(home[name], 2, length(home[name]) - 2))
		}
	}
	close(path)
}

# Follow the rows, the lowest first: reach[] has the folders to which they lead.
function follow(   r, i, p, f) {
	for (r = rows; r > 0; r--)
		for (i = 1; i <= pairs; i++) {
			split(pair[i], p, "|")
			if (rank[p[1]] != r)
				continue
			reach[p[1], p[2]] = 1
			for (f in rank)
				if ((p[2], f) in reach)
					reach[p[1], f] = 1
		}
}

function names(   f, i) {
	follow()
	for (f = 1; f <= files; f++)
		if (file[f] ~ /\.c$/)
			learn(file[f])
	for (f = 1; f <= files; f++)
		if (folder(file[f]) == "lib/include")
			hold(file[f])
	for (f = 1; f <= files; f++)
		if (folder(file[f]) != "lib/include")
			hold(file[f])
	if (!used)
		fail("no name of another file is used anywhere")
	for (i = 1; i <= exceptions; i++)
		if (!x_used[i])
			fail("the exception of " x_folder[i] " for " x_name[i] " is not needed")
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
/^X / { x_folder[++exceptions] = $2; x_name[exceptions] = $3; next }
/^F / { file[++files] = substr($0, 3); source[file[files]] = 1; next }
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
	if (rows && includes)
		names()
	for (s in seen)
		if (list) {
			split(s, p, "|")
			if (p[1] != p[2])
				printf "%s\t%s\t%d\n", p[1], p[2], seen[s] | "sort"
		}
	if (!bad)
		printf "%d includes, %d uses of names, %d folders: none from above\n", includes, used, rows
	exit bad
}'
