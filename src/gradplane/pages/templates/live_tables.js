// The tables of a running switch: their entries and counters, asked for every other second, and a form
// for entries.
let open = null;
const number = value => value === null ? "" : value.toLocaleString("en");

const rows = {live: new Map(), counters: new Map()};
function fill(id, name, head, counts) {  // changes the row in place: a button in it keeps the focus
  if (!rows[id].has(name)) {
    rows[id].set(name, el("tr", {}, el("td", {}, head()), counts.map(() => el("td", {class: "n"}))));
    $(id).tBodies[0].append(rows[id].get(name));
  }
  const row = rows[id].get(name);
  counts.forEach((count, i) => { row.cells[i + 1].textContent = number(count); });
  return row;
}
async function refresh() {
  try {
    const now = await ask("live");
    for (const [name, table] of Object.entries(now.tables))
      fill("live", name, () => el("button", {type: "button", class: "link", onclick: () => show(name).then(() => $("entries").scrollIntoView({block: "nearest"}))}, name), [table.entries, table.size, table.packets])
        .classList.toggle("chosen", name === open);
    for (const [name, counts] of Object.entries(now.counters)) fill("counters", name, () => name, counts);
    $("state").textContent = "live";
    $("state").className = "quiet";
  } catch (error) {
    $("state").textContent = error.message;
    $("state").className = "bad";
  }
}

async function show(name, problem) {
  open = name;
  const box = $("entries");
  box.hidden = false;
  let table;
  try { table = await ask(`table?name=${encodeURIComponent(name)}`); }
  catch (error) { box.replaceChildren(el("p", {class: "bad problem", role: "alert"}, error.message)); return; }
  const change = async (path, entry) => {
    let said = "";
    try { await ask(path, {table: name, ...entry}); } catch (error) { said = error.message; }
    await show(name, said);
    await refresh();
  };
  const heads = ["match", "action", table.entries.some(entry => entry.priority) ? "priority" : null,
    table.entries.some(entry => entry.packets !== null) ? "packets" : null].filter(Boolean);
  const rows = table.entries.map(entry => el("tr", {},
    el("td", {}, entry.default ? "(default)" : entry.text || "any"), el("td", {}, entry.action),
    heads.includes("priority") ? el("td", {class: "n"}, entry.priority || "") : null,
    heads.includes("packets") ? el("td", {class: "n"}, number(entry.packets)) : null,
    el("td", {}, entry.default || entry.const || table.const ? "" :
      button("delete", () => change("remove", entry), {"aria-label": `delete ${entry.text}`}))));
  box.replaceChildren(el("h3", {}, name), problem ? el("p", {class: "bad problem", role: "alert"}, problem) : "",
    listed(heads.map(head => el("th", {}, head)), rows),
    table.more ? el("p", {class: "quiet"}, "and more: only the first entries are shown") : "",
    table.const ? el("p", {class: "quiet"}, "Its entries are constants of the program.") : form(table, change));
  box.querySelector("form input")?.focus({preventScroll: true});
}

function form(table, change) {
  const named = new Map(), params = el("span", {style: "display: contents"}), filled = new Map();
  const field = (store, part, hint) => {
    const input = el("input", {placeholder: hint, "aria-label": part.name, name: part.name});
    store.set(part.name, input);
    return el("label", {}, `${part.name}, ${part.bits} bits`, input);
  };
  const hints = {exact: "value", lpm: "value/length", ternary: "value/&mask", range: "low...high", optional: "value or empty"};
  const action = el("select", {"aria-label": "action", name: "action"}, table.actions.map(one => el("option", {value: one.name}, one.name)));
  const fill = () => {
    filled.clear();
    params.replaceChildren(...(table.actions.find(one => one.name === action.value)?.params ?? []).map(param => field(filled, param, "value")));
  };
  action.addEventListener("change", fill);
  const ordered = table.keys.some(key => ["ternary", "range", "optional"].includes(key.kind));
  const priority = el("input", {type: "number", min: 1, value: 1, "aria-label": "priority", name: "priority"});
  const values = store => Object.fromEntries([...store].map(([name, input]) => [name, input.value]));
  const made = el("form", {class: "fields"}, table.keys.map(key => field(named, key, hints[key.kind] ?? key.kind)), el("label", {}, "action", action), params,
    ordered ? el("label", {}, "priority", priority) : null, el("button", {}, "add or change"));
  made.addEventListener("submit", event => {
    event.preventDefault();
    change("put", {match: values(named), action: action.value, params: values(filled), priority: ordered ? priority.value : 0});
  });
  fill();
  return made;
}
refresh();
setInterval(refresh, 2000);
