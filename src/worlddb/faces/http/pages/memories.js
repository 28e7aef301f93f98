// Memories: a table with search as you type, filters, keys, pages, bulk actions, and a way back for each action.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { clocksOf, get, post } from "./api.js";
import {
  attempt,
  change,
  Chip,
  copy,
  day,
  Dialog,
  Empty,
  FIRST_PAGE,
  link,
  Loaded,
  notify,
  oneAtATime,
  save,
  textOf,
  TextDialog,
  Time,
  useKeys,
  useLoaded,
  useTyped,
} from "./parts.js";
import { amend, changed, erase, isPinned, pin, retire, undoOf } from "./actions.js";

const search = oneAtATime();
const PAGE = 50;
const FOUND_MAX = 50;
const EXPORT_PAGE = 1000; // As many as one call returns.
const EXPORT_MAX = 100000; // More is for 'worlddb export', which needs no browser.
const TYPES = ["Memory", "Session", "Turn", "Fact", "Entity", "Summary"];
const FILTERS = {
  type: "type",
  tag: "tag",
  source: "source",
  since: "since",
  before: "before",
  pinned: "pinned",
  expiring: "expiring",
  ended: "ended",
};

export async function writeSample(scope) {
  const sample = await (await fetch("/ui/sample.json")).json();
  const written = [];
  for (const { at, text } of sample)
    written.push(await post("/v1/memories", { text, at, source: "sample data", ...scope }));
  notify("Sample data was written.", undoOf(...written));
}

/** Return the filter that the parameters of the page mean, or nothing. */
export function filterOf(params, now = new Date()) {
  const all = [];
  if (params.tag) all.push({ tags: { $contains: params.tag } });
  if (params.source) all.push({ source: { $contains: params.source } });
  if (params.pinned) all.push({ pinned: true });
  if (params.expiring) all.push({ expires_at: { $gt: now.toISOString().slice(0, 10) } });
  if (params.since) all.push({ at: { $gte: params.since } });
  if (params.before) all.push({ at: { $lt: params.before } });
  if (params.ended === "only") all.push({ expires_at: { $lte: now.toISOString() } });
  return all.length ? { $and: all } : undefined;
}

/** The text with the words of a search marked. */
function Found({ text, query }) {
  const words = (query || "")
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word.length > 1)
    .map((word) => word.toLowerCase());
  if (!words.length) return text;
  return text
    .split(/([\p{L}\p{N}]+)/u)
    .map((part) => (words.some((word) => part.toLowerCase().startsWith(word)) ? html`<mark>${part}</mark>` : part));
}

function Filters({ params }) {
  const [open, setOpen] = useState(false);
  const set = (more) => change({ ...more, ...FIRST_PAGE });
  const text = (name, label, more = {}) =>
    html`<label>${label} <input size="4" name=${name} value=${params[name] || ""} ...${more} onChange=${(event) => set({ [name]: event.target.value.trim() })} /></label>`;
  const box = (name, label) =>
    html`<label><input type="checkbox" name=${name} checked=${Boolean(params[name])} onChange=${(event) => set({ [name]: event.target.checked ? "1" : "" })} /> ${label}</label>`;
  const used = Object.keys(FILTERS).filter((name) => params[name]);
  return html`<button class="narrow-only" aria-expanded=${open} onClick=${() => setOpen(!open)}>Filters${used.length ? ` (${used.length})` : ""} ${open ? "▴" : "▾"}</button>
  <div class=${`bar small filters ${open ? "open" : ""}`} role="group" aria-label="Filters">
    ${text("type", "Type", { list: "types", placeholder: "all" })}<datalist id="types">${TYPES.map((type) => html`<option value=${type}></option>`)}</datalist>
    ${text("tag", "Tag")} ${text("source", "Source")} ${text("since", "Since", { type: "date" })} ${text("before", "Before", { type: "date" })}
    <label>Ended <select name="ended" value=${params.ended || ""} onChange=${(event) => set({ ended: event.target.value })}><option value="">not shown</option><option value="1">also shown</option><option value="only">only these</option></select></label>
    <span class="kept">${box("pinned", "pinned")} ${box("expiring", "expiring")}</span>
  </div>`;
}

