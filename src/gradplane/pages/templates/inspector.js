"use strict";
// The timeline of one round: a lane for each worker, marks for what was lost and sent again, and a lane
// for each slot below, over the same axis.

const MARKS = {
  "lost": ["x", "#d0493b"], "sent again": ["triangle-up", "#e08a1e"], "given up": ["square", "#b42318"],
  "delayed": ["diamond", "#1795b5"], "duplicated": ["cross", "#5b8f1a"], "waits": ["circle-open", "#94815f"],
  "crash": ["star", "#b42318"], "join": ["star", "#0f9d76"],
};
const MOST_ROWS = 10, MOST_SLOTS = 40;

const text = (ns) => {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
    if (Math.abs(ns) >= size) return `${+(ns / size).toPrecision(6)} ${unit}`;
  return `${ns} ns`;
};
const names = (workers) => `${workers.length > 1 ? "workers" : "worker"} ${workers.join(", ")}`;

// Lanes are numbered from 0, in the order of the workers that are shown; marks of a kind are beside
// their lane's middle, so that those of one instant do not hide each other.
const OFFSET = { "sent again": -0.27, "waits": 0.27 };
const places = (lanes) => new Map(lanes.map((lane, i) => [lane[0], i]));

// Bars of the phases, each with its length and place in words.
const laneTraces = (phases, lanes, scale) => phases.map((phase, i) => {
  const rows = lanes.map((lane) => [lane, i ? lane[2 + i] : lane[1], lane[3 + i]])
    .filter(([, from, to]) => to > from);
  return {
    type: "bar", orientation: "h", name: phase, meta: phase, width: 0.62,
    y: rows.map(([lane]) => places(lanes).get(lane[0])), base: rows.map(([, from]) => from / scale),
    x: rows.map(([, from, to]) => (to - from) / scale),
    text: rows.map(([lane, from, to]) =>
      `worker ${lane[0]}: ${phase} for ${text(to - from)}<br>from ${text(from)} to ${text(to)}`),
    textposition: "none", hovertemplate: "%{text}<extra></extra>",
    marker: { color: colour(phase) },
  };
});

const markTraces = (events, lanes, scale) => Object.entries(MARKS).map(([what, [symbol, ink]]) => {
  const own = events.filter((event) => event[2] === what && event[1] !== null);
  return {
    type: "scatter", mode: "markers", name: what, meta: what,
    x: own.map((event) => event[1] / scale), y: own.map((event) => places(lanes).get(event[0]) + (OFFSET[what] || 0)),
    text: own.map((event) => `worker ${event[0]}, at ${text(event[1])}<br>${event[3]}`),
    hovertemplate: "%{text}<extra></extra>",
    marker: { symbol, color: ink, size: 9, line: { width: symbol.endsWith("open") ? 2 : 1, color: ink } },
  };
}).filter((trace) => trace.x.length);

// A slot's use: from the first packet that was sent to the last result.
const slotTrace = (slots, workers, roots, scale) => ({
  type: "bar", orientation: "h", name: "slots", yaxis: "y2", width: 0.62,
  y: slots.map((s) => slotName(s)), base: slots.map((s) => (s[2] ?? 0) / scale),
  x: slots.map((s) => Math.max(s[4] - (s[2] ?? 0), 0) / scale),
  marker: { color: slots.map((s) => s[6].length ? "#d0493b" : "#5aa897") },
  text: slots.map((s) => {
    const inside = workers.filter((worker) => !s[6].includes(worker));
    const above = roots.length ? `, summed up to ${roots[s[0] % roots.length]}` : "";
    return `${slotName(s)}${above}: ${inside.length ? `${names(inside)} in the sum` : "no sum"}`
      + (s[6].length ? `<br>missing: ${names(s[6])}` : "<br>nobody is missing")
      + (s[2] === null ? "" : `<br>first sent at ${text(s[2])}`)
      + (s[3] === null ? "<br>no result came in time" : `<br>result from ${text(s[3])} to ${text(s[4])}`)
      + (s[5] > 1 ? `<br>sent up to ${s[5]} times` : "")
      + (s[7].length ? `<br>no result at ${names(s[7])}` : "");
  }),
  textposition: "none", hovertemplate: "%{text}<extra></extra>",
});
const slotName = (slot) => `slot ${slot[0]}, use ${slot[1]}`;

const row = (cells) => {
  const element = document.createElement("tr");
  cells.forEach((cell, i) => {
    const td = element.appendChild(document.createElement("td"));
    td.textContent = cell;
    if (i === cells.length - 1) td.className = "words";
  });
  return element;
};

