// A recorded run: its rounds, one round, its packets, one packet, from the server's re-enactment. The
// address holds the place: run/job/round/packet.
let run = 0, overview, source, shown = {}, seen = 0;

async function into(node, work) {  // shows, where its result will be, how far it is, or an error
  let done = false;
  const timer = setInterval(async () => {
    const {text} = await ask(`run/${run}/waiting`).catch(() => ({}));
    if (text && !done) node.replaceChildren(el("p", {class: "quiet", role: "status"}, text));
  }, 700);
  node.hidden = false;
  try { await work(); } catch (error) { node.replaceChildren(el("p", {class: "warning", role: "alert"}, error.message)); }
  done = true;
  clearInterval(timer);
}

// ---- rounds

function drawRounds() {
  const all = overview.jobs.flatMap((job, number) => job.rounds.map(one => ({job: number, ...one})));
  const most = Math.max(...all.map(one => Math.log1p(one.took / 1e4)), 1), width = 1000 / Math.max(all.length, 1);
  const svg = drawn("svg", {viewBox: "0 0 1000 80", height: 80, preserveAspectRatio: "none", role: "img",
    "aria-label": "The rounds' times, on a logarithmic scale"});
  all.forEach((one, i) => {
    const height = Math.max(2, 80 * Math.log1p(one.took / 1e4) / most);
    const bar = drawn("rect", {x: i * width, y: 80 - height, width: Math.max(width * .85, .4), height, fill: "var(--compute)",
      "data-place": `${one.job}-${one.round}`},
      `${where(one.job, one.round)}: ${time(one.took)}, ${one.lost} lost, ${one.again} sent again, ${one.missed} missed`);
    bar.addEventListener("click", () => go(one.job, one.round));
    svg.append(bar);
  });
  const choose = el("form", {class: "controls"}, overview.jobs.length > 1
    ? el("label", {}, "job ", el("select", {id: "job"}, ...overview.jobs.map((job, number) => el("option", {value: number}, job.name)))) : null,
    el("label", {}, "round ", el("input", {type: "number", id: "number", min: 0, value: 0})), el("button", {}, "Go"));
  choose.addEventListener("submit", event => { event.preventDefault(); go(+($("job")?.value || 0), +$("number").value); });
  const times = all.map(one => one.took), last = all.length - 1;
  const scale = all.length ? el("p", {class: "ends quiet"}, el("span", {}, where(all[0].job, all[0].round)),
    el("span", {}, `time of each round, logarithmic, ${time(Math.min(...times))} to ${time(Math.max(...times))}; a click opens it`),
    el("span", {}, where(all[last].job, all[last].round))) : "";
  $("rounds").replaceChildren(svg, scale, choose);
  $("slow").replaceChildren(...overview.slow.map(slow => el("li", {},
    button(`${where(slow.job, slow.round)}, ${time(overview.jobs[slow.job].rounds[slow.round].took)}`, () => go(slow.job, slow.round)),
    `: ${slow.cause}`)));
}
const where = (job, round) => (overview.jobs.length > 1 ? `job ${overview.jobs[job].name}, ` : "") + `round ${round}`;

// ---- one round

async function showRound(job, number) {
  const one = await ask(`run/${run}/job/${job}/round/${number}`);
  document.querySelectorAll("#rounds rect").forEach(bar => bar.classList.toggle("chosen", bar.dataset.place === `${job}-${number}`));
  $("number").value = number;
  if ($("job")) $("job").value = job;
  const last = overview.jobs[job].rounds.length - 1;
  const slow = overview.slow.find(slow => slow.job === job && slow.round === number);
  $("round").replaceChildren(
    el("h2", {tabindex: -1}, `${where(job, number)[0].toUpperCase()}${where(job, number).slice(1)}: ${time(one.took)}`),
    slow ? el("p", {}, slow.cause) : null ?? "",
    el("div", {class: "controls"}, button("previous round", () => go(job, number - 1), {disabled: number === 0}),
      button("next round", () => go(job, number + 1), {disabled: number === last})),
    lanes(one), events(one, job, number), packets(one, job, number));
}

const INKS = {"lost": "bad", "sent again": "again"};  // of marks, by what happened

