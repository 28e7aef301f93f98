// One memory: its text with names and claims marked, its versions in time, conflicts, commits, edges, its proof.
import { html, useState } from "./vendor/preact-htm.js";
import { clocksOf, clockSteps, get, post } from "./api.js";
import { refuse } from "./actions.js";
import { AmendDialog, CorrectionButtons, EraseDialog } from "./corrections.js";
import {
  attempt,
  Back,
  Chip,
  day,
  isOver,
  link,
  Loaded,
  may,
  micros,
  notify,
  save,
  textOf,
  Time,
  useLoaded,
} from "./parts.js";
import { GraphOf, labelOf, MEANING } from "./graph.js";

const CHAIN_MAX = 12; // Versions that are shown; more would not fit on a strip.
const COMMITS_MAX = 12; // Commits that are looked up; a memory with more has a page in the journal.

const spanOf = (edge) => (edge.type === "refers_to" && Array.isArray(edge.metadata.span) ? edge.metadata.span : null);
export const isClaim = (edge) => edge.type === "refers_to" && Boolean(edge.metadata.relation);

/** The text, cut where a name or a claim begins or ends: names are links, claims are underlined. */
function Marked({ text, edges }) {
  const letters = [...text]; // Spans count code points.
  const spans = edges
    .map((edge) => ({ edge, span: spanOf(edge) }))
    .filter(({ span }) => span && span[0] < span[1] && span[1] <= letters.length);
  const cuts = [...new Set([0, letters.length, ...spans.flatMap(({ span }) => span)])].sort((a, b) => a - b);
  const parts = cuts.slice(0, -1).map((from, place) => {
    const piece = letters.slice(from, cuts[place + 1]).join("");
    const over = spans.filter(({ span }) => span[0] <= from && span[1] >= cuts[place + 1]).map(({ edge }) => edge);
    const name = over
      .filter((edge) => !isClaim(edge))
      .sort((a, b) => a.metadata.span[1] - a.metadata.span[0] - (b.metadata.span[1] - b.metadata.span[0]))[0];
    const claims = over.filter(isClaim);
    const shown = name ? html`<a href=${link("memory", name.target)}><mark>${piece}</mark></a>` : piece;
    return claims.length
      ? html`<span class="claim" title=${claims.map((edge) => `${edge.metadata.relation}: ${edge.metadata.value}`).join("; ")}>${shown}</span>`
      : shown;
  });
  return html`<p class="body">${parts}</p>`;
}

async function versions(memory, scope, known_at, signal) {
  const found = new Map([[memory.id, memory]]);
  const open = [...memory.supersedes, ...memory.superseded_by];
  while (open.length && found.size < CHAIN_MAX) {
    const id = open.shift();
    if (found.has(id)) continue;
    const one = await get(`/v1/memories/${id}`, { ...scope, known_at }, signal).catch(() => null);
    if (!one) continue;
    found.set(id, one);
    open.push(...one.supersedes, ...one.superseded_by);
  }
  return [...found.values()].sort((a, b) => new Date(a.valid_from) - new Date(b.valid_from));
}

/** Return the commits that wrote the memory and its edges: a commit is found by its time. */
async function commitsOf(memory, edges, scope, signal) {
  const times = [memory.known_from, ...edges.flatMap((edge) => [edge.known_from, edge.known_to])].filter(Boolean);
  const unique = [...new Set(times)].sort().slice(0, COMMITS_MAX);
  const pages = await Promise.all(
    unique.map((time) =>
      get("/v1/log", { limit: 1, cursor: String(micros(time) + 1), ...scope }, signal).catch(() => ({ commits: [] })),
    ),
  );
  const found = pages.flatMap((page, place) =>
    page.commits.filter((one) => micros(one.time) === micros(unique[place])),
  );
  return [...new Map(found.map((one) => [one.time, one])).values()];
}

