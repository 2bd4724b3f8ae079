# Tables and series at the command line: kinds of columns, tasks, units, missing values, files as they come. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034,SC2016 # check.sh has the functions and sets what they leave; $3 is awk's

mica=$(realpath "$mica")
tables=$folder/tables
mkdir -p "$tables"
pushd "$tables" >/dev/null || exit 1

# A random number generator that every awk has alike.
uniform='function r() { s = s * 16807 % 2147483647; return s / 2147483647 }'

# metric PATH: a number of the JSON on stdout, such as metrics.rmse.
metric() {
    python3 -c 'import functools, json, sys
data = json.loads(open(sys.argv[1]).read().splitlines()[-1])
print(functools.reduce(lambda at, key: at[int(key) if isinstance(at, list) else key], sys.argv[2].split("."), data))' \
        "$folder/out" "$1"
}

# holds TEXT CONDITION: of numbers, such as "4 < 5".
holds() { awk "BEGIN { exit !($2) }" || complain "$1: $2"; }

# learn ARGS...: trains, silently; the report of the last line is on stdout.
learn() { ends 0 train "$@" --json -q --overwrite; }


# ---- The task is inferred, and told ----
awk "$uniform"' BEGIN { s = 1; split("Bergen Molde Oslo", town)
    print "area,town,rooms,sold,price"
    for (i = 0; i < 400; i++) { area = int(40 + 160 * r()); t = int(1 + 3 * r()); rooms = 1 + int(area / 30)
        sold = sprintf("20%02d-%02d-%02d", 10 + 10 * r(), 1 + 12 * r(), 1 + 28 * r())
        print area "," town[t] "," rooms "," sold "," int(2500 * area * (0.6 + 0.4 * t) + 8000 * rooms + 9000 * r()) } }' \
    >houses.csv
head -321 houses.csv >train.csv
{
    head -1 houses.csv
    tail -80 houses.csv
} >test.csv
ends 0 train mlp --data train.csv --label price --test test.csv --epochs 40 --checkpoint houses
complains "train.csv: 320 rows of 5 columns, a comma between them, with a header"
complains "price: numbers, "
complains " different, "
complains ": regression"
says "price: RMSE "
says "always the mean: RMSE "
says "of 80 samples"
ends 2 train mlp --data train.csv --label cost --checkpoint refused
complains '--label: there is no column "cost"'
ends 2 train mlp --data train.csv --label prize --checkpoint refused
complains 'did you mean "price"?'
ends 3 train mlp --data train.csv --label price --task classes --checkpoint refused
complains 'column "price" would be '
complains "--task regression predicts numbers"
ends 3 train mlp --data train.csv --label town --task regression --checkpoint refused
complains 'column "town" is not numbers, which a regression needs'
ends 2 train mlp --data train.csv --label price --task guess --checkpoint refused
complains "classes, regression"
[ ! -e refused ] || complain "a training that was refused leaves a folder"
ends 0 train mlp --data train.csv --label rooms --epochs 2 --checkpoint rooms
complains "rooms: categories, 6 different: classes"
ends 0 eval rooms --part all
says "predicted"
ends 0 train mlp --data train.csv --label rooms --task regression --epochs 2 --checkpoint rooms-numbers
complains "rooms: numbers, 6 different, 2 to 7: regression"
ends 0 eval rooms-numbers --part all
says "rooms: RMSE "

# ---- Targets and scores are in the unit of the column ----
ends 0 eval houses --data test.csv --json
says_json 'data["task"] == "regression" and data["samples"] == 80 and set(data["metrics"]) >= {"rmse", "mae", "r2"}'
says_json '3000 < data["metrics"]["mae"] <= data["metrics"]["rmse"] < 60000 and data["metrics"]["r2"] > 0.9'
says_json '150000 < data["baseline"]["rmse"] < 400000'
rmse=$(metric metrics.rmse)
ends 0 eval houses --json # the same rows: --test is in the checkpoint
says_json "abs(data['metrics']['rmse'] - $rmse) < 1e-3 * $rmse and data['samples'] == 80"
ends 0 run houses test.csv
[ "$(wc -l <"$folder/out")" -eq 80 ] || complain "a line for each row"
tail -n +2 test.csv | cut -d , -f 5 | paste -d ' ' - "$folder/out" |
    awk '{ e = $1 - $4; sum += e * e } END { exit !(sqrt(sum / NR) < 60000) }' || complain "run answers in another unit"