function Row({ one, chosen, current, onChoose, canWrite, onAmend, query }) {
  const source = (one.provenance || [])[0] || "";
  const only = (more) => link("memories", "", more);
  const tags = (one.metadata || {}).tags || [];
  return html`<tr class=${`${one.retired ? "ended" : ""} ${current ? "current" : ""}`}>
    ${canWrite && html`<td class="tight"><input type="checkbox" aria-label=${`Choose: ${textOf(one).slice(0, 60)}`} checked=${chosen} onChange=${onChoose} /></td>`}
    <td class="text"><a href=${link("memory", one.id)} class="clamp" data-row=${one.id}><${Found} text=${textOf(one)} query=${query} /></a>
      <span class="narrow small soft"><${Time} at=${one.valid_from} /> </span>
      ${one.type !== "Memory" && html`<${Chip}>${one.type}</${Chip}>`}
      ${one.retired && html`<${Chip} kind="warn">ended</${Chip}>`}
      ${!one.retired && one.valid_to && html`<${Chip} kind="warn">ends ${day(one.valid_to)}</${Chip}>`}
      ${one.shared && html`<${Chip} kind="warn" title="somebody else wrote it into this scope">from ${one.actor}</${Chip}>`}
      ${isPinned(one) && html`<${Chip} kind="good">pinned</${Chip}>`}
      ${tags.map((tag) => html`<a class="chip" href=${only({ tag })} title="All with this tag">${tag}</a>`)}
      ${(one.maybe_outdated || []).length > 0 && html`<${Chip} kind="warn">maybe outdated</${Chip}>`}
      ${(one.conflicts || []).length > 0 && html`<${Chip} kind="bad">conflict</${Chip}>`}
      ${(one.superseded_by || []).length > 0 && html`<${Chip}>replaced</${Chip}>`}</td>
    <td class="tight wide"><${Time} at=${one.valid_from} /></td>
    <td class="tight wide source">${source && html`<a href=${only({ source })} title=${`All from ${source}`}>${source}</a>`}</td>
    ${canWrite && html`<td class="tight wide actions">${!one.retired && html`<button onClick=${() => onAmend(one)}>Amend</button> <button onClick=${() => pin([one])}>${isPinned(one) ? "Unpin" : "Pin"}</button> <button onClick=${() => retire([one])}>Retire</button>`}</td>`}
  </tr>`;
}

function AddDialog({ onDone, onClose }) {
  const send = (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    const whole = (text) => text && `${text}T00:00:00Z`;
    onDone({
      text: given.text,
      tags: given.tags
        ? given.tags
            .split(",")
            .map((tag) => tag.trim())
            .filter(Boolean)
        : undefined,
      source: given.source,
      at: whole(given.at),
      expires_at: whole(given.expires_at),
      pin: given.pin ? true : undefined,
    });
  };
  return html`<${Dialog} title="Remember something" onClose=${onClose}><form class="fields" onSubmit=${send}>
    <label>What to remember, in plain sentences <textarea name="text" required></textarea></label>
    <details><summary>Tags, source, times</summary>
      <label>Tags, with commas between <input name="tags" /></label><label>Source <input name="source" /></label>
      <label>True since <input type="date" name="at" /></label><label>Ends on <input type="date" name="expires_at" /></label>
      <p><label class="row"><input type="checkbox" name="pin" /> pinned: always among what an agent is given first</label></p></details>
    <div class="bar"><button class="main">Remember</button><button type="button" onClick=${onClose}>Cancel</button></div>
  </form></${Dialog}>`;
}

const COLUMNS = ["id", "type", "text", "valid_from", "valid_to", "known_from", "retired", "actor"];
const cell = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;

function write(rows, kind) {
  if (kind === "csv")
    save(
      "memories.csv",
      [COLUMNS.join(","), ...rows.map((one) => COLUMNS.map((name) => cell(one[name])).join(","))].join("\r\n"),
      "text/csv",
    );
  else save("memories.json", JSON.stringify(rows, null, 2));
}

