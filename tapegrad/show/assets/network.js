// The network value by value: a line for each, as `print(net.network)` has it, with cells for one of its rows. Made when it is opened.

const WEAKEST = 0.15;  // what is not 0 is seen

function networkPanel(panel, say) {
  const outer = element("details", "panel whole network"), list = element("ol", "values");
  outer.append(element("summary", "", panel.title), element("p", "note", panel.note), list);
  let rows = null, frame = null;
  outer.addEventListener("toggle", () => { if (outer.open) show(frame); });

  function made() {
    return panel.lines.map(([name, told, reason], line) => {
      const item = element("li"), head = element("p", "", name), row = element("div", "strip");
      if (reason) head.append(element("small", "", reason));
      head.tabIndex = 0;
      for (const kind of ["pointerenter", "focus"]) head.addEventListener(kind, () => say(`${name}: ${told}`));
      for (const kind of ["pointerleave", "blur"]) head.addEventListener(kind, () => say(""));
      row.addEventListener("pointerover", (event) => {
        const column = [...row.children].indexOf(event.target);
        if (column >= 0 && event.target.title) say(`${panel.words[line][column] || `${name}[${column}]`}, now ${event.target.title}`);
      });
      row.addEventListener("pointerleave", () => say(""));
      item.append(head, row);
      list.append(item);
      return { row, seen: null };
    });
  }

  function show(next) {
    frame = next;
    if (!outer.open) return;
    rows = rows || made();
    frame.forEach((number, line) => {
      const shown = rows[line];
      if (shown.seen === number) return;
      shown.seen = number;
      if (number < 0) { shown.row.replaceChildren(element("span", "note", "not computed")); return; }
      const [count, ...values] = panel.values[number];
      shown.row.replaceChildren(...values.map(cell));
      if (count > values.length) shown.row.append(element("span", "note", `… ${count.toLocaleString("en")}`));
      shown.row.parentElement.classList.toggle("zero", !values.some((value) => value));
    });
  }

  function cell(value) {
    const made = element("i", value > 0 ? "plus" : value < 0 ? "minus" : "");
    made.title = String(value).replace("-", "−");
    const size = Math.abs(Number(value));
    if (size) made.style.setProperty("--strength", Math.max(WEAKEST, Math.min(1, size)).toFixed(2));
    return made;
  }

  return { element: outer, show };
}

PANELS.network = networkPanel;
