// People and names: whom and what the memories are about, with what is known of each in time.
import { html, useState } from "./vendor/preact-htm.js";
import { clocksOf, post } from "./api.js";
import { Chip, Empty, link, Loaded, textOf, Time, useLoaded } from "./parts.js";

const NAMES_MAX = 500;

function clockStep(params) {
  const { as_of: valid, known_at: known } = clocksOf(params);
  return valid || known ? [{ op: "as_of", ...(valid ? { valid } : {}), ...(known ? { known } : {}) }] : [];
}

function Known({ id, scope, params }) {
  const page = useLoaded((signal) => post("/v1/query", { query: { seeds: [id], steps: [...clockStep(params), { op: "traverse", types: ["refers_to"], direction: "in", hops: 1 }], limit: 100 }, ...scope }, signal), [id, params.as_of, params.known_at]);
  return html`<${Loaded} of=${page}>${(data) => {
    const texts = data.nodes.filter((node) => node.content).sort((a, b) => new Date(b.valid_from) - new Date(a.valid_from));
    return texts.length ? html`<ul>${texts.map((node) => html`<li key=${node.id}><span class="small soft"><${Time} at=${node.valid_from} /></span> <a href=${link("memory", node.id)}>${textOf(node)}</a></li>`)}</ul>`
      : html`<p class="soft">Nothing speaks of it at this time.</p>`;
  }}</${Loaded}>`;
}

export function People({ where, scope, stamp }) {
  const { params } = where;
  const [text, setText] = useState("");
  const [open, setOpen] = useState("");
  const page = useLoaded((signal) => post("/v1/query", { query: { steps: [...clockStep(params), { op: "filter_type", types: ["Entity"] }], limit: NAMES_MAX }, ...scope }, signal), [params.scope, params.as_of, params.known_at, stamp]);
  return html`<h1>People and names</h1>
    <div class="bar"><input class="grow" type="search" aria-label="Search names" placeholder="Search names …" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
    <${Loaded} of=${page}>${(data) => {
      const names = data.nodes.filter((node) => [node.name, ...node.aliases].some((one) => one.toLowerCase().includes(text.toLowerCase()))).sort((a, b) => a.name.localeCompare(b.name));
      return names.length === 0 ? html`<${Empty} title="No names yet">Names are found in what is written, such as “Sarah Chen leads Project Falcon.”</${Empty}>`
        : html`${names.map((node) => html`<article class="card" key=${node.id}>
          <button class="link" aria-expanded=${open === node.id} onClick=${() => setOpen(open === node.id ? "" : node.id)}>${node.name}</button>
          ${node.aliases.map((one) => html` <${Chip}>${one}</${Chip}>`)} <a class="small" href=${link("memory", node.id)}>open</a>
          ${open === node.id && html`<${Known} id=${node.id} scope=${scope} params=${params} />`}</article>`)}
          ${data.nodes.length >= NAMES_MAX && html`<p class="soft">Only ${NAMES_MAX} names are shown; search memories for others.</p>`}`;
    }}</${Loaded}>`;
}
