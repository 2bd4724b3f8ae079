# Scores by what a net is for, against formulas of their own; and reports. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

export LC_ALL=C.UTF-8
mica=$(realpath "$mica")
mkdir -p "$folder/scores"
pushd "$folder/scores" >/dev/null || exit 1

# ---- Data: a table of numbers, one of three kinds, one of yes and no, one with two targets ----
awk -v OFS=, 'BEGIN {
    for (i = 0; i < 240; i++) {
        a = i * 7 % 31 / 31; b = i * 13 % 17 / 17; c = i * 5 % 23 / 23; noise = (i * 37 % 101 - 50) / 200
        print a, b, c, 3 + 2 * a - b + noise >"prices.csv"
        print a, b, c, (a > b ? "cat" : b + c > 1 ? "dog" : "eel") >"kinds.csv"
        print a, b, c, (a + noise > b ? 1 : 0) >"sides.csv"
        print a, b, c, (a + noise > b ? "yes" : "no") >"words.csv"
    }
}'
printf 'input x [3]\ndense 16 tanh\ndense 1 name=y\nloss mse\n' >prices.net
printf 'input x [3]\ndense 8 tanh\ndense 1 name=y\nloss bce_logits\n' >sides.net
printf 'input x [3]\ndense 8 tanh\ndense 1 sigmoid name=y\nloss bce\n' >chances.net

# checks FILTER: of the JSON that eval printed as `e`, the answers of run as `answers`, and the table's last column.
cat >check.py <<'END'
import json, math, sys

lines = open(sys.argv[1]).read().splitlines()
assert len(lines) == 1, "eval --json prints one line"
e = json.loads(lines[0])
answers = [json.loads(line) for line in open(sys.argv[2])]
truth = [line.strip().split(",")[-1] for line in open(sys.argv[3])]
truth = truth[truth[0] == "price":]
m, n = e["metrics"], len(truth)
assert list(e)[:3] == ["task", "samples", "metrics"] and e["samples"] == n == len(answers)


def near(a, b):
    return abs(a - b) <= 2e-6 * max(1, abs(b))


def check_regression():
    y = [float(t) for t in truth]
    said = [a["values"][0] for a in answers]
    mean = sum(y) / n
    rest = sum((s - t) ** 2 for s, t in zip(said, y))
    assert near(m["rmse"], math.sqrt(rest / n)), m
    assert near(m["mae"], sum(abs(s - t) for s, t in zip(said, y)) / n), m
    assert near(m["r2"], 1 - rest / sum((t - mean) ** 2 for t in y)), m
    own = math.sqrt(sum((t - mean) ** 2 for t in y) / n)  # the mean of the training samples does hardly worse
    assert own * 0.999999 <= e["baseline"]["rmse"] < 1.05 * own, e["baseline"]


def f1(said, y, kind):
    both = sum(s == t == kind for s, t in zip(said, y))
    return 2 * both / max(1, said.count(kind) + y.count(kind))


def check_classes():
    names = e["classes"]
    y = [t if t in names else names[int(t)] for t in truth]
    said = [a["classes"][0]["class"] for a in answers]
    given = [{c["class"]: c["probability"] for c in a["classes"]} for a in answers]
    assert near(m["accuracy"], sum(s == t for s, t in zip(said, y)) / n), m
    assert abs(m["loss"] + sum(math.log(g[t]) for g, t in zip(given, y)) / n) < 1e-4, m
    assert e["confusion"] == [[sum(t == a and s == b for s, t in zip(said, y)) for b in names] for a in names]
    assert near(e["baseline"]["accuracy"], max(y.count(c) for c in names) / n)
    for name, its in zip(names, e["per_class"]):
        assert near(its["f1"], f1(said, y, name)) and its["samples"] == y.count(name), its
    if len(names) > 2:
        assert near(m["f1"], sum(f1(said, y, c) for c in names) / len(names)), m
        return
    yes = names[1]
    assert near(m["f1"], f1(said, y, yes)), m
    wins = [(p[yes] > q[yes]) + 0.5 * (p[yes] == q[yes])
            for p, t in zip(given, y) if t == yes for q, u in zip(given, y) if u != yes]
    assert abs(m["auc"] - sum(wins) / len(wins)) < 1e-4, m  # run rounds what eval ranks


check_regression() if e["task"] == "regression" else check_classes()
assert eval(sys.argv[4]), sys.argv[4] + " of " + lines[0]
END

