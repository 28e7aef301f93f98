// One hit of a recall: why it is there in words and in figures, what speaks against it, and the buttons that put it right.
import { html } from "./vendor/preact-htm.js";
import { CorrectionButtons } from "./corrections.js";
import { Chip, count, day, Id, isOver, link, textOf, Time } from "./parts.js";

// What each part of a score says of a hit, and its colour in every bar; what is rare shares the last colour.
const REST = 7;
const COLOURS = { text: 0, vector: 1, graph: 2, cover: 3, speaker: 4, synonyms: 5, spread: 6 };
export const MEANING = {
  text: "it shares words with the question",
  vector: "it is near in meaning",
  graph: "it is about a name in the question",
  cover: "it has many of the question's words",
  around: "the question's words are said in it or near it",
  speaker: "the person whom the question means said it",
  synonyms: "it has similar words",
  spread: "the best texts mention what it is about",
  telling: "it tells something about its speaker",
  world: "other good hits are in the same session or world",
  reply: "the turn before fits the question",
  following: "the turn after fits the question",
  feedback: "it is like the best texts of other sessions",
  opening: "the turn before is about the same, which counts against it",
  date: "it is near the days that the question names",
  claim: "it states exactly what is asked for",
  late: "it fits word by word",
  retention: "it is fresh, or often recalled",
  preference: "it is a standing instruction",
  turn: "the answers to several questions take turns",
};
const REASONS_MAX = 3; // More explain nothing.
const REASON_SHARE = 0.15; // A part that gives less than this share is no reason.
const SMALL = 0.05; // Parts of a score below it are not told.
const SURE = 0.5;
const DOUBTFUL = 0.1;

/** What every hit has got from each part of the score: it is no reason why one is above another. */
export function sharedBy(hits) {
  const all = hits.map((hit) => hit.weighed || {}).filter((weighed) => Object.keys(weighed).length > 0); // One that comes with another has no score.
  if (all.length < 2) return {};
  return Object.fromEntries(Object.keys(all[0]).map((name) => [name, Math.min(...all.map((weighed) => weighed[name] || 0))]));
}

/** Return the strongest reasons for a hit, as clauses: what lifts it above the others, or else what it has at all. */
export function reasonsFor(hit, shared = {}) {
  const weighed = Object.entries(hit.weighed || {});
  const strongest = (parts) => {
    const given = parts.filter(([, value]) => value > SMALL).sort((a, b) => b[1] - a[1]);
    const sum = given.reduce((total, [, value]) => total + value, 0);
    return given.filter(([, value]) => value >= REASON_SHARE * sum).slice(0, REASONS_MAX);
  };
  const own = strongest(weighed.map(([name, value]) => [name, value - Math.max(0, shared[name] || 0)]));
  const found = own.length ? own : strongest(weighed);
  const names = found.length ? found.map(([name]) => name) : Object.keys(hit.lanes || {});
  const isNamed = (hit.path || []).length === 2; // From a name in the question to the text.
  return names.map((name) => (name === "graph" && isNamed ? `it is about “${hit.path[0].name}”` : MEANING[name])).filter(Boolean);
}

const inWords = (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);

/** The positive part of a score: how long the bar of a hit is. */
export const weightOf = (hit) => Object.values(hit.weighed || {}).reduce((sum, value) => sum + Math.max(0, value), 0);