function lanes(one) {
  const height = 18 * one.lanes.length + 4, scale = 1000 / Math.max(one.took, 1), x = at => (at - one.started) * scale;
  const svg = drawn("svg", {viewBox: `0 0 1000 ${height}`, height, preserveAspectRatio: "none", role: "img",
    "aria-label": "A lane for each worker: the phases of its round"});
  one.lanes.forEach((lane, row) => {
    let from = lane.started;
    lane.ends.forEach((end, i) => {
      const phase = one.phases[i], wide = Math.max(x(end) - x(from), 0);
      if (wide > 0) svg.append(drawn("rect", {x: x(from), y: 18 * row + 2, width: Math.max(wide, .6), height: 14, fill: `var(--${phase})`},
        `worker ${lane.worker}: ${phase} ${time(end - from)}`));
      from = end;
    });
    // Losses are drawn last and over the whole lane: what was sent again is at the same moment.
    const marks = one.events.filter(event => event.worker === lane.worker && event.at !== null);
    for (const lost of [false, true]) for (const event of marks.filter(event => (event.what === "lost") === lost))
      svg.append(drawn("rect", {x: x(event.at) - (lost ? 1.5 : .8), y: 18 * row + (lost ? 2 : 0), width: lost ? 3 : 1.6, height: lost ? 14 : 6,
        fill: `var(--${INKS[event.what] ?? "soft"})`}, `${time(event.at - one.started)}: worker ${event.worker}: ${event.text}`));
  });
  const names = one.lanes.map(lane => el("span", {}, `worker ${lane.worker}`));
  const more = [...Object.entries(INKS).map(([what, ink]) => [ink, what]), ["soft", "another event"]];
  return el("div", {}, el("div", {id: "lanes"}, el("div", {class: "names quiet"}, names), svg,
    el("span"), el("div", {class: "ends quiet"}, el("span", {}, "0"), el("span", {}, time(one.took)))),
    el("p", {id: "legend", class: "controls quiet"}, [...one.phases.map(phase => [phase, phase]), ...more].map(([colour, name]) =>
      el("span", {style: `--c: var(--${colour})`}, name))));
}

function events(one, job, number) {
  if (!one.events.length) return el("p", {class: "quiet"}, "Nothing was lost, delayed or sent again.");
  const rows = one.events.map(event => el("tr", {},
    el("td", {class: "n"}, event.at === null ? "" : time(event.at - one.started)), el("td", {}, `worker ${event.worker}`),
    el("td", {}, event.packet === null ? event.text : button(event.text, () => go(job, number, event.packet)))));
  return folded(`${one.events.length} events`, ["into it", "", ""], rows);
}
function folded(title, heads, rows) {
  const table = listed(heads.map(head => el("th", {}, head)), rows);
  return el("details", {open: rows.length <= 30}, el("summary", {}, title), table);
}

function packets(one, job, number) {
  if (!one.packets.length) return el("p", {class: "quiet"},
    "The switch only forwards this job's packets; a re-enactment does not send them, so there are none to look into.");
  const body = el("tbody"), more = el("p"), filters = {};
  const fill = () => {
    const wanted = one.packets.filter(packet => Object.entries(filters).every(([name, input]) => input.value === "" || String(packet[name]) === input.value));
    const few = wanted.slice(0, limit);
    body.replaceChildren(...few.map(packet => el("tr", {"data-index": packet.index, class: shown.index === packet.index ? "chosen" : null},
      el("td", {}, button(`${packet.type}`, () => go(job, number, packet.index))), el("td", {}, packet.host),
      el("td", {class: "n"}, packet.worker ?? ""), el("td", {class: "n"}, packet.slot ?? ""),
      el("td", {class: "n"}, packet.sent ? time(packet.sent - one.started) : ""), el("td", {class: "n"}, packet.attempts ?? ""),
      el("td", {class: "n" + (packet.lost ? " bad" : "")}, packet.lost || ""), el("td", {}, packet.fate))));
    more.replaceChildren(wanted.length > limit ? button(`${wanted.length - limit} more packets`, () => { limit += 300; fill(); }) : "");
  };
  let limit = 30;
  const filter = name => {
    const values = [...new Set(one.packets.map(packet => packet[name]))].filter(value => value !== null);
    filters[name] = el("select", {onchange: fill}, el("option", {value: ""}, "all"), values.map(value => el("option", {value}, String(value))));
    return el("label", {}, `${name} `, filters[name]);
  };
  const row = el("div", {class: "controls"}, ["type", "worker", "slot"].map(filter));
  fill();
  const heads = [["packet"], ["host"], ["worker", 1], ["slot", 1], ["last sent", 1], ["attempts", 1], ["lost", 1], ["the switch"]];
  return el("div", {}, el("h3", {}, `${one.packets.length} packets, in the order of their re-enactment`), row,
    el("div", {class: "wide"}, el("table", {id: "packets", class: "list"}, el("thead", {}, el("tr", {}, heads.map(([text, n]) => el("th", {class: n ? "n" : null}, text)))), body)), more);
}

