// Memories: a table with search as you type, filters, bulk actions, and a way back for each action.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { clocksOf, get, post } from "./api.js";
import { attempt, change, Chip, Empty, link, Loaded, notify, save, textOf, TextDialog, Time, useLoaded } from "./parts.js";
import { amend, changed, isPinned, retire, undoOf } from "./actions.js";

const TYPING_MS = 30; // A search is cheaper than waiting for the next key; an older one is broken off.
const PAGE = 50;
const FOUND_MAX = 50;

export async function writeSample(scope) {
  const sample = await (await fetch("/ui/sample.json")).json();
  for (const { at, text } of sample) await post("/v1/memories", { text, at, source: "sample data", ...scope });
}

/** Return the filter that the parameters of the page mean, or nothing. */
function filterOf(params) {
  const all = [];
  if (params.tag) all.push({ tags: { $contains: params.tag } });
  if (params.source) all.push({ source: { $contains: params.source } });
  if (params.pinned) all.push({ pinned: true });
  if (params.expiring) all.push({ expires_at: { $exists: true } });
  if (params.since) all.push({ at: { $gte: params.since } });
  return all.length ? { $and: all } : undefined;
}

function Filters({ params }) {
  const text = (name, label) => html`<label>${label} <input size="9" value=${params[name] || ""} onChange=${(event) => change({ [name]: event.target.value.trim() })} /></label>`;
  const box = (name, label) => html`<label><input type="checkbox" checked=${Boolean(params[name])} onChange=${(event) => change({ [name]: event.target.checked ? "1" : "" })} /> ${label}</label>`;
  return html`<div class="bar small">
    <label>Type <select value=${params.type || ""} onChange=${(event) => change({ type: event.target.value })}>
      <option value="">all</option>${["Memory", "Session", "Turn", "Fact", "Entity", "Summary"].map((type) => html`<option>${type}</option>`)}</select></label>
    ${text("tag", "Tag")} ${text("source", "Source")}
    <label>Since <input type="date" value=${params.since || ""} onChange=${(event) => change({ since: event.target.value })} /></label>
    ${box("pinned", "pinned")} ${box("expiring", "expiring")} ${box("ended", "also ended")}
  </div>`;
}

function Row({ one, chosen, onChoose, canWrite, onAmend, again }) {
  return html`<tr class=${one.retired ? "ended" : ""}>
    ${canWrite && html`<td class="tight"><input type="checkbox" aria-label=${`Choose: ${textOf(one).slice(0, 60)}`} checked=${chosen} onChange=${onChoose} /></td>`}
    <td class="text"><a href=${link("memory", one.id)} class="clamp">${textOf(one)}</a>
      ${one.type !== "Memory" && html`<${Chip}>${one.type}</${Chip}>`}
      ${one.retired && html`<${Chip} kind="warn">ended</${Chip}>`}
      ${one.shared && html`<${Chip} kind="warn" title="somebody else wrote it into this scope">from ${one.actor}</${Chip}>`}
      ${isPinned(one) && html`<${Chip} kind="good">pinned</${Chip}>`}
      ${((one.metadata || {}).tags || []).map((tag) => html`<${Chip}>${tag}</${Chip}>`)}
      ${(one.maybe_outdated || []).length > 0 && html`<${Chip} kind="warn">maybe outdated</${Chip}>`}
      ${(one.conflicts || []).length > 0 && html`<${Chip} kind="bad">conflict</${Chip}>`}
      ${(one.superseded_by || []).length > 0 && html`<${Chip}>replaced</${Chip}>`}</td>
    <td class="tight"><${Time} at=${one.valid_from} /></td>
    <td class="tight wide">${(one.provenance || [])[0] || ""}</td>
    ${canWrite && html`<td class="tight">${!one.retired && html`
      <button onClick=${() => onAmend(one)}>Amend</button> <button onClick=${() => retire([one], again)}>Retire</button>`}</td>`}
  </tr>`;
}

const asRow = (hit) => ({ ...hit.node, text: textOf(hit.node), retired: Boolean(hit.node.valid_to), conflicts: hit.conflicts, maybe_outdated: hit.maybe_outdated });

