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

if (typeof module !== "undefined") module.exports = { tapeRun, reluRun, reluBits };