cp "$folder/out" in-order.txt

# ---- Columns are found by their names ----
awk -F , -v OFS=, '{ print $4, $5, $2, $1, $3 }' test.csv >reordered.csv
ends 0 run houses reordered.csv
cmp -s "$folder/out" in-order.txt || complain "columns in another order give other answers"
cut -d , -f 1-4 test.csv >no-price.csv
ends 0 run houses no-price.csv
cmp -s "$folder/out" in-order.txt || complain "without the target there are other answers"
"$mica" run houses - <reordered.csv 2>/dev/null | cmp -s - in-order.txt || complain "stdin gives other answers"
awk -F , -v OFS=, 'NR == 1 { print $0, "agent"; next } { print $0, "nobody" }' test.csv >more.csv
ends 0 run houses more.csv
complains "more.csv: 1 column is new and ignored"
cmp -s "$folder/out" in-order.txt || complain "a column that is not needed gives other answers"
cut -d , -f 2-4 test.csv >no-area.csv
ends 3 run houses no-area.csv
complains '"no-area.csv": line 1: there is no column "area", which the table has as an input'
silent
ends 3 eval houses --data no-price.csv
complains 'there is no column "price"'
tail -n +2 test.csv >nameless.csv
ends 0 run houses nameless.csv
complains "nameless.csv: no header, columns are taken in the order of the training"
cmp -s "$folder/out" in-order.txt || complain "without a header there are other answers"
tail -n +2 reordered.csv >nameless-reordered.csv
ends 3 run houses nameless-reordered.csv
complains "is not a number"
silent
tail -n +2 no-area.csv >too-few.csv
ends 3 run houses too-few.csv
complains 'there is no column "area"'
sed '3s/^[0-9]*/large/' test.csv >words.csv
ends 3 run houses words.csv
complains '"words.csv": line 3, column "area": "large" is not a number'

# ---- Words are categories; those that were not seen ----
sed 's/Oslo/Tromso/' test.csv >unseen.csv
unseen=$(grep -c Oslo test.csv)
ends 0 run houses unseen.csv
complains "unseen.csv: $unseen categories were not seen in training"
[ "$(wc -l <"$folder/out")" -eq 80 ] || complain "a line for each row"
ends 0 train mlp --data train.csv --label price --category rooms --ignore sold --epochs 2 --checkpoint fewer
complains "sold: dates, "
complains "left out"
ends 0 info fewer --json
grep -q '\\"rooms\\",\\"kind\\":\\"category\\"\|\\"name\\": *\\"rooms\\", *\\"kind\\": *\\"category\\"' "$folder/out" ||
    complain "--category makes no category"
ends 2 train mlp --data train.csv --label price --ignore solled --checkpoint refused
complains '--ignore: there is no column "solled"; did you mean "sold"?'
ends 2 train mlp --data train.csv --label price --category rums --checkpoint refused
complains '--category: there is no column "rums"'

# ---- Dates ----
awk "$uniform"' BEGIN { s = 7; print "day,sales"
    for (i = 0; i < 300; i++) { m = int(1 + 12 * r()); d = int(1 + 28 * r())
        printf "%02d.%02d.2023 12:00;%d\n", d, m, 100 + 50 * cos((m - 1 + d / 30) * 0.5236) } }' | sed '1s/,/;/' >sales.csv
learn mlp --data sales.csv --checkpoint sales --epochs 60
holds "the place in the year is not learned, R2" "$(metric metrics.r2) > 0.9"
printf 'day;sales\n2023-01-10;0\n10.07.2023 12:00;0\n' >days.csv
ends 0 run sales days.csv
awk '{ v[NR] = $3 } END { exit !(v[1] > 130 && v[2] < 70) }' "$folder/out" || complain "dates in two ways of writing"

