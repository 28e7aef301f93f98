// Memories: a table with search as you type, filters, keys, pages, bulk actions, and a way back for each action.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { clocksOf, get, post, recall } from "./api.js";
import {
  attempt,
  change,
  Chip,
  copy,
  day,
  Dialog,
  Empty,
  FIRST_PAGE,
  isOver,
  link,
  Loaded,
  may,
  notify,
  oneAtATime,
  save,
  textOf,
  Time,
  useCursor,
  useKeys,
  useLoaded,
  useTyped,
} from "./parts.js";
import { changed, isPinned, pin, retire, undoOf } from "./actions.js";
import { AmendDialog, CorrectionButtons, EraseDialog } from "./corrections.js";

const search = oneAtATime();
const PAGE = 50;
const FOUND = 25; // Rows of a search while somebody types: what is meant is among the first.
const FOUND_MORE = 200;
const EXPORT_PAGE = 1000; // As many as one call returns.
const EXPORT_MAX = 100000; // More is for 'worlddb export', which needs no browser.
const TYPES = ["Memory", "Session", "Turn", "Fact", "Entity", "Summary"];
const SAMPLE = "sample data"; // The source of each sample, also of those of the command.
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
    written.push(await post("/v1/memories", { text, at, source: SAMPLE, ...scope }));
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
    html`<label class="box"><input type="checkbox" name=${name} checked=${Boolean(params[name])} onChange=${(event) => set({ [name]: event.target.checked ? "1" : "" })} /> ${label}</label>`;
  const used = Object.keys(FILTERS).filter((name) => params[name]);
  return html`<button class="narrow-only" aria-expanded=${open} onClick=${() => setOpen(!open)}>Filters${used.length ? ` (${used.length})` : ""} ${open ? "▴" : "▾"}</button>
  <div class=${`bar small filters ${open ? "open" : ""}`} role="group" aria-label="Filters">
    ${text("type", "Type", { list: "types", placeholder: "all", size: 5 })}<datalist id="types">${TYPES.map((type) => html`<option value=${type}></option>`)}</datalist>
    ${text("tag", "Tag")} ${text("source", "Source")} ${text("since", "Since", { type: "date" })} ${text("before", "Before", { type: "date" })}
    <label>Ended <select name="ended" value=${params.ended || ""} onChange=${(event) => set({ ended: event.target.value })}><option value="">not shown</option><option value="1">also shown</option><option value="only">only these</option></select></label>
    <span class="kept">${box("pinned", "Pinned")} ${box("expiring", "Expiring")}</span>
  </div>`;
}

/** The marks of a row: what it is, whether it has ended, and what speaks against it. */
function Marks({ one }) {
  const tags = (one.metadata || {}).tags || [];
  const known = (list) => (list || []).length > 0;
  return html`${one.type !== "Memory" && html`<${Chip}>${one.type}</${Chip}>`}
    ${one.retired && html`<${Chip} kind="warn">ended</${Chip}>`}
    ${!one.retired && one.valid_to && html`<${Chip} kind="warn">ends ${day(one.valid_to)}</${Chip}>`}
    ${one.shared && html`<${Chip} kind="warn" title="somebody else wrote it into this scope">from ${one.actor}</${Chip}>`}
    ${isPinned(one) && html`<${Chip} kind="good">pinned</${Chip}>`}
    ${tags.map((tag) => html`<a class="chip" href=${link("memories", "", { tag })} title="All with this tag">${tag}</a>`)}
    ${known(one.maybe_outdated) && html`<${Chip} kind="warn">maybe outdated</${Chip}>`}
    ${known(one.conflicts) && html`<${Chip} kind="bad">conflict</${Chip}>`}
    ${known(one.superseded_by) && html`<${Chip}>replaced</${Chip}>`}`;
}

function Row({ one, chosen, current, onChoose, onAmend, query, columns }) {
  const source = (one.provenance || [])[0] || "";
  return html`<tr class=${`${one.retired ? "ended" : ""} ${current ? "current" : ""}`}>
    ${columns.choice && html`<td class="tight"><input type="checkbox" aria-label=${`Choose: ${textOf(one).slice(0, 60)}`} checked=${chosen} onChange=${onChoose} /></td>`}
    <td class="text"><a href=${link("memory", one.id)} class="clamp" data-row=${one.id}><${Found} text=${textOf(one)} query=${query} /></a>
      <span class="narrow small soft"><${Time} at=${one.valid_from} /> </span><${Marks} one=${one} /></td>
    <td class="tight wide"><${Time} at=${one.valid_from} short /></td>
    <td class="tight wide spacious soft"><${Time} at=${one.known_from} short /></td>
    ${columns.source && html`<td class="tight wide source">${source && html`<a href=${link("memories", "", { source })} title=${`All from ${source}`}>${source}</a>`}</td>`}
    ${columns.actions && html`<td class="tight wide actions">${!one.retired && html`<${CorrectionButtons} one=${one} onAmend=${onAmend} />`}</td>`}
  </tr>`;
}

