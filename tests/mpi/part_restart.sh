# Ranks that are killed, and mica-mpirun.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # check.sh has the variables; told calls the functions

kills=${MICA_KILLS:-30}
restart_script=$here/../../mpi/mica-mpirun

# ---- Kills ----

# kill_one FOLDER: kills a rank of the job that trains there, if there are any.
kill_one() {
    local them
    mapfile -t them < <(ranks_in "$1")
    [ ${#them[@]} -gt 0 ] && kill -KILL "${them[RANDOM % ${#them[@]}]}" 2>/dev/null
}

# nap LEAST MOST: milliseconds
nap() { sleep "$(printf '0.%03d' $(($1 + RANDOM % ($2 - $1))))"; }

# await_checkpoint PROCESS: another than is there, or the end of the process.
await_checkpoint() {
    local file=$folder/kills/checkpoint.safetensors before
    before=$(stat -c %i "$file" 2>/dev/null)
    while kill -0 "$1" 2>/dev/null && [ "$(stat -c %i "$file" 2>/dev/null)" = "$before" ]; do
        sleep 0.02
    done
}

victim=(lenet --data digits:400 --batch 24 --shares 12 --epochs 15 --checkpoint-steps 5)
killed_job() {
    rm -rf "$folder/killed"
    timeout -k 5 "$most_seconds" "$launcher" -np 3 "$mica" train "${victim[@]}" --checkpoint "$folder/killed" --quiet --json \
        >"$folder/out" 2>"$folder/err" </dev/null &
    local job=$!
    until [ -e "$folder/killed/checkpoint.safetensors" ] || ! kill -0 "$job" 2>/dev/null; do nap 10 50; done
    kill_one "$folder/killed" || return
    wait "$job"
    code=$?
    [ "$code" -gt 128 ] || [ "$code" -eq 9 ] || return # as Open MPI says it, and MPICH
    grep -qE "signal 9|EXIT CODE: 9" "$folder/out" "$folder/err" && "$mica" info "$folder/killed" >/dev/null
}
told "a killed rank ends the job, and the checkpoint is whole" killed_job

# Jobs under mica-mpirun, until enough ranks have been killed. Each must end as the one that was left alone.
train 0 whole-victim "${victim[@]}" || told "the run that is left alone" false
random_kills() {
    local done=0 midway=0 runs=0 stuck=0 ranks job number
    while [ "$done" -lt "$kills" ]; do
        runs=$((runs + 1))
        ranks=$((2 + RANDOM % 3))
        rm -rf "$folder/kills"
        # by turns: through shared memory, where a death is not seen, and through sockets, where it is
        env OMPI_MCA_btl="$([ $((runs % 2)) -eq 0 ] && echo tcp,self || echo vader,self)" \
            timeout -k 5 $((most_seconds * 2)) "$restart_script" --tries 999 -np "$ranks" "$mica" train "${victim[@]}" \
            --checkpoint "$folder/kills" --quiet --json >"$folder/out" 2>"$folder/err" </dev/null &
        job=$!
        while kill -0 "$job" 2>/dev/null; do
            # at any time, from when the ranks are started on; or, mostly, once this try has come to a checkpoint
            [ $((RANDOM % 3)) -eq 0 ] || await_checkpoint "$job"
            nap 1 400
            if [ "$done" -lt "$kills" ] && kill_one "$folder/kills"; then
                done=$((done + 1))
            fi
        done
        wait "$job" || {
            code=$?
            # Open MPI's own launcher may hang where a rank dies while it connects: then nothing of ours has gone wrong,
            # and another run takes the place of this one.
            if grep -q 'PMIX ERROR: UNREACHABLE' "$folder/err" && [ $((stuck += 1)) -le 2 ]; then
                echo "  run $runs: mpirun was stuck"
                continue
            fi
            echo "  run $runs ended with $code" && return 1
        }
        number=$(grep -c 'continuing from' "$folder/err")
        midway=$((midway + number))
        [ "$(sum_of kills)" = "$(sum_of whole-victim)" ] || { echo "  run $runs: other bits" && return 1; }
        [ "$(ls -A "$folder/kills")" = checkpoint.safetensors ] || { echo "  left: $(ls -A "$folder/kills")" && return 1; }
    done
    echo "  $done ranks killed in $runs runs; $midway times a checkpoint was continued"
    [ "$midway" -ge $((kills / 3)) ]
}
told "$kills random kills of a random rank: the same bits, no file lost" random_kills

# ---- mica-mpirun ----

export MPIRUN=$launcher
restart() {
    timeout -k 5 "$most_seconds" "$restart_script" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    code=$?
}
ended() { [ "$code" -eq "$1" ] && says "$2"; }
restart -np 2 "$mica" info lenet
told "mica-mpirun is for mica train" ended 2 'expected a command "mica train'
restart --tries x -np 2 "$mica" train lenet
told "mica-mpirun: a number of tries" ended 2 '--tries takes a number'
restart -np 2 "$mica" train lenet --epochz 3
told "mica-mpirun: a usage error is not tried again" ended 2 'unknown option --epochz'
restart -np 2 "$mica" train lenet --data "$folder/missing.csv" --checkpoint "$folder/bad"
told "mica-mpirun: nor a missing file" ended 3 'missing.csv'
told "mica-mpirun: without a second try" test "$(grep -c 'try 2' "$folder/err")" -eq 0

# A job that its rank 0 kills, twice: where a file "killed" of it has fewer lines.
cat >"$folder/mica" <<TEXT
#!/bin/bash
case " \$* " in *" --where "*) exec "$mica" "\$@" ;; esac
echo "\$*" >>"$folder/tries"
if [ "\$(wc -l <"$folder/tries")" -le "\$DEATHS" ]; then
    "$mica" "\$@" --epochs \$EPOCHS || exit
    kill -KILL \$\$
fi
exec "$mica" "\$@"
TEXT
chmod +x "$folder/mica"
export DEATHS=2 EPOCHS=1
again=(lenet --data digits:100 --shares 2 --schedule constant --quiet --json --epochs 3)
cd "$folder" || exit 1
train 0 again "${again[@]}"
restart --tries 3 -np 1 "$folder/mica" train "${again[@]}"
told "mica-mpirun: the default folder, and only as many tries as asked for" ended 0 'try 3 of 3: continuing from lenet-digits/check'
told "mica-mpirun: first without --resume, then with it" \
    test "$(grep -c -- '--resume' tries) $(head -n 1 tries | grep -c -- '--resume')" = "2 0"
told "mica-mpirun: the same bits" test "$(sum_of again)" = "$(sum_of lenet-digits)"

# --overwrite: what is there is not continued, whenever the job dies.
rm tries
export DEATHS=1
restart --tries 2 -np 1 "$folder/mica" train "${again[@]}" --overwrite --seed 7
told "mica-mpirun: --overwrite, once" test "$code $(grep -c -- '--overwrite' tries)" = "0 1"
train 0 seven "${again[@]}" --seed 7
told "mica-mpirun: --overwrite, and then its own checkpoint" test "$(sum_of seven)" = "$(sum_of lenet-digits)"
sed -i 's/^    ".*exit$/    :/' mica # dies before it has done anything
rm tries
restart --tries 2 -np 1 "$folder/mica" train "${again[@]}" --overwrite
told "mica-mpirun: --overwrite, after an early death" ended 0 'try 2 of 2: from the start'
told "mica-mpirun: and not the old checkpoint" test "$(sum_of again)" = "$(sum_of lenet-digits)"
rm tries
export DEATHS=9
restart --tries 2 -np 1 "$folder/mica" train "${again[@]}" --overwrite
told "mica-mpirun: gives up" says 'gave up after 2 of 2 tries'
told "mica-mpirun: with the code of the last try" test "$code" -eq 137 -o "$code" -eq 9

# A signal to mica-mpirun stops the job after a step, and is no reason to try again.
stopped_job() {
    local job
    rm -rf "$folder/kills"
    timeout --foreground -k 5 "$most_seconds" "$restart_script" -np 2 "$mica" train "${victim[@]}" --epochs 100000 \
        --checkpoint "$folder/kills" --quiet >"$folder/out" 2>"$folder/err" </dev/null &
    job=$!
    await_checkpoint "$job"
    kill -TERM "$job" # timeout passes it on, to nobody else
    wait "$job"
    code=$?
    ended 130 "interrupted after step" && ! says "try 2"
}
told "mica-mpirun: a signal stops it" stopped_job

# An mpirun that is killed leaves ranks behind, which end a little later.
killed_launcher() {
    local job
    rm -rf "$folder/kills"
    "$restart_script" --tries 3 -np 2 "$mica" train "${victim[@]}" --checkpoint "$folder/kills" --quiet \
        >"$folder/out" 2>"$folder/err" <&- &
    job=$!
    await_checkpoint "$job"
    kill -KILL "$(pgrep -P "$job" | head -n 1)"
    wait "$job"
    code=$?
    ended 0 "try 2 of 3: continuing"
}
told "mica-mpirun: an mpirun that is killed, and no stdin" killed_launcher

# Ctrl-C reaches all processes of the terminal: still, each rank gets one signal, and time to write the checkpoint.
stopped_group() {
    local job
    rm -rf "$folder/kills"
    setsid "$restart_script" -np 2 "$mica" train "${victim[@]}" --epochs 100000 \
        --checkpoint "$folder/kills" --quiet >"$folder/out" 2>"$folder/err" </dev/null &
    job=$!
    await_checkpoint "$job"
    kill -TERM -- -"$job"
    wait "$job"
    code=$?
    ended 130 "interrupted after step" && ! says "try 2"
}
told "mica-mpirun: a signal to the whole group stops it" stopped_group