# ---- Values that are missing ----
awk -F , -v OFS=, 'NR > 1 && NR % 9 == 0 { $3 = "NA" } NR > 1 && NR % 11 == 0 { $1 = "" } NR > 1 && NR % 13 == 0 { $2 = "?" }
    NR > 1 && NR % 17 == 0 { $3 = "nan" } { print }' train.csv >gaps.csv
for how in mean median; do
    ends 0 train mlp --data gaps.csv --label price --test test.csv --missing $how --epochs 30 --checkpoint gaps-$how
    complains "filled with the $how, and an input says so"
    no_heap_calls
    complains "area: numbers, "
    ends 0 eval gaps-$how --json
    holds "--missing $how, R2" "$(metric metrics.r2) > 0.8"
done
ends 0 train mlp --data gaps.csv --label price --epochs 1 --checkpoint gaps-default
complains "filled with the mean, and an input says so"
ends 0 train mlp --data gaps.csv --label price --missing drop --epochs 5 --checkpoint gaps-drop
complains ": rows left out"
ends 0 eval gaps-drop --part all --json
says_json '150 < data["samples"] < 320'
ends 3 train mlp --data gaps.csv --label price --missing refuse --epochs 5 --checkpoint refused
complains '"gaps.csv": line 9, column "rooms": the value is missing'
ends 2 train mlp --data gaps.csv --label price --missing zero --checkpoint refused
complains "median"
ends 0 run gaps-mean gaps.csv
complains "missing values were filled in"
[ "$(wc -l <"$folder/out")" -eq 320 ] || complain "a line for each row"
[[ $out != *nan* ]] || complain "a missing value becomes NaN"
[ ! -e refused ] || complain "a training that was refused leaves a folder"

# ---- Files as they come: delimiter, header, one column ----
awk "$uniform"' BEGIN { s = 3; split("setosa versicolor virginica", kind)
    print "length;width;species"
    for (i = 0; i < 150; i++) { k = 1 + i % 3; printf "%.1f;%.1f;%s\n", 2 * k + r(), k + 0.5 * r(), kind[k] } }' >flowers.csv
sed 's/\./,/g' flowers.csv >comma.csv
sed '1d' flowers.csv >headerless.csv
tr ';' '|' <flowers.csv >pipes.csv
tr ';' ':' <flowers.csv >colons.csv
tr ';' '\t' <flowers.csv >tabs.tsv
for file in flowers.csv comma.csv headerless.csv pipes.csv tabs.tsv; do
    learn mlp --data $file --checkpoint flowers --epochs 30
    says '"samples": 15,'
    holds "$file: accuracy" "$(metric metrics.accuracy) > 0.9"
    ends 0 run flowers $file --top 1
    grep -c virginica "$folder/out" | grep -qE '^(49|50|51)$' || complain "$file: run finds other classes"
done
ends 0 train mlp --data flowers.csv --checkpoint flowers --epochs 30 --overwrite
complains "flowers.csv: 150 rows of 3 columns, a semicolon between them, with a header"
complains "species: categories, 3 different: classes"
ends 0 train mlp --data headerless.csv --checkpoint headerless --epochs 30
complains "headerless.csv: 150 rows of 3 columns, a semicolon between them, no header"
ends 0 run headerless headerless.csv --top 1 # by number, as neither has names
[ "$(wc -l <"$folder/out")" -eq 150 ] || complain "the first row is lost"
ends 3 train mlp --data colons.csv --checkpoint refused
complains "the file has one column"
complains "--delimiter"
ends 0 train mlp --data colons.csv --delimiter : --checkpoint colons --epochs 2
complains '150 rows of 3 columns, ":" between them, with a header'
ends 0 train mlp --data pipes.csv --delimiter pipe --header yes --checkpoint pipes --epochs 2
ends 2 train mlp --data flowers.csv --delimiter ab --checkpoint refused
complains '--delimiter takes one character, comma, semicolon, tab, pipe or space, not "ab"'
ends 0 train mlp --data flowers.csv --header no --checkpoint no-header --epochs 2
complains "flowers.csv: 151 rows of 3 columns, a semicolon between them, no header"
ends 0 info headerless.csv --header yes
says "149 rows"
printf '5\n7\n9\n' >single.csv
ends 3 train mlp --data single.csv --checkpoint refused
complains "single.csv: the file has one column: nothing to learn it from. --window N --horizon N forecasts a series"
[ ! -e refused ] || complain "a training that was refused leaves a folder"

