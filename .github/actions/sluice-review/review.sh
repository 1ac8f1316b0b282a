#!/usr/bin/env bash
# Reviews what a pull request does to limits.yaml: breaking changes, generated files that are not current, and the
# diff of what runs on the store. It keeps one comment up to date, or writes the job summary if it has no right to
# comment.
#
# Facts come from the environment, as action.yml sets them:
#   REVIEW_COMMAND    how to run sluice; words are split at blanks. None: the module's tool, or the command at
#                     REVIEW_VERSION if that is set
#   REVIEW_FILES      schemas, one a line; none: each limits.yaml that git knows, but for folders named testdata
#   REVIEW_BASE       the commit to compare with; none: where the pull request begins
#   REVIEW_FAIL_ON    what fails: breaking, drift, or both with a comma between; none
#   REVIEW_TOKEN      the token that comments; REVIEW_AUTHOR is the login that its comments have
#   PULL_NUMBER, PULL_BASE, PULL_HEAD, PULL_REPOSITORY
#                     the pull request: its number, the commits it goes to and comes from, the repository it comes from
#   GITHUB_*          as GitHub sets them
#
# Exit codes: 0 all is well, 1 the review fails the pull request, 2 a wrong set-up, 3 the comment cannot be written.
#
# What it shows is text of strangers. It stands in fences of 20 backticks, and no text in them has as many in a row, so
# none ends a fence, and GitHub notifies nobody of a name in it.
#
# shellcheck disable=SC2016 # backticks in single quotes are Markdown
set -euo pipefail
export LC_ALL=C # lengths are bytes, and messages English

readonly marker='<!-- sluice-review -->'
readonly fence='````````````````````' # 20

# Bounds, in bytes but for the rows. GitHub takes 65,536 characters a comment. Details leave room for the
# table, and a name has at most 100 bytes.
readonly most_details=52000 most_block=15000 most_line=1000 most_rows=20

token=${REVIEW_TOKEN:-}
unset REVIEW_TOKEN # not passed on; commands below run as this user all the same, and could find it

# die CODE TEXT ends the run.
die() {
	printf 'sluice-review: %s\n' "$2" >&2
	exit "$1"
}

# plain prints a name of a stranger's, fit for a code span and a log.
plain() {
	printf '%s' "${1//[^A-Za-z0-9._\/ -]/_}" | cut -c 1-100
}

# quoted prints a file for the log: no line of it is a command to the runner.
quoted() {
	clean <"$1" | sed -n -e 's/##\[/## [/g' -e '1,20s/^/  | /p'
}

# clean copies text without control characters and marks of direction, and shortens long lines and long runs of
# backticks.
clean() {
	tr -d '\000-\010\013-\037\177' |
		sed -E -e $'s/\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]|\xd8\x9c|\xc2[\x80-\x9f]//g' -e 's/`{20,}/(backticks)/g' |
		awk -v most="$most_line" 'length($0) > most { $0 = substr($0, 1, most) " (cut)" } { print }'
}

# count N THING prints a number and its noun.
count() {
	local s=s
	(($1 != 1)) || s=''
	printf '%d %s%s' "$1" "$2" "$s"
}

# say appends lines to the details of the report.
say() { printf '%s\n' "$@" >>"$tmp/details"; }

# block TITLE LANGUAGE FILE [open] appends a file in a fence, folded unless it is open. It shows no more lines than the
# comment has room for.
block() {
	local room all shown
	room=$((most_details - $(wc -c <"$tmp/details")))
	if ((room < 500)); then
		[[ $full ]] || say '' 'More is left out, since GitHub bounds the length of a comment.'
		full=yes
		return
	fi
	((room < most_block)) || room=$most_block
	clean <"$3" >"$tmp/clean"
	awk -v room="$room" '{ room -= length($0) + 1 } room >= 0 { print }' "$tmp/clean" >"$tmp/shown"
	all=$(wc -l <"$tmp/clean") shown=$(wc -l <"$tmp/shown")
	say '' "<details${4:+ open}><summary>$1</summary>"
	if ((shown > 0)); then
		say '' "$fence$2"
		cat "$tmp/shown" >>"$tmp/details"
		say "$fence"
	fi
	((shown == all)) || say '' "Cut: $((shown)) of $((all)) lines are shown, since GitHub bounds the length of a comment."
	say '' '</details>'
}

