// Ask: a recall, taken apart. Lanes, weights, the path through the graph, and why one is not here.
import { html, useState } from "./vendor/preact-htm.js";
import { clocksOf, get, post } from "./api.js";
import { attempt, change, Chip, copy, day, Empty, Id, link, Loaded, textOf, Time, useLoaded } from "./parts.js";

const ALL_MAX = 1000; // As many hits as the server returns at most.
const SHOWN = 6; // Colours; what weighs least shares the last one.

/** A bar of what each feature gave to a score; what took away is told beside it. */
function Weights({ weighed }) {
  const all = Object.entries(weighed || {}).filter(([, value]) => Math.abs(value) > 0.001);
  const given = all.filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
  const taken = all.filter(([, value]) => value < 0);
  const sum = given.reduce((total, [, value]) => total + value, 0);
  if (!all.length) return null;
  let at = 0;
  const told = [...given, ...taken].map(([name, value]) => `${name} ${value > 0 ? "+" : ""}${value.toFixed(2)}`).join(", ");
  return html`<svg class="weights" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=${`weights: ${told}`}>
      ${given.map(([name, value], place) => {
        const width = (100 * value) / sum;
        at += width;
        return html`<rect class=${`c${Math.min(place, SHOWN - 1)}`} x=${at - width} y="0" width=${width} height="4"><title>${name}: ${value.toFixed(3)}</title></rect>`;
      })}</svg><div class="small soft">${told}</div>`;
}

/** How the graph led here: `user —lives in→ I moved to Lisbon.`, each edge with its id. */
function Path({ path }) {
  if (!path || !path.length) return null;
  return html`<div class="small">path: ${path.map((step, place) => html`${place > 0 && html` <span class="soft" title=${step.edge}>—${step.relation}→</span> `}<a href=${link("memory", step.node)}>${step.name}</a>`)}</div>`;
}

const idOf = (one) => (typeof one === "string" ? one : one.id || (one.node && one.node.id) || "");

