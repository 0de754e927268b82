"use strict";
// Making elements. Text from the recording goes into the page through textContent alone, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function drawn(tag, attributes, parent) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (parent) parent.append(made);
  return made;
}

function short(value) {
  if (typeof value === "string") return value;
  if (value === 0) return "";
  const text = Number.isInteger(value) ? String(value) : value.toFixed(2).replace(/^(-?)0\./, "$1.");
  return text.replace("-", "−");
}
