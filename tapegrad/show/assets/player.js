// One scrubber moves everything: source, network, curve.

const at = (id) => document.getElementById(id);
const HINT = "Hover a cell or a vertex to read what it stands for.";
const run = { recording: null, panels: [], now: 0, timer: null, curve: null };

function say(text) {
  at("words").textContent = text || HINT;
  at("words").classList.toggle("said", Boolean(text));
}

function play(recording) {
  pause();
  run.recording = recording;
  run.now = 0;
  document.title = at("title").textContent = `${recording.title} on ${recording.target}`;
  at("summary").textContent = `${sentence(recording.summary)} (${recording.paper}).`;
  at("facts").replaceChildren(...facts(recording));
  at("notes").replaceChildren(...recording.notes.map((note) => element("li", "", note)));
  for (const side of ["source", "network"]) at(side).replaceChildren();
  run.panels = recording.panels.map((panel) => {
    const made = PANELS[panel.kind](panel, say);
    at(panel.side).append(made.element);
    return made;
  });
  at("scrubber").max = recording.frames.length - 1;
  at("curve-name").textContent = recording.curve_name;
  at("player").hidden = false;
  say("");
  drawCurve();
  const opening = recording.frames.length <= 2 ? recording.frames.length - 1 : 0;  // one step: there is only its end to see
  show(location.hash ? Number(location.hash.slice(1)) || 0 : opening);  // page.html#40 opens at frame 40
}

function sentence(text) { return text.charAt(0).toUpperCase() + text.slice(1); }

function facts(recording) {
  const way = recording.passes.length ? recording.passes.join(" → ") : "none needed";
  const known = [
    ["passes", way],
    ["numbers in the net", recording.parameters.toLocaleString("en")],
    [`${recording.step_name}s`, `${recording.steps.toLocaleString("en")}${recording.ended ? ", to the end" : ""}`],
  ].map(([name, value]) => {
    const item = element("li", "", `${name} `);
    item.append(element("b", "", value));
    return item;
  });
  const verdict = element("li", recording.agreed ? "good" : "bad");
  verdict.append(element("b", "", recording.agreed
    ? `✓ the network agrees with the interpreter at every step${recording.leaps ? " that is shown" : ""}`
    : "✗ the network and the interpreter disagree"));
  return [...known, verdict];
}

function show(number) {
  const { recording, panels } = run, frames = recording.frames;
  run.now = Math.min(frames.length - 1, Math.max(0, number));
  const frame = frames[run.now];
  panels.forEach((panel, i) => {
    const before = frames.slice(Math.max(0, run.now - 8), run.now).map((past) => past.panels[i]);
    panel.show(frame.panels[i], before);
  });
  const step = `${recording.step_name} ${frame.step.toLocaleString("en")} of ${recording.steps.toLocaleString("en")}`;
  at("scrubber").value = run.now;
  at("scrubber").setAttribute("aria-valuetext", step);
  at("step").textContent = step;
  at("network-step").textContent = `after ${step}`;
  at("source-step").textContent = `after step ${frame.source_step.toLocaleString("en")} of its interpreter${frame.agrees ? "" : " — differs"}`;
  at("curve-value").textContent = frame.curve === null ? "–" : String(frame.curve).replace("-", "−");
  moveCurve();
}

function pause() {
  clearInterval(run.timer);
  run.timer = null;
  at("play").classList.remove("playing");
  at("play").setAttribute("aria-label", "Play");
}

function start() {
  if (run.now === run.recording.frames.length - 1) show(0);
  run.timer = setInterval(() => {
    show(run.now + 1);
    if (run.now === run.recording.frames.length - 1) pause();
  }, 1000 / Number(at("speed").value));
  at("play").classList.add("playing");
  at("play").setAttribute("aria-label", "Pause");
}

function toggle() { if (run.timer === null) start(); else pause(); }
function move(number) { pause(); show(number); }

// The curve is drawn in pixels, so that it lines up with the scrubber: its ends are half a thumb inside.
function drawCurve() {
  const svg = at("curve"), width = svg.clientWidth || 600, height = svg.clientHeight || 80, pad = 8, top = 8, low = height - 6;
  const points = run.recording.frames.map((frame) => frame.curve);
  const known = points.filter((value) => value !== null);
  const least = Math.min(...known, 0), most = Math.max(...known, least + 1e-9);
  const x = (i) => pad + ((width - 2 * pad) * i) / Math.max(1, points.length - 1);
  const y = (value) => low - ((low - top) * (value - least)) / (most - least);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  drawn("line", { class: "base", x1: pad, x2: width - pad, y1: y(0), y2: y(0) }, svg);
  let path = "";
  points.forEach((value, i) => {
    if (value !== null) path += `${path && points[i - 1] !== null ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  drawn("path", { class: "line", d: path }, svg);
  at("curve-range").textContent = known.length ? `from ${Math.min(...known)} to ${Math.max(...known)}`.replaceAll("-", "−") : "";
  const line = drawn("line", { class: "now", y1: top - 4, y2: low }, svg);
  const dot = drawn("circle", { class: "dot", r: 4 }, svg);
  run.curve = { x, y, line, dot, pad, width };
}

function moveCurve() {
  const { x, y, line, dot } = run.curve, value = run.recording.frames[run.now].curve;
  for (const end of ["x1", "x2"]) line.setAttribute(end, x(run.now));
  dot.setAttribute("cx", x(run.now));
  dot.setAttribute("cy", value === null ? -10 : y(value));
}

function scrubCurve(event) {
  if (event.type !== "pointerdown" && event.buttons !== 1) return;
  const { pad, width } = run.curve, box = at("curve").getBoundingClientRect();
  const share = ((event.clientX - box.left) * (width / box.width) - pad) / (width - 2 * pad);
  move(Math.round(share * (run.recording.frames.length - 1)));
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function applyTheme() { document.documentElement.classList.toggle("dark", isDark()); }

at("play").addEventListener("click", toggle);
at("first").addEventListener("click", () => move(0));
at("back").addEventListener("click", () => move(run.now - 1));
at("forward").addEventListener("click", () => move(run.now + 1));
at("last").addEventListener("click", () => move(run.recording.frames.length - 1));
at("scrubber").addEventListener("input", (event) => move(Number(event.target.value)));
at("speed").addEventListener("change", () => { if (run.timer !== null) { pause(); start(); } });
at("curve").addEventListener("pointerdown", scrubCurve);
at("curve").addEventListener("pointermove", scrubCurve);
at("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  applyTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
addEventListener("resize", () => { if (run.recording) { drawCurve(); moveCurve(); } });
addEventListener("keydown", (event) => {
  const inside = event.target.closest("input, textarea, select");
  if (!run.recording || inside || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === " " && event.target.closest("button")) return;
  const last = run.recording.frames.length - 1;
  const moves = { ArrowLeft: run.now - 1, ArrowRight: run.now + 1, Home: 0, End: last, PageUp: run.now - 10, PageDown: run.now + 10 };
  if (event.key === " ") toggle();
  else if (event.key in moves) move(moves[event.key]);
  else return;
  event.preventDefault();
});
applyTheme();
if (at("recording")) play(JSON.parse(at("recording").textContent));
