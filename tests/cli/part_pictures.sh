# Folders of pictures: training, evaluating, running and describing them. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

mica=$(realpath "$mica")
golden=$(cd "$(dirname "${BASH_SOURCE[0]}")/../data" && pwd)
mkdir -p "$folder/pictures"
pushd "$folder/pictures" >/dev/null || exit 1

# draw KIND HEIGHT WIDTH NUMBER: stripes that lie or stand, as PGM, or in red as PPM; the number shifts them.
draw() {
    awk -v kind="$1" -v height="$2" -v width="$3" -v number="$4" 'BEGIN {
        colour = number % 2
        printf "P%d %d %d 255\n", colour ? 3 : 2, width, height
        for (y = 0; y < height; y++)
            for (x = 0; x < width; x++) {
                at = kind == "lying" ? y : x
                value = (at + number) % 6 < 3 ? 200 + number % 40 : 20 + number % 7
                print colour ? value " 10 10" : value
            }
    }'
}

# shapes FOLDER COUNT FIRST
shapes() {
    local kind i
    for kind in lying standing; do
        mkdir -p "$1/$kind"
        for ((i = 0; i < $2; i++)); do
            draw $kind $((28 + i % 5)) $((28 + i % 9)) $(($3 + i)) >"$1/$kind/$i.$( ((i % 2)) && echo PPM || echo pgm)"
        done
    done
}
shapes shapes/train 40 0
shapes shapes/test 10 100
: >shapes/train/lying/.hidden.png
: >shapes/train/lying/notes.txt

# ---- What is there ----
ends 0 info shapes
says "shapes: 100 images of 2 classes"
says "standing        40        10"
says "height x width from 28 x 28 to 32 x 36; 50 in greyscale, 50 in colour"
ends 0 info shapes --json
says_json 'data["files"] == 100 and data["classes"][1] == {"name": "standing", "train": 40, "test": 10} and data["width"] == [28, 36]'
ends 0 info shapes/train/lying
says "shapes/train/lying: 40 images"
ends 0 info shapes/test/lying/0.pgm
says "netpbm, u8 [1, 1, 28, 28]"
ends 0 info "$golden/png/seven.png"
says "png, u8"
if [[ $("$mica" info "$golden/jpeg/halved.jpg" 2>&1) != *"built without JPEG"* ]]; then
    ends 0 info "$golden/jpeg/halved.jpg"
    says "jpeg, u8 [1, 3, 14, 21]"
    cp "$golden/jpeg/halved.jpg" shapes/test/standing/photo.jpg
fi

# ---- Training: the net's input decides on the size and colours ----
ends 0 train lenet --data shapes --epochs 6 -q
no_heap_calls
rm -f shapes/test/standing/photo.jpg
ends 0 eval lenet-shapes --json
says_json 'data["samples"] == 20 and data.get("metrics", data)["accuracy"] > 0.9'
ends 0 info lenet-shapes
says "mica.sample: 1 28 28"
says "mica.classes: lying\\x0astanding"
ends 0 train lenet --data shapes --size 20x24 --colour --epochs 1 --checkpoint coloured -q
ends 0 info coloured
says "mica.sample: 3 20 24"
ends 0 train --weights coloured --data shapes --epochs 1 --checkpoint tuned -q # as large as those it knows
ends 0 info tuned
says "mica.sample: 3 20 24"
ends 0 train mlp --data shapes --grey --epochs 1 -q # as many values as a square has
ends 0 info mlp-shapes
says "mica.sample: 1 28 28"
ends 0 train lenet --data shapes/train --test shapes/test --epochs 1 --checkpoint apart
complains "shapes/train: 80 images of 2 classes as [1, 28, 28], and 20 for the test"
says "of 20 samples"
ends 0 eval lenet-shapes --data shapes/test # a folder of classes, without parts
says "standing"

