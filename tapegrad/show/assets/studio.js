// The studio: what is in the form goes to the server, a recording or an error comes back.

const token = new URLSearchParams(location.search).get("token");

function complain(text) {
  at("error").textContent = text;
  at("error").hidden = !text;
}

async function ask(event) {
  event.preventDefault();
  complain("");
  pause();
  at("player").hidden = true;
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
      at("player").scrollIntoView({ block: "start" });
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
