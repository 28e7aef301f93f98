// Journal: every commit with who made it, what it changed, and the way back; growth over time.
import { html, useState } from "./vendor/preact-htm.js";
import { get, post } from "./api.js";
import { changed, undoOf } from "./actions.js";
import { labelOf, MEANING } from "./graph.js";
import {
  attempt,
  change,
  Chip,
  count,
  day,
  Dialog,
  Empty,
  link,
  Loaded,
  may,
  micros,
  notify,
  textOf,
  Time,
  useLoaded,
} from "./parts.js";

const PAGE = 50;

const KINDS = {
  close_node: "ended",
  close_edge: "link ended",
  delete_edge: "link removed",
  place: "moved",
  erase: "erased",
  flag: "conflict found",
  settle: "conflict settled",
  stage: "may be the same",
  accept: "merged",
  reject: "kept apart",
  undo: "undone",
  register: "link type declared",
};
const OF_NODES = new Set(["close_node", "place", "erase"]);
const TEXTS_MAX = 100; // Texts that are looked up for one difference.
const TEXTS_IN_PAGE = 2000; // Nodes of a page of commits; an import has more, and is shown by its numbers.
const EDGES_SHOWN = 20; // A commit of an import has thousands.
const SHOWN_MAX = 200; // Nodes and changes of one difference; an import has a million.

/** What the commits after `first` up to `last` did, in words, with the texts of what they changed. */
function Difference({ first, last, scope }) {
  const page = useLoaded(
    async (signal) => {
      const data = await get("/v1/diff", { first, last, limit: SHOWN_MAX, ...scope }, signal);
      const texts = new Map(data.nodes.map((node) => [node.id, textOf(node)]));
      const ends = data.edges.slice(0, EDGES_SHOWN).flatMap((edge) => [edge.source, edge.target]);
      const missing = [
        ...new Set([...data.changes.filter((one) => OF_NODES.has(one.kind)).map((one) => one.id), ...ends]),
      ]
        .filter((id) => !texts.has(id))
        .slice(0, TEXTS_MAX);
      const found = missing.length
        ? await post("/v1/query", { query: { seeds: missing, include_superseded: true }, ...scope }, signal).catch(
            () => ({ nodes: [] }),
          )
        : { nodes: [] };
      for (const node of found.nodes) texts.set(node.id, textOf(node));
      return { ...data, texts };
    },
    [first, last],
  );
  return html`<${Loaded} of=${page}>${({ nodes, edges, changes, texts, cut }) => {
    const named = (id) =>
      texts.has(id)
        ? html`<a href=${link("memory", id)}>${texts.get(id).slice(0, 120)}</a>`
        : html`<span class="mono">${id.slice(0, 8)}</span>`;
    if (!nodes.length && !edges.length && !changes.length)
      return html`<p class="soft">Nothing that can be seen here.</p>`;
    return html`<ul>
    ${nodes.map((node) => html`<li key=${node.id}><span class="chip good">new</span> ${node.type} <a href=${link("memory", node.id)}>${textOf(node)}</a></li>`)}
    ${changes.map((one, place) => html`<li key=${place}><span class="chip warn">${KINDS[one.kind] || one.kind}</span> ${named(one.id)} <span class="small soft">${(one.detail && one.detail.reason) || ""}</span></li>`)}
    ${edges.slice(0, EDGES_SHOWN).map((edge) => html`<li key=${edge.id} class="small soft">${named(edge.source)} <span title=${MEANING[edge.type]}>— ${labelOf(edge)} →</span> ${named(edge.target)}</li>`)}
    ${edges.length > EDGES_SHOWN && html`<li class="small soft">and ${edges.length - EDGES_SHOWN} more links</li>`}
    ${cut && html`<li class="small soft">There is more: these are the first ${SHOWN_MAX}. <code>worlddb diff ${first} ${last}</code> shows all.</li>`}
  </ul>`;
  }}</${Loaded}>`;
}

const SAID_MAX = 3; // Texts that a row of the journal shows; the rest is behind "Show".
const isSaid = (node) => Boolean(node.content) && !["Fact", "Scope"].includes(node.type);

/** What each commit of a page wrote, by its time: one difference for all of them. */
async function saidIn(commits, scope, signal) {
  if (!commits.length || commits.reduce((sum, one) => sum + one.nodes, 0) > TEXTS_IN_PAGE) return new Map();
  const seqs = commits.map((one) => one.seq);
  const found = await get(
    "/v1/diff",
    { first: Math.max(0, Math.min(...seqs) - 1), last: Math.max(...seqs), ...scope },
    signal,
  ).catch(() => ({ nodes: [] }));
  const said = new Map();
  for (const node of found.nodes.filter(isSaid))
    said.set(node.known_from, [...(said.get(node.known_from) || []), node]);
  return said;
}

