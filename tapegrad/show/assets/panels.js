// Panels of numbers, fields, tables: each kind gives an element and a way to show one frame.

function framed(panel, body, whole) {
  const outer = element("div", whole ? "panel whole" : "panel");
  outer.append(element("h3", "", panel.title));
  if (panel.note) outer.append(element("p", "note", panel.note));
  outer.append(body);
  return outer;
}

function fieldsPanel(panel, say) {
  const list = element("dl", "fields");
  function show(values) {
    list.replaceChildren(...values.map(([name, value]) => {
      const row = element("div");
      row.append(element("dt", "", name), element("dd", "", value));
      if (panel.words[name]) row.addEventListener("pointerenter", () => say(panel.words[name]));
      return row;
    }));
  }
  return { element: framed(panel, list, true), show };
}

function cellsPanel(panel, say) {
  const rows = panel.rows.length, columns = panel.columns;
  const body = element("div", "cells"), table = element("div", "table");
  body.tabIndex = 0;
  body.setAttribute("role", "img");
  const fine = columns > 40 && panel.scale !== "text";
  if (fine) body.classList.add("fine");
  if (columns > 80) body.classList.add("finest");
  else if (columns > 15 || rows > 8 || panel.scale !== "text") body.classList.add("dense");
  if (!fine && panel.scale !== "text") body.classList.add("shrinks");
  table.style.gridTemplateColumns = `auto repeat(${columns}, ${fine ? "minmax(0, 1fr)" : panel.scale === "text" ? "auto" : "minmax(5px, 1.5rem)"})`;
  const cells = [], numbers = [], labels = [];
  for (let r = 0; r < rows; r++) {
    labels.push(element("div", "label", panel.rows[r]));
    table.append(labels[r]);
    cells.push([]);
    for (let c = 0; c < columns; c++) {
      const cell = element("div", "cell");
      cell.addEventListener("pointerenter", () => aim(r, c, false));
      cells[r].push(cell);
      table.append(cell);
    }
  }
  table.append(element("div", "label"));
  for (let c = 0; c < columns; c++) {
    numbers.push(element("div", "number"));
    table.append(numbers[c]);
  }
  body.append(table);

  let frame = null, values = [], aimed = null;
  const seen = cells.map((row) => row.map(() => null));

  function show(next) {
    frame = next;
    values = panel.default.map((value) => Array(columns).fill(value));
    for (const [r, c, value] of frame.cells) values[r][c] = value;
    const marks = new Set(frame.marks.map(([r, c]) => r * columns + c));
    for (let r = 0; r < rows; r++) {
      const width = frame.widths ? frame.widths[r] : columns;
      labels[r].classList.toggle("none", width === 0);
      for (let c = 0; c < columns; c++) {
        const marked = marks.has(r * columns + c);
        const key = c >= width ? "none" : `${marked}|${values[r][c]}`;
        if (seen[r][c] === key) continue;
        seen[r][c] = key;
        paint(cells[r][c], values[r][c], panel.default[r], c >= width, marked, r);
      }
    }
    numbers.forEach((label, c) => {
      const column = frame.first + c;
      const fits = !fine || columns - c > 0.08 * columns;  // a number at the very end would stick out
      label.textContent = (fits && column % (fine ? 20 : 5) === 0) || columns === 1 ? String(column).replace("-", "−") : "";
    });
    if (frame.marks.length) body.classList.add("headed");
    if (panel.scale === "text" && values.some((row) => row.some((value) => value.length > 3))) body.classList.add("words");
    body.setAttribute("aria-label", `${panel.title}. ${spoken()}`);
    follow();
    if (aimed) aim(...aimed, false);
  }

  function paint(cell, value, usual, absent, marked, r) {
    cell.className = "cell";
    if (absent) { cell.classList.add("none"); cell.textContent = ""; return; }
    const text = fine ? "" : short(value);
    cell.textContent = text;
    cell.classList.toggle("default", value === usual);
    if (text.length > 3) cell.classList.add("long");
    if (marked) cell.classList.add("mark");
    if (marked && r === 0) cell.classList.add("under");
    if (panel.scale === "text") { if (value !== usual) cell.classList.add("text"); return; }
    if (value) cell.classList.add(value > 0 ? "plus" : "minus");
    cell.style.setProperty("--strength", Math.min(1, Math.abs(value)).toFixed(3));
  }

  function spoken() {
    const width = (r) => (frame.widths ? frame.widths[r] : columns);
    const rest = frame.marks.map(([r, c]) => `${panel.rows[r] || "head"} at ${panel.columnName} ${frame.first + c}`);
    if (panel.scale === "text" && rows === 1) rest.push(values[0].slice(0, width(0)).join(" "));
    return rest.join("; ");
  }

  // Of what is wider than its box those columns are shown that fit, and what is marked stays among them.
  let first = 0, fitting = columns;
  function follow() {
    const place = frame.marks[0] || (frame.focus === undefined ? null : [0, frame.focus]);
    if (panel.scale !== "text" || body.classList.contains("words") || !body.clientWidth) return;
    if (!place) {  // nothing to follow: all columns, as wide as there is room for
      body.classList.add("shrinks");
      table.style.gridTemplateColumns = `auto repeat(${columns}, minmax(5px, ${body.classList.contains("dense") ? 1.5 : 1.9}rem))`;
      return;
    }
    const size = body.classList.contains("dense") ? 1.5 : 1.9, unit = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const fits = Math.max(3, Math.floor((body.clientWidth - labels[0].offsetWidth - 4) / (size * unit + 2)));
    const now = Math.min(columns, fits), room = Math.min(3, Math.floor(now / 4));
    let start = Math.min(first, columns - now);
    if (place[1] - room < start || place[1] + room >= start + now) start = place[1] - Math.floor(now / 2);
    start = Math.max(0, Math.min(start, columns - now));
    if (start === first && now === fitting) return;
    [first, fitting] = [start, now];
    table.style.gridTemplateColumns = `auto repeat(${now}, auto)`;
    for (const row of [...cells, numbers]) row.forEach((cell, c) => { cell.hidden = c < start || c >= start + now; });
  }
  new ResizeObserver(() => { if (frame) follow(); }).observe(body);

  function wordsFor(r, c) {
    const own = frame.words && frame.words[r] && frame.words[r][c];
    if (own) return own;
    const whole = panel.words && panel.words[r][frame.first - panel.first + c];
    if (whole) return whole;
    const row = (panel.rowWords && panel.rowWords[r]) || `${panel.title} ${panel.rows[r]}`.trim();
    return `${row}, ${panel.columnName} ${frame.first + c}.`;
  }

  function aim(r, c, scroll) {
    if (aimed) cells[aimed[0]][aimed[1]].classList.remove("aim");
    if (seen[r][c] === "none") { aimed = null; return; }
    aimed = [r, c];
    cells[r][c].classList.add("aim");
    const value = values[r][c];
    say(`${wordsFor(r, c)} Now ${typeof value === "string" ? value : String(value).replace("-", "−")}.`);
    if (scroll) cells[r][c].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function leave() {
    if (aimed) cells[aimed[0]][aimed[1]].classList.remove("aim");
    aimed = null;
    say("");
  }

  const ways = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  body.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { body.blur(); return; }
    const way = ways[event.key];
    if (!way || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const from = aimed || frame.marks[0] || [0, 0];
    const step = aimed ? way : [0, 0];
    aim(Math.min(rows - 1, Math.max(0, from[0] + step[0])), Math.min(columns - 1, Math.max(0, from[1] + step[1])), true);
  });
  body.addEventListener("pointerleave", leave);
  body.addEventListener("blur", leave);
  return { element: framed(panel, body, fine || panel.side === "source"), show };
}

