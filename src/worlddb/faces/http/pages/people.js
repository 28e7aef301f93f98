// People and names: whom and what the memories are about; one of them with what is known, its time line and its identity.
import { html, useState } from "./vendor/preact-htm.js";
import { clockSteps, get, post } from "./api.js";
import { changed, undoOf, undoOfCommit } from "./actions.js";
import {
  attempt,
  Back,
  Chip,
  count,
  day,
  Empty,
  isOver,
  link,
  Loaded,
  may,
  notify,
  oneAtATime,
  textOf,
  Time,
  useLoaded,
  useTyped,
} from "./parts.js";
import { isClaim } from "./memory.js";

const search = oneAtATime();
const NAMES = 100; // One page of names.
const SAID_MAX = 200; // Memories that speak of one; the newest say most.

/** How the two names of a proposal are alike, by the tier that found them. */
export const TIERS = { exact: "spelled the same", fuzzy: "spelled alike", phonetic: "sounds alike", embedding: "near in meaning", tiebreaker: "judged the same" };

/** Decide on two names: the same or not, or take a decision back. */
export const decide = (one, decision, scope) =>
  attempt(async () => {
    await post(`/v1/proposals/${one.edge}`, { decision, ...scope });
    // A rejection is final for the merge itself: what is undone is its commit.
    const undo = {
      accept: () => decide(one, "undo", scope),
      reject: undoOfCommit((commit) => commit.changes.some((change) => change.id === one.edge), scope),
    }[decision];
    notify({ accept: "Merged: both names are the same.", reject: "Kept apart.", undo: "Taken back." }[decision], undo);
    changed();
    return true;
  });

async function loadPerson(id, scope, params, signal) {
  const [identity, said] = await Promise.all([
    get(`/v1/identity/${id}`, scope, signal),
    post(
      "/v1/query",
      {
        query: {
          seeds: [id],
          steps: [
            ...clockSteps(params),
            { op: "include_superseded" },
            { op: "traverse", types: ["refers_to"], direction: "in", hops: 1 },
          ],
          limit: SAID_MAX,
        },
        ...scope,
      },
      signal,
    ),
  ]);
  const texts = said.nodes
    .filter((node) => node.content)
    .sort((a, b) => new Date(b.valid_from) - new Date(a.valid_from));
  const edges = new Map();
  for (const edge of said.edges) edges.set(edge.source, [...(edges.get(edge.source) || []), edge]);
  return { identity, texts, edges };
}

/** What stands of one: the claims whose memories have not ended, the newest value first. */
function Facts({ texts, edges }) {
  const all = texts.flatMap((node) =>
    (edges.get(node.id) || [])
      .filter(isClaim)
      .map((edge) => ({ node, edge, until: edge.valid_to || (isOver(node) ? node.valid_to : null) })),
  );
  // What two texts state alike is told once, by the text that lives longer.
  const key = ({ edge: { metadata, valid_from } }) => JSON.stringify([metadata.relation, metadata.value, valid_from]);
  const facts = all.filter((one) => !all.some((other) => other !== one && key(other) === key(one) && !isOver(other.node) && isOver(one.node)));
  if (!facts.length) return null;
  // Of a relation with one value at a time, a later value ends the earlier one; a longer text stays for what else it says.
  for (const one of facts.filter((fact) => !fact.until && fact.edge.metadata.functional)) {
    const later = facts.filter(
      (other) =>
        other.edge.metadata.relation === one.edge.metadata.relation &&
        other.edge.metadata.value !== one.edge.metadata.value &&
        other.edge.valid_from > one.edge.valid_from,
    );
    if (later.length) one.until = later.map((other) => other.edge.valid_from).sort()[0];
  }
  return html`<h2>What is known</h2><div class="scroll"><table class="claims"><thead><tr><th>fact</th><th>value</th><th class="tight">since</th><th class="tight wide">until</th><th class="wide">said in</th></tr></thead><tbody>
    ${facts.map(({ node, edge, until }) => html`<tr key=${edge.id} class=${isOver({ valid_to: until }) ? "ended" : ""}><td>${edge.metadata.relation}</td><td class="text">${edge.metadata.value}</td><td class="tight"><${Time} at=${edge.valid_from} />${until && html`<span class="narrow"><br />to <${Time} at=${until} /></span>`}</td><td class="tight wide"><${Time} at=${until} /></td><td class="wide"><a href=${link("memory", node.id)}>${textOf(node)}</a></td></tr>`)}</tbody></table></div>`;
}

function Identity({ identity, scope }) {
  const merges = identity.merges || [];
  const names = new Map(identity.nodes.map((node) => [node.id, node.name]));
  return html`<dl>${identity.names.length > 1 && html`<dt>names</dt><dd>${identity.names.map((name) => html`<${Chip}>${name}</${Chip}>`)}</dd>`}
    ${identity.nodes.length > 1 && html`<dt>merged</dt><dd>${identity.nodes.map((node) => html`<a href=${link("memory", node.id)}>${node.name}</a> <span class="small soft">since <${Time} at=${node.valid_from} /> </span>`)}</dd>`}
    ${identity.provenance.length > 0 && html`<dt>sources</dt><dd>${identity.provenance.join(", ")}</dd>`}</dl>
    ${merges.map((one) => html`<div class="bar small" key=${one.edge}><span>${[one.left, one.right].map((id) => names.get(id) || id.slice(0, 8)).join(" = ")} ${one.tier && html`<${Chip}>${TIERS[one.tier] || one.tier}</${Chip}>`}</span>${may("curate") && html`<button onClick=${() => decide(one, "undo", scope)}>Undo the merge</button>`}</div>`)}`;
}

