# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Completion in bash for urnic's programs. Options, and words such as the tests of urnic-perf, are those of the program's
# own --help, so that they are always the installed program's.

# The options in a help text: _urnic_options < TEXT
_urnic_options() {
	grep -oE '(^|[[:space:],[|])(--[a-z][a-z0-9-]*|-[a-zA-Z])\b' | grep -oE -- '--?[a-zA-Z][a-z0-9-]*' | sort -u
}

# The words that can stand next, from a help text whose rows of words have two blanks in front: the commands of urnicctl,
# where those before have to match, and the tests of urnic-perf, several in a row: _urnic_words PROGRAM [WORD...] < TEXT
_urnic_words() {
	local program=$1

	shift
	awk -v several="$([ "$program" = urnic-perf ] && [ $# -eq 0 ] && echo 1)" -v before="$*" '
		BEGIN { given = split(before, word, " ") }
		/^  [a-z]/ {
			sub(/^  /, "")
			sub(/  .*/, "")
			fields = split($0, field, " ")
			for (i = 1; i <= given && (field[i] == word[i] || field[i] ~ /^[A-Z]+$/); i++)
				;
			if (i <= given)
				next
			for (i = given + 1; i <= (several ? fields : given + 1); i++) {
				parts = split(field[i], part, "|")
				for (j = 1; j <= parts; j++)
					if (part[j] ~ /^[a-z][a-z0-9_-]*$/)
						print part[j]
			}
		}' | sort -u
}

# Where the program of urnic-run begins in COMP_WORDS; 0: not yet.
_urnic_program_at() {
	local i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) echo $((i + 1)); return ;;
		--*=*) ;;
		-s | --socket | -n | --node | --net | --library | --folder | --fault | --seed | --start) i=$((i + 1)) ;;
		-*) ;;
		*) echo "$i"; return ;;
		esac
	done
	echo 0
}

_urnic() {
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} help at word words=()

	COMPREPLY=()
	if [ "${1##*/}" = urnic-run ]; then
		at=$(_urnic_program_at)
		if [ "$at" -gt 0 ] && [ "$at" -lt "$COMP_CWORD" ]; then
			# The program's own completion, where bash-completion has one.
			if declare -F _command_offset >/dev/null; then
				_command_offset "$at"
			else
				mapfile -t COMPREPLY < <(compgen -f -- "$current")
			fi
			return
		fi
	fi
	case $before in
	-n | --node)
		mapfile -t COMPREPLY < <(compgen -W "$(urnicctl show adapter 2>/dev/null | sed -nE 's/.*\bnode[ =:]+"?([a-zA-Z0-9_-]+).*/\1/p') a b" -- "$current")
		return
		;;
	-c | --config | -s | --socket | --library | --folder | --to | --file | --from | --capture | --pid-file | --log | --session-log)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	esac
	help=$("$1" --help 2>/dev/null)
	if [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_urnic_options <<<"$help")" -- "$current")
	elif [ "${1##*/}" = urnic-run ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$current" | sort -u)
	else
		for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
			[[ $word == -* ]] || words+=("$word")
		done
		mapfile -t COMPREPLY < <(compgen -W "$(_urnic_words "${1##*/}" "${words[@]}" <<<"$help")" -- "$current")
		[ "${1##*/}" = urnicctl ] || [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$current")
	fi
}

complete -o filenames -F _urnic urnic-run urnicctl urnic-perf urnicd urnic-top urnic-web urnic-cp urnic-pingpong urnic-switch