export function Memories({ where, access, scope, stamp }) {
  const { params } = where;
  const canWrite = !access.read_only && !params.as_of && !params.known_at;
  const [query, setQuery] = useState(params.q || "");
  const [chosen, setChosen] = useState(new Set());
  const [dialog, setDialog] = useState(null);
  const [more, setMore] = useState([]);
  const [cursor, setCursor] = useState(null);
  const box = useRef();

  useEffect(() => {
    const later = setTimeout(() => query !== (params.q || "") && change({ q: query.trim() }), TYPING_MS);
    return () => clearTimeout(later);
  }, [query]);
  useEffect(() => {
    const key = (event) => {
      if (event.key === "/" && !/INPUT|TEXTAREA|SELECT/.test(event.target.tagName)) {
        event.preventDefault();
        box.current.focus();
      }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);

  const filters = { types: params.type ? [params.type] : undefined, include_retired: params.ended ? true : undefined };
  const common = { ...scope, ...clocksOf(params), ...filters };
  const filter = filterOf(params);
  const page = useLoaded(async (signal) => {
    setMore([]);
    if (params.q) return { rows: (await post("/v1/recall", { query: params.q, k: FOUND_MAX, where: filter, ...common }, signal)).hits.map(asRow) };
    const found = await get("/v1/memories", { ...common, where: filter && JSON.stringify(filter), limit: PAGE }, signal);
    setCursor(found.next_cursor);
    return { rows: found.memories };
  }, [params.q, params.scope, params.as_of, params.known_at, params.type, params.ended, JSON.stringify(filter), stamp]);

  const next = () => attempt(async () => {
    const found = await get("/v1/memories", { ...common, where: filter && JSON.stringify(filter), limit: PAGE, cursor });
    setMore([...more, ...found.memories]);
    setCursor(found.next_cursor);
  });
  const rows = [...((page.data && page.data.rows) || []), ...more];
  const picked = rows.filter((one) => chosen.has(one.id) && !one.retired);
  const toggle = (one) => setChosen((old) => {
    const now = new Set(old);
    if (!now.delete(one.id)) now.add(one.id);
    return now;
  });
  const add = (text) => attempt(async () => {
    const written = await post("/v1/memories", { text, ...scope });
    setDialog(null);
    notify(written.created ? "Remembered." : "This was known already.", undoOf(written));
    changed();
  });

  return html`<h1>Memories</h1>
    <div class="bar">
      <input class="grow" type="search" ref=${box} placeholder="Search …  ( / )" aria-label="Search memories" value=${query} onInput=${(event) => setQuery(event.target.value)} />
      ${canWrite && html`<button class="main" onClick=${() => setDialog({ kind: "add" })}>Add</button>`}
      <button onClick=${() => save("memories.json", JSON.stringify(rows, null, 2))} disabled=${!rows.length}>Export</button>
    </div>
    <${Filters} params=${params} />
    ${picked.length > 0 && html`<div class="bar" role="status"><span>${picked.length} chosen</span>
      <button class="bad" onClick=${() => { retire(picked); setChosen(new Set()); }}>Retire them</button>
      <button onClick=${() => setChosen(new Set())}>Choose none</button></div>`}
    <${Loaded} of=${page}>${() => rows.length === 0
      ? params.q ? html`<${Empty} title="Nothing found">Try other words, another scope, or “also ended”.</${Empty}>`
        : html`<${Empty} title="Nothing is remembered here yet">Write a first memory, or look at how it works with sample data.
          ${canWrite && html`<div class="bar"><span class="grow"></span><button class="main" onClick=${() => setDialog({ kind: "add" })}>Add a memory</button>
            <button onClick=${() => attempt(async () => { await writeSample(params.scope ? scope : { user_id: "sample" }); changed(); notify("Sample data was written."); })}>Write sample data</button><span class="grow"></span></div>`}</${Empty}>`
      : html`<div class="scroll"><table><thead><tr>${canWrite && html`<th class="tight"><span class="soft">✓</span></th>`}<th>What</th><th class="tight">Since</th><th class="tight wide">Source</th>${canWrite && html`<th class="tight">Actions</th>`}</tr></thead>
          <tbody>${rows.map((one) => html`<${Row} key=${one.id} one=${one} canWrite=${canWrite} chosen=${chosen.has(one.id)} onChoose=${() => toggle(one)} onAmend=${(given) => setDialog({ kind: "amend", one: given })} />`)}</tbody></table></div>
        ${cursor && !params.q && html`<div class="bar"><button onClick=${next}>Show more</button></div>`}`}</${Loaded}>
    ${dialog && dialog.kind === "add" && html`<${TextDialog} title="Remember something" hint="What to remember, in plain sentences" button="Remember" onDone=${add} onClose=${() => setDialog(null)} />`}
    ${dialog && dialog.kind === "amend" && html`<${TextDialog} title="Amend a memory" hint="What is true instead" text=${dialog.one.text} button="Amend"
      onDone=${(text) => amend(dialog.one, text).then((done) => done && setDialog(null))} onClose=${() => setDialog(null)} />`}`;
}
