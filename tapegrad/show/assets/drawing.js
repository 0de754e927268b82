// The network as a drawing. Its places come with the recording; here they are painted, and lit frame by frame.

const EMPTY = { box: "blank", slot: "empty", choice: "empty" };  // what a node is without text
const MARKS = ["", "here", "next", "field", "later"];

function drawingPanel(panel, say) {
  const outer = element("figure", "drawing"), svg = drawn("svg", { role: "img", tabindex: 0 });
  outer.append(svg, legendOf(panel));
  let current = null, parts = null, frame = null, aimed = null;

  // The arrangement that fills more of the room there is.
  function chosen() {
    const width = svg.clientWidth || 780, height = svg.clientHeight || 500;
    const filled = (way) => way.width * way.height * Math.min(width / way.width, height / way.height) ** 2;
    return panel.arrangements.reduce((best, way) => (filled(way) > filled(best) ? way : best));
  }

  function fit() {
    const way = chosen();
    if (way === current) return;
    current = way;
    parts = painted(panel, way, svg, aim);
    if (frame) show(frame);
  }

  function show(next) {
    frame = next;
    if (!current) fit();
    parts.nodes.forEach((node) => node.reset());
    parts.edges.forEach((edge) => edge.reset());
    for (const [i, value, mark, text] of frame.nodes) parts.nodes[i].light(value, mark, text);
    for (const [i, value, mark] of frame.edges) parts.edges[i].light(value, mark);
    parts.arcs.replaceChildren(...frame.arcs.map(([number, weight, colour]) => arc(current.arcs[number], weight, colour)));
    svg.setAttribute("aria-label", `${panel.title}. ${frame.caption}`);
  }

  function aim(words) {
    aimed = words;
    say(words || "");
  }

  svg.addEventListener("pointerleave", () => { if (aimed) aim(null); });
  svg.addEventListener("keydown", (event) => {
    const told = panel.nodes.map((node, i) => i).filter((i) => panel.nodes[i][1]);
    const way = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!way || !told.length) return;
    event.preventDefault();
    event.stopPropagation();
    const place = told.findIndex((i) => panel.nodes[i][1] === aimed);
    aim(panel.nodes[told[(place + way + told.length) % told.length]][1]);
  });
  svg.addEventListener("blur", () => aim(null));
  new ResizeObserver(() => { if (frame) fit(); }).observe(svg);
  return { element: outer, show };
}

function legendOf(panel) {
  const list = element("ul", "legend");
  const entries = [...panel.legend, ...panel.colours.map((text, i) => [`arc${i}`, text])];
  for (const [sign, text] of entries) {
    const item = element("li");
    item.append(element("i", `sign ${sign}`), text);
    list.append(item);
  }
  if (panel.note) list.append(element("li", "", panel.note));
  return list;
}

function painted(panel, way, svg, aim) {
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${way.width} ${way.height}`);
  svg.style.fontSize = `${way.font}px`;
  const lines = drawn("g", {}, svg), labels = drawn("g", {}, svg), arcs = drawn("g", {}), boxes = drawn("g", {}, svg);
  svg.append(arcs);
  const edges = panel.edges.map(([text, words, arrow], i) => edgeOf(way.paths[i], way.labels[i], text, arrow, lines, labels, words, aim));
  const nodes = panel.nodes.map(([text, words, shape], i) => nodeOf(way.places[i], text, shape, boxes, words, aim));
  return { nodes, edges, arcs };
}

function listen(part, words, aim) {
  if (!words) return;
  part.addEventListener("pointerenter", () => aim(words));
  part.addEventListener("pointerleave", () => aim(null));
}

function nodeOf([x, y, w, h], text, shape, parent, words, aim) {
  const group = drawn("g", { class: `node ${shape}`, transform: `translate(${x} ${y})` }, parent);
  const round = shape === "dot" || shape === "gate";
  const body = round ? drawn("circle", { r: h / 2 }, group)
    : drawn("rect", { x: -w / 2, y: -h / 2, width: w, height: h, rx: shape === "cell" || shape === "pale" ? 1.5 : Math.min(9, h / 3) }, group);
  const label = shape === "dot" ? null : drawn("text", { class: "name" }, group);
  if (label) label.setAttribute("y", shape === "state" || shape === "choice" ? -h / 2 + 13 : 0);  // below it is something else
  listen(group, words, aim);
  let seen = null;
  function set(classes, strength, shown) {
    const key = `${classes}|${strength}|${shown}`;
    if (key === seen) return;
    seen = key;
    group.setAttribute("class", `node ${shape} ${classes}${shown || !EMPTY[shape] ? "" : ` ${EMPTY[shape]}`}`);
    body.style.setProperty("--strength", strength);
    if (label && label.textContent !== shown) {
      label.textContent = shown;
      const room = (w - 2) / Math.max(1, shown.length * 0.62);
      label.style.fontSize = shown.length * 0.62 * parseFloat(group.ownerSVGElement.style.fontSize) > w - 2 && shape !== "text" ? `${room}px` : "";
    }
  }
  let marks = [];
  function reset() { marks = []; set("", 0, text); }
  function light(value, mark, own) {
    if (mark) marks.push(MARKS[mark]);
    const sign = value > 0 ? "plus" : value < 0 ? "minus" : "";
    set(`${marks.join(" ")} ${sign}`.trim(), Math.min(1, Math.abs(value)).toFixed(2), own === undefined ? text : own);
  }
  set("", 0, text);
  return { reset, light };
}

function edgeOf(path, place, text, arrow, lines, labels, words, aim) {
  const d = `M${path[0]} ${path[1]}C${path.slice(2).join(" ")}`;
  const group = drawn("g", { class: "edge" }, lines);
  drawn("path", { d }, group);
  if (arrow) drawn("path", { class: "tip", d: tip(path) }, group);
  if (words) drawn("path", { class: "near", d }, group);
  listen(group, words, aim);
  const label = text ? drawn("text", { class: "label" }, labels) : null;
  if (label) {
    const rows = text.split("\n");
    rows.forEach((row, i) => {
      drawn("tspan", { x: place[0], y: place[1], dy: `${(i - (rows.length - 1) / 2) * 1.15}em` }, label).textContent = row;
    });
    listen(label, words, aim);
  }
  let seen = "";
  function set(classes) {
    if (classes === seen) return;
    seen = classes;
    group.setAttribute("class", `edge ${classes}`);
    if (label) label.setAttribute("class", `label ${classes}`);
    if (classes) lines.append(group);  // what is lit lies on top
  }
  return {
    reset: () => set(""),
    light: (value, mark) => set(`${mark ? "taken" : "flow"} ${value < 0 ? "minus" : "plus"}`),
  };
}

// An arrowhead at the end of a curve, in the direction it arrives in.
function tip(path, size = 7) {
  const [cx, cy, x, y] = path.slice(-4), length = Math.hypot(x - cx, y - cy) || 1;
  const ux = (x - cx) / length, uy = (y - cy) / length;
  const bx = x - ux * size, by = y - uy * size;
  return `M${x} ${y}L${bx - uy * size * 0.45} ${by + ux * size * 0.45}L${bx + uy * size * 0.45} ${by - ux * size * 0.45}Z`;
}

function arc(path, weight, colour) {
  const group = drawn("g", { class: `arc arc${colour}`, opacity: (0.25 + 0.75 * Math.min(1, weight)).toFixed(2) });
  drawn("path", { d: `M${path[0]} ${path[1]}C${path.slice(2).join(" ")}` }, group);
  drawn("path", { class: "tip", d: tip(path, 6) }, group);
  return group;
}

PANELS.drawing = drawingPanel;
