// Runs computed here, from the arrays of the compiled network alone: the arithmetic of its fast engine, nothing of
// the source. Pure functions: a test runs this file outside a browser and compares it with that engine.

// Gradient descent on the loss (21), where s and H are one-hot. In s the slope is 4 w along an edge out of the
// vertex, 2 w back along an edge into it, 4 w_v at the vertex, and everywhere the pull of the symbols to be read.
function tapeRun(net, word, most) {
  const tapes = net.down[0].length, cells = Array.from({ length: tapes }, () => new Map()), heads = Array(tapes).fill(0);
  const read = (tape, place) => cells[tape].get(place) ?? -1;
  [...word].forEach((symbol, place) => net.symbols[symbol].forEach((sign, tape) => { if (sign > 0) cells[tape].set(place, 1); }));
  let vertex = net.start * 2 ** tapes;
  for (let tape = 0; tape < tapes; tape++) if (read(tape, 0) > 0) vertex += 2 ** tape;
  const moments = [];
  const note = (loss, towards, halted) => moments.push({ vertex, towards, loss, halted, heads: [...heads], ones: cells.map((tape) => [...tape.keys()].sort((a, b) => a - b)) });
  note(net.idle, null, false);  // before the first step, which only reads the labels
  while (moments.length <= most) {
    const pull = heads.map((head, tape) => 4 * net.b * net.b * (net.down[vertex][tape] - read(tape, head + net.moves[vertex][tape])));
    let loss = net.c + net.weight[vertex];
    for (let tape = 0; tape < tapes; tape++) {
      const change = read(tape, heads[tape]) - net.written[vertex][tape], move = net.moves[vertex][tape];
      loss += 0.5 * change * change + (pull[tape] * pull[tape]) / (8 * net.b * net.b) + move * move;
    }
    if (loss <= net.low) { note(net.idle, null, true); break; }
    const towards = steepest(tapeSlopes(net, vertex, pull), vertex);
    note(loss + net.idle, towards, false);
    for (let tape = 0; tape < tapes; tape++) {
      if (net.written[vertex][tape] > 0) cells[tape].set(heads[tape], 1);
      else cells[tape].delete(heads[tape]);
      heads[tape] += net.moves[vertex][tape];
    }
    vertex = towards;
  }
  return moments;
}

function tapeSlopes(net, vertex, pull) {
  const slopes = net.down.map((signs) => signs.reduce((sum, sign, tape) => sum + pull[tape] * sign, 0));
  slopes[vertex] += 4 * net.weight[vertex];
  net.edges.forEach(([from, to, weight]) => {
    if (from === vertex) slopes[to] += 4 * weight;
    if (to === vertex) slopes[from] += 2 * weight;
  });
  return slopes;
}

function steepest(slopes, vertex) {
  let best = vertex;
  slopes.forEach((slope, at) => { if (slope < slopes[best]) best = at; });
  return best;
}

// Gradient descent on the loss (13) from a vertex: there only the vertex and its neighbours have a slope, 2 (w - B).
function simplexRun(net, vertex, most) {
  const moments = [{ vertex, towards: null, loss: net.idle, halted: false }];  // the first step only reads the labels
  while (moments.length <= most) {
    const halted = net.weight[vertex] <= net.low, slopes = simplexSlopes(net, vertex), towards = halted ? null : steepest(slopes, vertex);
    moments.push({ vertex, towards, loss: net.weight[vertex] + net.idle, halted });
    if (halted) { moments.at(-1).loss = net.idle; break; }
    vertex = towards;
  }
  return moments;
}

function simplexSlopes(net, vertex) {
  const slopes = net.weight.map(() => 0), slope = (weight) => 2 * (weight - net.outside);
  slopes[vertex] = slope(net.weight[vertex]);
  net.edges.forEach(([from, to, weight]) => {
    if (from === vertex) slopes[to] += slope(weight);
    if (to === vertex) slopes[from] += slope(weight);
  });
  return slopes;
}

// The vertex of an input, which is there only if the net was built for it.
function simplexStart(net, typed) {
  for (const symbol of typed) if (!net.symbols.includes(symbol)) throw new Error(`The machine has no symbol ${symbol}; it has ${net.symbols.join(" ")}.`);
  let word = typed;
  while (word.endsWith(net.blank)) word = word.slice(0, -net.blank.length);
  if (word in net.starts) return net.starts[word];
  const known = Object.keys(net.starts).map((own) => own || "(nothing)"), listed = known.slice(0, 12).join(", ");
  throw new Error(`There is no weight for this input: here every configuration is a weight, and the network was built for ${listed}${known.length > 12 ? `, and ${known.length - 12} more` : ""}. `
    + "Made with --set longest=4, it has every word of up to four symbols; the target tape takes any.");
}