function Said({ nodes }) {
  if (!nodes) return null;
  return html`${nodes.slice(0, SAID_MAX).map((node) => html`<div class="clamp" key=${node.id}><a href=${link("memory", node.id)}>${textOf(node)}</a></div>`)}${nodes.length > SAID_MAX && html`<div class="small soft">and ${nodes.length - SAID_MAX} more</div>`}`;
}

function Undo({ commit, scope, onClose }) {
  const page = useLoaded(
    (signal) => post("/v1/undo", { commit: commit.seq, dry_run: true, ...scope }, signal),
    [commit.seq],
  );
  const undo = () =>
    attempt(async () => {
      const done = await post("/v1/undo", { commit: commit.seq, ...scope });
      onClose();
      notify(done.commit ? `Taken back by commit ${done.commit.seq}.` : "Nothing had to be taken back.", undoOf(done));
      changed();
    });
  return html`<${Dialog} title=${`Undo commit ${commit.seq}`} onClose=${onClose}>
    <p>What it wrote is retired, and what it ended lives again. The journal keeps both.</p>
    <${Loaded} of=${page}>${(data) => html`<p>${data.retired.length} retired, ${data.restored.length} live again.</p>`}</${Loaded}>
    <div class="bar"><button class="main" disabled=${!page.data} onClick=${undo}>Undo</button><button onClick=${onClose}>Cancel</button></div>
  </${Dialog}>`;
}

const SAMPLES = 24; // Points of the curve: each is one small request.

async function sampled(scope, from, signal) {
  const last = (await get("/v1/log", { limit: 1, ...scope }, signal)).commits[0];
  if (!last) return [];
  const [begin, end] = [Math.min(micros(from), micros(last.time)), micros(last.time)];
  const times = Array.from({ length: SAMPLES }, (_, place) =>
    Math.round(begin + ((end - begin) * place) / (SAMPLES - 1)),
  );
  const pages = await Promise.all(
    times.map((time) => get("/v1/log", { limit: 1, cursor: String(time + 1), ...scope }, signal)),
  );
  return pages.map((page, place) => ({
    time: times[place] / 1000,
    seq: page.commits.length ? page.commits[0].seq : 0,
  }));
}

/** A time of the axis: the day, the minute where the whole curve is of a day or two, the second where it is of minutes. */
const moment = (time, span) =>
  span > 2 * 86400e3 ? day(time) : new Date(time).toISOString().slice(0, span > 600e3 ? 16 : 19).replace("T", " ");

/** How many commits there were up to each time, from the beginning of the scope until now. */
export function Growth({ scope, from, stamp }) {
  const page = useLoaded(
    (signal) => (from ? sampled(scope, from, signal) : Promise.resolve([])),
    [JSON.stringify(scope), from, stamp],
  );
  const points = page.data || [];
  const most = points.length ? Math.max(1, points[points.length - 1].seq) : 1;
  const [first, last] = points.length ? [points[0].time, points[points.length - 1].time] : [0, 0];
  const line = points
    .map(
      (one) =>
        `${(last === first ? 0 : (600 * (one.time - first)) / (last - first)).toFixed(1)},${(90 - (80 * one.seq) / most).toFixed(1)}`,
    )
    .join(" L");
  // The place of the curve is kept while it loads, so that nothing jumps.
  return html`<figure class="growth"><svg class="plot" viewBox="0 0 600 90" preserveAspectRatio="none" role="img" aria-label=${points.length ? `${most} commits, from ${day(first)} to ${day(last)}` : "Growth"}>
    ${points.length > 1 && html`<path class="area" d=${`M0,90 L${line} L600,90 Z`} /><path d=${`M${line}`} />`}</svg><figcaption class="small soft"><span>${first ? moment(first, last - first) : " "}</span><span>${points.length ? count(most, "commit") : ""}</span><span>${last ? moment(last, last - first) : ""}</span></figcaption></figure>`;
}

/** Where the scope begins, or the oldest of all scopes. */
export async function beginning(name, signal) {
  const { scopes } = await get("/v1/scopes", { limit: 1000 }, signal);
  const found = scopes
    .filter((one) => !name || one.name === name)
    .map((one) => one.known_from)
    .sort();
  return found[0] || null;
}

