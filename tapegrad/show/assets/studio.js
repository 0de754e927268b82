// The studio: what is in the form goes to the server, a recording or an error comes back.

const token = new URLSearchParams(location.search).get("token");

// An error that names a line has that line selected in the editor.
function complain(text) {
  at("error").textContent = text;
  at("error").hidden = !text;
  if (!text) return;
  at("editor").open = true;
  const named = /\bline (\d+)/.exec(text), lines = at("source-text").value.split("\n");
  if (!named || Number(named[1]) > lines.length) return;
  const start = lines.slice(0, Number(named[1]) - 1).reduce((sum, line) => sum + line.length + 1, 0);
  at("source-text").focus();
  at("source-text").setSelectionRange(start, start + lines[Number(named[1]) - 1].length);
}

async function ask(event) {
  if (event) event.preventDefault();
  complain("");
  pause();
  at("go").disabled = true;
  at("busy").textContent = "compiling and running …";
  try {
    const answer = await fetch(`run?token=${encodeURIComponent(token)}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        source: at("source-text").value,
        target: at("target").value,
        input: at("input").value,
        options: at("options").value,
      }),
    });
    const said = await answer.json();
    if (said.error) complain(said.error);
    else {
      play(said.recording);
      at("editor").open = false;
    }
  } catch (problem) {
    complain(`The studio does not answer: ${problem.message}. Is it still running?`);
  } finally {
    at("go").disabled = false;
    at("busy").textContent = "";
  }
}

at("studio").addEventListener("submit", ask);
at("ready").addEventListener("change", (event) => {
  if (event.target.value) at("source-text").value = event.target.value;
});
ask();  // a result as the page opens