/** A bar of what each part gave to a score, as long as the score is high, with the figures below it. */
function Weights({ hit, most }) {
  const told = Object.entries(hit.weighed || {}).filter(([, value]) => Math.abs(value) >= SMALL);
  if (!told.length) return null;
  told.sort((a, b) => b[1] - a[1]);
  const sign = (value) => `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
  const label = `weights: ${told.map(([name, value]) => `${name} ${sign(value)}`).join(", ")}`;
  let at = 0;
  return html`<svg class="weights" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=${label}>
      <rect class="axis" x="0" y="0" width="100" height="4" />
      ${told
        .filter(([, value]) => value > 0)
        .map(([name, value]) => {
          const width = (100 * value) / Math.max(most, 1e-9);
          at += width;
          return html`<rect class=${`c${COLOURS[name] ?? REST}`} x=${at - width} y="0" width=${width} height="4">
            <title>${name} ${value.toFixed(3)}: ${MEANING[name] || name}</title></rect>`;
        })}</svg>
    <div class="small soft legend"><span title="The sum of the parts">score ${hit.score.toFixed(2)}</span>
      ${told.map(
        ([name, value]) => html`<span key=${name} title=${MEANING[name]}>
          <svg viewBox="0 0 8 8" aria-hidden="true">
            <rect class=${value > 0 ? `c${COLOURS[name] ?? REST}` : "none"} width="8" height="8" /></svg>
          ${name} ${sign(value)}</span>`,
      )}</div>`;
}

/** How the graph led here: `user —lives in→ I moved to Lisbon.`, each edge with its id. */
function Path({ path }) {
  const steps = (path || []).filter((step, place) => place === 0 || step.node !== path[place - 1].node);
  if (steps.length < 2) return null;
  return html`<div class="small"><span class="soft">path</span> ${steps.map(
    (step, place) => html`${place > 0 && html` <span class="soft" title=${step.edge}>—${step.relation}→</span> `}
      <a href=${link("memory", step.node)}>${step.name}</a>`,
  )}</div>`;
}

/** The memories that speak against a hit, each with what it does; `told` is a sentence that is no longer so. */
export function against(hit) {
  const conflict = (one) => (one.left === hit.node.id ? one.right : one.left);
  return [
    ...(hit.outdated || []).map((one) => ({ what: "no longer so", kind: "warn", id: one.by || "", told: one.text })),
    ...(hit.maybe_outdated || []).map((one) => ({ what: "maybe outdated by", kind: "warn", id: one.by })),
    ...(hit.conflicts || []).map((one) => ({ what: "conflicts with", kind: "bad", id: conflict(one) })),
  ];
}

function Against({ hit, texts }) {
  const found = against(hit);
  // What one memory does to a hit is one line.
  const lines = [...new Set(found.map((one) => one.id))].map((id) => found.filter((one) => one.id === id));
  return html`${lines.map(
    (line) => html`<div class="small" key=${line[0].id}>${line.map((one) => html`<${Chip} kind=${one.kind}>${one.what}</${Chip}>${one.told && html`<s>${one.told}</s> `}`)}
      ${line[0].id && html` <a href=${link("memory", line[0].id)}>${(texts && texts.get(line[0].id)) || line[0].id.slice(0, 8)}</a>`}
      ${line.some((one) => one.kind === "bad") && html` <a class="soft" href=${link("inbox")}>decide</a>`}</div>`,
  )}`;
}

/** Return the places of the hits that a hit has replaced: it may be there for their sake alone, without a lane or a score. */
export const replacedBy = (id, hits) =>
  hits.flatMap((hit, place) =>
    [...(hit.outdated || []), ...(hit.maybe_outdated || [])].some((one) => one.by === id) ? [place + 1] : [],
  );

function Lanes({ hit, replaces }) {
  const { node } = hit;
  const lanes = Object.entries(hit.lanes || {});
  const onlyFor = !lanes.length && replaces.length > 0;
  return html`<div class="small"><span class="soft">${lanes.length ? "found by" : ""}</span>
    ${lanes.map(([lane, one]) => html` <${Chip} title=${`score ${one.score.toFixed(3)} in this lane`}>${lane} #${one.rank}</${Chip}>`)}
    ${onlyFor && html`<${Chip} kind="good" title="No lane found it; it comes with the older text that it replaces">replaces hit ${replaces.join(", ")}</${Chip}>`}
    ${(node.origins || []).length > 0 && html`<${Chip} title=${`written by ${node.actor}`}>from ${node.origins.join(", ")}</${Chip}>`}
    ${node.valid_to && html`<${Chip} kind="warn">${isOver(node) ? "ended" : "ends"} ${day(node.valid_to)}</${Chip}>`}</div>`;
}

function Sure({ confidence }) {
  if (confidence === undefined || confidence === null) return null;
  const kind = confidence >= SURE ? "good" : confidence < DOUBTFUL ? "none" : "";
  return html`<span class="sure"><${Chip} kind=${kind} title="The confidence: how likely it is that this hit holds the answer">
    ${(100 * confidence).toFixed(0)} % sure</${Chip}></span>`;
}

export function Hit({ hit, rank, texts, moved, current, shared, most, replaces = [], onAmend }) {
  const { node } = hit;
  const reasons = reasonsFor(hit, shared);
  return html`<article class=${`card hit ${current ? "chosen" : ""}`}>
    <div class="head"><strong class="rank">${rank}</strong>
      <div class="text"><a href=${link("memory", node.id)} data-row=${node.id} class="clamp">${textOf(node)}</a>
        ${moved && html` <${Chip} kind=${moved.kind}>${moved.text}</${Chip}>`}</div>
      <${Sure} confidence=${hit.confidence} /></div>
    ${reasons.length > 0 && html`<p class="why">Here because ${inWords(reasons)}.</p>`}
    <${Against} hit=${hit} texts=${texts} />
    <${Lanes} hit=${hit} replaces=${replaces} />
    <${Weights} hit=${hit} most=${most || weightOf(hit)} />
    <${Path} path=${hit.path} />
    <div class="foot"><span class="small soft"><${Time} at=${node.valid_from} /> · ${count(hit.tokens, "token")} · <${Id} id=${node.id} /></span>
      ${onAmend && html`<span class="actions"><${CorrectionButtons} one=${node} onAmend=${onAmend} /></span>`}</div>
  </article>`;
}
