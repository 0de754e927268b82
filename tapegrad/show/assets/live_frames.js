// A run that was computed here, as a recording: the drawing lit frame by frame, and the weights beside it.

const MOST_LIVE = 2000, WIDEST = 161;
const HERE = 1, NEXT = 2, FIELD = 3, LATER = 4;
const filled = (template, ...parts) => parts.reduce((text, part) => text.replace("{}", () => part), template);

function liveRecording(recording, typed) {
  const live = recording.live, made = live.kind === "tape" ? tapeFrames(live, typed) : reluFrames(live, typed);
  const drawing = recording.panels.find((panel) => panel.kind === "drawing");
  return { ...recording, typed, computed: true, notes: made.notes, steps: made.frames.length - 1, ended: made.ended, panels: [drawing, ...made.panels], frames: made.frames };
}

function tapeFrames(live, typed) {
  for (const symbol of typed) if (!(symbol in live.symbols)) throw new Error(`The machine has no symbol ${symbol}; it has ${Object.keys(live.symbols).join(" ")}.`);
  const moments = tapeRun(live, typed, MOST_LIVE), tapes = live.down[0].length;
  const used = moments.flatMap((moment) => [...moment.heads, ...moment.ones.flat()]);
  const first = used.reduce((a, b) => Math.min(a, b)) - 2, last = used.reduce((a, b) => Math.max(a, b)) + 2;
  const symbolAt = (moment, place) => live.meant[moment.ones.map((ones) => (ones.includes(place) ? 1 : 0)).join("")] ?? "?";
  const columns = Math.min(WIDEST, last - first + 1);
  const start = (head) => Math.max(first, Math.min(head - (columns >> 1), last - columns + 1));
  const rows = (title, scale, names, usual) => ({ side: "network", kind: "cells", title, note: "", scale, rows: names, default: usual, first, columns, columnName: "cell", rowWords: [], words: null });
  const weights = (moment, tape) => {
    const left = start(moment.heads[tape]), head = moment.heads[tape] - left;
    const ones = moment.ones[tape].map((place) => place - left).filter((place) => place >= 0 && place < columns);
    return { first: left, cells: [...ones.map((place) => [0, place, 1]), [1, head, 1]], marks: [[0, head], [1, head]] };
  };
  const symbols = (moment) => {
    const left = start(moment.heads[0]), cells = [];
    for (let c = 0; c < columns; c++) {
      const symbol = symbolAt(moment, left + c);
      if (symbol !== live.blank) cells.push([0, c, symbol]);
    }
    return { first: left, cells, marks: [[0, moment.heads[0] - left]] };
  };
  const frames = moments.map((moment, step) => ({
    step, source_step: step, curve: moment.loss, agrees: true,
    panels: [tapePicture(live, moment, step), symbols(moment), ...Array.from({ length: tapes }, (_, tape) => weights(moment, tape))],
  }));
  const panels = [rows("Tape, as the weights have it", "text", [""], [live.blank])];
  for (let tape = 0; tape < tapes; tape++) panels.push(rows(`Weights of tape ${tape + 1}`, "signed", ["T", "H"], [-1, 0]));
  const ended = moments.at(-1).halted;
  return { panels, frames, ended, notes: ended ? [] : [`The run was cut off after ${MOST_LIVE} steps, before its end.`] };
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
  return { panels: [], frames, ended: true, notes: [] };
}

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
