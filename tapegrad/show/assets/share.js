// Taking a run along: a link to this step, the page itself, the drawing as a picture.

const WHOLE = document.documentElement.outerHTML;  // as it came, before anything was drawn

// page.html#40 opens at frame 40; so does page.html#step=40, input=... runs another input where that is possible, and
// page.html#play begins to play (unless the reader wants no motion).
function asked() {
  const text = location.hash.slice(1), plain = /^\d+$/.test(text);
  const parts = new URLSearchParams(plain ? `step=${text}` : text), step = Number(parts.get("step"));
  return { step: parts.has("step") && Number.isInteger(step) ? step : undefined, input: parts.get("input"), play: parts.has("play") };
}

function linkHere() {
  const { recording, now } = run;
  const parts = new URLSearchParams({ machine: recording.title, target: recording.target, step: now });
  if (recording.typed !== undefined) parts.set("input", recording.typed);
  history.replaceState(null, "", `#${parts}`);
  const told = () => say("The address in the address bar now leads to this step.");
  if (navigator.clipboard) navigator.clipboard.writeText(location.href).then(() => say("A link to this step was copied."), told);
  else told();
}

function download(blob, ending) {
  const link = element("a"), address = URL.createObjectURL(blob);
  link.href = address;
  link.download = `${document.title.replace(/[^\w.-]+/g, "-")}${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function savePage() { download(new Blob([`<!doctype html>\n${WHOLE}\n`], { type: "text/html" }), ".html"); }

// The drawing with its colours written out: what a style sheet says does not come along.
function pictureText() {
  const shown = document.querySelector("#stage svg"), copy = shown.cloneNode(true);
  const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight", "text-anchor", "dominant-baseline", "paint-order"];
  const from = shown.querySelectorAll("*"), to = copy.querySelectorAll("*");
  from.forEach((part, i) => {
    const style = getComputedStyle(part);
    for (const name of kept) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("style");
    to[i].removeAttribute("class");
  });
  const [, , width, height] = shown.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.prepend(drawn("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor }));
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

function saveDrawing() { download(new Blob([pictureText().text], { type: "image/svg+xml" }), ".svg"); }

function savePixels() {
  const { text, width, height } = pictureText(), image = new Image(), scale = 2;
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  image.addEventListener("load", () => {
    const canvas = element("canvas");
    [canvas.width, canvas.height] = [scale * width, scale * height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(blob, ".png"));
    URL.revokeObjectURL(address);
  });
  image.src = address;
}

for (const [id, act] of [["save-page", savePage], ["save-svg", saveDrawing], ["save-png", savePixels], ["link", linkHere]]) {
  at(id).addEventListener("click", () => {
    at("share").open = false;
    act();
  });
}