// ---- one packet

async function showPacket(job, number, index) {
  source ??= await ask(`run/${run}/source`);
  const packet = await ask(`run/${run}/job/${job}/round/${number}/packet/${index}`);
  document.querySelectorAll("#packets tr").forEach(row => row.classList.toggle("chosen", row.dataset.index === String(index)));
  const mates = packet.slot_packets, place = mates.indexOf(index);
  shown.mates = mates;
  const about = packet.worker === null ? `values of ${packet.host}` :
    `${packet.type} of worker ${packet.worker}, slot ${packet.slot}, use ${packet.use}`;
  const recorded = packet.recorded ? [`attempts ${packet.recorded.attempts ?? "not recorded"}`,
    packet.recorded.count ? `result of ${packet.recorded.count} workers ${time(packet.recorded.at - packet.started)} into the round` : `result ${packet.recorded.result}`].join("; ") : "";
  $("packet").replaceChildren(
    el("h2", {tabindex: -1}, `Packet ${index} of round ${number}: ${about}`),
    el("p", {}, `From ${packet.host}, ${packet.size} bytes of payload: ${packet.fate}. ${recorded ? `Recorded: ${recorded}.` : ""}`),
    el("div", {class: "controls"}, `Packet ${place + 1} of ${mates.length} of this slot:`,
      button("previous", () => go(job, number, mates[place - 1]), {disabled: place <= 0, id: "before"}),
      button("next", () => go(job, number, mates[place + 1]), {disabled: place >= mates.length - 1, id: "after"})),
    packet.events.length ? el("ul", {}, packet.events.map(event => el("li", {}, `${event.at === null ? "" : time(event.at - packet.started) + ": "}${event.text}`))) : "",
    ...(packet.passes.length ? packet.passes.map(pass) : [el("p", {class: "warning"}, "No trace of it in the switch. What it says:"), ...fields([{name: "Aggregation", fields: Object.entries(packet.payload ?? {})}])]));
}

function fields(layers) {
  return layers.map((layer, i) => el("details", {open: i === layers.length - 1}, el("summary", {}, layer.name),
    el("table", {class: "list"}, el("tbody", {}, layer.fields.map(([name, value]) => el("tr", {}, el("th", {}, name), el("td", {class: "value"}, String(value))))))));
}

function pass(one) {
  const trace = el("div", {class: "trace", tabindex: 0, "aria-label": "what the switch did"});
  const code = el("div", {class: "source", tabindex: 0, "aria-label": "P4 source"});
  const ran = new Map();
  one.events.forEach(event => { if (event.place) ran.set(event.place[0], (ran.get(event.place[0]) ?? new Set()).add(event.place[1])); });
  for (const file of source.filter(file => ran.has(file.file)))
    code.append(el("details", {open: true}, el("summary", {}, file.name), el("pre", {}, file.lines.map((line, i) =>
      el("span", {"data-n": i + 1, "data-at": `${file.file}:${i + 1}`, class: ran.get(file.file).has(i + 1) ? "ran" : null}, line || " ")))));
  const first = one.events.find(event => event.place && !event.block);
  if (first) requestAnimationFrame(() => show(first));
  const show = event => {
    code.querySelectorAll(".here").forEach(line => line.classList.remove("here"));
    const line = [...code.querySelectorAll("span")].find(span => span.dataset.at === event.place.join(":"));
    if (line) { line.classList.add("here"); code.scrollTop += line.getBoundingClientRect().top - code.getBoundingClientRect().top - 80; }
  };
  trace.append(...one.events.map(event => event.place
    ? el("div", {class: event.block ? "block" : null, tabindex: 0, onclick: () => show(event), onkeydown: key => key.key === "Enter" && show(event)}, event.text)
    : el("div", {class: event.block ? "block" : null}, event.text)));
  const cells = one.changes.map(([name, index, before, after]) => el("tr", {}, el("td", {}, `${name}[${index}]`), el("td", {class: "n"}, before), el("td", {class: "n"}, after)));
  const fewer = one.changed > one.changes.length ? `, the first ${one.changes.length} of them` : "";
  return el("div", {},
    el("h3", {}, `${one.switch}, port ${one.port}: the packet`), fields(one.layers),
    el("h3", {}, "What the switch did, and its program"),
    el("p", {class: "quiet"}, "Executed lines are shaded. A line of the trace leads to its place in the source."),
    el("div", {class: "pass"}, trace, code),
    el("h3", {}, "Registers"), one.changed ? folded(`${one.changed} cells changed${fewer}`, ["cell", "before", "after"], cells) : el("p", {}, "None changed."),
    el("h3", {}, "What it caused"), one.left.length
      ? one.left.map(frame => el("details", {}, el("summary", {}, `a packet to ${frame.to || "nobody"}, port ${frame.port}: ${frame.layers.at(-1).name} ${(frame.layers.at(-1).fields.find(([name]) => name === "type") ?? ["", ""])[1]}`), fields(frame.layers)))
      : el("p", {}, "Nothing leaves the switch."));
}

