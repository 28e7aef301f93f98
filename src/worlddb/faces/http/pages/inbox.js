// Inbox: what waits for a decision. Each card has its keys; a decision can be taken back.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { get, post } from "./api.js";
import { changed, pin, retire, undoOfCommit } from "./actions.js";
import { attempt, Chip, count, Empty, link, Loaded, may, notify, textOf, Time, useKeys, useLoaded } from "./parts.js";
import { decide, TIERS } from "./people.js";

const PAGE = 200;
const FADING = 20; // More than anybody decides on at once; the next come when these are gone.
const SAID = 4; // Memories that are shown of each of two names.
const SOON_DAYS = 14; // What ends later needs no decision yet.

/** Release what is held back, or reject it; what is taken back waits again. */
const settle = (one, decision, scope) =>
  attempt(async () => {
    const done = await post(`/v1/quarantine/${one.id}/decide`, { decision, ...scope });
    if (decision === "release") notify("Released: it can be recalled now.", undoOfCommit((commit) => commit.time === done.known_from, scope));
    else if (decision === "reject") notify("Rejected: no recall will find it.", () => settle(one, "wait", scope));
    else notify("Taken back: it waits again.");
    changed();
    return true;
  });

const bothRight = (one, scope) =>
  attempt(async () => {
    await post(`/v1/edges/${one.edge}/unlink`, scope);
    notify("Both are right: the conflict is settled.", undoOfCommit((commit) => commit.changes.some((change) => change.id === one.edge), scope));
    changed();
    return true;
  });

/** What a name is known from: the newest memories that speak of it. */
function Side({ id, name, scope, isOpen }) {
  const page = useLoaded(
    (signal) =>
      isOpen
        ? post(
            "/v1/query",
            {
              query: {
                seeds: [id],
                steps: [{ op: "traverse", types: ["refers_to"], direction: "in", hops: 1 }],
                limit: SAID,
              },
              ...scope,
            },
            signal,
          ).catch(() => ({ nodes: [] }))
        : Promise.resolve({ nodes: [] }),
    [id, isOpen],
  );
  return html`<div><a href=${link("people", id)}>${name}</a><ul class="small">${((page.data && page.data.nodes) || []).filter((node) => node.content).map((node) => html`<li key=${node.id}>${textOf(node)}</li>`)}</ul></div>`;
}

/** One of the names is that of two people: its page has the memories to choose from. */
const openSide = ({ left }) => {
  location.hash = link("people", left);
};

/** Why two names may be the same, in words. */
function Evidence({ evidence }) {
  const told = Object.entries(evidence || {})
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => {
      if (name === "words" && Array.isArray(value))
        return value
          .map(([left, right, how]) => (how === "same" ? `“${left}” is in both` : `“${left}” and “${right}”: ${how === "variant" ? "two spellings" : how}`))
          .join(", ");
      if (name === "by_chance") return `of names that have nothing to do with each other, ${Number((100 * value).toPrecision(1))} % are so alike`;
      if (name === "compared") return "";
      return `${name.replaceAll("_", " ")}: ${typeof value === "object" ? JSON.stringify(value) : value}`;
    });
  return html`<div class="small soft">${told.filter(Boolean).join(" · ")}</div>`;
}

const Text = ({ one, children }) =>
  html`<div class="said"><p><a href=${link("memory", one.id)}>${textOf(one)}</a></p><div class="small soft">${children}</div></div>`;

/** One side of a conflict: what it says, since when, and who said it. */
const Rival = ({ id, text, node }) => html`<div><p><a href=${link("memory", id)}>${text}</a></p>
  ${node && html`<div class="small soft">true since <${Time} at=${node.valid_from} />, written <${Time} at=${node.known_from} />${node.provenance.length ? `, ${node.provenance[0]}` : ""}</div>`}</div>`;