/** Save what is chosen, what is shown, or all that the filters leave. */
function ExportDialog({ rows, picked, all, onClose }) {
  const [which, setWhich] = useState(picked.length ? "chosen" : "shown");
  const [kind, setKind] = useState("json");
  const [walked, setWalked] = useState(null);
  const run = () =>
    attempt(async () => {
      if (which !== "all") write(which === "chosen" ? picked : rows, kind);
      else {
        const found = [];
        for (let cursor = null; found.length === 0 || (cursor && found.length < EXPORT_MAX);) {
          const next = await all(EXPORT_PAGE, cursor);
          found.push(...next.memories);
          setWalked(found.length);
          cursor = next.next_cursor;
          if (!cursor) break;
        }
        write(found, kind);
        notify(
          `${found.length.toLocaleString("en")} memories saved${found.length >= EXPORT_MAX ? "; 'worlddb export' saves the rest" : ""}.`,
        );
      }
      onClose();
    });
  const choice = (value, label) =>
    html`<p><label class="row"><input type="radio" name="which" value=${value} checked=${which === value} onChange=${() => setWhich(value)} /> ${label}</label></p>`;
  return html`<${Dialog} title="Export" onClose=${onClose}>
    ${picked.length > 0 && choice("chosen", `the ${picked.length} chosen`)} ${choice("shown", `the ${rows.length} on this page`)} ${all && choice("all", "all that the filters leave")}
    <p><label>Format <select name="format" value=${kind} onChange=${(event) => setKind(event.target.value)}><option value="json">JSON</option><option value="csv">CSV, for a table</option></select></label></p>
    ${walked !== null && html`<p role="status">${walked.toLocaleString("en")} read …</p>`}
    <div class="bar"><button class="main" disabled=${walked !== null} onClick=${run}>Save</button><button onClick=${onClose}>Cancel</button></div></${Dialog}>`;
}

const asRow = (hit) => ({
  ...hit.node,
  text: textOf(hit.node),
  retired: Boolean(hit.node.valid_to) && new Date(hit.node.valid_to) <= new Date(),
  conflicts: hit.conflicts,
  maybe_outdated: hit.maybe_outdated,
});
const before = new Map(); // The cursor of the page before that of each cursor.

function Pages({ params, next, shown }) {
  const page = Number(params.page || 1);
  const go = (cursor, number) => change({ after: cursor || "", page: number > 1 ? String(number) : "" });
  const forward = () => {
    before.set(next, params.after || "");
    go(next, page + 1);
  };
  const back = () => (before.has(params.after) ? go(before.get(params.after), page - 1) : go("", 1));
  useKeys({ n: next && forward, b: page > 1 && back }, [next, params.after, page]);
  if (page === 1 && !next) return null;
  return html`<div class="bar pages" role="navigation" aria-label="Pages of the table"><button disabled=${page === 1} onClick=${back}>${before.has(params.after) || page === 1 ? "Previous" : "First page"} <kbd>b</kbd></button>
    <span>page ${page.toLocaleString("en")}, rows ${((page - 1) * PAGE + 1).toLocaleString("en")} to ${((page - 1) * PAGE + shown).toLocaleString("en")}</span><button disabled=${!next} onClick=${forward}>Next <kbd>n</kbd></button></div>`;
}

/** The memories of the page, and what gets any page of them. */
function useMemories({ params, scope, stamp }) {
  const filter = filterOf(params);
  const ended = Boolean(params.ended);
  const common = {
    ...scope,
    ...clocksOf(params),
    types: params.type ? [params.type] : undefined,
    include_retired: ended || undefined,
  };
  const list = (limit, cursor, signal) =>
    get("/v1/memories", { ...common, where: filter && JSON.stringify(filter), limit, cursor }, signal);
  const page = useLoaded(
    async (signal) => {
      if (params.q)
        return search(
          async () => ({
            rows: (await post("/v1/recall", { query: params.q, k: FOUND_MAX, where: filter, ...common })).hits.map(
              asRow,
            ),
            next: null,
            query: params.q,
          }),
          signal,
        );
      const found = await list(PAGE, params.after, signal);
      return { rows: found.memories, next: found.next_cursor };
    },
    [
      params.q,
      params.scope,
      params.as_of,
      params.known_at,
      params.after,
      stamp,
      ...Object.keys(FILTERS).map((name) => params[name]),
    ],
  );
  return { page, all: params.q ? null : list };
}