function simplexPanel(panel, say) {
  const count = panel.names.length, labelled = count <= 32, radius = 100;
  const margin = labelled ? 58 : 12, edge = radius + margin;
  const svg = drawn("svg", { class: "simplex", viewBox: `${-edge} ${-radius - 24} ${2 * edge} ${2 * radius + 48}`, role: "img", tabindex: 0 });
  const places = panel.names.map((_, v) => {
    const angle = (2 * Math.PI * v) / count - Math.PI / 2;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
  drawn("polygon", { class: "outline", points: places.map((place) => place.join(",")).join(" ") }, svg);
  for (const [a, b] of panel.edges.slice(0, 800)) drawn("line", { class: "edge", ...between(places[a], places[b]) }, svg);
  const way = drawn("g", {}, svg);
  const size = count <= 60 ? 3.4 : count <= 150 ? 2.2 : 1.4;
  const vertices = places.map(([x, y], v) => {
    const dot = drawn("circle", { class: "vertex", cx: x, cy: y, r: size }, svg);
    dot.addEventListener("pointerenter", () => aim(v));
    dot.addEventListener("pointerleave", leave);
    return dot;
  });
  const texts = labelled ? places.map(([x, y], v) => {
    const steep = Math.abs(x) < 0.42 * radius;  // near top and bottom labels stand in two rows
    const side = steep ? "middle" : x > 0 ? "start" : "end";
    const out = !steep ? 1.06 : count < 16 ? 1.13 : v % 2 ? 1.18 : 1.09;
    const label = drawn("text", { x: x * out, y: y * out + 2.4, "text-anchor": side }, svg);
    const name = panel.names[v];
    label.textContent = name.length > 12 ? `${name.slice(0, 5)}…${name.slice(-6)}` : name;
    return label;
  }) : [];
  const point = drawn("circle", { class: "point", r: size + 3, cx: 0, cy: 0 }, svg);
  let aimed = null, weights = new Map();

  function between([x1, y1], [x2, y2]) { return { x1, y1, x2, y2 }; }

  function centre(frame) {
    const total = frame.reduce((sum, [, w]) => sum + w, 0) || 1;
    return frame.reduce(([x, y], [v, w]) => [x + (places[v][0] * w) / total, y + (places[v][1] * w) / total], [0, 0]);
  }

  function show(frame, before) {
    weights = new Map(frame.map(([v, w]) => [v, w]));
    const [x, y] = centre(frame);
    point.style.transform = `translate(${x}px, ${y}px)`;
    vertices.forEach((dot, v) => dot.classList.toggle("here", weights.has(v)));
    texts.forEach((label, v) => label.classList.toggle("here", weights.has(v)));
    const trail = before.slice(-8).map(centre);
    trail.push([x, y]);
    way.replaceChildren(...trail.slice(1).map((to, i) =>
      drawn("line", { class: "way", opacity: ((i + 2) / (trail.length + 1)).toFixed(2), ...between(trail[i], to) })));
    const said = frame.map(([v, w]) => `${panel.names[v]}: ${w}`).join("; ");
    svg.setAttribute("aria-label", `${panel.title}: ${said}`);
  }

  function aim(v) {
    leave();
    aimed = v;
    vertices[v].classList.add("aim");
    say(`${panel.words[v]} Now ${weights.get(v) || 0}.`);
  }

  function leave() {
    if (aimed !== null) vertices[aimed].classList.remove("aim");
    aimed = null;
    say("");
  }

  svg.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    const here = weights.size ? [...weights.keys()][0] : 0;
    aim(aimed === null ? here : (aimed + way + count) % count);
  });
  svg.addEventListener("blur", leave);
  return { element: framed(panel, svg, true), show };
}

