// A run that goes on: the server sends its state as events; a form asks for impairments.
const COLOURS = {{ palette | tojson }};
const jobs = new Map();
const list = (id, lines, none) => $(id).replaceChildren(...(lines.length ? lines.map(line => el("li", {}, line)) : [el("li", {class: "quiet"}, none)]));

function draw(id, place, text) {
  const all = [...jobs.values()].flat().map(point => point[place]);
  const most = Math.max(...all, 1e-12), last = Math.max(...[...jobs.values()].flat().map(point => point[1]), 1);
  $(id).replaceChildren(...[...jobs].map(([job, points]) => {
    const places = points.map(point => `${1000 * point[1] / last},${98 - 96 * point[place] / most}`);
    return drawn("polyline", {points: places.join(" "), stroke: COLOURS[job % COLOURS.length]});
  }));
  if (all.length) $(`${id}-caption`).textContent = text(all.at(-1), most);
}

function show(now) {
  for (const point of now.points) {
    if (!jobs.has(point[0])) jobs.set(point[0], []);
    jobs.get(point[0]).push(point);
  }
  document.title = $("name").textContent = now.name;
  $("state").textContent = now.ended || (now.stalls.length ? "stalled" : now.jobs.some(job => job.rounds) ? "running" : "starting");
  $("state").className = now.stalls.length || now.ended.startsWith("failed") ? "bad" : "quiet";
  $("bars").replaceChildren(...now.jobs.map((job, n) => el("progress", {max: job.total, value: job.rounds, "aria-label": `job ${n}`})));
  $("jobs").tBodies[0].replaceChildren(...now.jobs.map((job, n) => {
    const cells = [n, `${job.rounds} / ${job.total}`, job.loss?.toFixed(3) ?? "", job.accuracy === null ? "" : `${(100 * job.accuracy).toFixed(2)} %`,
      job.seconds.toFixed(2), (job.up / 1e6).toFixed(2), (job.down / 1e6).toFixed(2), job.missed];
    return el("tr", {}, cells.map(value => el("td", {class: "n"}, value)));
  }));
  list("stalls", now.stalls, "none now");
  list("asked", now.asked, "nothing asked for yet");
  list("lost", [...Object.entries(now.lost).map(([link, count]) => `${link}: ${count.toLocaleString("en")}`),
    ...(now.delayed ? [`delayed or duplicated: ${now.delayed.toLocaleString("en")}`] : [])], "none");
  draw("loss", 2, (value, most) => `Training loss: now ${value.toFixed(3)}, the scale ends at ${most.toFixed(3)}`);
  draw("took", 3, (value, most) => `Time of each round: the last ${value.toPrecision(3)} s, the longest ${most.toPrecision(3)} s`);
  for (const button of document.querySelectorAll("[data-kind]")) button.disabled = Boolean(now.ended);
}

for (const button of document.querySelectorAll("[data-kind]")) button.addEventListener("click", async () => {
  const kind = button.dataset.kind;
  const body = {kind, host: $("host").value, seconds: $("seconds").value, amount: $(kind)?.value ?? 0};
  $("answer").textContent = await ask("ask", body).then(() => "", error => error.message);
});
$("ask").addEventListener("submit", event => event.preventDefault());
const source = new EventSource("events");
source.onopen = () => jobs.clear();  // a new connection begins with all rounds
source.onmessage = event => {
  const now = JSON.parse(event.data);
  show(now);
  if (now.ended) source.close();
};
source.onerror = () => { $("state").textContent = "the page's server does not answer: the run is over, or was stopped"; };
ask("hosts").then(names => $("host").replaceChildren(...names.map(name => el("option", {}, name))));
