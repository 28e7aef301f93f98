// Inbox: what waits for a decision. The keys are on the page; a decision can be taken back.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { get, post } from "./api.js";
import { changed, retire } from "./actions.js";
import { attempt, Chip, Empty, link, Loaded, notify, textOf, Time, useLoaded } from "./parts.js";

const PAGE = 200;
const SOON_DAYS = 14; // What ends later needs no decision yet.

const decide = (one, decision, scope) => attempt(async () => {
  await post(`/v1/proposals/${one.edge}`, { decision, ...scope });
  const undo = decision === "undo" ? undefined : () => decide(one, "undo", scope);
  notify({ accept: "Merged: both names are the same.", reject: "Kept apart.", undo: "Taken back." }[decision], undo);
  changed();
});

function Evidence({ evidence }) {
  const parts = Object.entries(evidence || {}).filter(([, value]) => value !== null && value !== "");
  return html`<div class="small soft">${parts.map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join(" · ")}</div>`;
}

function Proposal({ one, chosen, scope, canWrite }) {
  return html`<article class="card ${chosen ? "chosen" : ""}" aria-current=${chosen ? "true" : undefined}>
    <div class="pair"><div><a href=${link("memory", one.left)}>${one.left_name}</a></div><div><a href=${link("memory", one.right)}>${one.right_name}</a></div></div>
    <div><${Chip}>${one.tier}</${Chip}><${Chip}>${(100 * one.score).toFixed(0)} %</${Chip}></div>
    <${Evidence} evidence=${one.evidence} />
    ${canWrite && html`<div class="bar"><button class="main" onClick=${() => decide(one, "accept", scope)}>The same (a)</button><button onClick=${() => decide(one, "reject", scope)}>Not the same (r)</button></div>`}
  </article>`;
}

function Conflict({ one, canWrite }) {
  return html`<article class="card"><div class="small soft">${one.reason}</div>
    <div class="pair">${[["left", "right"], ["right", "left"]].map(([side, other]) => html`<div>
      <p><a href=${link("memory", one[side])}>${one[`${side}_text`]}</a></p>
      ${canWrite && html`<button onClick=${() => retire([{ id: one[other] }])}>This one is right</button>`}</div>`)}</div>
  </article>`;
}

function Held({ one, canWrite, scope }) {
  const settle = (decision) => attempt(async () => {
    await post(`/v1/quarantine/${one.id}/decide`, { decision, ...scope });
    notify({ release: "Released: it can be recalled now.", reject: "Rejected: it has ended." }[decision]);
    changed();
  });
  return html`<article class="card"><p><a href=${link("memory", one.id)}>${textOf(one)}</a></p><div><${Chip}>from ${one.origin}</${Chip}></div>
    ${canWrite && html`<div class="bar"><button class="main" onClick=${() => settle("release")}>Release</button><button onClick=${() => settle("reject")}>Reject</button></div>`}</article>`;
}

function Expiring({ one, canWrite }) {
  return html`<article class="card"><p><a href=${link("memory", one.id)}>${textOf(one)}</a></p>
    <div class="bar"><span class="small soft">ends <${Time} at=${one.valid_to} /></span>${canWrite && html`<button onClick=${() => retire([one])}>End it now</button>`}</div></article>`;
}

export function Inbox({ where, access, scope, stamp }) {
  const { params } = where;
  const canWrite = !access.read_only && !params.as_of && !params.known_at;
  const [at, setAt] = useState(0);
  const page = useLoaded(async (signal) => {
    const soon = new Date(Date.now() + SOON_DAYS * 86400e3).toISOString();
    const [merges, conflicts, ending, held] = await Promise.all([get("/v1/proposals", { limit: PAGE, ...scope }, signal), get("/v1/conflicts", { limit: PAGE, ...scope }, signal),
      get("/v1/memories", { limit: PAGE, where: JSON.stringify({ expires_at: { $lte: soon } }), ...scope }, signal),
      get("/v1/quarantine", { limit: PAGE, ...scope }, signal)]);
    return { held: held.memories, proposals: merges.proposals, conflicts: conflicts.conflicts, expiring: ending.memories, left: merges.left + conflicts.left };
  }, [params.scope, stamp]);
  const proposals = (page.data && page.data.proposals) || [];
  useEffect(() => {
    const key = (event) => {
      if (/INPUT|TEXTAREA|SELECT/.test(event.target.tagName) || event.ctrlKey || event.metaKey) return;
      if (event.key === "j") setAt((old) => Math.min(old + 1, proposals.length - 1));
      if (event.key === "k") setAt((old) => Math.max(old - 1, 0));
      const one = proposals[Math.min(at, proposals.length - 1)];
      if (one && canWrite && event.key === "a") decide(one, "accept", scope);
      if (one && canWrite && event.key === "r") decide(one, "reject", scope);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [proposals, at, canWrite]);
  return html`<h1>Inbox</h1><${Loaded} of=${page}>${(data) => data.proposals.length + data.conflicts.length + data.expiring.length + data.held.length === 0
    ? html`<${Empty} title="Nothing waits for a decision">Names that may be the same, memories that cannot both be right, that are held back, or that expire soon are shown here.</${Empty}>`
    : html`
      ${data.proposals.length > 0 && html`<h2>The same, or not? (${data.proposals.length})</h2><p class="small soft">Keys: j and k choose, a accepts, r rejects.</p>
        ${data.proposals.map((one, place) => html`<${Proposal} key=${one.edge} one=${one} chosen=${place === Math.min(at, data.proposals.length - 1)} scope=${scope} canWrite=${canWrite} />`)}`}
      ${data.conflicts.length > 0 && html`<h2>Both cannot be right (${data.conflicts.length})</h2>
        ${data.conflicts.map((one) => html`<${Conflict} key=${one.edge} one=${one} canWrite=${canWrite} />`)}`}
      ${data.held.length > 0 && html`<h2>Held back (${data.held.length})</h2><p class="small soft">Written, and not recalled until released.</p>
        ${data.held.map((one) => html`<${Held} key=${one.id} one=${one} canWrite=${canWrite} scope=${scope} />`)}`}
      ${data.expiring.length > 0 && html`<h2>Expiring soon (${data.expiring.length})</h2>
        ${data.expiring.map((one) => html`<${Expiring} key=${one.id} one=${one} canWrite=${canWrite} />`)}`}
      ${data.left > 0 && html`<p class="soft">${data.left} more wait.</p>`}`}</${Loaded}>`;
}