/** The field of the search, by itself: a key draws nothing else anew. */
function Search({ given, box }) {
  const [text, type] = useTyped("q", given, true);
  return html`<input class="grow" type="search" ref=${box} placeholder="Search …  ( / )" aria-label="Search memories" value=${text} onInput=${(event) => type(event.target.value)} />`;
}

function Bulk({ picked, onNone, onErase, onExport }) {
  return html`<div class="bar bulk" role="status"><span>${picked.length} chosen</span>
    <button onClick=${() => {
      pin(picked, true);
      onNone();
    }}>Pin them</button><button onClick=${() => {
      pin(picked, false);
      onNone();
    }}>Unpin them</button>
    <button onClick=${() => {
      retire(picked.filter((one) => !one.retired));
      onNone();
    }}>Retire them</button><button class="bad" onClick=${onErase}>Erase them</button>
    <button onClick=${onExport}>Export them</button><button class="link" onClick=${onNone}>Choose none</button></div>`;
}

function Nothing({ params, canWrite, onAdd, scope }) {
  const isFiltered = params.q || params.after || Object.keys(FILTERS).some((name) => params[name]);
  if (isFiltered)
    return html`<${Empty} title="Nothing found">Try other words, fewer filters, another scope, or ended ones, too.</${Empty}>`;
  if (!canWrite)
    return html`<${Empty} title="Nothing is remembered here">Choose another scope or another time at the top.</${Empty}>`;
  return html`<${Welcome} onAdd=${onAdd} onSample=${() =>
    attempt(async () => {
      await writeSample(params.scope ? scope : { user_id: "sample" });
      changed();
    })} />`;
}

/** The first page of an empty store: three ways to begin. */
function Welcome({ onAdd, onSample }) {
  const [isBusy, setBusy] = useState(false);
  const sample = async () => {
    setBusy(true);
    await onSample();
    setBusy(false);
  };
  const connect = `claude mcp add --transport http worlddb ${location.origin}/mcp`;
  return html`<section class="welcome" aria-label="How to begin"><h2>Nothing is remembered here yet</h2><p class="soft">Three ways to begin. Each can be taken back.</p><div class="columns">
    <div class="card"><h3>Look at an example</h3><p>A year of a made-up life: a move, a budget that changed, people at work. Then ask a question, or pull the clocks at the top into the past.</p><button class="main" disabled=${isBusy} onClick=${sample}>${isBusy ? "Writing …" : "Write sample data"}</button></div>
    <div class="card"><h3>Write something yourself</h3><p>One or two plain sentences, such as “I live in Hamburg and work at Nordlicht.” Names and facts in them are found.</p><button onClick=${onAdd}>Add a memory</button></div>
    <div class="card"><h3>Connect an agent</h3><p>Any MCP client can use this server, for example:</p><pre tabindex="0">${connect}</pre><button onClick=${() => copy(connect)}>Copy the command</button></div></div></section>`;
}

/** Erasing has no way back, so it is asked for; the number is said. */
export function EraseDialog({ memories, onDone, onClose }) {
  return html`<${Dialog} title=${memories.length > 1 ? `Erase ${memories.length} memories for good` : "Erase for good"} onClose=${onClose}>
    <p>The text, what was derived from it, and its traces in the file are removed. <strong>This cannot be undone.</strong> The receipt is saved as a file.</p>
    <div class="bar"><button class="bad" onClick=${async () => {
      if (await erase(memories)) onDone();
    }}>Erase</button><button onClick=${onClose}>Cancel</button></div></${Dialog}>`;
}

