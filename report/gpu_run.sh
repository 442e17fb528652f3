#!/usr/bin/env bash
# Measure on a GPU machine that reaches no package registry, in calls of a few minutes: the run itself outlives them.
# Run from the project root.
#   report/gpu_run.sh unpack FROM       FROM/part.* (vLLM and what the notebooks import, one tar.xz in parts), FROM/*.whl,
#                                       FROM/model.tar.xz (model folders, for .models/)
#   report/gpu_run.sh start [PROFILE...]    both arms of each profile in turn, then the card's own rate
#   report/gpu_run.sh wait SECONDS      follow the run so long, or until it ends
#   report/gpu_run.sh pack FILE.tar.gz [PROFILE...]    records, notebooks and logs; also of a run that is under way
# WORK (default /tmp/prefixkit) holds the packages and the run's log.
set -euo pipefail
WORK=${WORK:-/tmp/prefixkit}
export PYTHONPATH=$WORK/site:$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1

case ${1:-} in
unpack)
    mkdir -p "$WORK/site" .models
    if ls "$2"/part.* >/dev/null 2>&1; then cat "$2"/part.* | xz -dc -T0 | tar -x --no-same-owner -C "$WORK/site"; fi
    for wheel in "$2"/*.whl; do [ -e "$wheel" ] && python3 -m zipfile -e "$wheel" "$WORK/site"; done
    [ ! -e "$2/model.tar.xz" ] || tar -xJf "$2/model.tar.xz" --no-same-owner -C .models
    ;;
start)
    [ $# -gt 1 ] || set -- start h200
    mkdir -p "$WORK"
    rm -f "$WORK/ended"
    # shellcheck disable=SC2016
    setsid bash -c '
        python3 -m prefixkit interleave "${@/#/--profile=}" --rounds "${ROUNDS:-2}"; echo "interleave ended with $?"
        for profile; do python3 -m prefixkit peak --profile "$profile"; echo "peak of $profile ended with $?"; done
        touch "$0/ended"' "$WORK" "${@:2}" >"$WORK/run.log" 2>&1 </dev/null &
    ;;
wait)
    end=$((SECONDS + $2))
    until [ -e "$WORK/ended" ] || [ $SECONDS -ge $end ]; do sleep 1; done
    grep -v ' probes$' "$WORK/run.log" | tail -n "${LINES_SHOWN:-25}" || true
    [ ! -e "$WORK/ended" ] || echo "the run has ended"
    ;;
pack)
    [ $# -gt 2 ] || set -- pack "$2" h200
    names=()
    for profile in "${@:3}"; do
        name=$(basename "$profile" .yaml)
        [ -d "report/out/$name" ] || continue
        cp "$WORK/run.log" "report/out/$name/run.log"
        names+=("$name")
    done
    tar -czf "$2" -C report/out "${names[@]}" || [ $? = 1 ] # 1: a file grew meanwhile
    ;;
*)
    sed -n '2,9p' "$0"
    exit 2
    ;;
esac