// A convolution again and again: each cell from its 3x3 patch. Cells that are alike share a number in `pool`, a patch
// is computed once, and only where something has changed.
function rcnnRun(net, rows, most) {
  const { height, width, corner, numbers } = rcnnStart(net, rows), pool = [], known = new Map(), patches = new Map();
  const numberOf = (vector) => {
    const key = vector.join();
    if (!known.has(key)) known.set(key, pool.push({ vector, content: nearest(net, vector) }) - 1);
    return known.get(key);
  };
  const outside = pool.push({ vector: Array(net.channels).fill(net.padding), content: [-1, -1, -1] }) - 1;
  let grid = numbers.map(numberOf), check = grid.map((_, place) => place);
  const cell = (r, c) => (r < 0 || c < 0 || r >= height || c >= width ? outside : grid[r * width + c]);
  const filtered = (place) => {
    const r = Math.floor(place / width), c = place % width, patch = net.patch.map((k) => cell(r + Math.floor(k / 3) - 1, c + (k % 3) - 1)), key = patch.join();
    if (!patches.has(key)) patches.set(key, applied(net, patch.map((own) => pool[own].vector), numberOf));
    return patches.get(key);
  };
  const moments = [], ruled = new Set();
  while (moments.length <= most) {
    const next = [...grid], changed = [];
    for (const place of check) {
      const { number, rule } = filtered(place);
      if (rule) ruled.add(place); else ruled.delete(place);
      if (number !== grid[place]) { next[place] = number; changed.push(place); }
    }
    const heads = grid.flatMap((own, place) => (pool[own].content[2] >= net.modes.head ? [place] : []));
    const moment = { grid, heads, halted: ruled.size === 0 };
    if (moments.length && moments.at(-1).heads.length && !heads.length) throw new Error(`The head left the grid of ${height} x ${width} cells. Made with --set margin=${2 * net.margin}, there is more room.`);
    moments.push(moment);
    if (moment.halted) break;
    grid = next;
    check = [...new Set(changed.flatMap((place) => around(place, height, width)))];
  }
  return { moments, pool, height, width, corner };
}

function around(place, height, width) {
  const r = Math.floor(place / width), c = place % width, found = [];
  for (let i = Math.max(0, r - 1); i <= Math.min(height - 1, r + 1); i++) for (let j = Math.max(0, c - 1); j <= Math.min(width - 1, c + 1); j++) found.push(i * width + j);
  return found;
}

// The layers of the filter on the numbers of a patch, channel by channel; a rule applies where one of its units is on.
function applied(net, vectors, numberOf) {
  let values = Array.from({ length: net.channels }, (_, channel) => vectors.map((vector) => vector[channel])).flat(), rule = false;
  net.layers.forEach(([activation, units], layer) => {
    values = units.map(([bias, ...reads]) => {
      let sum = bias;
      for (let i = 0; i < reads.length; i += 2) sum += reads[i + 1] * values[reads[i]];
      return activation === "relu" ? Math.max(0, sum) : sum;
    });
    if (layer + 1 === net.deciding) rule = net.rules.some((unit) => values[unit] > 0.5);
  });
  return { number: numberOf(values), rule };
}

// What the numbers of a cell stand for: work cell or not, symbol, mode.
function nearest(net, vector) {
  const far = (own) => own[3].reduce((most, number, i) => Math.max(most, Math.abs(number - vector[i])), 0);
  return net.contents.reduce((best, own) => (far(own) < far(best) ? own : best));
}

// Symbols from row 0, column 0 on, and the head there, with blank cells around: the numbers of each cell.
function rcnnStart(net, rows) {
  const symbols = rows.map((row) => [...row].map((symbol) => {
    const number = net.symbols.indexOf(symbol);
    if (number < 0) throw new Error(`The machine has no symbol ${symbol}; it has ${net.symbols.join(" ")}.`);
    return number;
  }));
  const marked = [[0, 0], ...symbols.flatMap((row, r) => row.flatMap((symbol, c) => (symbol ? [[r, c]] : [])))];
  const height = Math.max(...marked.map(([r]) => r)) + 1 + 2 * net.margin, width = Math.max(...marked.map(([, c]) => c)) + 1 + 2 * net.margin;
  const vectorOf = (symbol, mode) => net.contents.find((own) => own[0] === 0 && own[1] === symbol && own[2] === mode)[3];
  const numbers = Array.from({ length: height * width }, (_, place) => {
    const r = Math.floor(place / width) - net.margin, c = (place % width) - net.margin, symbol = symbols[r]?.[c] ?? 0;
    return vectorOf(symbol, r === 0 && c === 0 ? net.modes.head + net.start : net.modes.compute);
  });
  return { height, width, corner: [-net.margin, -net.margin], numbers };
}

// A ReLU network with skip connections: layer by layer, each unit max(0, weighted sum + bias); at last the outputs.
function reluRun(net, bits) {
  const values = [...bits];
  net.units.forEach(([bias, ...reads]) => {
    let sum = bias;
    for (let i = 0; i < reads.length; i += 2) sum += reads[i + 1] * values[reads[i]];
    values.push(Math.max(0, sum));
  });
  return { values, outputs: net.outputs.map(([bias, place, weight]) => bias + weight * (weight ? values[place] : 0)) };
}

// What was typed: name=number for each input, or numbers in their order; as bits.
function reluBits(net, typed) {
  const numbers = new Map(), parts = typed.trim().split(/[\s,]+/).filter(Boolean), names = Object.keys(net.widths);
  parts.forEach((part, i) => {
    const [name, value] = part.includes("=") ? part.split("=") : [names[i], part];
    if (!(name in net.widths)) throw new Error(`There is no input ${name}; inputs are ${names.join(", ")}.`);
    if (!/^\d+$/.test(value) || BigInt(value) >> BigInt(net.widths[name])) throw new Error(`${name} is a number from 0 to ${(1n << BigInt(net.widths[name])) - 1n}.`);
    numbers.set(name, BigInt(value));
  });
  return net.bits.map(([name, place]) => Number(((numbers.get(name) ?? 0n) >> BigInt(place)) & 1n));
}

if (typeof module !== "undefined") module.exports = { tapeRun, simplexRun, simplexStart, rcnnRun, reluRun, reluBits };
