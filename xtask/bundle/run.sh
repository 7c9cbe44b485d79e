#!/usr/bin/env bash
# Runs what `cargo xtask gpu-bundle` gathered here, without cargo.
#
#   run.sh [WHAT...] [-- ARGUMENTS...]
#
# WHAT is a group (tests, examples, benches, peers) or one program of it (tests/scry-gpu-lib); without
# any, everything runs. ARGUMENTS go to each program. Logs go to $OUT, or to the folder `out` beside
# this file: one for each group, and summary.txt. A program is killed after $SCRY_RUN_LIMIT seconds
# (300).
set -uo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
out="${OUT:-$here/out}"
mkdir -p "$out"
out="$(cd "$out" && pwd)"
limit="${SCRY_RUN_LIMIT:-300}"
export SCRY_ROOT="$here/root"
export CARGO_BIN_EXE_scry="$here/bin/scry"
export PATH="$here/bin:$PATH"

# Programs travel in one archive.
if [[ -e "$here/programs.tar.xz" ]]; then
    tar --directory "$here" --extract --xz --file "$here/programs.tar.xz" || exit 2
    rm "$here/programs.tar.xz"
fi

wanted=()
while (($#)) && [[ "$1" != -- ]]; do
    wanted+=("${1%/}")
    shift
done
(($#)) && shift

is_wanted() {
    ((${#wanted[@]})) || return 0
    local what
    for what in "${wanted[@]}"; do
        [[ "$what" == "$1" || "$what" == "$1/$2" ]] && return 0
    done
    return 1
}

# Absolute paths that are compiled into programs become links to this folder, unless they exist.
links=()
trap '((${#links[@]} == 0)) || rm -f "${links[@]}"' EXIT
while IFS=$'\t' read -r path target; do
    if [[ ! -e "$path" ]] && mkdir -p "$(dirname "$path")" 2>/dev/null; then
        ln -s "$here/$target" "$path" 2>/dev/null && links+=("$path")
    fi
done <"$here/links"

: >"$out/summary.txt"
failed=0
count=0
while IFS=$'\t' read -r group name folder; do
    is_wanted "$group" "$name" || continue
    count=$((count + 1))
    arguments=("$@")
    [[ "$group" == benches ]] && arguments=(--bench "$@")
    start=$SECONDS
    echo "=== $group/$name" >>"$out/$group.log"
    (cd "$here/root/$folder" && exec timeout -k 10 "$limit" "$here/$group/$name" \
        ${arguments[@]+"${arguments[@]}"}) </dev/null >>"$out/$group.log" 2>&1
    status=$?
    case $status in
        0) verdict=ok ;;
        124 | 137) verdict="FAILED: more than $limit s, or killed" ;;
        *) verdict="FAILED: status $status" ;;
    esac
    echo "$group/$name: $verdict, $((SECONDS - start)) s" | tee -a "$out/summary.txt"
    if [[ "$verdict" != ok ]]; then
        failed=$((failed + 1))
        tail -n 20 "$out/$group.log" | sed 's/^/    /'
    fi
done <"$here/list"

while IFS= read -r reason; do
    echo "left out: $reason" | tee -a "$out/summary.txt"
done <"$here/left-out"
echo "$count run, $failed failed" | tee -a "$out/summary.txt"
((count > 0)) || { echo "nothing here is called ${wanted[*]}" >&2; exit 2; }
((failed == 0))
