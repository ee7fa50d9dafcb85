// A packet that is sent from the page: each step with its line of the source, and the fields that it sets.
let steps = [], at = 0;

$("send").addEventListener("submit", async event => {
  event.preventDefault();
  try {
    const answer = await ask("send", {port: $("port").value, packet: $("hex").value.replace(/[\s:]/g, "")});
    steps = answer.steps;
    drawSteps(answer.outputs);
    go(0);
  } catch (error) { $("steps").replaceChildren(el("p", {class: "warning", role: "alert"}, error.message)); }
});

function drawSteps(outputs) {
  const left = outputs.map(([port, packet]) => el("p", {}, `To port ${port}: `, el("code", {class: "value"}, packet)));
  $("steps").replaceChildren(
    el("div", {class: "controls"}, button("previous", () => go(at - 1), {id: "before"}), button("next", () => go(at + 1), {id: "after"}),
      el("span", {id: "which", role: "status"}), el("span", {class: "quiet"}, "keys: p, n")),
    el("div", {class: "trace", id: "trace", tabindex: 0}, steps.map((step, i) =>
      el("div", {class: step.block ? "block" : null, onclick: () => go(i)}, step.text))),
    el("div", {class: "wide", id: "fields"}), el("h3", {}, "What leaves"), ...(left.length ? left : [el("p", {}, "Nothing leaves the switch.")]));
}

function go(step) {
  if (step < 0 || step >= steps.length) return;
  at = step;
  const before = new Map(), after = new Map();
  steps.slice(0, at + 1).forEach((one, i) => one.sets.forEach(([name, value]) => {
    if (i === at) before.set(name, after.get(name) ?? "");
    after.set(name, value);
  }));
  $("which").textContent = `step ${at + 1} of ${steps.length}`;
  $("before").disabled = at === 0;
  $("after").disabled = at === steps.length - 1;
  [...$("trace").children].forEach((line, i) => line.classList.toggle("here", i === at));
  within($("trace"), $("trace").children[at]);
  document.querySelectorAll(".source .here").forEach(line => line.classList.remove("here"));
  const line = steps[at].place && $(steps[at].place);
  if (line) { line.classList.add("here"); within(document.querySelector(".source"), line); }
  $("fields").replaceChildren(after.size === 0 ? "" : listed(["field", "before", "after"].map(text => el("th", {}, text)),
    [...after].sort(([one], [other]) => before.has(other) - before.has(one)).map(([name, value]) => el("tr", {class: before.has(name) ? "chosen" : null}, el("td", {}, name),
      el("td", {class: "value"}, before.has(name) ? before.get(name) : value), el("td", {class: "value"}, value)))));
}

function within(box, line) {  // scrolls the box, not the page
  const frame = box.getBoundingClientRect(), place = line.getBoundingClientRect();
  if (place.top < frame.top || place.bottom > frame.bottom) box.scrollTop += place.top - frame.top - box.clientHeight / 3;
}

document.addEventListener("keydown", key => {
  if (/^(INPUT|TEXTAREA)$/.test(key.target.tagName)) return;
  if (key.key === "n") go(at + 1);
  if (key.key === "p") go(at - 1);
});
