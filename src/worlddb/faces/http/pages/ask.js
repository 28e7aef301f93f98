// Ask: a recall, taken apart. Lanes, weights, the path through the graph, and why one is not here.
import { html, useState } from "./vendor/preact-htm.js";
import { clocksOf, get, isSignedIn, post } from "./api.js";
import { attempt, change, Chip, copy, count, day, Empty, Id, link, Loaded, Picker, textOf, Time, useLoaded, useTyped } from "./parts.js";

const ALL_MAX = 1000; // As many hits as the server returns at most.
// One colour for each feature, the same in every bar; what is rare shares the last one.
const FEATURES = { text: 0, vector: 1, graph: 2, cover: 3, speaker: 4, synonyms: 5, spread: 6 };
const REST = 7;
const MEANING = {
  text: "words that the question and the text share, rare ones more", vector: "nearness in meaning", graph: "the text is about a name in the question",
  cover: "the share of the question's words that the text has", around: "words of the question that are said in the text or near it in its conversation", speaker: "it was said by the one whom the question means", synonyms: "each word of the question has one like it in the text",
  spread: "the best texts mention what this one is about", telling: "it tells something about its speaker", world: "other good hits are in the same session",
  reply: "the turn before fits the question", following: "the turn after fits the question", feedback: "it is like the best texts of other sessions", opening: "negative where the turn before is about the same",
  date: "it is near the days that the question names", claim: "it states exactly what is asked for", late: "compared word by word", retention: "fresh, or often recalled", preference: "a standing instruction", turn: "moved, so that the answers to several questions take turns",
};
const SMALL = 0.001; // Below it a weight is not drawn.

/** A bar of what each feature gave to a score; what took away is told beside it. */
function Weights({ weighed }) {
  const all = Object.entries(weighed || {}).filter(([, value]) => Math.abs(value) > SMALL);
  const given = all.filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
  const taken = all.filter(([, value]) => value < 0);
  const sum = given.reduce((total, [, value]) => total + value, 0);
  if (!all.length) return null;
  let at = 0;
  const told = (pairs) => pairs.map(([name, value]) => `${name} ${value > 0 ? "+" : ""}${value.toFixed(2)}`).join(", ");
  return html`<svg class="weights" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=${`weights: ${told([...given, ...taken])}`}>
      ${given.map(([name, value]) => {
        const width = (100 * value) / sum;
        at += width;
        return html`<rect class=${`c${FEATURES[name] ?? REST}`} x=${at - width} y="0" width=${width} height="4"><title>${name} ${value.toFixed(3)}: ${MEANING[name] || name}</title></rect>`;
      })}</svg><div class="small soft legend">${[...given, ...taken].map(([name, value]) => html`<span title=${MEANING[name]}><svg viewBox="0 0 8 8" aria-hidden="true"><rect class=${value > 0 ? `c${FEATURES[name] ?? REST}` : "none"} width="8" height="8" /></svg>${name} ${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}</span>`)}</div>`;
}

/** How the graph led here: `user —lives in→ I moved to Lisbon.`, each edge with its id. */
function Path({ path }) {
  if (!path || path.length < 2) return null;
  return html`<div class="small">path: ${path.map((step, place) => html`${place > 0 && html` <span class="soft" title=${step.edge}>—${step.relation}→</span> `}<a href=${link("memory", step.node)}>${step.name}</a>`)}</div>`;
}

/** The memories that speak against a hit, each with what it does; `told` is a sentence that is no longer so. */
function against(hit) {
  const conflict = (one) => (one.left === hit.node.id ? one.right : one.left);
  return [...(hit.outdated || []).map((one) => ({ what: "no longer so", kind: "warn", id: one.by || "", told: one.text })),
    ...(hit.maybe_outdated || []).map((one) => ({ what: "maybe outdated by", kind: "warn", id: one.by })),
    ...(hit.conflicts || []).map((one) => ({ what: "conflicts with", kind: "bad", id: conflict(one) }))];
}

/** Return the places of the hits that a hit has replaced: it may be there for their sake alone, without a lane or a score. */
const replacedBy = (id, hits) => hits.flatMap((hit, place) => ([...(hit.outdated || []), ...(hit.maybe_outdated || [])].some((one) => one.by === id) ? [place + 1] : []));