/** The rows of one page; where a search found some by their meaning alone, a line says from where on. */
function Table({ rows, query, chosen, at, onChoose, onChooseAll, onAmend }) {
  const columns = { choice: may("curate"), actions: may("write"), source: rows.some((one) => (one.provenance || []).length > 0) };
  const isAll = rows.every((row) => chosen.has(row.id));
  const near = rows.findLastIndex((one) => !one.isNear) + 1;
  const width = 3 + columns.choice + columns.actions + columns.source;
  return html`<div class="scroll"><table class="rows"><thead><tr>
      ${columns.choice && html`<th class="tight"><input type="checkbox" aria-label="Choose all on this page" checked=${isAll} onChange=${() => onChooseAll(!isAll)} /></th>`}
      <th>Memory</th><th class="tight wide" title="When it began to be true">True since</th>
      <th class="tight wide spacious" title="When it was written; the newest is first">Written</th>
      ${columns.source && html`<th class="tight wide">Source</th>`}${columns.actions && html`<th class="tight wide actions">Actions</th>`}</tr></thead>
    <tbody>${rows.map(
      (row, place) => html`${query && place === near && html`<tr key="near" class="near"><td colspan=${width}>${near === 0 ? "No memory has these words. Linked with them, or near in meaning:" : "Without these words, linked with them or near in meaning:"}</td></tr>`}
        <${Row} key=${row.id} one=${row} query=${query} columns=${columns} current=${place === at} chosen=${chosen.has(row.id)}
          onChoose=${() => onChoose(row)} onAmend=${onAmend} />`,
    )}</tbody></table></div>`;
}

/** What can be done with sample data: a newcomer sees three things that other memories cannot do. */
function FirstSteps() {
  const february = link("memories", "", { as_of: "2026-02-28T23:59:59Z" });
  return html`<section class="card steps" aria-label="First steps"><strong>This is sample data.</strong> Try:
    <a href=${link("ask", "", { q: "Where do I live?" })}>ask where I live</a>
    <a href=${february}>see what was true in February</a>
    <a href=${link("inbox")}>decide which budget is right</a></section>`;
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
/** A cell of a table; one that a spreadsheet would take for a formula begins with an apostrophe. */
const cell = (value) => `"${String(value ?? "").replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;
export const asCsv = (rows) => [COLUMNS.join(","), ...rows.map((one) => COLUMNS.map((name) => cell(one[name])).join(","))].join("\r\n");

function write(rows, kind) {
  if (kind === "csv") save("memories.csv", asCsv(rows), "text/csv");
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
    ${picked.length > 0 && choice("chosen", `The ${picked.length} chosen`)} ${choice("shown", `The ${rows.length} on this page`)} ${all && choice("all", "All that the filters leave")}
    <p><label>Format <select name="format" value=${kind} onChange=${(event) => setKind(event.target.value)}><option value="json">JSON</option><option value="csv">CSV, for a table</option></select></label></p>
    ${walked !== null && html`<p role="status">${walked.toLocaleString("en")} read …</p>`}
    <div class="bar"><button class="main" disabled=${walked !== null} onClick=${run}>Save</button><button onClick=${onClose}>Cancel</button></div></${Dialog}>`;
}

const asRow = (hit) => ({
  ...hit.node,
  text: textOf(hit.node),
  retired: isOver(hit.node),
  conflicts: hit.conflicts,
  maybe_outdated: hit.maybe_outdated,
  isNear: !hit.lanes.text,
});
const before = new Map(); // The cursor of the page before that of each cursor.

function Pages({ params, next, shown }) {
  const more = params.q && !params.more && shown === FOUND && (() => change({ more: "1" }));
  const page = Number(params.page || 1);
  const go = (cursor, number) => change({ after: cursor || "", page: number > 1 ? String(number) : "" });
  const forward = () => {
    before.set(next, params.after || "");
    go(next, page + 1);
  };
  const back = () => (before.has(params.after) ? go(before.get(params.after), page - 1) : go("", 1));
  useKeys({ n: more || (next && forward), b: page > 1 && back }, [next, params.after, page, more]);
  if (more) return html`<div class="bar pages"><span>The best ${FOUND}</span><button onClick=${more}>Show more <kbd>n</kbd></button></div>`;
  if (page === 1 && !next) return html`<p class="pages small soft">${shown === 1 ? "1 memory" : `${shown} memories`}</p>`;
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
            rows: (await recall({ query: params.q, k: params.more ? FOUND_MORE : FOUND, where: filter, ...common })).hits.map(
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
      params.more,
      stamp,
      ...Object.keys(FILTERS).map((name) => params[name]),
    ],
  );
  return { page, all: params.q ? null : list };
}

/** The field of the search, by itself: a key draws nothing else anew. */
function Search({ given, box }) {
  const [text, type] = useTyped("q", given, true);
  return html`<input class="grow" type="search" ref=${box} placeholder="Search by words or meaning  ( / )" aria-label="Search memories" value=${text} onInput=${(event) => type(event.target.value)} />`;
}

