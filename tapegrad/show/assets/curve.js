// The curve over the slider. It is drawn in pixels, so that it lines up with the slider: its ends are half a
// thumb inside.

function drawCurve(svg, points) {
  const width = svg.clientWidth || 600, height = svg.clientHeight || 34, pad = 8, top = 4, low = height - 3;
  const known = points.filter((value) => value !== null);
  const [least, most] = range(known);
  const x = (i) => pad + ((width - 2 * pad) * i) / Math.max(1, points.length - 1);
  const y = (value) => low - ((low - top) * (Math.min(most, Math.max(least, value)) - least)) / (most - least);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  drawn("line", { class: "base", x1: pad, x2: width - pad, y1: low + 1, y2: low + 1 }, svg);
  let path = "";
  points.forEach((value, i) => {
    if (value !== null) path += `${path && points[i - 1] !== null ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  const flat = known.every((value) => value === known[0]);
  if (flat) drawn("text", { x: width / 2, y: height / 2 + 4 }, svg).textContent = known.length ? `${known[0]} at every step` : "";
  else drawn("path", { class: "line", d: path }, svg);
  const line = drawn("line", { class: "now", y1: 0, y2: height }, svg);
  const dot = drawn("circle", { class: "dot", r: 3.5 }, svg);
  function move(i) {
    for (const end of ["x1", "x2"]) line.setAttribute(end, x(i));
    dot.setAttribute("cx", x(i));
    dot.setAttribute("cy", points[i] === null || flat ? -10 : y(points[i]));
  }
  function frameAt(clientX) {
    const box = svg.getBoundingClientRect();
    const share = ((clientX - box.left) * (width / box.width) - pad) / (width - 2 * pad);
    return Math.round(share * (points.length - 1));
  }
  return { move, frameAt };
}

// What the curve spans, with the first and the last value left out if one of them alone would make it flat: before
// training begins and once it has ended, the loss is another one than in between.
function range(known) {
  if (!known.length) return [0, 1];
  const inner = known.length > 4 ? known.slice(1, -1) : known;
  const spread = (values) => Math.max(...values) - Math.min(...values);
  const chosen = spread(inner) > 0 && spread(inner) < 0.5 * spread(known) ? inner : known;
  const least = Math.min(...chosen), most = Math.max(...chosen);
  return most > least ? [least, most] : [least - 1, most + 1];
}