/** The kinds of cards in their order: what is asked, what a card shows, and what its keys do. */
const KINDS = [
  {
    name: "proposals",
    title: "The same, or not?",
    id: (one) => one.edge,
    isUrgent: true,
    card: ({ one, chosen, scope }) => html`<div class="pair">
        <${Side} id=${one.left} name=${one.left_name} scope=${scope} isOpen=${chosen} />
        <${Side} id=${one.right} name=${one.right_name} scope=${scope} isOpen=${chosen} /></div>
      <div><${Chip} title=${`the tier ${one.tier}`}>${TIERS[one.tier] || one.tier}: ${(100 * one.score).toFixed(0)} %</${Chip}></div>
      <${Evidence} evidence=${one.evidence} />`,
    keys: {
      a: ["The same", (one, scope) => decide(one, "accept", scope)],
      r: ["Not the same", (one, scope) => decide(one, "reject", scope)],
      s: ["Split a name", openSide],
    },
  },
  {
    name: "conflicts",
    title: "Both cannot be right",
    id: (one) => one.edge,
    isUrgent: true,
    card: ({ one }) => html`<div class="small soft">${one.reason}</div>
      <div class="pair">${["left", "right"].map((side) => html`<${Rival} key=${side} id=${one[side]} text=${one[`${side}_text`]} node=${one[`${side}_node`]} />`)}</div>`,
    keys: {
      1: ["The first is right", (one) => retire([{ id: one.right }])],
      2: ["The second is right", (one) => retire([{ id: one.left }])],
      b: ["Both are right", bothRight],
    },
  },
  {
    name: "held",
    isShort: true,
    title: "Held back",
    hint: "Written, and not recalled until released.",
    isUrgent: true,
    id: (one) => one.id,
    card: ({ one }) => html`<${Text} one=${one}><${Chip}>from ${one.origin}</${Chip}></${Text}>`,
    keys: {
      a: ["Release", (one, scope) => settle(one, "release", scope)],
      r: ["Reject", (one, scope) => settle(one, "reject", scope)],
    },
  },
  {
    name: "fading",
    isShort: true,
    title: "Fading",
    hint: "Old, seldom recalled and hardly linked. Nothing ends by itself: pin what should stay, retire what is over.",
    id: (one) => one.memory.id,
    card: ({ one }) => html`<${Text} one=${one.memory}><span title=${one.because}>true since <${Time} at=${one.memory.valid_from} />, ${one.recalls ? `recalled ${count(one.recalls, "time")}` : "never recalled"}, ${count(one.links, "link")}</span></${Text}>`,
    keys: { p: ["Pin it", (one) => pin([one.memory], true)], r: ["Retire it", (one) => retire([one.memory])] },
  },
  {
    name: "expiring",
    isShort: true,
    title: "Expiring soon",
    id: (one) => one.id,
    card: ({ one }) => html`<${Text} one=${one}>ends <${Time} at=${one.valid_to} /></${Text}>`,
    keys: { r: ["End it now", (one) => retire([one])] },
  },
  {
    name: "pending",
    isShort: true,
    title: "Waiting to be read",
    hint: "The text is there and recalled; names and facts follow when it is read ('worlddb extract --pending').",
    id: (one) => one.memory.id,
    card: ({ one }) =>
      html`<${Text} one=${one.memory}>for ${one.extractor} since <${Time} at=${one.since} />${one.attempts > 1 ? `, ${one.attempts} times` : ""}: ${one.error}</${Text}>`,
    keys: { r: ["Retire it", (one) => retire([one.memory])] },
  },
];

