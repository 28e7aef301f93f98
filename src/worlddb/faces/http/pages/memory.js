// One memory: its text with the names marked, what it replaced, what it conflicts with, its proof.
import { html, useState } from "./vendor/preact-htm.js";
import { clocksOf, get, post } from "./api.js";
import { amend, erase, isPinned, pin, refuse, retire } from "./actions.js";
import { attempt, Chip, day, Dialog, link, Loaded, notify, save, textOf, TextDialog, Time, useLoaded } from "./parts.js";
import { GraphOf } from "./graph.js";

const CHAIN_MAX = 12; // Versions that are shown; more would not fit on a strip.

/** Return the spans of names, none over another: of two that overlap, the shorter one. */
function spansOf(edges, length) {
  const spans = edges
    .filter((edge) => edge.type === "refers_to" && Array.isArray(edge.metadata.span))
    .map((edge) => ({ from: edge.metadata.span[0], to: edge.metadata.span[1], target: edge.target }))
    .filter((one) => one.from < one.to && one.to <= length)
    .sort((a, b) => a.to - a.from - (b.to - b.from));
  const kept = [];
  for (const one of spans) if (kept.every((other) => one.to <= other.from || one.from >= other.to)) kept.push(one);
  return kept.sort((a, b) => a.from - b.from);
}

/** The text with the names that edges point at, each as a link. */
function Marked({ text, edges }) {
  const letters = [...text]; // Spans count code points.
  const parts = [];
  let at = 0;
  for (const one of spansOf(edges, letters.length)) {
    parts.push(letters.slice(at, one.from).join(""), html`<a href=${link("memory", one.target)}><mark>${letters.slice(one.from, one.to).join("")}</mark></a>`);
    at = one.to;
  }
  return html`<p class="body">${parts}${letters.slice(at).join("")}</p>`;
}

async function versions(memory, scope, signal) {
  const found = new Map([[memory.id, memory]]);
  const open = [...memory.supersedes, ...memory.superseded_by];
  while (open.length && found.size < CHAIN_MAX) {
    const id = open.shift();
    if (found.has(id)) continue;
    const one = await get(`/v1/memories/${id}`, scope, signal).catch(() => null);
    if (!one) continue;
    found.set(id, one);
    open.push(...one.supersedes, ...one.superseded_by);
  }
  return [...found.values()].sort((a, b) => new Date(a.valid_from) - new Date(b.valid_from));
}

async function loadMemory(id, scope, clocks, signal) {
  const types = (await get("/v1/ontology", scope, signal)).types.map((one) => one.type).filter((type) => type !== "contains");
  const around = (which) => post("/v1/query", { query: { seeds: [which], steps: [{ op: "include_superseded" }, { op: "traverse", types, direction: "both", hops: 1 }], limit: 60 }, ...scope }, signal)
    .catch(() => ({ nodes: [], edges: [] }));
  const memory = await get(`/v1/memories/${id}`, { ...scope, ...clocks }, signal).catch(async (error) => {
    if (error.status !== 404) throw error;
    // A name is no memory: it is read as a node of the graph.
    const found = await post("/v1/query", { query: { seeds: [id] }, ...scope }, signal);
    if (!found.nodes.length) throw error;
    const [node] = found.nodes;
    return { ...node, text: node.content || node.name, speaker: "", retired: Boolean(node.valid_to), scopes: [], supersedes: [], superseded_by: [], isName: true };
  });
  const [near, chain] = await Promise.all([around(memory.id), versions(memory, scope, signal)]);
  return { memory, near, chain };
}

function Fields({ memory }) {
  return html`<dl>
    <dt>type</dt><dd>${memory.type}</dd>
    <dt>true since</dt><dd><${Time} at=${memory.valid_from} />${memory.valid_to && html` until <${Time} at=${memory.valid_to} />`}</dd>
    <dt>known since</dt><dd><${Time} at=${memory.known_from} /></dd>
    <dt>written by</dt><dd>${memory.actor}${memory.shared && " (somebody else: it lives in another scope)"}</dd>
    ${memory.origin && memory.origin !== "user" && html`<dt>brought in by</dt><dd>${memory.origin}, trust ${memory.trust}</dd>`}
    ${memory.speaker && html`<dt>said by</dt><dd>${memory.speaker}</dd>`}
    ${memory.scopes.length > 0 && html`<dt>memory of</dt><dd>${memory.scopes.map((one) => html`<${Chip}>${one.kind} ${one.value}</${Chip}>`)}</dd>`}
    ${(memory.aliases || []).length > 0 && html`<dt>also called</dt><dd>${memory.aliases.map((one) => html`<${Chip}>${one}</${Chip}>`)}</dd>`}
    ${memory.provenance.length > 0 && html`<dt>source</dt><dd>${memory.provenance.join(", ")}</dd>`}
    ${Object.keys(memory.metadata || {}).length > 0 && html`<dt>metadata</dt><dd><code>${JSON.stringify(memory.metadata)}</code></dd>`}
    <dt>id</dt><dd class="mono">${memory.id}</dd></dl>`;
}

