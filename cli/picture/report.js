// What a curve is at the pointer.
(() => {
  "use strict";
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const make = (svg, name, attributes) => {
    const made = document.createElementNS(svg.namespaceURI, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    return svg.appendChild(made);
  };
  for (const figure of document.querySelectorAll("figure.chart")) {
    const svg = figure.querySelector("svg"), {share, series} = JSON.parse(figure.querySelector("script").textContent);
    const [, , , height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const now = make(svg, "path", {class: "now", visibility: "hidden"});
    const dots = series.map((one) => make(svg, "circle", {class: "dot c" + one.number, r: 4, visibility: "hidden"}));
    const shown = (value) => share ? (100 * value).toFixed(2) + " %" : String(+value.toPrecision(4));
    const hide = () => {
      tip.hidden = true;
      for (const part of [now, ...dots]) part.setAttribute("visibility", "hidden");
    };
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("pointermove", (event) => {
      const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
      tip.replaceChildren();
      const list = document.createElement("dl"), head = document.createElement("b");
      tip.append(head, list);
      series.forEach((one, number) => {
        if (!one.points.length) return;
        const point = one.points.reduce((best, next) => Math.abs(next[2] - x) < Math.abs(best[2] - x) ? next : best);
        const name = document.createElement("dt"), value = document.createElement("dd"), swatch = document.createElement("i");
        swatch.className = "c" + one.number;
        name.append(swatch, one.name);
        value.textContent = shown(point[1]) + " at " + +point[0].toPrecision(4);
        list.append(name, value);
        dots[number].setAttribute("cx", point[2]);
        dots[number].setAttribute("cy", point[3]);
        dots[number].setAttribute("visibility", "visible");
      });
      now.setAttribute("d", `M${x} 14V${height - 44}`);
      now.setAttribute("visibility", "visible");
      tip.hidden = false;
      tip.style.left = (event.clientX + 16 + tip.offsetWidth > innerWidth ? event.clientX - 12 - tip.offsetWidth : event.clientX + 16) + "px";
      tip.style.top = event.clientY + 14 + "px";
    });
  }
})();
