// A page with a recording in it plays that.

if (at("recording")) play(JSON.parse(at("recording").textContent), asked().step);
else at("save-page").hidden = true;