const inspect = (details) => {
  const get = (id) => document.getElementById(id);
  const number = get("round"), jobs = get("job"), div = get("timeline");
  const hidden = new Set();
  let current = null;

  const job = () => details.jobs[jobs ? +jobs.value : 0];

  const choice = () => {
    get("workers").querySelectorAll("label").forEach((label) => label.remove());
    hidden.clear();
    for (let worker = 0; worker < job().workers; worker++) {
      const label = get("workers").appendChild(document.createElement("label"));
      const box = label.appendChild(document.createElement("input"));
      box.type = "checkbox"; box.checked = true; box.value = worker;
      label.append(` ${worker}`);
      box.addEventListener("change", () => {
        if (box.checked) hidden.delete(worker); else hidden.add(worker);
        show();
      });
    }
    number.max = job().count - 1;
  };

  const table = (events) => {
    const body = get("events"), rest = get("more-events");
    body.replaceChildren(); rest.replaceChildren();
    const cells = events.map(([worker, at, what, words]) =>
      [at === null ? "-" : text(at), `worker ${worker}`, what, words]);
    cells.slice(0, MOST_ROWS).forEach((line) => body.append(row(line)));
    cells.slice(MOST_ROWS).forEach((line) => rest.append(row(line)));
    const more = cells.length - MOST_ROWS;
    get("event-table").hidden = !cells.length;
    get("no-events").hidden = cells.length > 0;
    get("event-rest").hidden = more <= 0;
    get("event-rest").querySelector("summary").textContent = `${more} more`;
  };

  const laneName = (worker) => {
    const rack = job().racks[worker];
    return `worker ${worker}${rack ? ` (${rack})` : ""}`;
  };

  const lanes = (round) => round.lanes.filter((lane) => !hidden.has(lane[0]));

  const figure = (round) => {
    const shown = lanes(round), workers = round.lanes.map((lane) => lane[0]);
    const events = round.events.filter((event) => places(shown).has(event[0]));
    const slots = [...round.slots].sort((a, b) => b[4] - a[4]).slice(0, MOST_SLOTS)
      .sort((a, b) => a[1] - b[1] || a[0] - b[0]);
    const [unit, scale] = round.took >= 1e9 ? ["s", 1e9] : round.took >= 1e6 ? ["ms", 1e6] : ["µs", 1e3];
    const data = [...laneTraces(details.phases, shown, scale), ...markTraces(events, shown, scale)];
    if (slots.length) data.push(slotTrace(slots, workers, job().roots, scale));
    const top = 30 * shown.length + 20, below = slots.length ? 22 * slots.length + 50 : 0;
    const height = top + below + 60, split = below / (top + below);
    const layout = {
      height, barmode: "overlay", showlegend: false, hovermode: "closest",
      xaxis: { title: { text: `${unit} since the round's start` }, anchor: slots.length ? "y2" : "y",
               range: [-0.01 * round.took / scale, 1.01 * round.took / scale] },
      yaxis: { range: [shown.length - 0.5, -0.5], fixedrange: true, showgrid: false,
               tickvals: shown.map((_, i) => i), ticktext: shown.map((lane) => laneName(lane[0])),
               domain: [slots.length ? split : 0, 1] },
    };
    if (slots.length) layout.yaxis2 = {
      type: "category", autorange: "reversed", fixedrange: true, categoryarray: slots.map(slotName),
      domain: [0, Math.max(split - 24 / height, 0.05)],
    };
    return [data, layout];
  };

  const show = () => {
    const wanted = +number.value;
    current = job().rounds.find((round) => round.number === wanted) || null;
    get("absent").hidden = current !== null;
    get("inside").hidden = current === null;
    get("back").disabled = wanted <= 0;
    get("forth").disabled = wanted >= job().count - 1;
    if (!current) return;
    get("why").textContent =
      `Round ${current.number} took ${text(current.took)}. ${current.cause}`.trim();
    const missed = current.lanes.filter((lane) => lane[2]);
    get("missed").textContent = missed.length
      ? `Results missed: ${missed.map((lane) => `${lane[2]} of worker ${lane[0]}`).join(", ")}.` : "";
    const [data, layout] = figure(current);
    div.style.height = `${layout.height}px`;  // which Plotly asks when the window's width changes
    draw(div, data, layout);
    table(current.events.filter((event) => !hidden.has(event[0])));
  };

  const open = (wantedJob, wanted) => {
    if (jobs && +jobs.value !== wantedJob) { jobs.value = wantedJob; choice(); }
    number.value = wanted;
    show();
    history.replaceState(null, "", `#round-${wanted}${wantedJob ? `-job-${wantedJob}` : ""}`);
  };
  const opened = () => open(jobs ? +jobs.value : 0, Math.min(Math.max(0, +number.value), job().count - 1));

  if (jobs) jobs.addEventListener("change", () => { choice(); opened(); });
  number.addEventListener("change", opened);
  get("back").addEventListener("click", () => { number.value = +number.value - 1; opened(); });
  get("forth").addEventListener("click", () => { number.value = +number.value + 1; opened(); });
  get("all-workers").addEventListener("click", () => {
    const boxes = [...get("workers").querySelectorAll("input")], all = boxes.every((box) => box.checked);
    hidden.clear();
    boxes.forEach((box) => { box.checked = !all; if (all) hidden.add(+box.value); });
    show();
  });
  const scroll = () => get("inspector").scrollIntoView({ block: "start" });
  document.querySelectorAll("button[data-round]").forEach((button) =>
    button.addEventListener("click", () => {
      open(+button.dataset.job, +button.dataset.round); scroll(); number.focus({ preventScroll: true });
    }));
  document.querySelectorAll(".opens .figure").forEach((chart) =>
    chart.on("plotly_click", ({ points }) => {
      const [point] = points;
      open(typeof point.customdata === "number" ? point.customdata : jobs ? +jobs.value : 0, point.x);
    }));
  const hash = () => {
    const found = /^#round-([0-9]+)(?:-job-([0-9]+))?$/.exec(location.hash);
    const [wanted, which] = found ? [+found[1], +(found[2] || 0)] : [null, 0];
    if (found && details.jobs[which] && wanted < details.jobs[which].count) {
      open(which, wanted); scroll(); return true;
    }
    return false;
  };
  addEventListener("hashchange", hash);
  choice();
  keyboard(div);
  if (!hash()) show();
  return show;
};
