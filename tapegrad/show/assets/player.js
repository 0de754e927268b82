// One slider moves everything: drawing, source, network, curve.

const at = (id) => document.getElementById(id);
const run = { recording: null, panels: [], now: 0, timer: null, curve: null };

// What is pointed at is explained where the caption of the step stands otherwise.
function say(text) {
  at("words").textContent = text || captionNow();
  at("words").classList.toggle("said", Boolean(text));
}

function captionNow() {
  const { recording, now } = run, drawing = recording.panels.findIndex((panel) => panel.kind === "drawing");
  return drawing < 0 ? recording.undrawn : recording.frames[now].panels[drawing].caption;
}

function play(recording, opening) {
  pause();
  run.recording = recording;
  run.now = 0;
  document.title = at("title").textContent = `${recording.title} on ${recording.target}`;
  tell(recording);
  for (const side of ["source", "network", "stage"]) at(side).replaceChildren();
  at("player").hidden = false;
  run.panels = recording.panels.map((panel) => {
    const made = PANELS[panel.kind](panel, say);
    at(panel.kind === "drawing" ? "stage" : panel.side).append(made.element);
    return made;
  });
  const bare = !recording.panels.some((panel) => panel.kind === "drawing");
  at("room").classList.toggle("bare", bare);
  if (bare) for (const listed of document.querySelectorAll("details.network")) listed.open = true;
  at("room").scrollTop = 0;
  at("scrubber").max = recording.frames.length - 1;
  at("curve-name").textContent = recording.curve_name;
  trace();
  const usual = recording.frames.length <= 2 ? recording.frames.length - 1 : 0;  // one step: there is only its end to see
  show(opening === undefined ? usual : opening);
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
  at("network-step").textContent = `after ${recording.step_name} ${frame.step.toLocaleString("en")}`;
  at("source-heading").parentElement.hidden = Boolean(recording.computed);  // here runs the network, not its source
  at("source-step").textContent = `step ${frame.source_step.toLocaleString("en")} of its interpreter${frame.agrees ? "" : " — differs"}`;
  at("curve-value").textContent = frame.curve === null ? "–" : String(frame.curve).replace("-", "−");
  if (!at("words").classList.contains("said")) say("");
  run.curve.move(run.now);
}

function trace() {
  run.curve = drawCurve(at("curve"), run.recording.frames.map((frame) => frame.curve));
  run.curve.move(run.now);
}

function pause() {
  clearInterval(run.timer);
  run.timer = null;
  at("play-or-pause").classList.remove("playing");
  at("play-or-pause").setAttribute("aria-label", "Play");
}

function start() {
  if (run.now === run.recording.frames.length - 1) show(0);
  run.timer = setInterval(() => {
    show(run.now + 1);
    if (run.now === run.recording.frames.length - 1) pause();
  }, 1000 / Number(at("speed").value));
  at("play-or-pause").classList.add("playing");
  at("play-or-pause").setAttribute("aria-label", "Pause");
}

function toggle() { if (run.timer === null) start(); else pause(); }
function move(number) { pause(); show(number); }
function scrubCurve(event) {
  if (event.type === "pointerdown" || event.buttons === 1) move(run.curve.frameAt(event.clientX));
}

/* The body of the page around a player in a frame, where that may be looked at: Material's has its colours. */
function pageAround() {
  try { return parent === window ? null : parent.document.body; } catch { return null; }
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  const site = pageAround()?.dataset.mdColorScheme;
  if (chosen || site) return chosen ? chosen === "dark" : site === "slate";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function applyTheme() { document.documentElement.classList.toggle("dark", isDark()); }

at("play-or-pause").addEventListener("click", toggle);
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
at("why").addEventListener("click", () => at("questions").scrollIntoView({ block: "start", behavior: "smooth" }));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
if (pageAround()) new MutationObserver(applyTheme).observe(pageAround(), { attributeFilter: ["data-md-color-scheme"] });
addEventListener("resize", () => { if (run.recording) trace(); });
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
