// Worlds: the tree of worlds with their sizes, opened on demand, and the meaning of the edge types.
import { html, useState } from "./vendor/preact-htm.js";
import { clocksOf, get, post, scopeOf } from "./api.js";
import { attempt, change, Empty, link, Loaded, Picker, textOf, useLoaded } from "./parts.js";
import { GraphOf, MEANING, PathBetween } from "./graph.js";

const CHILDREN = 50; // One page of a world; the next comes on demand.
const COUNTED_MAX = 100000; // As many as the server counts.

const told = (size) =>
  size === null
    ? ""
    : size >= COUNTED_MAX
      ? `${COUNTED_MAX.toLocaleString("en")} or more inside`
      : `${size.toLocaleString("en")} inside`;

/** A world in the tree. Its size counts what had been written, whatever it is about: with the first clock it would mislead. */
function World({ id, name, type, size, scope, params }) {
  const [open, setOpen] = useState(false);
  return html`<li><button class="link" aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? "▾" : "▸"} ${name}</button> <span class="small soft">${type} ${told(params.as_of ? null : size)}</span> ${type !== "Scope" && html`<a class="small" href=${link("memory", id)}>open</a>`}
    ${open && html`<${Children} id=${id} scope=${scope} params=${params} />`}</li>`;
}

function Children({ id, scope, params }) {
  const [more, setMore] = useState([]);
  const ask = (cursor, signal) =>
    get("/v1/interior", { id, limit: CHILDREN, cursor, ...scope, ...clocksOf(params) }, signal);
  const page = useLoaded(
    (signal) => {
      setMore([]);
      return ask(undefined, signal);
    },
    [id, params.as_of, params.known_at],
  );
  return html`<${Loaded} of=${page}>${(data) => {
    const pages = [data, ...more];
    const nodes = pages.flatMap((one) => one.nodes.map((node, place) => ({ node, size: one.sizes[place] })));
    const next = pages[pages.length - 1].next_cursor;
    if (!nodes.length) return html`<p class="soft small">Nothing is in it at this time.</p>`;
    return html`<ul class="tree">${nodes.map(({ node, size }) =>
      size > 0
        ? html`<${World} key=${node.id} id=${node.id} name=${textOf(node).slice(0, 80)} type=${node.type} size=${size} scope=${scope} params=${params} />`
        : html`<li key=${node.id}><a href=${link("memory", node.id)}>${textOf(node).slice(0, 120)}</a> <span class="small soft">${node.type}</span></li>`,
    )}
      ${next && html`<li><button onClick=${() => attempt(async () => setMore([...more, await ask(next)]))}>Show more</button></li>`}</ul>`;
  }}</${Loaded}>`;
}

function ScopeWorld({ one, params, isFirst }) {
  const scope = scopeOf(one.name);
  // The size of the shown scope alone: a server may have thousands of scopes.
  const page = useLoaded(
    (signal) =>
      isFirst
        ? get("/v1/interior", { limit: 1, ...scope, ...clocksOf(params) }, signal)
        : Promise.resolve({ size: null }),
    [isFirst, params.as_of, params.known_at],
  );
  return html`<${World} id=${one.id} name=${one.name.replace(":", " ")} type="Scope" size=${page.data ? page.data.size : null} scope=${scope} params=${params} />`;
}

const BEGINNINGS = 8;

/** Names that a graph can begin at, for somebody who has none in mind. */
function Beginnings({ scope, params }) {
  const page = useLoaded(
    (signal) =>
      get("/v1/interior", { type: "Entity", limit: BEGINNINGS, known_at: params.known_at, ...scope }, signal).catch(() => ({ nodes: [] })),
    [params.scope, params.known_at],
  );
  if (!page.data) return html`<div class="bar small"><span class="soft">For example</span><button disabled>…</button></div>`;
  const names = page.data.nodes;
  if (!names.length) return null;
  return html`<div class="bar small"><span class="soft">For example</span>
    ${names.map((node) => html`<button key=${node.id} onClick=${() => change({ start: node.id })}>${textOf(node)}</button>`)}</div>`;
}

