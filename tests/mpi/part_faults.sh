# One rank that is not like the others: found at once, said by name, and all end alike.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # check.sh has the variables; told calls the functions

# What each rank ends with, into codes.RANK. Open MPI would kill those that are not yet done when the first has failed.
cat >"$folder/ends" <<TEXT
#!/bin/sh
"\$@"
code=\$?
echo \$code >"$folder/codes.\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}"
exit \$code
TEXT
chmod +x "$folder/ends"
export OMPI_MCA_orte_abort_on_non_zero_status=0

# fails CODE MESSAGE: the last job did, on all ranks alike, said it once, and left no checkpoint.
fails() {
    local wanted=$1 message=$2 file
    [ "$code" -ne 124 ] || { echo "  it hung" && return 1; }
    for file in "$folder"/codes.*; do
        [ "$(cat "$file")" = "$wanted" ] || { echo "  $(basename "$file"): $(cat "$file"), not $wanted" && return 1; }
    done
    says "$message" || { echo "  did not say: $message" && return 1; }
    [ "$(grep -c '^mica ' "$folder/err")" -eq 1 ] || { echo "  said more than that" && return 1; }
    [ ! -e "$folder/bad/checkpoint.safetensors" ]
}

# odd NAME CODE MESSAGE: three ranks, of which the last has the words, or the environment, of odd_one.
odd() {
    local name=$1 wanted=$2 message=$3
    rm -rf "$folder"/codes.* "$folder/bad"
    mpi -np 2 "$folder/ends" "${usual[@]}" : -np 1 "${odd_one[@]}"
    told "$name" fails "$wanted" "$message"
}
usual=("$mica" train lenet --data digits:200 --shares 3 --epochs 2 --quiet --checkpoint "$folder/bad")
ends=("$folder/ends")

odd_one=("${ends[@]}" "$mica" train mlp "${usual[@]:3}")
odd "another net on one rank" 1 "rank 2 has another net than rank 0"
odd_one=("${ends[@]}" "${usual[@]}" --epochz 3)
odd "an unknown option on one rank" 2 "rank 2: unknown option --epochz"
odd_one=("${ends[@]}" "${usual[@]}" --batch 30)
odd "another batch size on one rank" 1 "rank 2 has another (net|batch size) than rank 0"
odd_one=("${ends[@]}" "${usual[@]}" --epochs 3)
odd "another number of epochs on one rank" 1 "rank 2 has another epochs than rank 0"
odd_one=("${ends[@]}" "${usual[@]}" --checkpoint-steps 2)
odd "another option on one rank" 1 "rank 2 has another checkpoint_steps than rank 0"
odd_one=("${ends[@]}" "${usual[@]}" --lr 0.5)
odd "another learning rate on one rank" 1 "rank 2 has another optimizer than rank 0"
for i in 1 2; do
    mkdir "$folder/here$i"
    awk -v salt="$i" -v OFS=, 'BEGIN { for (i = 0; i < 60; i++) print i, (i * salt) % 7, (i % 3 == 0 ? "yes" : "no") }' \
        >"$folder/here$i/table.csv"
done
rm -rf "$folder"/codes.* "$folder/bad"
table=("$folder/ends" "$mica" train mlp --data table.csv --shares 3 --quiet --checkpoint "$folder/bad")
mpi -wdir "$folder/here1" -np 2 "${table[@]}" : -wdir "$folder/here2" -np 1 "${table[@]}"
told "other data on one rank" fails 3 "rank 2 has other data in table.csv than rank 0"
for seen in 1 2; do
    rm -rf "$folder"/codes.* "$folder/bad" "$folder"/here?/seen
    (cd "$folder/here$seen" && "$mica" train mlp --data table.csv --epochs 1 --quiet --checkpoint seen) >"$folder/out"
    table=("$folder/ends" "$mica" train mlp --data table.csv --shares 3 --quiet --checkpoint seen --resume)
    mpi -wdir "$folder/here1" -np 2 "${table[@]}" : -wdir "$folder/here2" -np 1 "${table[@]}"
    told "a checkpoint that some ranks see" fails 3 "is there, but rank $((seen == 1 ? 2 : 0)) does not see it"
done
odd_one=("${ends[@]}" "${usual[@]}" --resume)
odd "--resume for one rank" 1 "rank 2 differs from rank 0"
odd_one=("${ends[@]}" "${usual[@]}" --data "$folder/missing.csv")
odd "data that are missing on one rank" 3 "rank 2: .*missing.csv"
odd_one=("${ends[@]}" env MICA_ISA=nonsense "${usual[@]}")
odd "a processor that cannot do it, on one rank" 1 "rank 2: cannot start: .*MICA_ISA"
if ! "$mica" --version | grep -q scalar; then
    odd_one=("${ends[@]}" env MICA_ISA=scalar "${usual[@]}")
    odd "other kernels on one rank" 1 "rank 2 uses scalar kernels"
