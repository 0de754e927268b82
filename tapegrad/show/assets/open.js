// A page with a recording in it plays that.

if (at("recording")) {
  play(JSON.parse(at("recording").textContent), asked().step);
  if (asked().input !== null && run.recording.live) runHere(asked().input, asked().step);
}
else at("save-page").hidden = true;
