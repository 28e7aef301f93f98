// Worlds: the tree of worlds, opened on demand, and the meaning of the edge types.
import { html, useState } from "./vendor/preact-htm.js";
import { get, post, scopeOf } from "./api.js";
import { Empty, link, Loaded, textOf, useLoaded } from "./parts.js";
import { GraphOf, PathBetween } from "./graph.js";

const CHILDREN_MAX = 200;
const MEANING = {
  contains: "the source is a world, the target is a member of it",
  refers_to: "the text speaks of the name; some are about it, others only mention it",
  supersedes: "the newer one takes the place of the older, which ends",
  contradicts: "both cannot be right; neither ends",
  same_as: "both names mean the same",
  derived_from: "the source was made from the target: a summary, a fact",
  implies: "whoever accepts the source accepts the target",
  causes: "the source led to the target",
  precedes: "the source was before the target",
  instance_of: "the source is one of the kind",
  subtype_of: "every one of the source's kind is one of the target's",
};

function World({ id, name, type, scope }) {
  const [open, setOpen] = useState(false);
  return html`<li><button class="link" aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? "▾" : "▸"} ${name}</button> <span class="small soft">${type}</span> ${type !== "Scope" && html`<a class="small" href=${link("memory", id)}>open</a>`}
    ${open && html`<${Children} id=${id} scope=${scope} />`}</li>`;
}

function Children({ id, scope }) {
  const page = useLoaded((signal) => post("/v1/query", { query: { seeds: [id], steps: [{ op: "traverse", types: ["contains"], direction: "out", hops: 1 }], limit: CHILDREN_MAX }, ...scope }, signal), [id]);
  return html`<${Loaded} of=${page}>${(data) => data.nodes.length === 0 ? html`<p class="soft small">It is empty.</p>` : html`
    <p class="small soft">${data.nodes.length}${data.nodes.length >= CHILDREN_MAX ? " or more" : ""} inside</p>
    <ul class="tree">${data.nodes.map((node) => ["Session", "World", "Document", "Summary"].includes(node.type)
      ? html`<${World} key=${node.id} id=${node.id} name=${textOf(node).slice(0, 80)} type=${node.type} scope=${scope} />`
      : html`<li key=${node.id}><a href=${link("memory", node.id)}>${textOf(node).slice(0, 120)}</a> <span class="small soft">${node.type}</span></li>`)}</ul>`}</${Loaded}>`;
}

export function Worlds({ where, scope, stamp }) {
  const [start, setStart] = useState("");
  const [ends, setEnds] = useState(null);
  const page = useLoaded(async (signal) => {
    const [scopes, types] = await Promise.all([get("/v1/scopes", { limit: 1000 }, signal), get("/v1/ontology", scope, signal)]);
    return { scopes: scopes.scopes, types: types.types };
  }, [where.params.scope, stamp]);
  return html`<h1>Worlds</h1><${Loaded} of=${page}>${(data) => html`
    ${data.scopes.length === 0 ? html`<${Empty} title="No worlds yet">Each user, agent, app and run has a world of its own.</${Empty}>`
      : html`<ul class="tree">${data.scopes.map((one) => html`<${World} key=${one.id} id=${one.id} name=${one.name.replace(":", " ")} type="Scope" scope=${scopeOf(one.name)} />`)}</ul>`}
    <h2>Around a node</h2>
    <form class="bar" onSubmit=${(event) => { event.preventDefault(); setStart(event.target.elements.start.value.trim()); }}>
      <label>Id <input class="mono" name="start" required /></label><button>Draw</button></form>
    ${start && html`<${GraphOf} start=${start} scope=${scope} />`}
    <h2>A path between two nodes</h2>
    <form class="bar" onSubmit=${(event) => { event.preventDefault(); const { first, last } = event.target.elements; setEnds([first.value.trim(), last.value.trim()]); }}>
      <label>From <input class="mono" name="first" required /></label><label>to <input class="mono" name="last" required /></label><button>Find</button></form>
    ${ends && html`<${PathBetween} start=${ends[0]} end=${ends[1]} scope=${scope} />`}
    <h2>Edge types</h2><div class="scroll"><table><thead><tr><th>type</th><th>meaning</th></tr></thead><tbody>
      ${data.types.map((one) => html`<tr key=${one.type}><td>${one.type}</td><td>${MEANING[one.type] || (one.declaration ? Object.entries(one.declaration).filter(([, value]) => value === true).map(([name]) => name.replaceAll("_", " ")).join(", ") : "a type of this store")}</td></tr>`)}</tbody></table></div>`}</${Loaded}>`;
}