function Edges({ memory, near }) {
  const names = new Map(near.nodes.map((node) => [node.id, node]));
  if (!near.edges.length) return html`<p class="soft">Nothing is linked with it.</p>`;
  return html`<div class="scroll"><table><thead><tr><th>edge</th><th>with</th><th class="tight">since</th><th class="tight">id</th></tr></thead><tbody>
    ${near.edges.map((edge) => {
      const out = edge.source === memory.id;
      const other = out ? edge.target : edge.source;
      const node = names.get(other);
      return html`<tr key=${edge.id}><td>${out ? "" : "← "}${edge.type}${out ? " →" : ""}</td><td class="text"><a href=${link("memory", other)}>${node ? textOf(node) : other.slice(0, 8)}</a></td><td class="tight"><${Time} at=${edge.valid_from} /></td><td class="tight mono" title=${edge.id}>${edge.id.slice(0, 8)}</td></tr>`;
    })}</tbody></table></div>`;
}

export function OneMemory({ where, access, scope, stamp }) {
  const { params, id } = where;
  const canWrite = !access.read_only && !params.as_of && !params.known_at;
  const [dialog, setDialog] = useState("");
  const [graph, setGraph] = useState(false);
  const page = useLoaded((signal) => loadMemory(id, scope, clocksOf(params), signal), [id, params.scope, params.as_of, params.known_at, stamp]);
  const prove = (memory) => attempt(async () => {
    const proven = await get(`/v1/prove/${memory.id}`);
    save(`proof-${memory.id.slice(0, 8)}.json`, JSON.stringify(proven, null, 1));
    notify("The proof was saved. Anybody can verify it on the page “Verify a proof”.");
  });
  return html`<${Loaded} of=${page}>${({ memory, near, chain }) => html`
    <p class="small"><a href=${link("memories")}>Memories</a></p>
    <h1>${memory.isName ? memory.name || memory.type : "Memory"} ${memory.retired && html`<${Chip} kind="warn">ended</${Chip}>`}</h1>
    <${Marked} text=${memory.text || textOf(memory)} edges=${near.edges.filter((edge) => edge.source === memory.id)} />
    <div class="bar">
      ${canWrite && !memory.retired && !memory.isName && html`<button class="main" onClick=${() => setDialog("amend")}>Amend</button><button onClick=${() => pin(memory)}>${isPinned(memory) ? "Unpin" : "Pin"}</button><button onClick=${() => retire([memory])}>Retire</button>`}
      ${canWrite && memory.shared && html`<button onClick=${async () => { if (await refuse(memory)) location.hash = link("memories"); }}>Refuse</button>`}
      ${canWrite && !memory.isName && html`<button class="bad" onClick=${() => setDialog("erase")}>Erase</button>`}
      <a href=${link("ask", "", { q: (memory.text || memory.name || "").slice(0, 200) })}>Ask with this text</a>
      ${access.admin && html`<button onClick=${() => prove(memory)}>Save a proof</button>`}
      <button aria-expanded=${graph} onClick=${() => setGraph(!graph)}>${graph ? "Hide the graph" : "Show the graph"}</button>
    </div>
    ${graph && html`<${GraphOf} start=${memory.id} scope=${scope} />`}
    <${Fields} memory=${memory} />
    ${chain.length > 1 && html`<h2>In time</h2><div class="strip" tabindex="0" role="group" aria-label="Versions in time">${chain.map((one) => html`<div class="card ${one.id === memory.id ? "chosen" : ""}" key=${one.id}>
      <div class="small soft">${day(one.valid_from)} – ${one.valid_to ? day(one.valid_to) : "now"}</div><a href=${link("memory", one.id)}>${textOf(one)}</a></div>`)}</div>`}
    <h2>Linked</h2><${Edges} memory=${memory} near=${near} />
    ${dialog === "erase" && html`<${Dialog} title="Erase for good" onClose=${() => setDialog("")}>
      <p>The text, what was derived from it, and its traces in the file are removed. This cannot be undone. The receipt is saved as a file.</p>
      <div class="bar"><button class="bad" onClick=${async () => { if (await erase(memory)) location.hash = link("memories"); }}>Erase</button><button onClick=${() => setDialog("")}>Cancel</button></div></${Dialog}>`}
    ${dialog === "amend" && html`<${TextDialog} title="Amend a memory" hint="What is true instead" text=${memory.text} button="Amend"
      onDone=${async (text) => { const written = await amend(memory, text); if (written) { setDialog(""); location.hash = link("memory", written.id); } }} onClose=${() => setDialog("")} />`}`}</${Loaded}>`;
}
