// A run that was computed here, as a recording: the drawing lit frame by frame, and the weights beside it.

const MOST_LIVE = 2000, WIDEST = 161;
const HERE = 1, NEXT = 2, FIELD = 3, LATER = 4;
const filled = (template, ...parts) => parts.reduce((text, part) => text.replace("{}", () => part), template);

function liveRecording(recording, typed) {
  const made = FRAMES[recording.live.kind](recording.live, typed);
  const drawing = { ...recording.panels.find((panel) => panel.kind === "drawing"), ...made.drawing };
  const notes = made.ended ? [] : [`The run was cut off after ${MOST_LIVE} steps, before its end.`];
  return { ...recording, typed, computed: true, curve_name: made.curve ?? recording.curve_name, notes, steps: made.frames.length - 1, ended: made.ended, panels: [drawing, ...made.panels], frames: made.frames };
}

// A table of numbers or symbols beside the drawing, and the row of a tape in it: the cells around the head.
const table = (title, scale, names, usual, first, columns) => ({ side: "network", kind: "cells", title, note: "", scale, rows: names, default: usual, first, columns, columnName: "cell", rowWords: [], words: null });

function tapeWindow(used) {
  const first = used.reduce((a, b) => Math.min(a, b)) - 2, last = used.reduce((a, b) => Math.max(a, b)) + 2;
  const columns = Math.min(WIDEST, last - first + 1);
  return { first, columns, start: (head) => Math.max(first, Math.min(head - (columns >> 1), last - columns + 1)) };
}

function tapeRow(room, head, symbolAt, blank) {
  const left = room.start(head), cells = [];
  for (let c = 0; c < room.columns; c++) {
    const symbol = symbolAt(left + c);
    if (symbol !== blank) cells.push([0, c, symbol]);
  }
  return { first: left, cells, marks: [[0, head - left]] };
}

function tapeFrames(live, typed) {
  for (const symbol of typed) if (!(symbol in live.symbols)) throw new Error(`The machine has no symbol ${symbol}; it has ${Object.keys(live.symbols).join(" ")}.`);
  const moments = tapeRun(live, typed, MOST_LIVE), tapes = live.down[0].length;
  const room = tapeWindow(moments.flatMap((moment) => [...moment.heads, ...moment.ones.flat()]));
  const symbolAt = (moment, place) => live.meant[moment.ones.map((ones) => (ones.includes(place) ? 1 : 0)).join("")] ?? "?";
  const weights = (moment, tape) => {
    const left = room.start(moment.heads[tape]), head = moment.heads[tape] - left;
    const ones = moment.ones[tape].map((place) => place - left).filter((place) => place >= 0 && place < room.columns);
    return { first: left, cells: [...ones.map((place) => [0, place, 1]), [1, head, 1]], marks: [[0, head], [1, head]] };
  };
  const frames = moments.map((moment, step) => ({
    step, source_step: step, curve: moment.loss, agrees: true,
    panels: [tapePicture(live, moment, step), tapeRow(room, moment.heads[0], (place) => symbolAt(moment, place), live.blank), ...Array.from({ length: tapes }, (_, tape) => weights(moment, tape))],
  }));
  const panels = [table("Tape, as the weights have it", "text", [""], [live.blank], room.first, room.columns)];
  for (let tape = 0; tape < tapes; tape++) panels.push(table(`Weights of tape ${tape + 1}`, "signed", ["T", "H"], [-1, 0], room.first, room.columns));
  return { panels, frames, ended: moments.at(-1).halted };
}

function tapePicture(live, moment, step) {
  const [dot, box, edge, then, says] = live.vertices[moment.vertex], nodes = [], edges = [];
  const running = step > 0 && !moment.halted;
  if (box >= 0) nodes.push([box, 0, HERE]);
  if (running && then >= 0 && then !== box) nodes.push([then, 0, FIELD]);
  if (running && edge >= 0) edges.push([edge, 1, HERE]);
  if (dot >= 0) nodes.push([dot, 1, HERE]);
  if (running && live.vertices[moment.towards][0] >= 0) nodes.push([live.vertices[moment.towards][0], 0, NEXT]);
  const caption = step === 0 ? live.captions.begin : moment.halted ? filled(live.captions.halted, says)
    : filled(live.captions.steepest, live.names[moment.towards], says);
  return { caption, nodes, edges, arcs: [] };
}

function simplexFrames(live, typed) {
  const moments = simplexRun(live, simplexStart(live, typed), MOST_LIVE), visited = new Set();
  const [last, wide] = [live.first + live.tapes[0][1].length - 1, live.tapes.map(([head]) => head)];
  const room = tapeWindow([live.first, last, ...wide]);
  const frames = moments.map((moment, step) => {
    const [head, row] = live.tapes[moment.vertex], picture = simplexPicture(live, moment, step, visited);
    visited.add(live.vertices[moment.vertex][0]);
    return { step, source_step: step, curve: moment.loss, agrees: true, panels: [picture, tapeRow(room, head, (place) => row[place - live.first] ?? live.blank, live.blank)] };
  });
  return { panels: [table("Tape of this configuration", "text", [""], [live.blank], room.first, room.columns)], frames, ended: moments.at(-1).halted };
}