function Bulk({ picked, onNone, onErase, onExport }) {
  const then = (work) => () => {
    work();
    onNone();
  };
  // Below the table: the rows stay where they are when the first one is chosen.
  return html`<div class="bar bulk" role="status"><span>${picked.length} chosen</span>
    <button onClick=${then(() => pin(picked, true))}>Pin them</button>
    <button onClick=${then(() => pin(picked, false))}>Unpin them</button>
    <button onClick=${then(() => retire(picked.filter((one) => !one.retired)))}>Retire them</button>
    <button class="bad" onClick=${onErase}>Erase them</button><button onClick=${onExport}>Export them</button>
    <button class="link" onClick=${onNone}>Choose none</button></div>`;
}

const isFiltered = (params) => Boolean(params.q || params.after) || Object.keys(FILTERS).some((name) => params[name]);

function Nothing({ params, onAdd, scope }) {
  if (isFiltered(params))
    return html`<${Empty} title="Nothing found">Try other words, fewer filters, another scope, or ended ones, too.</${Empty}>`;
  if (!may("write"))
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

export function Memories({ where, scope, stamp }) {
  const { params } = where;
  const [chosen, setChosen] = useState(new Set());
  const [dialog, setDialog] = useState(null);
  const box = useRef();
  const { page, all } = useMemories({ params, scope, stamp });
  const rows = (page.data && page.data.rows) || [];
  const picked = may("curate") ? rows.filter((one) => chosen.has(one.id)) : [];
  const view = [params.after, params.q, params.scope, params.as_of, params.known_at];
  const { at, keys } = useCursor(
    rows.map((row) => row.id),
    view,
  );
  const one = rows[at];
  const none = () => setChosen(new Set());
  const close = () => setDialog(null);
  const show = (kind, memory) => setDialog({ kind, memory });
  useEffect(none, view);

  const toggle = (row) =>
    setChosen((old) => {
      const now = new Set(old);
      if (!now.delete(row.id)) now.add(row.id);
      return now;
    });
  const isLive = one && !one.retired;
  useKeys(
    {
      ...keys,
      "/": () => box.current && box.current.focus(),
      a: may("write") && (() => show("add")),
      x: one && may("curate") && (() => toggle(one)),
      e: isLive && may("write") && (() => show("amend", one)),
      p: isLive && may("curate") && (() => pin([one])),
      r: isLive && may("curate") && (() => retire(picked.length ? picked : [one])),
    },
    [rows, at, chosen],
  );
  const add = (given) =>
    attempt(async () => {
      const written = await post("/v1/memories", { ...given, ...scope });
      close();
      notify(written.created ? "Remembered." : "This was known already.", undoOf(written));
      changed();
    });
  const used = Object.keys(FILTERS).filter((name) => params[name]);
  const clear = () => change({ ...Object.fromEntries(used.map((name) => [name, ""])), ...FIRST_PAGE });
  const isSample = rows.length > 0 && !isFiltered(params) && rows.every((row) => (row.provenance || []).includes(SAMPLE));
  const isEmpty = page.data && !rows.length && !isFiltered(params);

  return html`<h1>Memories</h1>
    ${
      !isEmpty &&
      html`<div class="bar">
          <${Search} given=${params.q || ""} box=${box} />
          ${used.length > 0 && html`<button class="link" onClick=${clear}>Clear filters</button>`}
          ${may("write") && html`<button class="main" onClick=${() => show("add")}>Add</button>`}
          <button onClick=${() => show("export")} disabled=${!rows.length}>Export</button>
        </div>
        <${Filters} params=${params} />`
    }
    ${isSample && may("write") && html`<${FirstSteps} />`}
    <${Loaded} of=${page}>${({ next, query }) =>
      rows.length === 0
        ? html`<${Nothing} params=${params} scope=${scope} onAdd=${() => show("add")} />`
        : html`<${Table} rows=${rows} query=${query} chosen=${chosen} at=${at} onChoose=${toggle} onAmend=${(row) => show("amend", row)}
              onChooseAll=${(isAll) => setChosen(new Set(isAll ? rows.map((row) => row.id) : []))} />
            <${Pages} params=${params} next=${params.q ? null : next} shown=${rows.length} />`}</${Loaded}>
    ${picked.length > 0 && html`<${Bulk} picked=${picked} onNone=${none} onErase=${() => show("erase")} onExport=${() => show("export")} />`}
    ${dialog && dialog.kind === "add" && html`<${AddDialog} onDone=${add} onClose=${close} />`}
    ${dialog && dialog.kind === "export" && html`<${ExportDialog} rows=${rows} picked=${picked} all=${all} onClose=${close} />`}
    ${dialog && dialog.kind === "erase" && html`<${EraseDialog} memories=${picked} onDone=${() => (none(), close())} onClose=${close} />`}
    ${dialog && dialog.kind === "amend" && html`<${AmendDialog} memory=${dialog.memory} onDone=${close} onClose=${close} />`}`;
}