# ---- Series ----
awk "$uniform"' BEGIN { s = 5; print "load"
    for (h = 0; h < 1500; h++) { t = 0.9 * t + r() - 0.5; printf "%.3f\n", 500 + 60 * sin(6.2831853 * h / 24) + 5 * t } }' \
    >load.csv
ends 0 train mlp --data load.csv --window 48 --horizon 6 --epochs 20 --checkpoint load
complains "load: numbers, more than 1,000 different, "
complains ": forecast"
complains "from 48 rows the next 6; parts are cut in time, the last for tests"
says "always the value 24 rows before: RMSE "
no_heap_calls
ends 0 eval load
says "always the value 24 rows before"
[[ $out != *"the mean"* ]] || complain "a forecast has another baseline than the mean"
ends 0 eval load --json
says_json 'data["task"] == "regression" and len(data["targets"]) == 6 and data["targets"][5]["name"] == "load +6"'
says_json 'data["metrics"]["rmse"] < data["baseline"]["rmse"] < 20'
# In the order of time: 1500 rows are 1447 windows; the last tenth, less those that overlap with what comes before.
says_json '80 < data["samples"] < 150'
tail -60 load.csv >last.csv # no header, and none is needed: there is one column
ends 0 run load last.csv
[ "$(wc -l <"$folder/out")" -eq 1 ] || complain "a forecast of the last window alone"
says "load +1 "
says "load +6 "
ends 0 run load last.csv --json
says_json 'len(data["values"]) == 6 and all(400 < v < 600 for v in data["values"])'
head -20 load.csv >short.csv
ends 3 run load short.csv
complains "a forecast needs the last 48"
ends 0 train mlp --data load.csv --window 12 --season 6 --epochs 1 --checkpoint season
says "always the value 6 rows before: RMSE "
ends 2 train mlp --data load.csv --window 12 --season 24 --epochs 1 --checkpoint refused
complains "--season 24 is longer than the window of 12 rows"
ends 2 train mlp --data load.csv --horizon 6 --checkpoint refused
complains "--horizon goes with --window"
ends 3 train mlp --data load.csv --window 2000 --horizon 6 --checkpoint refused
complains "load.csv: 1500 rows: a window of 2000 and a horizon of 6 need more"
ends 2 train mlp --data load.csv --window 12 --missing drop --checkpoint refused
complains "--missing drop would tear holes into a series"
ends 3 train mlp --data flowers.csv --window 12 --checkpoint refused
complains "which a forecast needs"

# ---- Yes or no ----
awk "$uniform"' BEGIN { s = 9; print "dose,age,cured"
    for (i = 0; i < 300; i++) { d = 10 * r(); a = int(20 + 60 * r()); printf "%.2f,%d,%s\n", d, a, (d + r() > 5 ? "yes" : "no") } }' \
    >cured.csv
printf 'input x [2]\ndense 8 relu\ndense 1 name=y\nloss bce_logits\n' >yesno.net
ends 0 train yesno.net --data cured.csv --epochs 60 --lr 0.02 --checkpoint cured
complains "cured: categories, 2 different: yes or no"
says "AUC "
says "F1 "
ends 0 eval cured --part all --json
says_json 'data["classes"] == ["no", "yes"] and data["metrics"]["accuracy"] > 0.9 and data["metrics"]["auc"] > 0.95 and data["metrics"]["f1"] > 0.9'
printf 'age,dose\n50,9.5\n50,0.5\n' >patients.csv
ends 0 run cured patients.csv
says "0  yes  probability "
says "1  no  probability "
ends 0 run cured patients.csv --json
[[ $(sed -n 1p "$folder/out") =~ ^'{"input": 0, "classes": [{"class": "yes", "probability": '(1|0\.9) ]] ||
    complain "no probability of yes"
ends 3 train yesno.net --data flowers.csv --checkpoint refused
complains 'column "species" has 3 different values: yes or no is two'

# ---- JSON has all classes ----
awk "$uniform"' BEGIN { s = 11; print "x,letter"; for (i = 0; i < 200; i++) { k = i % 8; printf "%.2f,%c\n", k + r() / 2, 97 + k } }' \
    >letters.csv
