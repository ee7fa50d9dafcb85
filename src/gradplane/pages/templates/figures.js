"use strict";
// Unpack Plotly and the data, draw the figures in the page's colours, light or dark, link those that
// share an axis, and make keys and keyboard work on them.

const unpack = async (id) => {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
};

const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Axis titles and ticks: one look for all axes of a layout.
const themed = (layout) => {
  const axis = {
    gridcolor: colour("line"), zeroline: false, linecolor: colour("line"), automargin: true,
    tickfont: { color: colour("soft"), size: 11 }, hoverformat: "",
  };
  const look = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: "zoom",
    font: { color: colour("text"), size: 12, family: getComputedStyle(document.body).fontFamily },
    margin: { l: 46, r: 12, t: 26, b: 40 }, hovermode: "closest",
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), align: "left",
                  font: { color: colour("text"), size: 13 } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("soft"), activecolor: colour("link") },
  };
  const merged = { ...look, ...layout };
  for (const name of new Set(["xaxis", "yaxis", ...Object.keys(layout)])) {
    if (!/^[xy]axis[0-9]*$/.test(name)) continue;
    const own = layout[name] || {};
    // Whole numbers at logarithmic ticks, not their first digits.
    const kind = own.type === "log" ? { tickformat: ",~g", nticks: 3 } : {};
    const title = own.title
      ? { standoff: 8, ...own.title, font: { color: colour("soft"), size: 12 } } : undefined;
    merged[name] = { ...axis, ...kind, ...own, ...(title ? { title } : {}) };
  }
  merged.annotations = (layout.annotations || []).map((note) => ({
    ...note, font: { color: colour("text"), size: 12 },
  }));
  return merged;
};

const CONFIG = {
  responsive: true, displaylogo: false,
  modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
};

// Narrow screens scroll over figures; there a drag does not zoom, the keys and buttons do.
const narrow = matchMedia("(max-width: 640px)");

const draw = (div, data, layout) => {
  const look = themed(layout);
  if (narrow.matches) look.dragmode = false;
  div.whole = layout.xaxis.range && [...layout.xaxis.range];
  div.spaced = {};
  return Plotly.react(div, data, look, CONFIG).then(() => spaced(div));
};

// Give logarithmic axes of a decade or more as many labels as have room: those of 1 to 9, of 1, 2 and
// 5, or of some decades. Plotly itself would write 7, 8 and 9 one over the other.
const spaced = (div) => {
  const update = {};
  for (const [name, axis] of Object.entries(div._fullLayout)) {
    if (!/^[xy]axis[0-9]*$/.test(name) || axis.type !== "log") continue;
    const decades = Math.abs(axis.range[1] - axis.range[0]);
    const gap = (name[0] === "x" ? 42 : 18) * decades / axis._length;  // of two labels, in decades
    const step = decades < 1 ? null : gap < Math.log10(10 / 9) ? "D1" : gap < Math.log10(2) ? "D2" : Math.ceil(gap);
    if ((div.spaced[name] ?? null) !== step) update[`${name}.dtick`] = div.spaced[name] = step;
  }
  return Object.keys(update).length ? Plotly.relayout(div, update) : undefined;
};

// Zooming a figure zooms those that share its axis.
const link = (div, group) => {
  div.on("plotly_relayout", (change) => {
    if (div.following) return;
    const range = "xaxis.range[0]" in change ? [change["xaxis.range[0]"], change["xaxis.range[1]"]]
      : change["xaxis.range"];
    const update = range ? { "xaxis.range": range }
      : change["xaxis.autorange"] ? { "xaxis.autorange": true } : null;
    if (!update) return;
    for (const other of group) {
      if (other === div) continue;
      other.following = true;
      Plotly.relayout(other, update).then(() => { other.following = false; });
    }
  });
};

// Left and right move along the axis, + and - zoom, 0 shows all.
const keyboard = (div) => div.addEventListener("keydown", (event) => {
  const axis = div._fullLayout && div._fullLayout.xaxis;
  if (!axis || event.ctrlKey || event.metaKey || event.altKey) return;
  const [low, high] = axis.range, width = high - low, middle = (low + high) / 2;
  const moves = {
    ArrowLeft: [low - width / 8, high - width / 8], ArrowRight: [low + width / 8, high + width / 8],
    "+": [middle - width / 4, middle + width / 4], "=": [middle - width / 4, middle + width / 4],
    "-": [middle - width, middle + width],
  };
  if (event.key === "0") Plotly.relayout(div, div.whole ? { "xaxis.range": div.whole } : { "xaxis.autorange": true });
  else if (moves[event.key]) Plotly.relayout(div, { "xaxis.range": moves[event.key] });
  else return;
  event.preventDefault();
});

// An entry of a key shows or hides its series in the section's figures.
const keys = () => document.querySelectorAll(".key button").forEach((button) => {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    const scope = button.closest(".panel") || button.closest("section");
    scope.querySelectorAll(".figure").forEach((div) => {
      const which = (div.data || []).flatMap((trace, i) => trace.meta === button.dataset.series ? [i] : []);
      if (which.length) Plotly.restyle(div, { visible: shown ? true : "legendonly" }, which);
    });
  });
});

// The table of contents: a link to each section of a long page.
const contents = () => {
  const titles = [...document.querySelectorAll("main > section > h2")];
  if (titles.length < 5) return;
  const links = titles.map((title) => {
    const section = title.parentNode, link = document.createElement("a");
    section.id ||= title.textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    link.href = `#${section.id}`;
    link.textContent = title.textContent;
    return link;
  });
  const nav = document.createElement("nav");
  nav.className = "contents";
  nav.ariaLabel = "Contents";
  nav.append(...links);
  document.querySelector(".lead").after(nav);
};

const start = async () => {
  contents();
  const [script, data] = await Promise.all([unpack("plotly"), unpack("data").then(JSON.parse)]);
  const element = document.createElement("script");
  element.textContent = script;
  document.head.append(element);
  const groups = {};
  const divs = [...document.querySelectorAll(".figure[data-figure]")];
  for (const div of divs) {
    div.figure = data.figures[div.dataset.figure];
    await draw(div, div.figure.data, div.figure.layout);
    div.on("plotly_afterplot", () => { spaced(div); });
    keyboard(div);
    if (div.figure.link) (groups[div.figure.link] ||= []).push(div);
  }
  for (const group of Object.values(groups)) group.forEach((div) => link(div, group));
  keys();
  const inspector = data.details ? inspect(data.details) : null;
  dark.addEventListener("change", () => {
    divs.forEach((div) => draw(div, div.data, div.figure.layout));
    if (inspector) inspector();
  });
  document.documentElement.dataset.ready = "true";
};

start().catch((error) => {
  const note = document.createElement("p");
  note.className = "warning";
  note.textContent = `The figures cannot be drawn in this browser: ${error.message}`;
  document.querySelector("main").prepend(note);
  throw error;
});
