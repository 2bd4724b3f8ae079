// Hover and zoom of the picture of a plan. Everything is drawn without it; this moves what is there.
(() => {
  "use strict";
  const svg = document.querySelector("svg.plan");
  const times = JSON.parse(document.getElementById("plan-times").textContent);
  const plot = {left: +svg.dataset.left, top: +svg.dataset.top, width: +svg.dataset.width, height: +svg.dataset.height};
  const whole = {first: 0, last: Math.max(1, +svg.dataset.times), low: 0, high: Math.max(1, +svg.dataset.total)};
  const phases = ["forward", "recompute", "backward"];
  const LETTER = 6.3;
  const rects = [...svg.querySelectorAll(".buffers rect")];
  const buffers = rects.map((rect) => ({
    rect, first: +rect.dataset.first, end: +rect.dataset.last + 1, offset: +rect.dataset.offset,
    bytes: +rect.dataset.bytes, kind: +/k(\d)/.exec(rect.getAttribute("class"))[1],
  }));
  const labels = svg.querySelector(".labels"), byteAxis = svg.querySelector(".axis.bytes"), timeAxis = svg.querySelector(".axis.times");
  const reset = document.querySelector("button.reset");
  let view = {...whole};

  const x = (time) => plot.left + (time - view.first) / (view.last - view.first) * plot.width;
  const y = (bytes) => plot.top + (view.high - bytes) / (view.high - view.low) * plot.height;
  const element = (name, attributes, text) => {
    const made = document.createElementNS(svg.namespaceURI, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const size = (bytes, digits) => {
    let unit = 0, value = bytes;
    for (; value >= 1024 && unit < 4; unit++) value /= 1024;
    const shown = digits ? +value.toFixed(3) : value.toFixed(unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2);
    return shown + " " + ["B", "KiB", "MiB", "GiB", "TiB"][unit];
  };
  const cut = (text, letters) => {
    const characters = [...text];
    return characters.length > letters ? characters.slice(0, letters - 1).join("") + "…" : text;
  };
  const cutStart = (text, letters) => {
    const characters = [...text];
    return characters.length > letters ? "…" + characters.slice(1 - letters).join("") : text;
  };
  const isAll = () => Object.keys(whole).every((key) => view[key] === whole[key]);
  const moment = (time) => times[time] ? times[time][0] + ", " + phases[times[time][1]] : "";

  // ---- Drawing what is in view ----

  function drawBuffers() {
    labels.replaceChildren();
    for (const b of buffers) {
      const left = x(b.first), top = y(b.offset + b.bytes), width = x(b.end) - left, height = y(b.offset) - top;
      b.rect.setAttribute("x", left.toFixed(2));
      b.rect.setAttribute("y", top.toFixed(2));
      b.rect.setAttribute("width", width.toFixed(2));
      b.rect.setAttribute("height", height.toFixed(2));
      b.rect.classList.toggle("thin", width < 3 || height < 3);
      const from = Math.max(left, plot.left), to = Math.min(left + width, plot.left + plot.width);
      const above = Math.max(top, plot.top), below = Math.min(top + height, plot.top + plot.height);
      const letters = Math.floor((to - from - 9) / LETTER);
      if (below - above < 15 || letters < 4) continue;
      labels.append(element("text", {class: "t" + b.kind, x: from + 5, y: below - above < 22 ? (above + below) / 2 + 4 : above + 14},
        cut(b.rect.dataset.name, letters)));
      if (below - above >= 34 && letters >= 8)
        labels.append(element("text", {class: "t" + b.kind + " size", x: from + 5, y: above + 28}, size(b.bytes)));
    }
  }

  function drawAxes() {
    const span = view.high - view.low, step = Math.max(1, 2 ** Math.ceil(Math.log2(span / 7)));
    byteAxis.replaceChildren();
    for (let at = Math.ceil(view.low / step) * step; at <= view.high; at += step)
      byteAxis.append(element("path", {class: "grid", d: `M${plot.left} ${y(at)}h${plot.width}`}),
        element("text", {x: plot.left - 8, y: y(at) + 4}, size(at, true)));
    const every = Math.max(1, Math.ceil(14 * (view.last - view.first) / plot.width));
    timeAxis.replaceChildren();
    for (let t = Math.max(0, Math.ceil(view.first - 0.5)); t < times.length && t + 0.5 < view.last; t += every)
      timeAxis.append(element("text", {transform: `translate(${x(t + 0.5) + 4} ${plot.top + plot.height + 31}) rotate(-60)`},
        cutStart(times[t][0], 17)));
  }

  function drawLines() {
    for (const line of svg.querySelectorAll(".line")) {
      const bytes = +line.dataset.bytes;
      line.querySelector("path").style.display = bytes >= view.low && bytes <= view.high ? "" : "none";
      line.querySelector("path").setAttribute("d", `M${plot.left} ${y(bytes)}H${plot.left + plot.width + 4}`);
    }
    const turn = svg.querySelector(".turn");
    if (turn) turn.style.display = isAll() ? "" : "none";
    for (const part of svg.querySelectorAll(".use, .peak, path.bound")) part.style.opacity = isAll() ? "" : 0.3;
    for (const band of svg.querySelectorAll(".phases g")) {
      const from = Math.max(plot.left, x(+band.dataset.first)), to = Math.min(plot.left + plot.width, x(+band.dataset.last + 1));
      const [rect, text] = band.children;
      rect.setAttribute("x", from);
      rect.setAttribute("width", Math.max(0, to - from));
      text.setAttribute("x", (from + to) / 2);
      text.textContent = to - from > 10 * LETTER ? phases[times[+band.dataset.first][1]] : "";
    }
  }

  function show(next) {
    view = next;
    drawAxes();
    drawBuffers();
    drawLines();
    reset.hidden = isAll();
  }

  // ---- The pointer ----

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const now = element("path", {class: "now", visibility: "hidden"});
  svg.append(now);

  function row(list, name, value) {
    const term = document.createElement("dt"), detail = document.createElement("dd");
    term.textContent = name;
    detail.textContent = value;
    list.append(term, detail);
  }

  function fillTip(rect, time) {
    tip.replaceChildren();
    const head = document.createElement("b"), list = document.createElement("dl");
    if (rect) {
      const d = rect.dataset, swatch = document.createElement("i");
      swatch.style.background = getComputedStyle(rect).fill;
      head.append(swatch, d.name);
      row(list, "kind", d.kind);
      row(list, "shape", d.shape);
      row(list, "bytes", (+d.bytes).toLocaleString("en") + (d.bytes >= 1024 ? " (" + size(+d.bytes) + ")" : ""));
      row(list, "offset", (+d.offset).toLocaleString("en"));
      row(list, "from", d.first + ": " + moment(+d.first));
      row(list, "to", d.last + ": " + moment(+d.last));
    } else if (times[time]) {
      head.textContent = moment(time);
      row(list, "time", String(time));
      row(list, "in use", size(times[time][2]));
    }
    tip.append(head, list);
  }

  const at = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return {x: Math.min(Math.max(point.x, plot.left), plot.left + plot.width), y: Math.min(Math.max(point.y, plot.top), plot.top + plot.height),
      inside: point.x >= plot.left && point.x <= plot.left + plot.width && point.y >= plot.top && point.y <= plot.top + plot.height};
  };
  const timeAt = (point) => view.first + (point.x - plot.left) / plot.width * (view.last - view.first);
  const bytesAt = (point) => view.high - (point.y - plot.top) / plot.height * (view.high - view.low);

  let over = null, start = null, box = null;
  function hover(event) {
    const point = at(event), rect = event.target.closest ? event.target.closest(".buffers rect") : null;
    if (over !== rect) {
      if (over) over.classList.remove("over");
      if (rect) rect.classList.add("over");
      over = rect;
    }
    tip.hidden = !rect && !point.inside;
    now.setAttribute("visibility", point.inside ? "visible" : "hidden");
    if (tip.hidden) return;
    const time = Math.floor(timeAt(point));
    fillTip(rect, time);
    now.setAttribute("d", `M${point.x} ${plot.top}v${plot.height}`);
    const wide = tip.offsetWidth, tall = tip.offsetHeight;
    tip.style.left = (event.clientX + 16 + wide > innerWidth ? event.clientX - 12 - wide : event.clientX + 16) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tall - 6)) + "px";
  }

  svg.addEventListener("pointermove", (event) => {
    if (!start) return hover(event);
    const point = at(event);
    if (!box) svg.append(box = element("rect", {class: "box"}));
    box.setAttribute("x", Math.min(point.x, start.x));
    box.setAttribute("y", Math.min(point.y, start.y));
    box.setAttribute("width", Math.abs(point.x - start.x));
    box.setAttribute("height", Math.abs(point.y - start.y));
  });
  svg.addEventListener("pointerleave", () => {
    tip.hidden = true;
    now.setAttribute("visibility", "hidden");
    if (over) over.classList.remove("over");
    over = null;
  });
  svg.addEventListener("pointerdown", (event) => {
    const point = at(event);
    if (event.button !== 0 || !point.inside) return;
    start = point;
    tip.hidden = true;
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointerup", (event) => {
    const from = start, to = at(event);
    start = null;
    if (box) box.remove();
    box = null;
    if (!from || Math.abs(to.x - from.x) < 6 || Math.abs(to.y - from.y) < 6) return;
    const next = {first: Math.min(timeAt(from), timeAt(to)), last: Math.max(timeAt(from), timeAt(to)),
      low: Math.min(bytesAt(from), bytesAt(to)), high: Math.max(bytesAt(from), bytesAt(to))};
    if (next.last - next.first > 0.05 && next.high - next.low > 8) show(next);
  });
  svg.addEventListener("dblclick", () => show({...whole}));
  reset.addEventListener("click", () => show({...whole}));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") show({...whole}); });

  // A kind in the legend: the others step back.
  for (const key of svg.querySelectorAll(".key")) {
    key.addEventListener("pointerenter", () => {
      for (const b of buffers) b.rect.classList.toggle("lit", b.kind === +key.dataset.kind);
      svg.classList.add("dim");
    });
    key.addEventListener("pointerleave", () => svg.classList.remove("dim"));
  }
})();