/** The time line of one: the memories that speak of it, by year; some can be told to speak of another of that name. */
function TimeLine({ id, texts, scope }) {
  const [chosen, setChosen] = useState(new Set());
  const toggle = (node) =>
    setChosen((old) => {
      const now = new Set(old);
      if (!now.delete(node.id)) now.add(node.id);
      return now;
    });
  const split = () =>
    attempt(async () => {
      const done = await post("/v1/split", { id, memories: [...chosen], ...scope });
      setChosen(new Set());
      notify("Split: these memories speak of another bearer of the name.", undoOf(done));
      changed();
    });
  if (!texts.length) return html`<p class="soft">Nothing speaks of it at this time.</p>`;
  const years = [...new Set(texts.map((node) => day(node.valid_from).slice(0, 4)))];
  return html`<h2>Time line</h2>
    ${years.map(
      (year) =>
        html`<h3>${year}</h3><ul class="line">${texts
          .filter((node) => day(node.valid_from).startsWith(year))
          .map(
            (node) => html`<li key=${node.id} class=${isOver(node) ? "ended" : ""}>
      ${may("curate") && html`<input type="checkbox" aria-label=${`Choose: ${textOf(node).slice(0, 60)}`} checked=${chosen.has(node.id)} onChange=${() => toggle(node)} /> `}<span class="small soft"><${Time} at=${node.valid_from} /></span> <a href=${link("memory", node.id)}>${textOf(node)}</a>${isOver(node) && html` <${Chip} kind="warn">ended</${Chip}>`}</li>`,
          )}</ul>`,
    )}
    ${may("curate") && html`<p class="small soft">Two people of one name? Choose the memories that speak of the other one.</p>`}
    ${may("curate") && chosen.size > 0 && html`<div class="bar bulk" role="status"><span>${chosen.size} chosen</span><button onClick=${split}>They speak of another of this name</button></div>`}`;
}

function Person({ id, params, scope, stamp, back }) {
  const page = useLoaded(
    (signal) => loadPerson(id, scope, params, signal),
    [id, params.scope, params.as_of, params.known_at, stamp],
  );
  return html`<${Back} to=${back} or=${["people", "People and names"]} /><${Loaded} of=${page} title="Name">${({
    identity,
    texts,
    edges,
  }) => html`<h1>${identity.names[0] || "Name"}</h1>
    <${Identity} identity=${identity} scope=${scope} />
    <${Facts} texts=${texts} edges=${edges} /><${TimeLine} id=${id} texts=${texts} scope=${scope} />
    <p class="small"><a href=${link("worlds", "", { start: id })}>Show it in the graph</a></p>`}</${Loaded}>`;
}

const isCalled = (node, words) => [node.name, ...node.aliases].some((name) => name.toLowerCase().includes(words.trim().toLowerCase()));

function Names({ params, scope, stamp }) {
  const [text, setText] = useTyped("q", params.q || "", true);
  const [more, setMore] = useState([]);
  // A name is not true at a time: only what is said of it is. The second clock alone holds for a list of names.
  const list = (cursor, signal) =>
    get("/v1/interior", { type: "Entity", limit: NAMES, cursor, known_at: params.known_at, ...scope }, signal);
  const page = useLoaded(
    async (signal) => {
      setMore([]);
      if (!params.q) return list(undefined, signal);
      const query = {
        text: params.q,
        match: "all",
        steps: [...clockSteps({ known_at: params.known_at }), { op: "filter_type", types: ["Entity"] }],
        limit: NAMES,
      };
      return search(async () => {
        // Where all names come in one answer, a part of a name is enough; else whole words are searched for.
        const all = await list();
        if (!all.next_cursor) return { ...all, nodes: all.nodes.filter((node) => isCalled(node, params.q)) };
        return { nodes: (await post("/v1/query", { query, ...scope })).nodes, next_cursor: null };
      }, signal);
    },
    [params.q, params.scope, params.known_at, stamp],
  );
  return html`<h1>People and names</h1>
    <p class="soft">Whom and what the memories are about. Open a name for its facts, its time line and its other spellings.</p>
    <div class="bar"><input class="grow" type="search" aria-label="Search names" placeholder="Search names …" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
    <${Loaded} of=${page}>${(data) => {
      const nodes = [data, ...more].flatMap((one) => one.nodes);
      const next = [data, ...more].pop().next_cursor;
      if (!nodes.length)
        return html`<${Empty} title=${params.q ? "No such name" : "No names yet"}>${params.q ? "Try another spelling, or a whole word of the name." : html`Names are found in what is written, such as “Sarah Chen leads Project Falcon.” <a href=${link("memories")}>Write something</a>`}</${Empty}>`;
      return html`<p class="small soft">${count(nodes.length, "name")}${next ? ", and more" : ""}</p><div class="columns names">${nodes.map(
        (node) => html`<article class="card" key=${node.id}><a href=${link("people", node.id)}>${node.name}</a>
          ${node.aliases.map((one) => html` <${Chip}>${one}</${Chip}>`)}</article>`,
      )}</div>
        ${next && html`<div class="bar"><button onClick=${() => attempt(async () => setMore([...more, await list(next)]))}>Show more</button></div>`}`;
    }}</${Loaded}>`;
}

export function People({ where, scope, stamp, back }) {
  return where.id
    ? html`<${Person} id=${where.id} params=${where.params} scope=${scope} stamp=${stamp} back=${back} />`
    : html`<${Names} params=${where.params} scope=${scope} stamp=${stamp} />`;
}