export function Hit({ hit, rank }) {
  const { node } = hit;
  return html`<article class="card">
    <div><strong>${rank}.</strong> <a href=${link("memory", node.id)}>${textOf(node)}</a></div>
    <div class="small soft"><${Time} at=${node.valid_from} /> · score ${hit.score.toFixed(2)}
      ${hit.confidence !== undefined && hit.confidence !== null && html` · confidence ${(100 * hit.confidence).toFixed(0)} %`}
      · ${Object.entries(hit.lanes || {}).map(([lane, one]) => `${lane} #${one.rank}`).join(", ") || "no lane"} · ${hit.tokens} tokens · <${Id} id=${node.id} /></div>
    <${Weights} weighed=${hit.weighed} />
    <${Path} path=${hit.path} />
    ${(node.origins || []).length > 0 && html`<${Chip} title=${`written by ${node.actor}`}>from ${node.origins.join(", ")}</${Chip}>`}
    ${node.valid_to && html`<${Chip} kind="warn">ended ${day(node.valid_to)}</${Chip}>`}
    ${(hit.outdated || []).map((one) => html`<${Chip} kind="warn" title=${idOf(one)}>outdated</${Chip}>`)}
    ${(hit.maybe_outdated || []).map((one) => html`<${Chip} kind="warn">maybe outdated by <a href=${link("memory", idOf(one))}>${idOf(one).slice(0, 6)}</a></${Chip}>`)}
    ${(hit.conflicts || []).map((one) => html`<${Chip} kind="bad">conflicts with <a href=${link("memory", idOf(one))}>${idOf(one).slice(0, 6)}</a></${Chip}>`)}
  </article>`;
}

function Answer({ query, options, scope, params, title, stamp }) {
  const given = { query, ...options, ...scope, ...clocksOf(params) };
  const found = useLoaded((signal) => post("/v1/recall", given, signal), [JSON.stringify(given), stamp]);
  return html`<section aria-label=${title}>
    <${Loaded} of=${found}>${(data) => html`
      <p class="soft small">${data.hits.length} hits · ${data.hits.reduce((sum, hit) => sum + hit.tokens, 0)} tokens of text
        ${data.confidence !== undefined && data.confidence !== null && html` · ${(100 * data.confidence).toFixed(0)} % sure that the answer is here`}</p>
      ${data.hits.length ? data.hits.map((hit, place) => html`<${Hit} key=${hit.node.id} hit=${hit} rank=${place + 1} />`)
        : html`<${Empty} title="Nothing is remembered about this">An agent would be told to say so.</${Empty}>`}`}</${Loaded}>
  </section>`;
}

/** Say why a memory is not among the hits: ended, another scope, another type, or ranked lower. */
async function whyNot(id, query, options, scope, clocks) {
  const memory = await get(`/v1/memories/${id}`, { ...scope, ...clocks });
  const all = await post("/v1/recall", { query, ...options, k: ALL_MAX, ...scope, ...clocks });
  const place = all.hits.findIndex((hit) => hit.node.id === memory.id);
  if (place >= 0 && place < (options.k || 10)) return { text: `It is here, at place ${place + 1}.`, hit: all.hits[place], rank: place + 1 };
  if (place >= 0) return { text: `It is ranked ${place + 1} of ${all.hits.length}; ${options.k || 10} were asked for.`, hit: all.hits[place], rank: place + 1 };
  if (options.types && !options.types.includes(memory.type)) return { text: `It is of the type ${memory.type}, and only ${options.types.join(", ")} was asked for.` };
  const ended = await post("/v1/recall", { query, ...options, k: ALL_MAX, include_retired: true, ...scope, ...clocks });
  const past = ended.hits.findIndex((hit) => hit.node.id === memory.id);
  if (memory.retired) return { text: `It has ended (${day(memory.valid_to)}), so it is not found${past >= 0 ? `; with ended ones it would be at place ${past + 1}` : ""}.`, hit: ended.hits[past], rank: past + 1 };
  return { text: "No lane found it: it shares no word and no name with the question, and other texts are nearer in meaning." };
}

function WhyNot(props) {
  const [id, setId] = useState("");
  const [told, setTold] = useState(null);
  const ask = async (event) => {
    event.preventDefault();
    setTold(await attempt(() => whyNot(id.trim(), props.query, props.options, props.scope, clocksOf(props.params))));
  };
  return html`<h2>Why is this one not here?</h2>
    <form class="bar" onSubmit=${ask}><label>Id of a memory <input class="mono" name="whynot" required value=${id} onInput=${(event) => setId(event.target.value)} /></label><button>Find out</button></form>
    ${told && html`<p role="status">${told.text}</p>${told.hit && html`<${Hit} hit=${told.hit} rank=${told.rank} />`}`}`;
}

/** The very text that an agent's prompt gets, within a budget. */
function PromptText({ query, scope, params }) {
  const [most, setMost] = useState(500);
  const page = useLoaded((signal) => post("/v1/context", { query, max_tokens: most, ...scope, ...clocksOf(params) }, signal), [query, most, params.scope, params.as_of, params.known_at]);
  return html`<h2>What a prompt gets</h2>
    <div class="bar"><label>at most <input type="number" min="20" max="20000" value=${most} onChange=${(event) => setMost(Number(event.target.value))} /> tokens</label></div>
    <${Loaded} of=${page}>${(data) => (data.text ? html`<p class="small soft">${data.tokens} tokens, ${data.ids.length} memories, ${data.left_out} left out</p><pre tabindex="0">${data.text}</pre>` : html`<p class="soft">Nothing is remembered that fits.</p>`)}</${Loaded}>`;
}

function asCode(kind, query, options, scope) {
  const all = { query, ...options, ...scope };
  const python = Object.entries({ ...options, ...scope }).map(([name, value]) => `, ${name}=${value === true ? "True" : JSON.stringify(value)}`).join("");
  if (kind === "curl") return `curl -H 'content-type: application/json' ${location.origin}/v1/recall -d '${JSON.stringify(all).replaceAll("'", "'\\''")}'`;
  if (kind === "test") return `def test_recall(memory):\n    hits = memory.recall(${JSON.stringify(query)}${python})\n    assert "…" in hits[0].node.content\n`;
  return `from worlddb import Memory\n\nwith Memory("memory.db") as memory:\n    for hit in memory.recall(${JSON.stringify(query)}${python}):\n        print(hit.node.content)\n`;
}

function Options({ name, params }) {
  const key = (part) => `${name}${part}`;
  return html`<div class="bar">
    <label>k <input type="number" min="1" max="1000" value=${params[key("k")] || 10} onChange=${(event) => change({ [key("k")]: event.target.value })} /></label>
    <label><input type="checkbox" checked=${Boolean(params[key("ended")])} onChange=${(event) => change({ [key("ended")]: event.target.checked ? "1" : "" })} /> also ended</label>
    <label><input type="checkbox" checked=${Boolean(params[key("sums")])} onChange=${(event) => change({ [key("sums")]: event.target.checked ? "1" : "" })} /> summaries first</label>
    <label>type <select value=${params[key("type")] || ""} onChange=${(event) => change({ [key("type")]: event.target.value })}><option value="">all</option>${["Memory", "Session", "Turn", "Fact", "Entity"].map((one) => html`<option>${one}</option>`)}</select></label>
  </div>`;
}

function optionsOf(name, params) {
  const found = { k: Number(params[`${name}k`] || 10) };
  if (params[`${name}ended`]) found.include_retired = true;
  if (params[`${name}sums`]) found.summaries = "first";
  if (params[`${name}type`]) found.types = [params[`${name}type`]];
  return found;
}

export function Ask({ where, scope, stamp }) {
  const { params } = where;
  const [query, setQuery] = useState(params.q || "");
  const ask = (event) => {
    event.preventDefault();
    change({ q: query.trim() });
  };
  const left = optionsOf("a", params);
  return html`<h1>Ask</h1>
    <p class="soft">What an agent would get for a question, and why.</p>
    <form class="bar" onSubmit=${ask}><input class="grow" type="search" name="q" aria-label="Question" placeholder="Where do I live now?" required value=${query} onInput=${(event) => setQuery(event.target.value)} /><button class="main">Ask</button>
      <label><input type="checkbox" checked=${Boolean(params.two)} onChange=${(event) => change({ two: event.target.checked ? "1" : "" })} /> two settings side by side</label></form>
    <div class=${params.two ? "pair" : ""}><${Options} name="a" params=${params} />${params.two && html`<${Options} name="b" params=${params} />`}</div>
    ${!params.q ? html`<${Empty} title="Ask a question">Each hit shows what found it and what it weighs.</${Empty}>` : html`
      <div class="bar">${["Python", "curl", "test"].map((kind) => html`<button onClick=${() => copy(asCode(kind.toLowerCase(), params.q, left, scope))}>Copy as ${kind}</button>`)}</div>
      <div class=${params.two ? "pair" : ""}>
        <${Answer} title="Hits" query=${params.q} options=${left} scope=${scope} params=${params} stamp=${stamp} />
        ${params.two && html`<${Answer} title="Hits with the second settings" query=${params.q} options=${optionsOf("b", params)} scope=${scope} params=${params} stamp=${stamp} />`}
      </div>
      <${PromptText} query=${params.q} scope=${scope} params=${params} />
      <${WhyNot} query=${params.q} options=${left} scope=${scope} params=${params} />`}`;
}