fi

# Another version: the same program, but for the number that it tells.
version=$("$mica" --version | sed -E 's/^mica ([0-9.]+),.*/\1/')
mkdir "$folder/other"
LC_ALL=C sed "s/${version//./\\.}/${version%?}~/g" "$mica" >"$folder/other/mica"
chmod +x "$folder/other/mica"
ln -s "$(dirname "$mica")"/libmica_mpi.so* "$folder/other"
odd_one=("${ends[@]}" "$folder/other/mica" "${usual[@]:1}")
odd "another version on one rank" 1 "rank 2 runs Mica ${version%?}~, rank 0 Mica $version"

rm -rf "$folder"/codes.* "$folder/bad"
mpi -np 4 "$folder/ends" "$mica" train "$folder/line.net" --data "$folder/x.npy,$folder/large.npy" --validation 0 --shares 4 \
    --batch 16 --quiet --checkpoint "$folder/bad"
told "a loss that is not finite on one rank" fails 4 "the loss of step [0-9]+ is inf on rank [0-3], share [0-3]"
rm -rf "$folder"/codes.* "$folder/bad"
mpi -np 3 "$folder/ends" "${usual[@]}" --shares 4
told "shares that the ranks do not divide" fails 2 "4: expected a multiple of the 3 ranks"
unset OMPI_MCA_orte_abort_on_non_zero_status

# What MPI cannot do any more ends the job, and not as a failure that would come again. No MPI fails when it is asked to:
# this one is found by a copy of the program, and fails at its third call.
mkdir "$folder/failing"
cp "$mica" "$folder/failing"
cat >"$folder/failing/mpi.c" <<'TEXT'
#include <mica/mpi.h>
#include <stdlib.h>
#include <string.h>
static int calls;
static mica_status gather(void *user, void *all, const void *own, size_t bytes)
{
    (void)user;
    memcpy(all, own, bytes);
    memcpy((char *)all + bytes, own, bytes);
    return ++calls < 3 ? MICA_OK : MICA_ERR_IO;
}
mica_status mica_mpi_open(mica_mpi **out, const mica_mpi_opts *opts)
{
    (void)opts;
    *out = (mica_mpi *)&calls;
    return MICA_OK;
}
void mica_mpi_close(mica_mpi *m) { (void)m; exit(99); }
mica_transport mica_mpi_transport(mica_mpi *m) { (void)m; return (mica_transport){.ranks = 2, .gather = gather}; }
const char *mica_mpi_error(const mica_mpi *m) { (void)m; return "the cable was cut"; }
void mica_mpi_abort(mica_mpi *m, int code) { (void)m; exit(code); }
TEXT
soname=$(basename "$(find "$(dirname "$mica")" -name 'libmica_mpi.so.*' | sort | head -n 1)")
told "an MPI that fails" cc -std=c11 -shared -fPIC -I "$here/../../include" "$folder/failing/mpi.c" -o "$folder/failing/$soname"
PMIX_RANK=0 "$folder/failing/mica" "${usual[@]:1}" >"$folder/out" 2>"$folder/err"
told "is a rank that is lost" test "$?" -eq 5
told "and it says why" says '^mica.*: rank 0: the cable was cut'

# A program that opens and closes MPI in any order, and asks for messages that are not there.
cat >"$folder/careless.c" <<'TEXT'
#include <mica/mpi.h>
#include <stdio.h>
int main(void)
{
    mica_mpi *first, *second, *third;
    bool done;
    if (mica_mpi_open(&first, NULL) != MICA_OK || mica_mpi_open(&second, NULL) != MICA_OK)
        return 10;
    mica_transport wire = mica_mpi_transport(second);
    if (wire.start(wire.user, 0, 1) == MICA_OK || wire.test(wire.user, 5, 1, &done) == MICA_OK ||
        wire.wait(wire.user, -1, 1) == MICA_OK)
        return 11;
    mica_mpi_close(first);
    mica_mpi_close(second);
    if (mica_mpi_open(&third, NULL) == MICA_OK)
        return 12;
    puts(mica_mpi_error(third));
    mica_mpi_close(third);
    mica_mpi_close(NULL);
    return 0;
}
TEXT
library=$(dirname "$mica")/$soname
told "a careless program" cc -std=c11 -I "$here/../../include" "$folder/careless.c" "$library" \
    "-Wl,-rpath,$(dirname "$library")" -o "$folder/careless"
mpi -np 2 "$folder/careless"
told "is told so" test "$code:$(sort -u "$folder/out")" = "0:MPI: was finalized, and cannot be initialized again"
