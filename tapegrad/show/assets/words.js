// What stays the same during a run: what it is, in plain words; how large it is; whether it was right.

function tell(recording) {
  at("lead").textContent = recording.lead;
  at("answers").replaceChildren(...recording.answers.flatMap(([question, answer]) => [element("h3", "", question), element("p", "", answer)]));
  at("paper").replaceChildren("For experts: ", recording.paper, ...(recording.link ? [" — ", anchor(recording.link)] : []), ".");
  at("live").hidden = !recording.live;
  if (recording.live) at("live-input").placeholder = recording.live.example;
  at("verdict").textContent = recording.computed ? "computed in this page by the network's own arithmetic" : recording.agreed
    ? `✓ equal to its interpreter at every step${recording.leaps ? " shown" : ""}`
    : "✗ differs from its interpreter";
  at("verdict").className = `verdict ${recording.computed ? "" : recording.agreed ? "good" : "bad"}`;
  at("facts").replaceChildren(...facts(recording));
  at("notes").replaceChildren(...recording.notes.map((note) => element("li", "", note)));
}

function anchor(address) {
  const made = element("a", "", address.replace(/^https:\/\//, ""));
  made.href = address;
  made.rel = "noreferrer";
  return made;
}

function facts(recording) {
  const way = recording.passes.length ? recording.passes.join(" → ") : "none needed";
  return [
    ["", `${sentence(recording.summary)}.`],
    ["conversions", way],
    ["weights", recording.weights],
    [`${recording.step_name}s`, `${recording.steps.toLocaleString("en")}${recording.ended ? ", to the end" : ""}`],
  ].map(([name, value]) => {
    const item = element("li", "", name ? `${name} ` : "");
    item.append(element(name ? "b" : "span", "", value));
    return item;
  });
}

function sentence(text) { return text.charAt(0).toUpperCase() + text.slice(1); }