learn mlp --data letters.csv --checkpoint letters --epochs 5
printf 'x\n3.2\n' >x.csv
ends 0 run letters x.csv --json
says_json 'sorted(c["class"] for c in data["classes"]) == list("abcdefgh")'
says_json 'abs(sum(c["probability"] for c in data["classes"]) - 1) < 1e-5'
ends 0 run letters x.csv --json --top 2
says_json 'len(data["classes"]) == 2'
ends 0 run letters x.csv
[ "$(wc -w <"$folder/out")" -eq 10 ] || complain "text shows three classes"

# ---- info of a table ----
ends 0 info gaps.csv
says "gaps.csv: a table of 320 rows and 5 columns, delimiter \",\", with a header"
grep -qE '^area +number +[0-9]+ +29 +4[0-9] to 1[0-9]+, mean 1' "$folder/out" || complain "no range of area"
grep -qE '^town +category +3 +24 +(Oslo|Molde|Bergen) 3[0-9] %, ' "$folder/out" || complain "no balance of town"
grep -qE '^sold +date +[0-9]+ +- +201[0-9]-[0-9]+-[0-9]+ to 201' "$folder/out" || complain "no range of dates"
says "  area,town,rooms,sold,price"
ends 0 info gaps.csv --json
says_json 'data["rows"] == 320 and [c["kind"] for c in data["columns"]] == ["number", "category", "number", "date", "number"]'
says_json 'sum(data["columns"][1]["values"].values()) == 320 - data["columns"][1]["missing"]'
ends 0 info flowers.csv
says "setosa 33 %, versicolor 33 %, virginica 33 %"
ends 0 info single.csv
says "3 rows and 1 column,"
ends 0 info colons.csv --delimiter :
says "3 columns"
ends 2 info colons.csv --delimiter ""

# ---- Several targets ----
awk "$uniform"' BEGIN { s = 13; print "x,y,sum,difference,big,small"
    for (i = 0; i < 300; i++) { x = int(100 * r()); y = int(100 * r())
        print x "," y "," 1000 + x + y "," x - y "," (x > 50 ? "yes" : "no") "," (y < 50 ? "yes" : "no") } }' >pairs.csv
learn mlp --data pairs.csv --label sum,difference --ignore big --ignore small --epochs 40 --checkpoint pairs
ends 0 eval pairs --json
says_json '[t["name"] for t in data["targets"]] == ["sum", "difference"] and all(t["r2"] > 0.9 for t in data["targets"])'
printf 'y,x\n10,70\n' >pair.csv
ends 0 run pairs pair.csv
awk '$2 == "sum" && $4 == "difference" && $3 > 1060 && $3 < 1100 && $5 > 45 && $5 < 75 { ok = 1 } END { exit !ok }' \
    "$folder/out" || complain "two targets, each in its unit"
ends 0 train mlp --data pairs.csv --label big,small --ignore sum --ignore difference --epochs 30 --checkpoint yes-no-pairs
complains "big: categories, 2 different: yes or no"
ends 0 run yes-no-pairs pair.csv
ends 3 train mlp --data pairs.csv --label sum,big --checkpoint refused
complains '"sum" and "big" are not of one kind'
ends 2 train mlp --data pairs.csv --label sum,sum --checkpoint refused
complains '--label has the column "sum" twice'
[ ! -e refused ] || complain "a training that was refused leaves a folder"

# ---- Resumed, and in blocks ----
follow=(--data train.csv --label price --json -q --schedule constant)
ends 0 train mlp "${follow[@]}" --checkpoint whole --epochs 6
grep '"event": "step"' "$folder/out" >whole.json
ends 0 train mlp "${follow[@]}" --checkpoint halves --epochs 3
grep '"event": "step"' "$folder/out" >halves.json
ends 0 train --checkpoint halves --resume --epochs 6 --json -q
grep '"event": "step"' "$folder/out" | cat halves.json - | cmp -s - whole.json ||
    complain "a table resumes to other losses"
