#!/usr/bin/env python3
"""The pages that mica writes, opened in a real Chromium: what is drawn is what mica plan --json says; nothing is asked
of a network; hovering and zooming work; text from outside stays text. check.py MICA"""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from webdriver import Browser

mica = os.path.abspath(sys.argv[1])
folder = tempfile.TemporaryDirectory()
failures = 0


def check(condition, message):
    global failures
    if not condition:
        failures += 1
        print("FAIL:", message)


def run(*arguments):
    done = subprocess.run([mica, *arguments], cwd=folder.name, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"mica {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def path(name):
    return os.path.join(folder.name, name)


def near(a, b, within=0.75):
    return abs(a - b) <= within


def check_quiet(browser, what):
    """Nothing came from outside this file, and no script failed."""
    for address in browser.requests():
        check(address.startswith(("file:", "data:")), f"{what}: asks for {address}")
    for error in browser.errors():
        check(False, f"{what}: {error}")


# ---- Plans ----

READ_PLAN = """
const box = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; };
const svg = document.querySelector("svg.plan");
const line = (name) => { const l = svg.querySelector(".line." + name); return {bytes: +l.dataset.bytes, box: box(l.querySelector("path"))}; };
return {
  plot: box(svg.querySelector(".plot")), times: +svg.dataset.times, total: +svg.dataset.total,
  buffers: [...svg.querySelectorAll(".buffers rect")].map((r) => ({...r.dataset, box: box(r), fill: getComputedStyle(r).fill})),
  total_line: line("total"), bound_line: line("bound"), turn: box(svg.querySelector(".turn") || svg),
};
"""


def check_geometry(plan, drawn, what):
    """Every rectangle lies where the plan has its buffer, within less than a pixel."""
    left, top, width, height = drawn["plot"]
    times, total = drawn["times"], plan["total"]
    check(drawn["total"] == total, f"{what}: a total of {drawn['total']}, not {total}")
    check(times == 1 + max(b["last"] for b in plan["buffers"]), f"{what}: {times} times")
    given = [b for b in plan["buffers"] if b["bytes"] > 0]
    check(len(given) == len(drawn["buffers"]), f"{what}: {len(drawn['buffers'])} rectangles of {len(given)} buffers")
    fills = {}
    for buffer, rect in zip(given, drawn["buffers"]):
        for key in ("name", "kind"):
            check(rect[key] == buffer[key], f"{what}: {rect[key]} instead of {buffer[key]}")
        for key in ("bytes", "offset", "first", "last"):
            check(int(rect[key]) == buffer[key], f"{what}: {buffer['name']}: {key} {rect[key]}, not {buffer[key]}")
        x, y, w, h = rect["box"]
        place = f"{what}: {buffer['name']} is drawn at {rect['box']}"
        check(near(x, left + buffer["first"] / times * width), place)
        check(near(w, (buffer["last"] + 1 - buffer["first"]) / times * width), place)
        check(near(y + h, top + height * (1 - buffer["offset"] / total)), place)
        check(near(h, height * buffer["bytes"] / total), place)
        fills.setdefault(buffer["kind"], set()).add(rect["fill"])
    check(all(len(fill) == 1 for fill in fills.values()), f"{what}: a kind has one colour: {fills}")
    check(len(set.union(*fills.values())) == len(fills), f"{what}: every kind has another colour: {fills}")
    for line, bytes in (("total_line", total), ("bound_line", plan["lower_bound"])):
        check(drawn[line]["bytes"] == bytes, f"{what}: {line} is at {drawn[line]['bytes']} bytes")
        check(near(drawn[line]["box"][1], top + height * (1 - bytes / total), 1.5), f"{what}: {line} {drawn[line]['box']}")


def check_hover(browser, drawn, what):
    """A buffer, the largest of those that live shorter than the step, tells what it is."""
    short = [b for b in drawn["buffers"] if int(b["last"]) - int(b["first"]) + 1 < drawn["times"]] or drawn["buffers"]
    buffer = max(short, key=lambda b: b["box"][2] * b["box"][3])
    x, y, w, h = buffer["box"]
    browser.pointer((x + w / 2, y + h / 2))
    tip = browser.run("const t = [...document.querySelectorAll('.tip')].find((t) => !t.hidden); return t ? t.innerText : ''")
    for part in (buffer["name"], buffer["kind"], buffer["shape"], f"{int(buffer['bytes']):,}"):
        check(part in tip, f"{what}: hovering {buffer['name']} should say {part}; says: {tip!r}")
    browser.pointer((5, 5))
    check(browser.run("return [...document.querySelectorAll('.tip')].every((t) => t.hidden)"), f"{what}: the tip stays")


def check_zoom(browser, drawn, what):
    """A box that is dragged fills the plot; "Show all" brings everything back."""
    left, top, width, height = drawn["plot"]
    browser.pointer((left + width / 4, top + height / 4), "down", (left + width / 2, top + height / 2), (left + width * 3 / 4, top + height * 3 / 4), "up")
    zoomed = browser.run(READ_PLAN)
    for before, after in zip(drawn["buffers"], zoomed["buffers"]):
        check(near(after["box"][2], 2 * before["box"][2], 4), f"{what}: zoomed, {before['name']} is {after['box'][2]} wide")
    check(browser.run("return !document.querySelector('button.reset').hidden"), f"{what}: no way back from a zoom")
    browser.run("document.querySelector('button.reset').click()")
    for before, after in zip(drawn["buffers"], browser.run(READ_PLAN)["buffers"]):
        check(all(near(a, b, 0.1) for a, b in zip(before["box"], after["box"])), f"{what}: {before['name']} did not come back")


READ_CONTRAST = """
const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = (c) => { const [r, g, b] = rgb(c).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const style = getComputedStyle, paper = style(document.body).backgroundColor;
const found = [["the page", contrast(style(document.body).color, paper)], ["notes", contrast(style(document.querySelector(".note")).color, paper)]];
for (const label of document.querySelectorAll(".plan .labels text:not(.size)")) {
  const kind = label.getAttribute("class").replace("t", "k");
  found.push([label.textContent, contrast(style(label).fill, style(document.querySelector(".buffers ." + kind)).fill)]);
}
return {paper, found};
"""


def check_colours(browser, what):
    papers = set()
    for scheme in ("light", "dark"):
        browser.colours(scheme)
        seen = browser.run(READ_CONTRAST)
        papers.add(seen["paper"])
        for name, contrast in seen["found"]:
            check(contrast >= 4.5, f"{what}: {name!r} has a contrast of {contrast:.2f} in {scheme}")
    browser.colours("light")
    check(len(papers) == 2, f"{what}: the same paper in light and dark: {papers}")


def check_plan(browser, net, *options):
    what = " ".join(["plan", net, *options])
    plan = json.loads(run("plan", net, *options, "--json", "--html", "plan.html", "--svg", "plan.svg"))
    browser.open(path("plan.html"))
    drawn = browser.run(READ_PLAN)
    check_geometry(plan, drawn, what)
    check_hover(browser, drawn, what)
    check_zoom(browser, drawn, what)
    check_colours(browser, what)
    check_quiet(browser, what)

    root = xml.etree.ElementTree.parse(path("plan.svg")).getroot()
    titles = [e for e in root.iter() if e.tag.endswith("}title")]
    check(len(titles) == len(drawn["buffers"]), f"{what}: the image has {len(titles)} buffers")
    browser.open(path("plan.svg"))
    check(browser.run("return document.querySelectorAll('.buffers rect').length") == len(drawn["buffers"]), f"{what}: svg")
    check_quiet(browser, what + " (svg)")


def check_hostile_name(browser):
    """A file's name is text in the page, whatever it is."""
    name = "\"'><img src=x onerror=alert(1)><script>document.title='broken'</script>&amp;.net"
    name = name.replace("/", "\u2215")
    with open(path(name), "w") as file:
        file.write(run("info", "mlp", "--text"))
    run("plan", name, "--html", "hostile.html")
    browser.open(path("hostile.html"))
    seen = browser.run("return [document.title, document.querySelector('h1').textContent, document.images.length]")
    check(seen[0] == name and seen[1] == name and seen[2] == 0, f"hostile name: {seen}")
    check_quiet(browser, "hostile name")


def check_large(browser):
    """Thousands of buffers open, and still answer."""
    plan = json.loads(run("plan", "gpt-tiny", "--train", "--batch", "1", "--set", "layers=160", "--set", "width=16", "--json", "--html", "large.html"))
    check(len(plan["buffers"]) > 5000, f"large: only {len(plan['buffers'])} buffers")
    browser.open(path("large.html"))
    drawn = browser.run(READ_PLAN)
    check_geometry(plan, drawn, "large")
    check_hover(browser, drawn, "large")
    check_quiet(browser, "large")


# ---- Reports ----

READ_REPORT = """
const all = (selector) => [...document.querySelectorAll(selector)];
return {
  charts: all("figure.chart").map((f) => [f.querySelector("b").textContent, ...[...f.querySelectorAll(".curve")].map((c) => [+c.dataset.points, c.getTotalLength()])]),
  cells: all(".matrix tbody td[data-label]").map((c) => [+c.dataset.label, +c.dataset.prediction, +c.textContent]),
  pictures: all(".mistake img").map((i) => [i.complete, i.naturalWidth, i.naturalHeight, i.getBoundingClientRect().width]),
  captions: all(".mistake figcaption").map((c) => c.innerText),
  layers: all(".layers tbody tr").map((r) => r.cells[0].textContent),
  bars: all(".layers tbody .bars").map((b) => [...b.children].reduce((sum, i) => sum + i.getBoundingClientRect().width, 0)),
  settings: Object.fromEntries(all(".settings tr").map((r) => [r.cells[0].textContent, r.cells[1].textContent])),
  tiles: all(".tiles li").map((t) => t.innerText.replace("\\n", " ")),
};
"""


def check_report(browser):
    """A page about a real training: curves, a matrix that adds up, pictures, layers, the plan."""
    run("train", "lenet", "--data", "digits:1200", "--epochs", "2", "--checkpoint", "trained", "--report", "report.html", "--trace", "trace.json")
    browser.open(path("report.html"))
    page = browser.run(READ_REPORT)
    charts = {name: curves for name, *curves in page["charts"]}
    for name in ("Loss", "Accuracy"):
        check(len(charts.get(name, [])) == 2, f"report: {name} should have two curves: {charts}")
        check(all(points >= 2 and length > 20 for points, length in charts.get(name, [])), f"report: {name} is {charts}")
    check([cell[:2] for cell in page["cells"]] == [[i, j] for i in range(10) for j in range(10)], "report: no 10 x 10 matrix")
    samples = sum(count for _, _, count in page["cells"])
    wrong = sum(count for label, prediction, count in page["cells"] if label != prediction)
    check(samples == 300, f"report: the matrix has {samples} test samples")
    check(0 < len(page["pictures"]) <= wrong, f"report: {len(page['pictures'])} pictures of {wrong} mistakes")
    check(all(done and w == 28 and h == 28 and shown > 40 for done, w, h, shown in page["pictures"]), f"report: {page['pictures']}")
    check(all("predicted as" in caption and "%" in caption for caption in page["captions"]), f"report: {page['captions']}")
    check({"conv1", "conv2", "logits"} <= set(page["layers"]), f"report: layers {page['layers']}")
    check(max(page["bars"]) > 100, f"report: bars {page['bars']}")
    check(page["settings"].get("seed") == "42", f"report: settings {page['settings']}")
    check(any(tile.startswith("0 heap calls") for tile in page["tiles"]), f"report: tiles {page['tiles']}")
    plan = json.loads(run("plan", "lenet", "--train", "--batch", "32", "--json"))
    browser.run("document.querySelector('svg.plan').scrollIntoView()")
    drawn = browser.run(READ_PLAN)
    check_geometry(plan, drawn, "report")
    check_hover(browser, drawn, "report")
    browser.run("scrollTo(0, 0)")
    x, y, w, h = browser.run("const r = document.querySelector('svg.curves').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]")
    browser.pointer((x + w / 2, y + h / 2))
    tip = browser.run("const t = [...document.querySelectorAll('.tip')].find((t) => !t.hidden); return t ? t.innerText : ''")
    check("training" in tip and "held out" in tip, f"report: the loss says {tip!r}")
    check_quiet(browser, "report")


READ_NUMBERS = """
const all = (selector) => [...document.querySelectorAll(selector)];
const box = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
return {
  figures: all("figure.drawn").map((f) => ({title: f.querySelector("b").textContent, frame: box(f.querySelector("svg")),
    marks: [...f.querySelectorAll(".points, .bin, .line")].map(box)})),
  points: all(".points").map((p) => p.getAttribute("d").split("M").length - 1),
  residuals: all(".bin title").reduce((sum, t) => sum + +t.textContent.split(": ")[1], 0),
  columns: all(".columns tr").map((r) => [r.cells[0].textContent, r.querySelector("i").getBoundingClientRect().width]),
  charts: all("figure.chart b").map((b) => b.textContent), wide: document.documentElement.scrollWidth - innerWidth,
};
"""


def check_numbers(browser):
    """A page about a regression: each sample is a point within the axes, and the column that decides has the longest bar."""
    with open(path("line.csv"), "w") as file:
        file.writelines(f"{i % 17},{i % 5},{3 * (i % 17) + 0.1 * (i % 7)}\n" for i in range(300))
    with open(path("line.net"), "w") as file:
        file.write("input x [2]\ndense 16 tanh\ndense 1 name=y\nloss mse\n")
    run("train", "line.net", "--data", "line.csv", "--epochs", "20", "--lr", "0.02", "--checkpoint", "line", "--report", "line.html")
    samples = json.loads(run("eval", "line", "--json"))["samples"]
    for width in (1320, 500):
        browser.width(width)
        browser.open(path("line.html"))
        page = browser.run(READ_NUMBERS)
        titles = [figure["title"] for figure in page["figures"]]
        check(titles == ["Predicted against true", "Residuals"], f"numbers: figures {titles}")
        check(page["points"] == [samples] and page["residuals"] == samples, f"numbers: {page['points']} of {samples}")
        for figure in page["figures"]:
            left, top, right, bottom = figure["frame"]
            check(figure["marks"] != [], f"numbers: nothing in {figure['title']}")
            for x, y, x2, y2 in figure["marks"]:
                check(left <= x <= x2 <= right and top <= y <= y2 <= bottom, f"numbers: {figure['title']} leaves its axes")
        check([name for name, _ in page["columns"]] == ["column 1", "column 2"], f"numbers: columns {page['columns']}")
        check(page["columns"][0][1] > 50 > page["columns"][1][1], f"numbers: bars {page['columns']}")
        check("RMSE" in page["charts"] and "Accuracy" not in page["charts"], f"numbers: charts {page['charts']}")
        check(page["wide"] <= 0, f"numbers: {page['wide']} pixels too wide at {width}")
        check_quiet(browser, "numbers")
    browser.width(1320)


def check_trace():
    """Each step that was traced: layers forward, then backward, then the update, one after the other."""
    with open(path("trace.json")) as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
    check(len(events) > 20, f"trace: {len(events)} events")
    ends = 0
    for event in events:
        check(event["ts"] >= ends - 0.01 and event["dur"] >= 0, f"trace: {event} begins before {ends}")
        ends = event["ts"] + event["dur"]
    for step in {e["args"]["step"] for e in events}:
        phases = [e["args"]["phase"] for e in events if e["args"]["step"] == step]
        check(phases == sorted(phases, key=["forward", "backward", "update"].index), f"trace: step {step} is {phases}")


with folder, Browser() as browser:
    check_plan(browser, "lenet", "--train", "--batch", "32")
    check_plan(browser, "resnet-small", "--train")
    check_plan(browser, "gpt-tiny", "--train", "--batch", "16", "--budget", "24MiB")
    check_plan(browser, "mlp")
    check_hostile_name(browser)
    check_large(browser)
    check_report(browser)
    check_numbers(browser)
    check_trace()

sys.exit(1 if failures else 0)