# ---- Running: several files and folders, each named ----
ends 0 run lenet-shapes shapes/test/lying/0.pgm shapes/test/standing --top 1
[ "$(wc -l <"$folder/out")" -eq 11 ] || complain "a line for each of 11 images"
says "shapes/test/lying/0.pgm  lying "
says "shapes/test/standing/9.PPM  standing "
ends 0 run lenet-shapes shapes/test/standing/1.PPM --json
says_json 'data["file"] == "shapes/test/standing/1.PPM" and data["input"] == 0 and data["classes"][0]["class"] == "standing"'
out=$("$mica" run lenet-shapes --top 1 <shapes/test/standing/1.PPM) || complain "an image from stdin"
[[ $out == "0  standing "* ]] || complain "an image from stdin is standing"

# ---- Augmentation: the same for any number of threads, and when a run goes on ----
list=flip,shift=2,crop=0.1,rotate=10,noise=0.05
for threads in 1 3; do
    ends 0 train lenet --data shapes --epochs 4 --augment $list --checkpoint augmented$threads --threads $threads -q --json
    tail -1 "$folder/out" | grep -qE '"heap_calls": (0|null)' || complain "heap calls with augmentation"
done
cmp augmented1/checkpoint.safetensors augmented3/checkpoint.safetensors || complain "augmentation depends on threads"
ends 0 train lenet --data shapes --epochs 4 --checkpoint plain -q
! cmp -s plain/checkpoint.safetensors augmented1/checkpoint.safetensors || complain "augmentation does nothing"
follow=(--data shapes --epochs 60 --augment "$list" --json -q)
ends 0 train lenet "${follow[@]}" --checkpoint whole
grep '"event": "step"' "$folder/out" >whole.json
: >part.json
"$mica" train lenet "${follow[@]}" --checkpoint stopped >part.json 2>"$folder/err" &
process=$!
await_lines 12 part.json || complain "no steps before SIGINT"
kill -s INT "$process"
wait "$process"
ends 0 train --checkpoint stopped --resume --json -q --threads 1 # which knows of the augmentation
grep -h '"event": "step"' part.json "$folder/out" | cmp -s - whole.json ||
    complain "the losses of a run that went on are not those of one that never stopped"
ends 0 train lenet --data shapes --epochs 1 --augment $list --checkpoint reported --report report.html -q
grep -q 'class="sample"' report.html || complain "the report has no samples"
[ "$(grep -o 'class="sample".*' report.html | head -1 | grep -o '<img' | wc -l)" -eq 4 ] || complain "a sample, and three augmented ones"
ends 0 train lenet --data digits:100 --epochs 1 --augment shift=2 --checkpoint drawn -q

# ---- What cannot be ----
ends 2 train lenet --data shapes --augment flip,turn=3 --checkpoint x -q
complains '--augment: "turn=3" is none of flip, shift=N, crop=X, rotate=X and noise=X'
ends 2 train lenet --data shapes --augment crop=2 --checkpoint x -q
complains "--augment: crop takes a number from 0 to 0.99"
ends 2 train lenet --data shapes --augment shift --checkpoint x -q
complains "--augment: shift takes a number"
printf 'a,b,c\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n' >table.csv
ends 2 train mlp --data table.csv --augment flip --checkpoint x -q
complains "--augment is for pictures"
ends 2 train lenet --data shapes --size 20 --checkpoint x -q
complains '--size takes HEIGHTxWIDTH'
ends 2 train lenet --data digits --size 20x20 --checkpoint x -q
complains "--size, --colour and --grey are for folders of images"
ends 2 train lenet --data shapes --colour --grey --checkpoint x -q
complains "not both"
mkdir -p shapes/train/crouching
printf 'P5 3 3 255 abc' >shapes/train/crouching/cut.pgm
ends 3 train lenet --data shapes --checkpoint x -q
complains 'shapes/train/crouching/cut.pgm": byte 11: netpbm: the image is larger than the file can hold'
silent
ends 3 info shapes
complains "crouching/cut.pgm"
ends 3 run lenet-shapes shapes/test/lying/0.pgm table.csv
complains 'table.csv": byte 0: not an image: expected PNG, JPEG, PPM or PGM'
ends 3 eval lenet-shapes --data shapes/train
complains '"crouching" is none of the 2 classes'
rm -r shapes/train/crouching
cp shapes/test/lying/0.pgm shapes/train/stray.pgm
ends 3 train lenet --data shapes/train --checkpoint x -q
complains "stray.pgm\": expected every file in the sub-folder of its class"
popd >/dev/null || exit 1