export function Hit({ hit, rank, texts, moved, replaces = [] }) {
  const { node } = hit;
  return html`<article class="card">
    <div><strong>${rank}.</strong> <a href=${link("memory", node.id)}>${textOf(node)}</a> ${moved && html`<${Chip} kind=${moved.kind}>${moved.text}</${Chip}>`}</div>
    <div class="small soft"><${Time} at=${node.valid_from} /> · score ${hit.score.toFixed(2)}
      ${hit.confidence !== undefined && hit.confidence !== null && html` · confidence ${(100 * hit.confidence).toFixed(0)} %`} · ${count(hit.tokens, "token")} · <${Id} id=${node.id} /></div>
    <div>${Object.entries(hit.lanes || {}).map(([lane, one]) => html`<${Chip} title=${`score ${one.score.toFixed(3)} in this lane`}>${lane} #${one.rank}</${Chip}>`)}
      ${Object.keys(hit.lanes || {}).length === 0 && replaces.length > 0 && html`<${Chip} kind="good" title="No lane found it; it comes with the older text that it replaces">replaces hit ${replaces.join(", ")}</${Chip}>`}
      ${(node.origins || []).length > 0 && html`<${Chip} title=${`written by ${node.actor}`}>from ${node.origins.join(", ")}</${Chip}>`}
      ${node.valid_to && html`<${Chip} kind="warn">${new Date(node.valid_to) > new Date() ? "ends" : "ended"} ${day(node.valid_to)}</${Chip}>`}</div>
    <${Weights} weighed=${hit.weighed} />
    <${Path} path=${hit.path} />
    ${against(hit).map((one) => html`<div class="small" key=${one.what + one.id}><${Chip} kind=${one.kind}>${one.what}</${Chip}> ${one.told && html`<s>${one.told}</s> `}${one.id && html`<a href=${link("memory", one.id)}>${(texts && texts.get(one.id)) || one.id.slice(0, 8)}</a>`}</div>`)}
  </article>`;
}

/** Return the hits, and the texts of those that speak against them. */
async function recall(given, signal) {
  const data = await post("/v1/recall", given, signal);
  const texts = new Map(data.hits.map((hit) => [hit.node.id, textOf(hit.node)]));
  const missing = [...new Set(data.hits.flatMap(against).map((one) => one.id))].filter((id) => id && !texts.has(id));
  const { query, k, max_tokens, min_confidence, as_of, known_at, types, where, include_retired, summaries, ...scope } = given;
  if (missing.length) {
    const found = await post("/v1/query", { query: { seeds: missing, include_superseded: true }, ...scope }, signal).catch(() => ({ nodes: [] }));
    for (const node of found.nodes) texts.set(node.id, textOf(node));
  }
  return { ...data, texts };
}

function moveOf(hit, place, other) {
  if (!other) return null;
  const was = other.hits.findIndex((one) => one.node.id === hit.node.id);
  if (was < 0) return { kind: "good", text: "only here" };
  return was === place ? null : { kind: "", text: `${was > place ? "▲" : "▼"} ${Math.abs(was - place)}` };
}

function Answer({ found, other, title }) {
  return html`<section aria-label=${title}>
    <${Loaded} of=${found}>${(data) => html`
      <p class="soft small">${count(data.hits.length, "hit")} · ${data.hits.reduce((sum, hit) => sum + hit.tokens, 0)} tokens of text
        ${data.confidence !== undefined && data.confidence !== null && html` · ${(100 * data.confidence).toFixed(0)} % sure that the answer is here`}</p>
      ${data.hits.length > 0 && html`<details class="small"><summary>What the parts of a score mean</summary><dl>${[...new Set(data.hits.flatMap((hit) => Object.keys(hit.weighed || {})))].filter((name) => MEANING[name]).map((name) => html`<dt>${name}</dt><dd>${MEANING[name]}</dd>`)}</dl></details>`}
      ${data.hits.length ? data.hits.map((hit, place) => html`<${Hit} key=${hit.node.id} hit=${hit} rank=${place + 1} texts=${data.texts} replaces=${replacedBy(hit.node.id, data.hits)} moved=${moveOf(hit, place, other)} />`)
        : html`<${Empty} title="Nothing is remembered about this">An agent would be told to say so.</${Empty}>`}`}</${Loaded}>
  </section>`;
}

/** Say why a memory is not among the hits: another scope, not yet known, ended, another type, or ranked lower. */
async function whyNot(id, given) {
  const { query, k, as_of, known_at, ...scope } = { ...given };
  for (const name of ["types", "include_retired", "summaries", "max_tokens", "min_confidence"]) delete scope[name];
  const memory = await get(`/v1/memories/${id}`, scope).catch((error) => { if (error.status === 404) return null; throw error; });
  if (!memory) return { text: "It is no memory of this scope: it belongs to somebody else, was erased, or is a name. Choose another scope at the top." };
  if (known_at && new Date(memory.known_from) > new Date(known_at)) return { text: `It was not known yet: it was written on ${day(memory.known_from)}, and the question is about what was known on ${day(known_at)}.` };
  if (as_of && new Date(memory.valid_from) > new Date(as_of)) return { text: `It was not true yet: it is true since ${day(memory.valid_from)}, and the question is about ${day(as_of)}.` };
  if (memory.trust === "quarantine") return { text: "It is held back: nobody has released it in the inbox." };
  const among = async (more) => {
    const all = (await post("/v1/recall", { ...given, k: ALL_MAX, ...more })).hits;
    const place = all.findIndex((hit) => hit.node.id === memory.id);
    return { of: all.length, hit: all[place], rank: place + 1 };
  };
  const found = await among({});
  if (found.hit && found.rank <= k) return { text: `It is here, at place ${found.rank}.`, ...found };
  if (found.hit) return { text: `It is ranked ${found.rank} of ${found.of}; ${k} were asked for.`, ...found };
  if (given.types && !given.types.includes(memory.type)) return { text: `It is of the type ${memory.type}, and only ${given.types.join(", ")} was asked for.` };
  if (memory.retired && !given.include_retired) {
    const past = await among({ include_retired: true });
    return { text: `It has ended (${day(memory.valid_to)}), so it is not found${past.hit ? `; with ended ones it would be at place ${past.rank}` : ""}.`, ...(past.hit ? past : {}) };
  }
  const wide = given.max_tokens || given.min_confidence ? await among({ max_tokens: undefined, min_confidence: undefined }) : {};
  if (wide.hit) return { text: `It is at place ${wide.rank}, and left out by the budget of tokens or the least confidence.`, ...wide };
  return { text: "No lane found it: it shares no word and no name with the question, and other texts are nearer in meaning." };
}

function WhyNot({ given, scope }) {
  const [told, setTold] = useState(null);
  const ask = async (node) => setTold({ node, ...((await attempt(() => whyNot(node.id, given))) || {}) });
  return html`<h2>Why is this one not here?</h2>
    <div class="bar"><${Picker} name="whynot" label="Choose a memory" scope=${scope} onPick=${ask} /></div>
    ${told && told.text && html`<div role="status"><p><a href=${link("memory", told.node.id)}>${textOf(told.node)}</a></p><p><strong>${told.text}</strong></p></div>${told.hit && html`<${Hit} hit=${told.hit} rank=${told.rank} />`}`}`;
}

/** The very text that an agent's prompt gets, within a budget. */
function PromptText({ query, scope, params }) {
  const most = Number(params.most || 500);
  const page = useLoaded((signal) => post("/v1/context", { query, max_tokens: most, ...scope, ...clocksOf(params) }, signal), [query, most, params.scope, params.as_of, params.known_at]);
  return html`<h2>What a prompt gets</h2>
    <div class="bar"><label>at most <input type="number" name="most" min="20" max="20000" value=${most} onChange=${(event) => change({ most: event.target.value })} /> tokens</label>
      <button disabled=${!page.data || !page.data.text} onClick=${() => copy(page.data.text)}>Copy the text</button></div>
    <${Loaded} of=${page}>${(data) => (data.text ? html`<p class="small soft">${count(data.tokens, "token")}, ${data.ids.length} memories, ${data.left_out} left out</p><pre tabindex="0">${data.text}</pre>` : html`<p class="soft">Nothing is remembered that fits.</p>`)}</${Loaded}>`;
}

const asPython = (value) => (value === true ? "True" : value === false ? "False" : JSON.stringify(value));

export function asCode(kind, { query, ...rest }, hits) {
  const given = Object.entries(rest).filter(([, value]) => value !== undefined && value !== "");
  const python = given.map(([name, value]) => `, ${name}=${asPython(value)}`).join("");
  const call = `memory.recall(${JSON.stringify(query)}${python})`;
  const header = isSignedIn() ? '-H "Authorization: Bearer $WORLDDB_TOKEN" ' : ""; // Its name: code that is copied goes anywhere.
  if (kind === "curl") return `curl ${header}-H 'content-type: application/json' ${location.origin}/v1/recall -d '${JSON.stringify({ query, ...Object.fromEntries(given) }).replaceAll("'", "'\\''")}'`;
  if (kind === "test") return `def test_recall(memory):\n    found = [hit.node.content for hit in ${call}]\n    assert found[:1] == ${JSON.stringify(hits.slice(0, 1).map((hit) => hit.node.content))}\n`;
  return `from worlddb import Memory\n\nwith Memory("memory.db") as memory:\n    for hit in ${call}:\n        print(hit.node.content)\n`;
}

function Options({ name, params, title }) {
  const key = (part) => `${name}${part}`;
  const field = (part, label, more) => html`<label>${label} <input name=${key(part)} value=${params[key(part)] || ""} ...${more} onChange=${(event) => change({ [key(part)]: event.target.value })} /></label>`;
  const box = (part, label) => html`<label><input type="checkbox" name=${key(part)} checked=${Boolean(params[key(part)])} onChange=${(event) => change({ [key(part)]: event.target.checked ? "1" : "" })} /> ${label}</label>`;
  return html`<div class="bar small" role="group" aria-label=${title}>
    ${field("k", "hits", { type: "number", min: 1, max: 1000, placeholder: "10" })} ${field("tokens", "tokens at most", { type: "number", min: 1, placeholder: "no limit" })} ${field("sure", "confidence from", { type: "number", min: 0, max: 1, step: 0.05, placeholder: "any" })}
    ${field("type", "type", { list: "recall-types", size: 8, placeholder: "all" })} ${name === "b" && field("at", "true when", { type: "date" })}
    ${box("ended", "also ended")} ${box("sums", "summaries first")}
  </div>`;
}

/** Return the arguments of the recall that the parameters of one side mean. */
function givenBy(name, params, scope) {
  const value = (part) => params[`${name}${part}`];
  const clocks = clocksOf(params);
  if (name === "b" && value("at")) clocks.as_of = `${value("at")}T23:59:59Z`;
  return { query: params.q, k: Number(value("k") || 10), max_tokens: value("tokens") ? Number(value("tokens")) : undefined, min_confidence: value("sure") ? Number(value("sure")) : undefined,
    types: value("type") ? [value("type")] : undefined, include_retired: value("ended") ? true : undefined, summaries: value("sums") ? "first" : undefined, ...scope, ...clocks };
}

function Answers({ params, scope, stamp }) {
  const left = givenBy("a", params, scope);
  const right = givenBy("b", params, scope);
  const first = useLoaded((signal) => recall(left, signal), [JSON.stringify(left), stamp]);
  const second = useLoaded((signal) => (params.two ? recall(right, signal) : Promise.resolve(null)), [params.two, JSON.stringify(right), stamp]);
  const both = params.two && first.data && second.data;
  return html`<div class="bar small copies"><span class="soft">Copy as</span>${["Python", "curl", "test"].map((kind) => html`<button aria-label=${`Copy as ${kind}`} disabled=${!first.data} onClick=${() => copy(asCode(kind.toLowerCase(), left, first.data.hits))}>${kind}</button>`)}</div>
    <div class=${params.two ? "pair" : ""}>
      <${Answer} title="Hits" found=${first} other=${both && second.data} />
      ${params.two && html`<${Answer} title="Hits with the second settings" found=${second} other=${both && first.data} />`}
    </div>
    <${PromptText} query=${params.q} scope=${scope} params=${params} />
    <${WhyNot} given=${left} scope=${scope} />`;
}

const EXAMPLES = ["Where do I live now?", "What changed lately?", "Who do I work with?"];

export function Ask({ where, scope, stamp }) {
  const { params } = where;
  const [query, setQuery, send] = useTyped("q", params.q || "");
  const ask = (event) => {
    event.preventDefault();
    send();
  };
  return html`<h1>Ask</h1>
    <p class="soft">What an agent would get for a question, and why.</p>
    <form class="bar" onSubmit=${ask}><input class="grow" type="search" name="q" aria-label="Question" placeholder="Where do I live now?" required value=${query} onInput=${(event) => setQuery(event.target.value)} /><button class="main">Ask</button>
      <label><input type="checkbox" checked=${Boolean(params.two)} onChange=${(event) => change({ two: event.target.checked ? "1" : "" })} /> two settings side by side</label></form>
    <datalist id="recall-types">${["Memory", "Session", "Turn", "Fact", "Entity"].map((one) => html`<option value=${one}></option>`)}</datalist>
    <div class=${params.two ? "pair" : ""}><${Options} name="a" params=${params} title="Settings" />${params.two && html`<${Options} name="b" params=${params} title="Second settings" />`}</div>
    ${params.q ? html`<${Answers} params=${params} scope=${scope} stamp=${stamp} />` : html`<${Empty} title="Ask a question">Each hit shows what found it and what it weighs. For example:<div class="bar center">${EXAMPLES.map((one) => html`<button key=${one} onClick=${() => change({ q: one })}>${one}</button>`)}</div></${Empty}>`}`;
}