export function Memories({ where, access, scope, stamp }) {
  const { params } = where;
  const canWrite = !access.read_only && !params.as_of && !params.known_at;
  const [chosen, setChosen] = useState(new Set());
  const [at, setAt] = useState(-1);
  const [dialog, setDialog] = useState(null);
  const box = useRef();
  const { page, all } = useMemories({ params, scope, stamp });
  const rows = (page.data && page.data.rows) || [];
  const picked = rows.filter((one) => chosen.has(one.id));
  const one = rows[at];
  const none = () => setChosen(new Set());
  const close = () => setDialog(null);
  useEffect(() => {
    none();
    setAt(-1);
  }, [params.after, params.q, params.scope]);

  const toggle = (row) =>
    setChosen((old) => {
      const now = new Set(old);
      if (!now.delete(row.id)) now.add(row.id);
      return now;
    });
  const move = (to) => {
    setAt(to);
    const anchor = rows[to] && document.querySelector(`[data-row="${rows[to].id}"]`);
    if (anchor) anchor.focus();
  };
  const live = canWrite && one && !one.retired;
  useKeys(
    {
      "/": () => box.current.focus(),
      j: () => move(Math.min(at + 1, rows.length - 1)),
      k: () => move(Math.max(at - 1, 0)),
      a: canWrite && (() => setDialog({ kind: "add" })),
      x: canWrite && one && (() => toggle(one)),
      e: live && (() => setDialog({ kind: "amend", one })),
      p: live && (() => pin([one])),
      r: live && (() => retire(picked.length ? picked : [one])),
    },
    [rows, at, chosen, canWrite],
  );
  const add = (given) =>
    attempt(async () => {
      const written = await post("/v1/memories", { ...given, ...scope });
      close();
      notify(written.created ? "Remembered." : "This was known already.", undoOf(written));
      changed();
    });
  const used = Object.keys(FILTERS).filter((name) => params[name]);
  const isAll = rows.length > 0 && rows.every((row) => chosen.has(row.id));

  return html`<h1>Memories</h1>
    <div class="bar">
      <${Search} given=${params.q || ""} box=${box} />
      ${used.length > 0 && html`<button class="link" onClick=${() => change({ ...Object.fromEntries(used.map((name) => [name, ""])), ...FIRST_PAGE })}>Clear filters</button>`}
      ${canWrite && html`<button class="main" onClick=${() => setDialog({ kind: "add" })}>Add</button>`}
      <button onClick=${() => setDialog({ kind: "export" })} disabled=${!rows.length}>Export</button>
    </div>
    <${Filters} params=${params} />
    ${picked.length > 0 && html`<${Bulk} picked=${picked} onNone=${none} onErase=${() => setDialog({ kind: "erase" })} onExport=${() => setDialog({ kind: "export" })} />`}
    <${Loaded} of=${page}>${({ next, query }) =>
      rows.length === 0
        ? html`<${Nothing} params=${params} canWrite=${canWrite} scope=${scope} onAdd=${() => setDialog({ kind: "add" })} />`
        : html`<div class="scroll"><table class="rows"><thead><tr>${canWrite && html`<th class="tight"><input type="checkbox" aria-label="Choose all on this page" checked=${isAll} onChange=${() => setChosen(isAll ? new Set() : new Set(rows.map((row) => row.id)))} /></th>`}<th>What</th><th class="tight wide">Since</th><th class="tight wide">Source</th>${canWrite && html`<th class="tight wide">Actions</th>`}</tr></thead>
          <tbody>${rows.map((row, place) => html`<${Row} key=${row.id} one=${row} canWrite=${canWrite} query=${query} current=${place === at} chosen=${chosen.has(row.id)} onChoose=${() => toggle(row)} onAmend=${(given) => setDialog({ kind: "amend", one: given })} />`)}</tbody></table></div>
        <${Pages} params=${params} next=${params.q ? null : next} shown=${rows.length} />`}</${Loaded}>
    ${dialog && dialog.kind === "add" && html`<${AddDialog} onDone=${add} onClose=${close} />`}
    ${dialog && dialog.kind === "export" && html`<${ExportDialog} rows=${rows} picked=${picked} all=${all} onClose=${close} />`}
    ${
      dialog &&
      dialog.kind === "erase" &&
      html`<${EraseDialog} memories=${picked} onDone=${() => {
        none();
        close();
      }} onClose=${close} />`
    }
    ${
      dialog &&
      dialog.kind === "amend" &&
      html`<${TextDialog} title="Amend a memory" hint="What is true instead" text=${dialog.one.text} button="Amend"
      onDone=${(text) => amend(dialog.one, text).then((done) => done && close())} onClose=${close} />`
    }`;
}