async function loadMemory(id, scope, { as_of, known_at }, signal) {
  const known = clockSteps({ known_at }); // The first clock says whether the memory was true then; what is known of it is told in any case.
  const types = (await get("/v1/ontology", scope, signal)).types
    .map((one) => one.type)
    .filter((type) => type !== "contains");
  const around = (which) =>
    post(
      "/v1/query",
      {
        query: {
          seeds: [which],
          steps: [...known, { op: "include_superseded" }, { op: "traverse", types, direction: "both", hops: 1 }],
          limit: 60,
        },
        ...scope,
      },
      signal,
    ).catch(() => ({ nodes: [], edges: [] }));
  const memory = await get(`/v1/memories/${id}`, { ...scope, known_at }, signal).catch(async (error) => {
    if (error.status !== 404) throw error;
    // A name is no memory: it is read as a node of the graph.
    const found = await post("/v1/query", { query: { seeds: [id], steps: [...known, { op: "include_superseded" }] }, ...scope }, signal);
    if (!found.nodes.length) throw error;
    const [node] = found.nodes;
    return {
      ...node,
      text: node.content || node.name,
      speaker: "",
      retired: Boolean(node.valid_to),
      scopes: [],
      supersedes: [],
      superseded_by: [],
      isName: true,
    };
  });
  const [near, chain] = await Promise.all([around(memory.id), versions(memory, scope, known_at, signal)]);
  const own = near.edges.filter((edge) => edge.source === memory.id || edge.target === memory.id);
  const commits = await commitsOf(memory, memory.isName ? [] : own, scope, signal);
  return { memory, near, chain, commits, early: Boolean(as_of) && !memory.isName && new Date(memory.valid_from) > new Date(as_of) };
}