// ---- search, places, keys

$("search").addEventListener("submit", event => {
  event.preventDefault();
  into($("hits"), async () => {
    const found = await ask(`run/${run}/search?q=${encodeURIComponent($("query").value)}`);
    const items = found.hits.map(hit => el("li", {}, button(hit.text, () => follows(hit))));
    $("hits").replaceChildren(el("h2", {}, found.hits.length ? `${found.hits.length + found.more} found` : "Nothing found"), el("ul", {}, items),
      found.more ? el("p", {class: "quiet"}, `and ${found.more} more: narrow the search`) : "");
  });
});

async function follows(hit) {
  if (hit.event === null) return go(hit.job, hit.round);
  reenacting(hit.round);
  $("round").scrollIntoView({block: "nearest"});
  shown = {};
  await into($("round"), async () => {
    const one = await ask(`run/${run}/job/${hit.job}/round/${hit.round}`);
    const place = location.hash;
    go(hit.job, hit.round, one.events[hit.event]?.packet ?? undefined);
    if (location.hash === place) await follow();
  });
}
function reenacting(round) {
  $("round").hidden = false;
  $("round").replaceChildren(el("p", {class: "quiet", role: "status"}, `Re-enacting the run up to round ${round} ...`));
}

function go(job, round, index) { location.hash = [run, job, round, index].filter(part => part !== undefined).join("/"); }
async function follow(scrolls = true) {
  const turn = ++seen;
  const [which, job, round, index] = location.hash.slice(1).split("/").filter(Boolean).map(Number);
  if (which !== undefined && which !== run) { run = which; await open(); }
  if (round === undefined) return;
  if (shown.job !== job || shown.round !== round || shown.run !== run) {
    shown = {run, job, round};
    $("packet").hidden = true;
    reenacting(round);
    await into($("round"), () => showRound(job, round));
    if (scrolls && index === undefined && turn === seen) $("round").scrollIntoView({block: "start"});
  }
  if (index !== undefined && turn === seen) {
    shown.index = index;
    await into($("packet"), () => showPacket(job, round, index));
    if (turn === seen) { $("packet").scrollIntoView({block: "start"}); $("packet").querySelector("h2")?.focus({preventScroll: true}); }
  }
}
document.addEventListener("keydown", event => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const [, job, round] = location.hash.slice(1).split("/").map(Number);
  if (event.key === "/") { event.preventDefault(); $("query").focus(); }
  else if (event.key === "n") $("after")?.click();
  else if (event.key === "p") $("before")?.click();
  else if (event.key === "[" && round > 0) go(job, round - 1);
  else if (event.key === "]" && round + 1 < overview.jobs[job]?.rounds.length) go(job, round + 1);
});
async function open() {
  overview = await ask(`run/${run}/overview`);
  source = undefined;
  shown = {};
  document.title = overview.name;
  $("title").textContent = overview.name;
  $("report").href = `run/${run}/report`;
  $("lead").textContent = `${overview.experiment}, ${overview.jobs.reduce((sum, job) => sum + job.rounds.length, 0)} rounds on ${overview.network}, program ${overview.program}. ${overview.unfinished} ${overview.refused}`;
  $("round").hidden = $("packet").hidden = true;
  drawRounds();
}
async function start() {
  const names = await ask("runs");
  $("runs").hidden = names.length < 2;
  $("runs").replaceChildren(...names.map((name, i) => el("option", {value: i}, name)));
  $("runs").addEventListener("change", () => { location.hash = $("runs").value; });
  run = +(location.hash.slice(1).split("/")[0] || 0);
  $("runs").value = run;
  await open();
  window.addEventListener("hashchange", follow);
  const [slow] = overview.slow, place = location.hash;
  if (slow && !place) history.replaceState(null, "", `#${run}/${slow.job}/${slow.round}`);
  await follow(Boolean(place));  // without a place, the slowest round is drawn below all of them
}
into($("rounds"), start);
