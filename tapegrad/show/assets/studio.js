// The studio: what is in the form goes to the server, a recording or an error comes back.

const token = new URLSearchParams(location.search).get("token");
const gallery = JSON.parse(at("gallery").textContent);
let marked = 0;

function openEditor(open) {
  at("editor").hidden = !open;
  at("edit").setAttribute("aria-expanded", String(open));
  at("edit").textContent = open ? "Close" : "Edit";
  at("player").classList.toggle("behind", open);
  if (open) number();
}

// Line numbers beside the text; the line of an error is marked in both.
function number() {
  const text = at("source-text"), lines = text.value.split("\n").length;
  at("gutter").replaceChildren(...Array.from({ length: lines }, (_, i) => element("div", i + 1 === marked ? "bad" : "", String(i + 1))));
  at("gutter").scrollTop = text.scrollTop;
  const high = parseFloat(getComputedStyle(text).lineHeight), pad = parseFloat(getComputedStyle(text).paddingTop);
  at("stripe").hidden = !marked || marked > lines;
  at("stripe").style.height = `${high}px`;
  at("stripe").style.transform = `translateY(${pad + (marked - 1) * high - text.scrollTop}px)`;
}

// An error that names a line has that line marked, and brought into view.
function complain(text) {
  at("error").textContent = text;
  at("error").hidden = !text;
  const named = /\bline (\d+)/.exec(text), lines = at("source-text").value.split("\n");
  marked = named && Number(named[1]) <= lines.length ? Number(named[1]) : 0;
  if (text) openEditor(true);
  if (marked) {
    const start = lines.slice(0, marked - 1).reduce((sum, line) => sum + line.length + 1, 0);
    at("source-text").focus();
    at("source-text").setSelectionRange(start, start);
    at("source-text").scrollTop = (marked - 3) * parseFloat(getComputedStyle(at("source-text")).lineHeight);
  }
  if (!at("editor").hidden) number();
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
      body: JSON.stringify({ source: at("source-text").value, target: at("target").value, input: at("input").value, options: at("options").value }),
    });
    const said = await answer.json();
    if (said.error) complain(said.error);
    else {
      openEditor(false);
      play(said.recording);
    }
  } catch (problem) {
    complain(`The studio does not answer: ${problem.message}. Is it still running?`);
  } finally {
    at("go").disabled = false;
    at("busy").textContent = "";
  }
}

function choose(entry) {
  for (const [id, value] of [["source-text", entry.source], ["target", entry.target], ["input", entry.input], ["options", entry.options]]) at(id).value = value;
  ask();
}

at("studio").addEventListener("submit", ask);
at("edit").addEventListener("click", () => openEditor(at("editor").hidden));
at("ready").addEventListener("change", (event) => choose(gallery[event.target.value]));
at("source-text").addEventListener("input", () => { marked = 0; number(); });
at("source-text").addEventListener("scroll", number);
choose(gallery[0]);  // a result as the page opens