/** Return what tells the text of a node by its id; until it has come, the beginning of the id. */
function useNames(ids, scope, params) {
  const seeds = ids.filter(Boolean);
  const page = useLoaded(
    (signal) =>
      seeds.length
        ? post("/v1/query", { query: { seeds, include_superseded: true }, ...scope }, signal).catch(() => ({ nodes: [] }))
        : Promise.resolve({ nodes: [] }),
    [seeds.join(), params.scope],
  );
  return (id) => {
    const node = page.data && page.data.nodes.find((one) => one.id.startsWith(id));
    return node ? textOf(node).slice(0, 80) : id.slice(0, 8);
  };
}

function Around({ scope, params }) {
  const ends = useNames([params.from, params.to], scope, params);
  return html`<h2>Graph</h2>
    <p class="soft">What is linked with one memory or name. Choose one, then choose others in the picture to go on from them.</p>
    <div class="bar"><${Picker} name="start" label="Start at" scope=${scope} onPick=${(node) => change({ start: node.id })} /></div>
    ${params.start ? html`<${GraphOf} start=${params.start} scope=${scope} params=${params} />` : html`<${Beginnings} scope=${scope} params=${params} />`}
    <h2>How two things are linked</h2>
    <p class="soft">The shortest path between two memories or names.</p>
    <div class="bar"><${Picker} name="first" label="From" scope=${scope} onPick=${(node) => change({ from: node.id })} />
      <${Picker} name="last" label="To" scope=${scope} onPick=${(node) => change({ to: node.id })} /></div>
    ${(params.from || params.to) && html`<p>From <strong>${params.from ? ends(params.from) : "…"}</strong> to <strong>${params.to ? ends(params.to) : "…"}</strong>${!(params.from && params.to) && html` <span class="soft">– choose the other end, too</span>`}</p>`}
    ${params.from && params.to && html`<${PathBetween} start=${params.from} end=${params.to} scope=${scope} params=${params} />`}`;
}

export function Worlds({ where, scope, stamp }) {
  const { params } = where;
  const page = useLoaded(
    async (signal) => {
      const [scopes, types] = await Promise.all([
        get("/v1/scopes", { limit: 1000 }, signal),
        get("/v1/ontology", scope, signal),
      ]);
      return { scopes: scopes.scopes, types: types.types };
    },
    [params.scope, stamp],
  );
  return html`<h1>Worlds</h1>
    <p class="soft">Each user, agent, app and run has a world of its own; sessions and topics are worlds inside it.</p><${Loaded} of=${page}>${(data) => {
    const first = data.scopes.filter((one) => one.name === params.scope);
    const all = [...first, ...data.scopes.filter((one) => one.name !== params.scope)];
    return html`${
      all.length === 0
        ? html`<${Empty} title="No worlds yet">The first memory of a user makes the first one. <a href=${link("memories")}>Write something</a></${Empty}>`
        : html`<ul class="tree">${all.map((one) => html`<${ScopeWorld} key=${one.id} one=${one} isFirst=${all.length < 20 || one.name === params.scope} params=${params} />`)}</ul>`
    }
    <${Around} scope=${scope} params=${params} />
    <h2>Kinds of links</h2><p class="soft">What an edge of each type says of its source and its target.</p><div class="scroll"><table><thead><tr><th>type</th><th>meaning</th></tr></thead><tbody>
      ${data.types.map(
        (one) =>
          html`<tr key=${one.type}><td>${one.type}</td><td>${
            MEANING[one.type] ||
            (one.declaration
              ? Object.entries(one.declaration)
                  .filter(([, value]) => value === true)
                  .map(([name]) => name.replaceAll("_", " "))
                  .join(", ")
              : "a type of this store")
          }</td></tr>`,
      )}</tbody></table></div>`;
  }}</${Loaded}>`;
}