ends 0 train mlp --data train.csv --label price --test test.csv --memory 1K --epochs 40 --checkpoint blocks
complains "too large for memory: read in blocks"
no_heap_calls
ends 0 eval blocks --json
holds "in blocks, RMSE" "$(metric metrics.rmse) < 1.5 * $rmse"
ends 0 eval houses --data test.csv --memory 1K --json
says_json "abs(data['metrics']['rmse'] - $rmse) < 1e-3 * $rmse"
for memory in 1K 1G; do
    learn mlp --data train.csv --label price --epochs 3 --memory $memory --checkpoint resumed-$memory
done
ends 0 train --checkpoint resumed-1K --resume --epochs 4 --memory 1K -q
cp train.csv growing.csv
learn mlp --data growing.csv --label price --epochs 2 --checkpoint grown
tail -n 1 train.csv >>growing.csv
for memory in 1K 1G; do
    ends 3 train --checkpoint grown --resume --epochs 3 --memory $memory
    complains "rows, but had"
done

# ---- What goes wrong at first ----
# A forecast from several columns has the same baseline as from one.
awk "$uniform"' BEGIN { s = 5; print "time,load,other"
    for (h = 0; h < 1200; h++) if (h % 100 != 7)
        printf "2024-%02d-%02d %02d:00,%.2f,%.2f\n", 1 + int(h / 672), 1 + int(h / 24) % 28, h % 24,
            50 + 20 * sin(h * 6.283185 / 24) + r(), r() }' >hours.csv
cut -d, -f2 hours.csv >hour.csv
for file in hours hour; do
    learn mlp --data $file.csv --label load --window 48 --horizon 2 --epochs 1 --checkpoint $file
    ends 0 eval $file --json
    metric baseline.rmse >$file.txt
done
holds "the baseline of several columns" "sqrt(($(cat hours.txt) - $(cat hour.txt)) ^ 2) < 1e-3 * $(cat hour.txt)"
ends 0 train mlp --data hours.csv --label load --window 24 --epochs 1 --checkpoint gaps
complains "time: 13 of 1,187 steps are not 1 hour"
{
    head -1 hours.csv
    tail -n +2 hours.csv | tac
} >back.csv
ends 3 train mlp --data back.csv --label load --window 24 --epochs 1 --checkpoint refused
complains '"time" goes back in time: a series needs its oldest row first'

# Nothing to learn; words among numbers; values and columns that are new.
awk -F, 'NR == 1 || $2 == "Oslo"' train.csv >oslo.csv
ends 3 train mlp --data oslo.csv --label town --checkpoint refused
complains 'column "town" has the same value in every row'
awk -F, -v OFS=, 'NR % 50 == 2 { $1 = "k.A." } { print }' train.csv >odd.csv
ends 0 train mlp --data odd.csv --label price --epochs 1 --checkpoint odd
complains 'numbers but for 7, such as "k.A."'
ends 0 info odd.csv
says 'numbers but for 7, such as "k.A."'
printf 'area,town,rooms,sold\n100,Tromso,4,2012-05-17\n' >unseen.csv
ends 0 run houses unseen.csv
complains 'such as "Tromso" in town'
printf 'size,place,count,day\n100,Oslo,4,2012-05-17\n' >names.csv
ends 3 run houses names.csv
complains 'there is no column "area"'
"$mica" run houses test.csv >run.txt 2>/dev/null
"$(dirname "$mica")/examples/predict" houses/checkpoint.safetensors test.csv >predict.txt ||
    complain "examples/predict fails"
paste -d ' ' run.txt predict.txt | awk '{ d = $3 - $4; bad += NF != 4 || d * d > 1e-10 * $3 * $3 } END { exit NR != 80 || bad > 0 }' ||
    complain "a program that uses a checkpoint says something else than mica run"
printf 'key;area;town;rooms;sold\nA 1;100;Oslo;4;2012-05-17\n"B;""2""";60;Molde;2;2013-05-17\n' >keyed.csv
ends 0 run houses keyed.csv --id key
says "A 1  price "
says 'B;"2"  price '
ends 0 run houses keyed.csv --id 1 --json
says '{"input": 0, "id": "A 1", "values": ['
ends 0 run houses - --id key --delimiter ';' <keyed.csv
says "A 1  price "
ends 2 run houses keyed.csv --id kay
complains 'there is no column "kay"; did you mean "key"?'
ends 0 info houses
says "takes the columns"
says "  town: categories, 3 different"

