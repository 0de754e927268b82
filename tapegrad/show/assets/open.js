// A page with a recording in it plays that.

if (at("recording")) {
  play(JSON.parse(at("recording").textContent), asked().step);
  if (asked().input !== null && run.recording.live) runHere(asked().input, asked().step);
  if (asked().play && !matchMedia("(prefers-reduced-motion: reduce)").matches) start();
}
else at("save-page").hidden = true;