function Fields({ memory, commits }) {
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
    ${commits.length > 0 && html`<dt>commits</dt><dd>${commits.map((one) => html`<a href=${link("journal", "", { commit: one.seq, upto: micros(one.time) + 1 })} title=${`${one.actor}, ${one.time}`}>${one.seq}</a> <span class="small soft">${one.actor} <${Time} at=${one.time} />  </span>`)}</dd>`}
    <dt>id</dt><dd class="mono">${memory.id}</dd></dl>`;
}

/** What the text states: subject, relation, value, and since when. */
function Claims({ memory, near }) {
  const claims = near.edges.filter((edge) => edge.source === memory.id && isClaim(edge));
  const names = new Map(near.nodes.map((node) => [node.id, node]));
  if (!claims.length) return null;
  return html`<h2>What it states</h2><div class="scroll"><table class="claims"><thead><tr><th>about</th><th>fact</th><th>value</th><th class="tight">since</th><th class="tight wide">until</th></tr></thead><tbody>
    ${claims.map(
      (
        edge,
      ) => html`<tr key=${edge.id}><td><a href=${link("people", edge.target)}>${names.has(edge.target) ? textOf(names.get(edge.target)) : edge.target.slice(0, 8)}</a></td><td>${edge.metadata.relation}${edge.metadata.functional && html` <${Chip} title="a new value ends the old one">one at a time</${Chip}>`}</td>
      <td>${edge.metadata.value}</td><td class="tight"><${Time} at=${edge.valid_from} short /></td><td class="tight wide"><${Time} at=${edge.valid_to} short /></td></tr>`,
    )}</tbody></table></div>`;
}

function Conflicts({ memory, near }) {
  const names = new Map(near.nodes.map((node) => [node.id, node]));
  const found = near.edges.filter((edge) => edge.type === "contradicts" && !edge.known_to);
  if (!found.length) return null;
  return html`<h2>In conflict with</h2><ul>${found.map((edge) => {
    const other = edge.source === memory.id ? edge.target : edge.source;
    return html`<li key=${edge.id}><a href=${link("memory", other)}>${names.has(other) ? textOf(names.get(other)) : other.slice(0, 8)}</a> <span class="small soft">${edge.metadata.reason || ""}</span></li>`;
  })}</ul><p class="small"><a href=${link("inbox")}>Decide it in the inbox</a></p>`;
}

/** The versions of a memory as bars over one axis of time. */
function Strip({ chain, memory }) {
  const now = Date.now();
  const first = Math.min(...chain.map((one) => Date.parse(one.valid_from)));
  const last = Math.max(now, ...chain.map((one) => Date.parse(one.valid_to) || 0));
  const x = (time) => (100 * (time - first)) / Math.max(1, last - first);
  return html`<h2>Versions in time</h2><div class="strip" role="group" aria-label="Versions in time">${chain.map((one) => {
    const from = x(Date.parse(one.valid_from));
    const to = x(one.valid_to ? Date.parse(one.valid_to) : now);
    const kind = (one.supersedes || []).length ? "replaced what was before it" : "the first";
    return html`<div class="version ${one.id === memory.id ? "chosen" : ""}" key=${one.id}><a href=${link("memory", one.id)} aria-current=${one.id === memory.id ? "true" : undefined}>${textOf(one)}</a>
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=${`true from ${day(one.valid_from)} to ${one.valid_to ? day(one.valid_to) : "now"}, ${kind}`}><rect class="axis" x="0" y="1.8" width="100" height=".4" /><rect class="span" x=${from} y="0" width=${Math.max(1, to - from)} height="4" /></svg>
      <span class="small soft">${day(one.valid_from)} – ${one.valid_to ? day(one.valid_to) : "now"}; known since <${Time} at=${one.known_from} /></span></div>`;
  })}</div>`;
}

function Edges({ memory, near }) {
  const names = new Map(near.nodes.map((node) => [node.id, node]));
  if (!near.edges.length) return html`<p class="soft">Nothing is linked with it.</p>`;
  return html`<div class="scroll"><table><thead><tr><th>link</th><th>with</th><th class="tight wide">since</th><th class="tight wide">id</th></tr></thead><tbody>
    ${near.edges.map((edge) => {
      const out = edge.source === memory.id;
      const other = out ? edge.target : edge.source;
      const node = names.get(other);
      return html`<tr key=${edge.id}><td title=${MEANING[edge.type]}>${out ? "→" : "←"} ${labelOf(edge)} <span class="small soft">${edge.type}</span></td><td class="text"><a href=${link("memory", other)}>${node ? textOf(node) : other.slice(0, 8)}</a></td><td class="tight wide"><${Time} at=${edge.valid_from} /></td><td class="tight wide mono" title=${edge.id}>${edge.id.slice(0, 8)}</td></tr>`;
    })}</tbody></table></div>`;
}

export function OneMemory({ where, access, scope, stamp, back }) {
  const { params, id } = where;
  const [dialog, setDialog] = useState("");
  const [graph, setGraph] = useState(false);
  const page = useLoaded(
    (signal) => loadMemory(id, scope, clocksOf(params), signal),
    [id, params.scope, params.as_of, params.known_at, stamp],
  );
  const prove = (memory) =>
    attempt(async () => {
      const proven = await get(`/v1/prove/${memory.id}`);
      save(`proof-${memory.id.slice(0, 8)}.json`, JSON.stringify(proven, null, 1));
      notify("The proof was saved. Anybody can verify it on the page “Verify a proof”.");
    });
  const leave = async (memory) => {
    if (await refuse(memory)) location.hash = link("memories");
  };
  const amended = (written) => {
    setDialog("");
    location.hash = link("memory", written.id);
  };
  return html`<${Back} to=${back} or=${["memories", "Memories"]} /><${Loaded} of=${page} title="Memory">${({ memory, near, chain, commits, early }) => html`
    <h1>${memory.isName ? memory.name || memory.type : "Memory"} ${early ? html`<${Chip} kind="warn">not true yet on ${day(params.as_of)}</${Chip}>` : isOver(memory) && html`<${Chip} kind="warn">ended</${Chip}>`}</h1>
    <${Marked} text=${memory.text || textOf(memory)} edges=${near.edges.filter((edge) => edge.source === memory.id)} />
    <div class="bar">
      ${!memory.retired && !memory.isName && html`<${CorrectionButtons} one=${memory} onAmend=${() => setDialog("amend")} />`}
      ${may("curate") && memory.shared && html`<button onClick=${() => leave(memory)}>Refuse</button>`}
      ${may("curate") && !memory.isName && html`<button class="bad" onClick=${() => setDialog("erase")}>Erase</button>`}
      ${access.admin && html`<button onClick=${() => prove(memory)}>Save a proof</button>`}
      <button aria-expanded=${graph} onClick=${() => setGraph(!graph)}>${graph ? "Hide the graph" : "Show the graph"}</button>
      ${memory.type === "Entity" && html`<a href=${link("people", memory.id)}>What is known of it</a>`}
      <a href=${link("ask", "", { q: (memory.text || memory.name || "").slice(0, 200) })}>Ask with this text</a>
    </div>
    ${graph && html`<${GraphOf} start=${memory.id} scope=${scope} params=${params} />`}
    <${Conflicts} memory=${memory} near=${near} />
    ${chain.length > 1 && html`<${Strip} chain=${chain} memory=${memory} />`}
    <${Claims} memory=${memory} near=${near} />
    <h2>About it</h2><${Fields} memory=${memory} commits=${commits} />
    <h2>Linked</h2><${Edges} memory=${memory} near=${near} />
    ${dialog === "erase" && html`<${EraseDialog} memories=${[memory]} onDone=${() => (location.hash = link("memories"))} onClose=${() => setDialog("")} />`}
    ${dialog === "amend" && html`<${AmendDialog} memory=${memory} onDone=${amended} onClose=${() => setDialog("")} />`}`}</${Loaded}>`;
}