function Card({ kind, one, chosen, scope, canWrite, act }) {
  const box = useRef();
  useEffect(() => {
    if (chosen) box.current.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return html`<article ref=${box} class="card clamped ${kind.isShort ? "short" : ""} ${chosen ? "chosen" : ""}" aria-current=${chosen ? "true" : undefined}><${kind.card} one=${one} chosen=${chosen} scope=${scope} />
    ${canWrite && html`<div class="bar">${Object.entries(kind.keys).map(([key, [label]], place) => html`<button class=${place ? "" : "main"} onClick=${() => act(kind, one, key)}>${label} <kbd>${key}</kbd></button>`)}</div>`}
  </article>`;
}

/** Return the conflicts with the nodes of both sides: which one is newer often decides. */
async function withNodes(conflicts, scope, signal) {
  const seeds = [...new Set(conflicts.flatMap((one) => [one.left, one.right]))].slice(0, PAGE);
  const query = { seeds, include_superseded: true };
  const found = seeds.length ? await post("/v1/query", { query, ...scope }, signal).catch(() => ({ nodes: [] })) : { nodes: [] };
  const nodes = new Map(found.nodes.map((node) => [node.id, node]));
  return conflicts.map((one) => ({ ...one, left_node: nodes.get(one.left), right_node: nodes.get(one.right) }));
}

async function load(scope, signal) {
  const ask = (path, more = {}) => get(path, { limit: PAGE, ...more, ...scope }, signal);
  const soon = JSON.stringify({ expires_at: { $lte: new Date(Date.now() + SOON_DAYS * 86400e3).toISOString() } });
  const [merges, conflicts, held, expiring, pending] = await Promise.all([
    ask("/v1/proposals"),
    ask("/v1/conflicts"),
    ask("/v1/quarantine"),
    ask("/v1/memories", { where: soon }),
    ask("/v1/pending"),
  ]);
  return {
    proposals: merges.proposals,
    conflicts: await withNodes(conflicts.conflicts, scope, signal),
    held: held.memories,
    fading: [],
    expiring: expiring.memories,
    pending: pending.memories,
    left: merges.left + conflicts.left + pending.left,
  };
}

const nameOf = (kind, one) => `${kind.name} ${kind.id(one)}`;
const LETTERS = [...new Set(KINDS.flatMap((kind) => Object.keys(kind.keys)))];

export function Inbox({ where, scope, stamp }) {
  const { params } = where;
  const canWrite = may("curate");
  const [, redraw] = useState(0);
  const at = useRef(0);
  // What is decided goes at once, also before the page is drawn again: the next key is for the next card.
  const gone = useRef(new Map());
  const quick = useLoaded((signal) => load(scope, signal), [params.scope, stamp]);
  // Looks through the whole scope, so it takes longer: the rest does not wait for it.
  const fading = useLoaded(
    (signal) => get("/v1/fading", { limit: FADING, ...scope }, signal).catch(() => ({ memories: [] })),
    [params.scope, stamp],
  );
  const page = {
    ...quick,
    data:
      quick.data &&
      (fading.data || quick.data.proposals.length + quick.data.conflicts.length + quick.data.held.length > 0)
        ? { ...quick.data, fading: fading.data ? fading.data.memories : [] }
        : null,
  };
  const refresh = (isFading) => {
    // What fresh data still have was taken back.
    for (const [name, state] of gone.current)
      if (state === "decided" && name.startsWith("fading ") === isFading) gone.current.delete(name);
    redraw((old) => old + 1);
  };
  useEffect(() => refresh(false), [quick.data]);
  useEffect(() => refresh(true), [fading.data]);
  const cards = () =>
    page.data
      ? KINDS.flatMap((kind) =>
          page.data[kind.name].filter((one) => !gone.current.has(nameOf(kind, one))).map((one) => ({ kind, one })),
        )
      : [];
  const mark = (name, state) => {
    if (state) gone.current.set(name, state);
    else gone.current.delete(name);
    redraw((old) => old + 1);
  };
  const act = async (kind, one, key) => {
    const name = nameOf(kind, one);
    if (gone.current.has(name)) return;
    mark(name, "deciding");
    mark(name, (await kind.keys[key][1](one, scope)) ? "decided" : null);
  };
  const all = cards();
  const chosen = all[Math.min(at.current, all.length - 1)];
  const move = (by) => {
    at.current = Math.max(0, Math.min(Math.min(at.current, cards().length - 1) + by, cards().length - 1));
    redraw((old) => old + 1);
  };
  const press = (key) => () => {
    const left = cards();
    const card = left[Math.min(at.current, left.length - 1)];
    if (card && canWrite && Object.hasOwn(card.kind.keys, key)) act(card.kind, card.one, key);
  };
  useKeys({ j: () => move(1), k: () => move(-1), ...Object.fromEntries(LETTERS.map((key) => [key, press(key)])) }, [
    quick.data,
    fading.data,
    canWrite,
  ]);
  const shown = (kind) => all.filter((card) => card.kind === kind);
  const isPast = params.as_of || params.known_at;
  return html`<h1>Inbox</h1>${isPast && html`<p class="soft">The inbox shows what waits now.</p>`}
    <${Loaded} of=${page}>${(data) => {
      if (all.length === 0)
        return html`<${Empty} title="Nothing waits for a decision">Names that may be the same, memories that cannot both be right, that are held back, fade, expire soon or wait to be read are shown here.</${Empty}>`;
      const urgent = all.filter((card) => card.kind.isUrgent).length + data.left;
      const others = all.length + data.left - urgent;
      return html`<p class="small soft">${count(urgent, "decision")} to make${others > 0 && `, and ${others} to look at`}.
          ${canWrite && html` Keys: <kbd>j</kbd> and <kbd>k</kbd> choose, the key on a button does what the button says, <kbd>u</kbd> takes back the last.`}${!canWrite && !isPast && " To decide, you need a token of the role “curate”."}</p>
        ${KINDS.filter((kind) => shown(kind).length > 0).map(
          (kind) => html`<h2>${kind.title} (${shown(kind).length})</h2>${kind.hint && html`<p class="small soft">${kind.hint}</p>`}
            ${shown(kind).map(
              ({ one }) =>
                html`<${Card} key=${nameOf(kind, one)} kind=${kind} one=${one} chosen=${chosen.one === one} scope=${scope} canWrite=${canWrite} act=${act} />`,
            )}`,
        )}
        ${data.left > 0 && html`<p class="soft">${data.left} more wait.</p>`}`;
    }}</${Loaded}>`;
}