// Dots of the ring, their labels (every so many, and the current one), then the diagram inside.
function simplexPicture(live, moment, step, visited) {
  const [here, box, edge, then, says] = live.vertices[moment.vertex], count = live.labels.length, nodes = [], edges = [];
  const running = step > 0 && !moment.halted;
  for (const dot of visited) if (dot >= 0 && dot !== here) nodes.push([dot, 0.6, 0]);
  if (here >= 0) nodes.push([here, 1, HERE]);
  if (running && live.vertices[moment.towards][0] >= 0) nodes.push([live.vertices[moment.towards][0], 0, NEXT]);
  for (let i = 0; i < count; i++) {
    const away = Math.min(Math.abs(i - here), count - Math.abs(i - here));
    const labelled = i % live.labelled === 0 && (i === 0 || i <= count - live.labelled);
    if (i === here || (labelled && away >= live.labelled)) nodes.push([count + i, 0, i === here ? HERE : 0, live.labels[i]]);
  }
  if (step > 0 && box >= 0) nodes.push([box, 0, HERE]);
  if (running && then >= 0 && then !== box) nodes.push([then, 0, FIELD]);
  if (running && edge >= 0) edges.push([edge, 1, HERE]);
  const caption = step === 0 ? live.captions.begin : moment.halted ? filled(live.captions.halted, says)
    : filled(live.captions.steepest, moment.towards, live.names[moment.towards], says);
  return { caption, nodes, edges, arcs: [] };
}

function rcnnFrames(live, typed) {
  const made = rcnnRun(live, live.rows ? typed.split("/") : [typed], MOST_LIVE), [down, right] = made.corner;
  const planes = made.moments.map((moment) => planeMoment(live, made, moment));
  const spots = planes.flatMap(({ cells, head }) => [...[...cells.values()].map(({ spot }) => spot), ...(head ? [head] : [])]);
  const span = (axis) => {
    const low = spots.reduce((least, spot) => Math.min(least, spot[axis]), Infinity), high = spots.reduce((most, spot) => Math.max(most, spot[axis]), -Infinity);
    return [low - 1, Math.min(high + 2, low - 1 + live.plane.most) - low + 1];
  };
  const [top, rows] = span(0), [left, columns] = span(1), long = Math.max(...live.states.map((state) => Math.min(state.length, live.plane.longest)));
  const nodes = Array.from({ length: rows * columns }, (_, i) => ["", `The cell in row ${top + Math.floor(i / columns)}, column ${left + (i % columns)}.`, "cell"]);
  const drawing = {
    nodes: [...nodes, ...Array(columns).fill(["", "", "text"])],
    arrangements: live.plane.sizes.map(([width, height]) => planeArranged(live.plane, rows, columns, long, width, height)),
  };
  const number = ([r, c]) => (r < top || c < left || r >= top + rows || c >= left + columns ? -1 : (r - top) * columns + c - left);
  const usual = made.pool[made.moments[0].grid[0]].vector, channels = usual.map((_, channel) => channel).filter((channel) => made.moments.some(({ grid }) => grid.some((own) => made.pool[own].vector[channel] !== usual[channel])));
  const channelRows = Array.from({ length: rows }, (_, r) => String(top + r));
  const shown = (moment, channel) => {
    const cells = [];
    for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) {
      const own = moment.grid[(top + r - down) * made.width + left + c - right];
      if (own !== undefined && made.pool[own].vector[channel] !== usual[channel]) cells.push([r, c, made.pool[own].vector[channel] / live.largest]);
    }
    return { first: left, cells, marks: [] };
  };
  const frames = made.moments.map((moment, step) => ({
    step, source_step: step, agrees: true, curve: planes[step].cells.size,
    panels: [planePicture(live, planes[step], planes[step + 1], number, rows * columns - left), ...channels.map((channel) => shown(moment, channel))],
  }));
  const flat = frames.every((frame) => frame.curve === frames[0].curve);
  if (flat) frames.forEach((frame, step) => { frame.curve = planes[step].head ? planes[step].head[1] : null; });
  const panels = channels.map((channel) => table(`Channel ${live.names[channel]}`, "signed", channelRows, channelRows.map(() => usual[channel] / live.largest), left, columns));
  return { drawing, panels, frames, ended: made.moments.at(-1).halted, curve: flat ? "column of the head" : "cells that hold a symbol" };
}

// Symbols, head and state, as the numbers say.
function planeMoment(live, { pool, width, corner }, { grid, heads }) {
  const cells = new Map(), spotOf = (place) => [Math.floor(place / width) + corner[0], (place % width) + corner[1]];
  grid.forEach((own, place) => {
    const symbol = pool[own].content[1];
    if (symbol > 0) cells.set(spotOf(place).join(), { spot: spotOf(place), value: symbol / Math.max(1, live.symbols.length - 1), text: live.symbols[symbol] });
  });
  if (heads.length !== 1) return { cells: new Map(), head: null, caption: live.captions.none, state: "" };
  const [, symbol, mode] = pool[grid[heads[0]]].content, head = spotOf(heads[0]), state = mode - live.modes.head;
  return { cells, head, state: live.states[state], caption: filled(live.captions.where, ...head, live.states[state], live.symbols[symbol], live.says[state][symbol]).trim() };
}