# scored NAME DATA FILTER: eval of all the data agrees with what run says of them.
scored() {
    ends 0 eval "$1" --data "$2" --part all --json
    cp "$folder/out" eval.json
    ends 0 run "$1" "$2" --json --top 9
    python3 check.py eval.json "$folder/out" "$2" "$3" 2>"$folder/python" ||
        complain "eval $1: $(tail -1 "$folder/python")"
}

# ---- Regression ----
ends 0 train prices.net --data prices.csv --epochs 60 --lr 0.02 --checkpoint prices --report prices.html
says ": RMSE "
says "; always the mean: RMSE "
complains " RMSE "
scored prices prices.csv 'e["task"] == "regression" and m["rmse"] < 0.3 < e["baseline"]["rmse"]'
# What the last epoch said of the validation part is what eval says of it.
ends 0 train prices.net --data prices.csv --epochs 3 --checkpoint early --json -q
rmse=$(grep '"event": "epoch"' "$folder/out" | tail -1 | grep -o '"validation_rmse": [0-9.]*' | cut -d ' ' -f 2)
tail -1 "$folder/out" >done.json
grep -qE '"task": "regression", "metrics": \{"rmse": [0-9.]+, "mae"' done.json || complain "done has no metrics"
ends 0 eval early --part validation --json
says "\"rmse\": ${rmse:0:6}"
ends 0 eval prices
says "prices.csv, test: "
printf 'input x [2]\ndense 8 tanh\ndense 2 name=y\nloss mse\n' >two.net
python3 - <<'END'
import struct
def npy(path, rows):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        for row in rows:
            f.write(struct.pack(f"<{len(row)}f", *row))
npy("x.npy", [[i % 7 / 7, i % 5 / 5] for i in range(90)])
npy("y.npy", [[3 * (i % 7), 100 - i % 5] for i in range(90)])
END
ends 0 train two.net --data x.npy,y.npy --epochs 5 --checkpoint two --report two.html
ends 0 eval two --part all
says "always the mean"
ends 0 eval two --part all --json
says_json 'len(data["targets"]) == 2 and abs(sum(t["rmse"] for t in data["targets"]) / 2 - data["metrics"]["rmse"]) < 1e-6'

# In the unit of the column, by its name: prices are in the hundred thousands, and so are errors and answers.
awk -F , 'BEGIN { print "size,rooms,age,price" } { print $1 "," $2 "," $3 "," int(100000 * $4) }' prices.csv >houses.csv
ends 0 train mlp --data houses.csv --epochs 40 --checkpoint houses --report houses.html -q
says "test    price: RMSE "
scored houses houses.csv 'e["targets"][0]["name"] == "price" and 1e4 < m["rmse"] < 4e4 and m["loss"] < 1'
ends 0 run houses houses.csv
grep -qE '^0  price [2-5][0-9]{5}$' "$folder/out" || complain "a price in its own unit"

# ---- A forecast beside what anybody would have said ----
awk 'BEGIN { print "load"; for (i = 0; i < 400; i++) print 500 + 100 * sin(i / 5) + i * 17 % 13 }' >load.csv
ends 0 train mlp --data load.csv --window 16 --horizon 2 --epochs 30 --checkpoint load --report load.html -q
says "; always the last value: RMSE "
ends 0 eval load --json
says_json 'data["metrics"]["rmse"] < data["baseline"]["rmse"] and data["baseline"]["name"] == "the last value"'
says_json '[t["name"] for t in data["targets"]] == ["load +1", "load +2"]'
# A column besides the target, which grows by 2 a row
awk 'BEGIN { print "day,load"; for (i = 0; i < 300; i++) print i % 7 "," 100 + 2 * i }' >rising.csv
ends 0 train mlp --data rising.csv --window 8 --horizon 1 --epochs 1 --checkpoint rising -q
ends 0 eval rising --json
says_json 'data["baseline"]["name"] == "the last value" and abs(data["baseline"]["rmse"] - 2) < 0.01'

# ---- Classes ----
ends 0 train mlp --data kinds.csv --epochs 30 --checkpoint kinds --report kinds.html
scored kinds kinds.csv 'e["task"] == "classes" and e["classes"] == ["cat", "dog", "eel"] and m["accuracy"] > 0.9'
ends 0 eval kinds
says "; always "
says "recall  precision     F1"