head -6 train.csv >five.csv
ends 0 train mlp --data five.csv --label price --epochs 1 --checkpoint five
says "of 1 sample;"
says "try     --folds 5, which scores every sample: a test of 1 says little"
ends 3 train lstm --data train.csv --label price --checkpoint refused
complains "lstm takes text, but train.csv is not text: mlp, or a net file, takes tables"

# Arguments in the place of others.
ends 2 train train.csv
complains "Try: mica train mlp --data train.csv"
ends 2 train mlp train.csv
complains "For data: --data train.csv"
ends 3 run mlp test.csv
complains "mlp is a net without weights"
ends 3 run test.csv houses
complains "test.csv is not a checkpoint"
ends 2 train houses --resume
complains "mica train --checkpoint houses --resume"
ends 3 train mlp --data book.xlsx
complains "export it as a CSV file"
[ ! -e refused ] || complain "a training that was refused leaves a folder"

# ---- A checkpoint that contradicts itself ----
# tamper CHECKPOINT PYTHON: changes `t`, its table, or `notes`, its metadata; "text" is written instead of JSON if it is set.
tamper() {
    python3 - "$@" <<'PYTHON'
import json, struct, sys
data = open(sys.argv[1] + "/checkpoint.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header, tensors = json.loads(data[8:8 + size]), data[8 + size:]
notes, text = header["__metadata__"], None
t = json.loads(notes["mica.table"])
column = {c["name"]: c for c in t["columns"]}
exec(sys.argv[2])
if "mica.table" in notes:
    notes["mica.table"] = json.dumps(t) if text is None else text
head = json.dumps(header).encode()
head += b" " * (-len(head) % 8)
open("changed.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + tensors)
PYTHON
}
tamper houses 'pass'
ends 0 run changed.safetensors test.csv
cmp -s "$folder/out" in-order.txt || complain "a table that was only written again gives other answers"
for change in 'text = ""' 'text = "{"' 'text = "[]"' 'text = "{}"' 'text = "[" * 5000' 't["columns"] = []' 't["columns"] = 7' \
    't["columns"].pop()' 't["columns"].pop(0)' 't["columns"] *= 2' 'column["area"].pop("name")' 'column["area"]["kind"] = "category"' \
    'column["area"]["kind"] = "quaternion"' 'column["town"]["kind"] = "number"' 'column["town"]["values"].pop()' \
    'column["town"]["values"] = "Oslo"' 'column["area"]["role"] = 0' 'column["area"]["role"] = "input"' \
    'column["price"]["role"] = 0' 'column["area"]["role"] = 64' 'column["area"]["deviation"] = -1' 'column["area"]["mean"] = "x"'; do
    tamper houses "$change" || complain "the change itself fails: $change"
    for verb in "eval changed.safetensors --data test.csv" "run changed.safetensors test.csv"; do
        # shellcheck disable=SC2086 # words
        ends 3 $verb
        [[ $err == *changed.safetensors* && $err != *Sanitizer* ]] || complain "after $change: no clean error"
        silent
    done
done
for change in 'notes["mica.train.window"] = "47"' 'notes["mica.train.window"] = "0"' 'notes.pop("mica.train.window")' \
    'notes["mica.train.window"] = "1e9"' 'notes["mica.train.horizon"] = "7"' 'notes["mica.train.horizon"] = "0"' \
    'notes.pop("mica.train.horizon")' 'notes["mica.train.season"] = "49"' 'notes["mica.train.season"] = "-1"' \
    'notes.pop("mica.table")' 'column["load"]["role"] = 2' 'column["load"]["role"] = 1'; do
    tamper load "$change" || complain "the change itself fails: $change"
    for verb in "eval changed.safetensors --data load.csv" "run changed.safetensors last.csv"; do
        # shellcheck disable=SC2086 # words
        ends 3 $verb
        [[ $err != *Sanitizer* && $err != *"runtime error"* ]] || complain "after $change: no clean error"
        silent
    done
done

popd >/dev/null || exit 1
