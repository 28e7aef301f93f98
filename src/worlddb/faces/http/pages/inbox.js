// Inbox: what waits for a decision. Each card has its keys; a decision can be taken back.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { get, post } from "./api.js";
import { changed, pin, retire } from "./actions.js";
import { attempt, Chip, Empty, link, Loaded, notify, textOf, Time, useLoaded } from "./parts.js";

const PAGE = 200;
const FADING = 20; // More than anybody decides on at once; the next come when these are gone.
const SOON_DAYS = 14; // What ends later needs no decision yet.

const decide = (one, decision, scope) => attempt(async () => {
  await post(`/v1/proposals/${one.edge}`, { decision, ...scope });
  const undo = decision === "undo" ? undefined : () => decide(one, "undo", scope);
  notify({ accept: "Merged: both names are the same.", reject: "Kept apart.", undo: "Taken back." }[decision], undo);
  changed();
});

const settle = (one, decision, scope) => attempt(async () => {
  await post(`/v1/quarantine/${one.id}/decide`, { decision, ...scope });
  notify({ release: "Released: it can be recalled now.", reject: "Rejected: it has ended." }[decision]);
  changed();
});

function Evidence({ evidence }) {
  const parts = Object.entries(evidence || {}).filter(([, value]) => value !== null && value !== "");
  return html`<div class="small soft">${parts.map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(" · ")}</div>`;
}

const Text = ({ one, children }) => html`<p><a href=${link("memory", one.id)}>${textOf(one)}</a></p><div class="small soft">${children}</div>`;

/** The kinds of cards in their order: what is asked, what a card shows, and what its keys do. */
const KINDS = [
  {
    name: "proposals", title: "The same, or not?", id: (one) => one.edge,
    card: ({ one }) => html`<div class="pair"><div><a href=${link("memory", one.left)}>${one.left_name}</a></div><div><a href=${link("memory", one.right)}>${one.right_name}</a></div></div>
      <div><${Chip}>${one.tier}</${Chip}><${Chip}>${(100 * one.score).toFixed(0)} %</${Chip}></div><${Evidence} evidence=${one.evidence} />`,
    keys: { a: ["The same", (one, scope) => decide(one, "accept", scope)], r: ["Not the same", (one, scope) => decide(one, "reject", scope)] },
  },
  {
    name: "conflicts", title: "Both cannot be right", id: (one) => one.edge,
    card: ({ one }) => html`<div class="small soft">${one.reason}</div><div class="pair">${["left", "right"].map((side) => html`<div><p><a href=${link("memory", one[side])}>${one[`${side}_text`]}</a></p></div>`)}</div>`,
    keys: { 1: ["The first is right", (one) => retire([{ id: one.right }])], 2: ["The second is right", (one) => retire([{ id: one.left }])] },
  },
  {
    name: "held", title: "Held back", hint: "Written, and not recalled until released.", id: (one) => one.id,
    card: ({ one }) => html`<${Text} one=${one}><${Chip}>from ${one.origin}</${Chip}></${Text}>`,
    keys: { a: ["Release", (one, scope) => settle(one, "release", scope)], r: ["Reject", (one, scope) => settle(one, "reject", scope)] },
  },
  {
    name: "fading", title: "Fading", hint: "Seldom recalled and hardly linked. Nothing ends by itself: keep it by a pin, or end it.", id: (one) => one.memory.id,
    card: ({ one }) => html`<${Text} one=${one.memory}>${one.because}</${Text}>`,
    keys: { p: ["Pin it", (one) => pin([one.memory], true)], r: ["Retire it", (one) => retire([one.memory])] },
  },
  {
    name: "expiring", title: "Expiring soon", id: (one) => one.id,
    card: ({ one }) => html`<${Text} one=${one}>ends <${Time} at=${one.valid_to} /></${Text}>`,
    keys: { r: ["End it now", (one) => retire([one])] },
  },
  {
    name: "pending", title: "Waiting to be read", hint: "The text is there and recalled; names and facts follow when it is read ('worlddb extract --pending').", id: (one) => one.memory.id,
    card: ({ one }) => html`<${Text} one=${one.memory}>for ${one.extractor} since <${Time} at=${one.since} />${one.attempts > 1 ? `, ${one.attempts} times` : ""}: ${one.error}</${Text}>`,
    keys: { r: ["Retire it", (one) => retire([one.memory])] },
  },
];

function Card({ kind, one, chosen, scope, canWrite }) {
  const box = useRef();
  useEffect(() => {
    if (chosen) box.current.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return html`<article ref=${box} class="card clamped ${chosen ? "chosen" : ""}" aria-current=${chosen ? "true" : undefined}><${kind.card} one=${one} />
    ${canWrite && html`<div class="bar">${Object.entries(kind.keys).map(([key, [label, act]], place) => html`<button class=${place ? "" : "main"} onClick=${() => act(one, scope)}>${label} (${key})</button>`)}</div>`}
  </article>`;
}

async function load(scope, signal) {
  const ask = (path, more = {}) => get(path, { limit: PAGE, ...more, ...scope }, signal);
  const soon = JSON.stringify({ expires_at: { $lte: new Date(Date.now() + SOON_DAYS * 86400e3).toISOString() } });
  const [merges, conflicts, held, fading, expiring, pending] = await Promise.all([ask("/v1/proposals"), ask("/v1/conflicts"), ask("/v1/quarantine"),
    ask("/v1/fading", { limit: FADING }), ask("/v1/memories", { where: soon }), ask("/v1/pending")]);
  return { proposals: merges.proposals, conflicts: conflicts.conflicts, held: held.memories, fading: fading.memories, expiring: expiring.memories, pending: pending.memories, left: merges.left + conflicts.left + pending.left };
}

export function Inbox({ where, access, scope, stamp }) {
  const { params } = where;
  const canWrite = !access.read_only && !params.as_of && !params.known_at;
  const [at, setAt] = useState(0);
  const page = useLoaded((signal) => load(scope, signal), [params.scope, stamp]);
  const all = page.data ? KINDS.flatMap((kind) => page.data[kind.name].map((one) => ({ kind, one }))) : [];
  const chosen = all[Math.min(at, all.length - 1)];
  useEffect(() => {
    const key = (event) => {
      if (/INPUT|TEXTAREA|SELECT/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "j") setAt(Math.min(at + 1, all.length - 1));
      if (event.key === "k") setAt(Math.max(Math.min(at, all.length - 1) - 1, 0));
      const action = chosen && canWrite && Object.hasOwn(chosen.kind.keys, event.key) && chosen.kind.keys[event.key];
      if (action) action[1](chosen.one, scope);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [page.data, at, canWrite]);
  return html`<h1>Inbox</h1><${Loaded} of=${page}>${(data) => all.length === 0
    ? html`<${Empty} title="Nothing waits for a decision">Names that may be the same, memories that cannot both be right, that are held back, fade, expire soon or wait to be read are shown here.</${Empty}>`
    : html`<p class="small soft">Keys: j and k choose; the key on a button does what the button says.</p>
      ${KINDS.filter((kind) => data[kind.name].length > 0).map((kind) => html`<h2>${kind.title} (${data[kind.name].length})</h2>${kind.hint && html`<p class="small soft">${kind.hint}</p>`}
        ${data[kind.name].map((one) => html`<${Card} key=${kind.name + kind.id(one)} kind=${kind} one=${one} chosen=${chosen.one === one} scope=${scope} canWrite=${canWrite} />`)}`)}
      ${data.left > 0 && html`<p class="soft">${data.left} more wait.</p>`}`}</${Loaded}>`;
}