const NEAR = 6;

function tablePanel(panel, say) {
  const body = element("div", "rules"), table = element("table"), head = element("tr");
  body.tabIndex = 0;
  body.setAttribute("aria-label", panel.title);
  body.setAttribute("role", "group");
  head.append(element("th"), ...panel.columns.map((name) => element("th", "", name)));
  table.append(head);
  const entries = panel.rows.map((name, r) => {
    const row = element("tr");
    const cells = panel.entries[r].map((text, c) => {
      const cell = element("td", text ? "" : "empty", text || "–");
      cell.addEventListener("pointerenter", () => say(panel.words[r][c]));
      cell.addEventListener("pointerleave", () => say(""));
      return cell;
    });
    row.append(element("th", "", name), ...cells);
    table.append(row);
    return cells;
  });
  body.append(table);
  let here = null;
  const rest = element("p", "note");
  function show(place) {
    if (here) { here.classList.remove("here"); here.removeAttribute("aria-current"); }
    here = place && entries[place[0]][place[1]];
    if (!here) return;
    here.classList.add("here");
    here.setAttribute("aria-current", "step");
    if (entries.length > 2 * NEAR + 1) nearby(place[0]);
  }
  // Of a long table the rows around the current one are shown.
  function nearby(row) {
    const first = Math.max(0, Math.min(row - NEAR, entries.length - 2 * NEAR - 1)), last = first + 2 * NEAR;
    entries.forEach((cells, r) => { cells[0].parentElement.hidden = r < first || r > last; });
    rest.textContent = `Rows ${first + 1} to ${last + 1} of ${entries.length} are shown.`;
  }
  if (entries.length > 2 * NEAR + 1) {
    body.append(rest);
    nearby(0);
  }
  return { element: framed(panel, body), show };
}

const PANELS = { fields: fieldsPanel, cells: cellsPanel, simplex: simplexPanel, table: tablePanel };
