"use strict";
// What pages that talk to a local server share: elements, requests, times in words.

const $ = (id) => document.getElementById(id);
const filled = (node, values, children) => {
  for (const [name, value] of Object.entries(values)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
};
const el = (tag, values = {}, ...children) => filled(document.createElement(tag), values, children);
const drawn = (tag, values = {}, title = "") => {  // an element of a drawing; a title is shown where one points
  const node = filled(document.createElementNS("http://www.w3.org/2000/svg", tag), values, []);
  if (title) node.append(drawn("title")), node.lastChild.textContent = title;
  return node;
};
const button = (text, call, more = {}) => el("button", { type: "button", class: "link", onclick: call, ...more }, text);
const listed = (heads, rows, more = {}) => el("div", { class: "wide" }, el("table", { class: "list", ...more },
  el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)));

async function ask(path, body) {
  const options = body === undefined ? {}
    : { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const answer = await fetch(path, options);
  const value = await answer.json().catch(() => ({ error: `${answer.status} ${answer.statusText}` }));
  if (!answer.ok) throw new Error(value.error || answer.statusText);
  return value;
}

const time = (ns) => {
  if (ns === null || ns === undefined) return "";
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
    if (Math.abs(ns) >= size) return `${+(ns / size).toPrecision(4)} ${unit}`;
  return `${ns} ns`;
};
