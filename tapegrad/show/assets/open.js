// A page with a recording in it plays that; page.html#40 opens at frame 40.

if (at("recording")) {
  const frame = Number(location.hash.slice(1));
  play(JSON.parse(at("recording").textContent), location.hash && Number.isInteger(frame) ? frame : undefined);
}