# ---- Yes or no: by bce_logits, by bce, by two classes ----
ends 0 train sides.net --data sides.csv --epochs 60 --lr 0.02 --checkpoint sides --report sides.html
says " F1 "
says ", AUC 0."
complains " %  0.0 s"
scored sides sides.csv 'e["task"] == "binary" and e["classes"] == ["no", "yes"] and m["auc"] > 0.9'
ends 0 run sides sides.csv
grep -qE '^0  (yes|no)  probability 0\.[0-9]{2}$|^0  (yes|no)  probability 1.00$' "$folder/out" ||
    complain "yes or no, with a probability"
ends 0 eval sides --part all
says "       no "
ends 3 train sides.net --data kinds.csv --checkpoint none
complains "yes or no"
ends 0 train sides.net --data words.csv --epochs 20 --checkpoint named -q
scored named words.csv 'e["task"] == "binary" and e["classes"] == ["no", "yes"] and m["auc"] > 0.5'
ends 0 train chances.net --data sides.csv --epochs 20 --checkpoint chances -q
scored chances sides.csv 'e["task"] == "binary" and m["auc"] > 0.5'
ends 0 train mlp --data words.csv --epochs 20 --checkpoint words -q
scored words words.csv 'e["task"] == "binary" and e["classes"] == ["no", "yes"] and m["auc"] > 0.9'

# ---- Reports ----
# well_formed FILE: every element of a page ends where it should, and it asks for nothing from outside.
well_formed() {
    python3 - "$1" <<'END' 2>"$folder/python" || complain "$1: $(tail -1 "$folder/python")"
import sys
from html.parser import HTMLParser

class Page(HTMLParser):
    void, open = {"meta", "img", "br", "link", "input"}, []
    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            assert name not in ("src", "href") or value.startswith("data:"), f"asks for {value}"
        if tag not in self.void:
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"line {self.getpos()[0]}: </{tag}> closes {self.open[-3:]}"
        self.open.pop()

page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
page.close()
assert not page.open, f"left open: {page.open}"
END
}
# shows FILE TEXT...
shows() {
    local file=$1 text
    shift
    for text in "$@"; do
        grep -qF "$text" "$file" || complain "$file should show: $text"
    done
}
for page in prices houses load two kinds sides; do
    well_formed "$page.html"
done
shows prices.html "Predicted against true" "Residuals" "RMSE of always saying the mean" "Which columns matter" "column 1"
shows houses.html "<th>size</th>" "<th>rooms</th>" "<span>price</span>"
shows load.html "What was forecast, and what came" "the last value" "what came"
shows kinds.html "What was taken for what" "Which columns matter" "the accuracy falls"
shows sides.html "area under the ROC curve" "<th>yes</th>"
[ "$(grep -c "Predicted against true" two.html)" -eq 4 ] || complain "a figure for each of two targets"
# The third column is noise to prices: the other two matter, in this order.
columns=$(grep -oE '<th>column [0-9]' prices.html | grep -o '[0-9]' | tr -d '\n')
[[ $columns == 12* ]] || complain "columns by importance are $columns"
ends 0 eval prices --data prices.csv --part all --json --report again.html
[ "$(wc -l <"$folder/out")" -eq 1 ] || complain "a page is no line of JSON"
well_formed again.html
shows again.html "Predicted against true" "Which columns matter"
cp again.html before.html
ends 0 eval prices --data prices.csv --part all --report again.html --threads 1
says "wrote   again.html"
cmp -s again.html before.html || complain "the page of the same score is another"
ends 1 eval prices --report no/such/page.html
complains "cannot write no/such/page.html"
for i in $(seq 60); do
    echo "to be or not to be, that is question $i"
done >hamlet.txt
ends 0 train gpt-tiny --data hamlet.txt --epochs 1 --set layers=1 --set width=16 --set length=16 --checkpoint hamlet \
    --report hamlet.html -q
says " bits per token, perplexity "
well_formed hamlet.html
shows hamlet.html "What it writes" "perplexity"
ends 0 eval hamlet --json --report again.html
says_json 'data["task"] == "text" and abs(2 ** data["metrics"]["bits_per_token"] - data["metrics"]["perplexity"]) < 1e-3'
[ "$(sed -n '/What it writes/,/section/p' again.html)" = "$(sed -n '/What it writes/,/section/p' hamlet.html)" ] ||
    complain "the same seed writes other texts"

popd >/dev/null || exit 1