export function Journal({ where, scope, stamp }) {
  const { params } = where;
  const [more, setMore] = useState([]);
  const [cursor, setCursor] = useState(null);
  const [undoing, setUndoing] = useState(null);
  const open = Number(params.commit || 0);
  const span = params.first && params.last ? { first: Number(params.first), last: Number(params.last) } : null;
  const page = useLoaded(
    async (signal) => {
      setMore([]);
      const then = params.known_at ? String(micros(params.known_at) + 1) : undefined;
      const [found, from] = await Promise.all([
        get("/v1/log", { limit: PAGE, cursor: params.upto || then, ...scope }, signal),
        beginning(params.scope, signal),
      ]);
      setCursor(found.next_cursor);
      const commits = found.commits.filter((one) => one.seq > 0); // The first one made the empty store.
      return { commits, from, said: await saidIn(commits, scope, signal) };
    },
    [params.scope, params.known_at, params.upto, stamp],
  );
  const next = () =>
    attempt(async () => {
      const found = await get("/v1/log", { limit: PAGE, cursor, ...scope });
      const commits = found.commits.filter((one) => one.seq > 0);
      const said = await saidIn(commits, scope);
      setMore([...more, ...commits.map((one) => ({ ...one, said: said.get(one.time) }))]);
      setCursor(found.next_cursor);
    });
  const choose = (event) => {
    event.preventDefault();
    const { first, last } = event.target.elements;
    change({ first: first.value, last: last.value });
  };
  return html`<h1>Journal</h1><p class="soft">Every write is a commit: who made it, what it changed, and the way back. Nothing is ever overwritten.</p><${Loaded} of=${page}>${(data) => {
    const commits = [...data.commits, ...more];
    if (!commits.length)
      return html`<${Empty} title="No commits yet">The first write is the first commit. <a href=${link("memories")}>Write something</a></${Empty}>`;
    return html`<${Growth} scope=${scope} from=${data.from} stamp=${stamp} />
      <form class="bar span" onSubmit=${choose}><label>What changed after commit <input type="number" name="first" min="0" required value=${params.first || ""} /></label><label>up to commit <input type="number" name="last" min="1" required value=${params.last || ""} /></label><button>Compare</button>
        ${span && html`<button type="button" class="link" onClick=${() => change({ first: "", last: "" })}>Close</button>`}</form>
      ${span && html`<div class="card"><${Difference} ...${span} scope=${scope} /></div>`}
      <div class="scroll"><table><thead><tr><th class="tight">commit</th><th class="tight wide">when</th><th class="tight wide">who</th><th>what</th><th class="tight actions">actions</th></tr></thead><tbody>
      ${commits.map(
        (
          one,
          place,
        ) => html`<tr key=${place} class=${open === one.seq ? "current" : ""}><td class="tight">${one.seq}</td><td class="tight wide"><${Time} at=${one.time} /></td><td class="tight wide">${one.actor}</td>
        <td class="text"><${Said} nodes=${one.said || data.said.get(one.time)} /><span class="narrow small soft"><${Time} at=${one.time} /> </span>${one.nodes > 0 && html`<${Chip} kind="good" title="memories, names and facts that are new">${one.nodes.toLocaleString("en")} new</${Chip}>`}${one.edges > 0 && html`<${Chip} title="links between them">${count(one.edges, "link")}</${Chip}>`}${one.changes.length > 0 && html`<${Chip} kind="warn" title="what was there before and has changed">${count(one.changes.length, "change")}</${Chip}>`}
</td>
        <td class="tight actions"><button aria-expanded=${open === one.seq} onClick=${() => change({ commit: open === one.seq ? "" : String(one.seq) })}>${open === one.seq ? "Hide" : "Show"}</button> <button class="wide" aria-label=${`Compare commit ${one.seq} with the newest`} onClick=${() => change({ first: String(one.seq), last: String(commits[0].seq) })}title="What has changed since this commit">Since</button> ${may("curate") && html`<button onClick=${() => setUndoing(one)}>Undo</button>`}</td></tr>
        ${open === one.seq && html`<tr key=${`${place}-open`} class="current open"><td colspan="5"><${Difference} first=${Math.max(0, one.seq - 1)} last=${one.seq} scope=${scope} /></td></tr>`}`,
      )}
      </tbody></table></div>
      ${cursor && html`<div class="bar"><button onClick=${next}>Show more</button></div>`}
      ${undoing && html`<${Undo} commit=${undoing} scope=${scope} onClose=${() => setUndoing(null)} />`}`;
  }}</${Loaded}>`;
}