# check_tools checks the machine and the action's inputs.
check_tools() {
	local tool root
	for tool in git curl jq awk; do
		command -v "$tool" >/dev/null || die 2 "no $tool on PATH: install it, or use a runner of GitHub's"
	done
	[[ ${GITHUB_EVENT_NAME:-} != pull_request_target ]] ||
		die 2 'pull_request_target gives code of strangers a token: use on: pull_request'
	fails=",${REVIEW_FAIL_ON:-breaking,drift},"
	fails=${fails//[[:space:]]/}
	[[ $fails =~ ^,((breaking|drift|none),)+$ ]] ||
		die 2 "fail-on is $(plain "$REVIEW_FAIL_ON"): want breaking, drift, or both with a comma between, or none"
	root=$(git rev-parse --show-toplevel) || die 2 'no git repository here: check out before this action'
	cd "$root"
	read -ra sluice <<<"${REVIEW_COMMAND:-}"
	((${#sluice[@]} > 0)) || find_command
	if ! "${sluice[@]}" --version >"$tmp/out" 2>&1; then
		quoted "$tmp/out" >&2
		die 2 "cannot run $(plain "${sluice[*]} --version"): set Go up before, and correct command or version"
	fi
}

# find_command sets sluice: the version asked for, else that of the go:generate lines, else the module's tool.
find_command() {
	local run=github.com/sluice-go/sluice/cmd/sluice@ version=${REVIEW_VERSION:-}
	[[ -n $version ]] ||
		version=$(git grep -hoE "^//go:generate go run $run[^ ]+" -- '*.go' ':(glob,exclude)**/testdata/**' \
			':(glob,exclude)**/vendor/**' | sed 's/.*@//' | sort -u) || version=
	[[ $version != *$'\n'* ]] ||
		die 2 "go:generate lines have several versions of sluice, $(plain "${version//$'\n'/ }"): set version"
	sluice=(go tool sluice)
	[[ -z $version ]] || sluice=(go run "$run$version")
}

# find_schemas sets schemas, and gone: those that the pull request deletes.
find_schemas() {
	local file
	schemas=() gone=()
	if [[ ${REVIEW_FILES:-} == *[![:space:]]* ]]; then
		while read -r file; do [[ -z $file ]] || schemas+=("$file"); done <<<"$REVIEW_FILES"
	else
		while IFS= read -r -d '' file; do schemas+=("$file"); done < <(
			git ls-files -z -- ':(glob)**/limits.yaml' ':(glob,exclude)**/testdata/**')
	fi
	while IFS= read -r -d '' file; do gone+=("$file"); done < <(
		git diff -z --name-only --find-renames --diff-filter=D "$base" HEAD -- \
			':(glob)**/limits.yaml' ':(glob,exclude)**/testdata/**')
	((${#schemas[@]} + ${#gone[@]} > 0)) || die 2 'git knows no limits.yaml here: name the schemas in files'
}

# commit REF prints the commit of a ref, or fails.
commit() { git rev-parse --verify --quiet --end-of-options "$1^{commit}"; }

# find_base sets base, the commit to compare with. The first parent of GitHub's merge commit is the state that the pull
# request goes to. The base in the event may be older.
find_base() {
	local ref=${REVIEW_BASE:-}
	if [[ -z $ref && -n ${PULL_HEAD:-} && $(commit 'HEAD^2') == "$PULL_HEAD" ]]; then
		ref='HEAD^1'
	elif [[ -z $ref && -n ${PULL_BASE:-} ]]; then
		ref=$(git merge-base "$PULL_BASE" HEAD 2>/dev/null) ||
			die 2 "git has no way from $(plain "$PULL_BASE") to HEAD: check out with fetch-depth: 0"
	fi
	[[ -n $ref ]] || die 2 'nothing to compare with: name a commit, branch or tag in base, or run on: pull_request'
	base=$(commit "$ref") || die 2 "git has no commit $(plain "$ref"): correct base, or check out with fetch-depth: 0"
}

# review_schema FILE compares a schema with the base and with its generated files. Text on stdout is a finding; a
# failure without one is a mistake in the schema or a failure of the command.
review_schema() {
	local name found generated=current failed='' broken=0
	name=$(plain "$1")
	"${sluice[@]}" breaking --file="$1" --against="git:$base" >"$tmp/out" 2>"$tmp/err" || failed=yes
	found=$(($(wc -l <"$tmp/out")))
	breaking=$((breaking + found))
	if ((found > 0)); then
		block "<code>$name</code>: breaking changes" text "$tmp/out" open
	elif [[ $failed ]]; then
		found='not compared' broken=1
		block "<code>$name</code>: cannot be compared" text "$tmp/err" open
	fi
	failed=''
	"${sluice[@]}" generate --check --file="$1" >"$tmp/out" 2>"$tmp/err2" || failed=yes
	if [[ -s $tmp/out ]]; then
		generated='not current' drifted=$((drifted + 1))
		block "<code>$name</code>: what <code>sluice generate</code> would change" diff "$tmp/out"
	elif [[ $failed ]]; then
		generated='fails' broken=1
		cmp -s "$tmp/err" "$tmp/err2" || block "<code>$name</code>: <code>sluice generate</code> fails" text "$tmp/err2" open
	fi
	failures=$((failures + broken)) rows=$((rows + 1))
	((rows > most_rows)) || printf '| `%s` | %s | %s |\n' "$name" "$found" "$generated" >>"$tmp/rows"
	git diff --quiet "$base" HEAD -- ":(literal)$1" || touched=yes
}

# review_gone FILE reports a schema that the base has, and the pull request deletes.
review_gone() {
	local name
	name=$(plain "$1")
	breaking=$((breaking + 1)) rows=$((rows + 1)) touched=yes
	((rows > most_rows)) || printf '| `%s` | deleted | none |\n' "$name" >>"$tmp/rows"
	say '' "\`$name\` is deleted. Nothing enforces its limits any more; its buckets stay stored until they expire."
}

# show_diff TITLE PATHSPEC... appends the diff of generated files. Others that have such a name are left out.
show_diff() {
	local title=$1 file first files=()
	shift
	while IFS= read -r -d '' file; do
		first=$(git show "HEAD:$file" 2>/dev/null | sed -n 1p) || first='' # it is gone
		[[ -n $first ]] || first=$(git show "$base:$file" | sed -n 1p)
		[[ $first != *'Code generated by sluice. DO NOT EDIT.'* ]] || files+=(":(literal)$file")
	done < <(git diff -z --name-only --no-renames "$base" HEAD -- "$@" ':(glob,exclude)**/testdata/**')
	((${#files[@]} > 0)) || return 0
	touched=yes
	git diff --no-color --text --no-ext-diff --no-textconv --no-renames "$base" HEAD -- "${files[@]}" >"$tmp/out"
	block "$title" diff "$tmp/out"
}

# headline prints the report's first line.
headline() {
	local text=''
	[[ $failures$breaking$drifted != 000 ]] || text='all is well'
	((failures == 0)) || text+=", $(count "$failures" failure)"
	((breaking == 0)) || text+=", $(count "$breaking" 'breaking change')"
	((drifted == 0)) || text+=", generated files that are not current"
	printf 'sluice: %s\n' "${text#, }"
}

# review writes the report, and sets verdict to the exit code.
review() {
	local file
	breaking=0 drifted=0 failures=0 rows=0 touched='' full='' verdict=0
	: >"$tmp/details"
	: >"$tmp/rows"
	for file in "${schemas[@]}"; do review_schema "$file"; done
	for file in "${gone[@]}"; do review_gone "$file"; done
	show_diff 'What runs on the store, what it costs: diff of EXPRESSIONS.md' ':(glob)**/EXPRESSIONS.md'
	show_diff 'The expressions and scripts: diff of generated code' ':(glob)**/*_dynamodb.go' ':(glob)**/*_redis.go'
	((failures == 0)) || verdict=1
	((breaking == 0)) || [[ $fails != *,breaking,* ]] || verdict=1
	((drifted == 0)) || [[ $fails != *,drift,* ]] || verdict=1
	[[ $failures$breaking$drifted == 000 ]] || touched=yes
	compose >"$tmp/body"
}

# compose prints the report as Markdown.
compose() {
	printf '%s\n### %s\n\n' "$marker" "$(headline)"
	printf '| schema | breaking changes | generated files |\n|---|--:|---|\n'
	cat "$tmp/rows"
	((rows <= most_rows)) || printf '\n%s\n' "The first $most_rows of $rows schemas are listed."
	((breaking == 0)) || printf '\n%s\n' 'Undo a breaking change, or ignore it with a reason (`sluice breaking --help`).'
	((drifted == 0)) || printf '\n%s\n' 'Run `sluice generate` and commit what it writes.'
	if [[ $failures$breaking$drifted != 000 ]] && ((verdict == 0)); then
		printf '\n%s\n' 'This does not fail the check: `fail-on` leaves it out.'
	fi
	cat "$tmp/details"
	printf '\n%s\n' "Compared: \`$(git rev-parse --short=12 HEAD)\` with \`${base:0:12}\`."
}

# summarize REASON prints the report to the job summary, or to stdout if there is none.
summarize() {
	local to=${GITHUB_STEP_SUMMARY:-/dev/stdout}
	{ cat "$tmp/body" && printf '\n%s\n' "$1"; } >>"$to"
	printf 'sluice-review: %s\n' "$1" >&2
}

# api METHOD PATH [FILE] calls GitHub, and leaves the reply in reply. FILE has the JSON to send.
api() {
	local status message method=$1 path=$2
	shift 2
	status=$(curl -sS --max-time 30 -X "$method" -o "$tmp/reply" -w '%{http_code}' -H "@$tmp/headers" \
		${1:+--data-binary "@$1"} "$GITHUB_API_URL$path" 2>"$tmp/err") || {
		summarize 'GitHub cannot be reached, so the report is here and in no comment.'
		quoted "$tmp/err" >&2
		die 3 "no answer to $method $path of $GITHUB_API_URL"
	}
	[[ $status != 2?? ]] || return 0
	message=$(jq -r '.message // "no message"' <"$tmp/reply" 2>/dev/null) || message='no JSON'
	summarize "GitHub refused the comment ($status), so the report is here."
	[[ $status != 40[134] ]] || message+=': the job needs permissions: pull-requests: write; Dependabot has none'
	die 3 "GitHub answers $status to $method $path: ${message//$'\n'/ }"
}

# comment creates the pull request's comment, or edits it. A comment of another author is not it.
comment() {
	local page=1 id='' path=/repos/$GITHUB_REPOSITORY/issues
	printf '%s\n' "Authorization: Bearer $token" 'Accept: application/vnd.github+json' \
		'X-GitHub-Api-Version: 2022-11-28' 'Content-Type: application/json' >"$tmp/headers"
	while :; do
		api GET "$path/$PULL_NUMBER/comments?per_page=100&page=$page"
		id=$(jq -r --arg author "$REVIEW_AUTHOR" --arg marker "$marker" \
			'[.[] | select(.user.login == $author and ((.body // "") | startswith($marker)))][0].id // empty' \
			<"$tmp/reply") || die 3 'GitHub lists comments in a form that is not known'
		if [[ -n $id ]] || (($(jq length <"$tmp/reply") < 100)); then break; fi
		page=$((page + 1))
	done
	if [[ -z $id && -z $touched ]]; then
		echo 'sluice-review: the pull request leaves the limits as they are: no comment' >&2
		return
	fi
	jq -Rs '{body: .}' <"$tmp/body" >"$tmp/json" # what is no UTF-8 becomes U+FFFD
	if [[ -n $id ]]; then
		api PATCH "$path/comments/$id" "$tmp/json"
		echo "sluice-review: comment $id is up to date" >&2
	else
		api POST "$path/$PULL_NUMBER/comments" "$tmp/json"
		echo 'sluice-review: commented' >&2
	fi
}

main() {
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	check_tools
	find_base
	find_schemas
	review
	if [[ -z ${PULL_NUMBER:-} ]]; then
		summarize 'This run is of no pull request, so the report is here.'
	elif [[ ${PULL_REPOSITORY:-} != "$GITHUB_REPOSITORY" ]]; then
		summarize 'The pull request is from a fork. Its runs have no right to comment, so the report is here.'
	elif [[ -z $token ]]; then
		summarize 'There is no token to comment with, so the report is here.'
	else
		comment
	fi
	headline >&2
	exit "$verdict"
}

main