function planePicture(live, now, after, number, above) {
  const nodes = new Map(), add = (spot, mark) => nodes.set(spot.join(), { spot, value: 0, text: "", ...now.cells.get(spot.join()), mark });
  for (const { spot } of now.cells.values()) add(spot, 0);
  if (now.head) {
    const [r, c] = now.head;
    for (const i of [-1, 0, 1]) for (const j of [-1, 0, 1]) add([r + i, c + j], i || j ? FIELD : HERE);
  }
  const shown = [...nodes.values()].filter(({ spot }) => number(spot) >= 0).map(({ spot, value, text, mark }) => [number(spot), value, mark, text]);
  if (after) {
    const keys = new Set([...now.cells.keys(), ...after.cells.keys()]), changed = new Map();
    for (const key of keys) if (now.cells.get(key)?.text !== after.cells.get(key)?.text) changed.set(key, (now.cells.get(key) ?? after.cells.get(key)).spot);
    if (String(now.head) !== String(after.head)) for (const head of [now.head, after.head]) if (head) changed.set(head.join(), head);
    for (const [key, spot] of changed) if (number(spot) >= 0) shown.push([number(spot), nodes.get(key)?.value ?? 0, NEXT, nodes.get(key)?.text ?? ""]);
  }
  const label = now.head ? now.head[1] + above : -1, name = now.state.length > live.plane.longest ? `${now.state.slice(0, live.plane.longest - 1)}…` : now.state;
  if (now.head && number(now.head) >= 0) shown.push([label, 0, HERE, name]);
  return { caption: now.caption, nodes: shown, edges: [], arcs: [] };
}

// As the drawing of a recording is arranged (tapegrad/show/drawing/grid.py; a test compares them).
function planeArranged(plane, rows, columns, longest, width, height) {
  const head = 2 * plane.font, size = Math.min(plane.largest, width / columns, (height - head) / rows), places = [];
  const left = (width - size * columns) / 2, top = (height - head - size * rows) / 2 + head;
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) places.push([left + size * (c + 0.5), top + size * (r + 0.5), 0.92 * size, 0.92 * size]);
  const font = Math.max(plane.font, 0.32 * size), wide = longest * plane.glyph * font;
  for (let c = 0; c < columns; c++) places.push([Math.min(Math.max(left + size * (c + 0.5), wide / 2), width - wide / 2), top - plane.font, wide, plane.font + 2]);
  return { width, height, font, places, paths: [], labels: [], arcs: [] };
}

function reluFrames(live, typed) {
  const bits = reluBits(live, typed), { values, outputs } = reluRun(live, bits);
  const inputs = bits.length, total = values.length, depth = live.bounds.length - 1;
  const numbers = (names, ons) => {
    const found = new Map();
    names.forEach(([name, place], i) => found.set(name, (found.get(name) ?? 0n) | (ons[i] ? 1n << BigInt(place) : 0n)));
    return [...found].slice(0, 4).map(([name, value]) => `${name} = ${value}`).join(", ");
  };
  const frames = [];
  for (let step = 0; step <= depth + 1; step++) {
    const done = step > depth, from = step ? inputs + live.bounds[step - 1] : 0, known = done ? total : inputs + live.bounds[step];
    const now = (node) => step > 0 && (done ? node >= total : node >= from && node < known), all = [...values, ...outputs], nodes = [];
    all.forEach((value, node) => {
      if (node >= known && !done) nodes.push([node, 0, LATER]);
      else if (value || now(node)) {
        const text = node >= inputs && node < total ? [String(value)] : [];
        nodes.push([node, Math.max(-1, Math.min(1, value)), now(node) ? HERE : 0, ...text]);
      }
    });
    const edges = live.ends.flatMap(([a, b, weight], edge) => (now(b) && all[a] * weight ? [[edge, Math.sign(weight), 0]] : []));
    const layer = values.slice(from, known), on = layer.filter((value) => value > 0.5).length;
    const caption = done ? filled(live.captions.outputs, numbers(live.results, outputs.map((value) => value > 0)))
      : step === 0 ? filled(live.captions.inputs, numbers(live.bits, bits)) : filled(live.captions.layer, step, depth, layer.length, on);
    frames.push({ step, source_step: step, curve: on, agrees: true, panels: [{ caption, nodes, edges, arcs: [] }] });
  }
  return { panels: [], frames, ended: true };
}

const FRAMES = { tape: tapeFrames, simplex: simplexFrames, rcnn: rcnnFrames, relu: reluFrames };

function runHere(typed, step) {
  at("live-said").textContent = "";
  try {
    play(liveRecording(run.recording, typed), step);
  } catch (problem) {
    at("live-said").textContent = problem.message;
  }
}

at("live").addEventListener("submit", (event) => {
  event.preventDefault();
  runHere(at("live-input").value);
});
