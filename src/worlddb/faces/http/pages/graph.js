// A graph around a node: laid out by springs, worlds drawn as boxes, expanding on demand.
import { html, useEffect, useMemo, useState } from "./vendor/preact-htm.js";
import { clockSteps, get, post } from "./api.js";
import { link, Loaded, notify, Problem, textOf, useLoaded } from "./parts.js";

/** The plane that nodes are placed on: as wide as a window, or upright; and the room that a text takes beside its node. */
const WIDE = { width: 900, height: 540, left: 50, right: 226, below: false, letters: 28, text: 190 };
const UPRIGHT = { width: 420, height: 620, left: 110, right: 110, below: true, letters: 18, text: 150 };
const LINE = 34; // The height of a line of text with some air.
const planeOf = () => (matchMedia("(max-width: 760px)").matches ? UPRIGHT : WIDE);
const NODES_MAX = 80; // More cannot be read, and are never needed at once.
const ROUNDS = 220; // The layout has settled by then.
const SHOWN_LEAST = 0.8; // Of the plane: texts keep about the size of those around the picture.
const TOGETHER = 0.4; // How strongly the nodes of one world come together: their boxes lie apart, and outside, edges decide.
const OUT = 30; // How strongly a node leaves the box of a world that it is not in.
const ROOM = 26; // Between the box of a world and that of the world around it.
const STEPS_MAX = 6; // A longer path explains nothing to a reader.
const FRONT_MAX = 200; // Nodes that one step of the search looks around; the call takes as many.
export const MEANING = {
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
const WORDS = { supersedes: "replaces", contradicts: "conflicts with", derived_from: "made from" };
const COLOURS = { Memory: 0, Turn: 6, Session: 4, Entity: 1, Fact: 2, Summary: 3, Scope: 5 };

const isIn = (inner, world, worlds) => inner === world || (worlds.has(inner) && isIn(worlds.get(inner).parent, world, worlds));

/** Draw a node to the middle of its world, and out of the box of a world that it is not in. */
function keepIn(push, point, world, box, worlds, { right, left }) {
  const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  if (point.world === world) {
    const pull = (worlds.get(world) || {}).parent ? TOGETHER : 0; // The outermost world holds all that is left.
    push.x += (x - point.x) * pull;
    push.y += (y - point.y) * pull;
  } else if (!isIn(point.world, world, worlds)) {
    const isOver = point.x > box.left - right && point.x < box.right + right && point.y > box.top - 2 * LINE && point.y < box.bottom + 2 * LINE;
    if (isOver) push.y += point.y < y ? -OUT : OUT;
    if (isOver) push.x += point.x < x ? -OUT / 2 : left / 10;
  }
}

/** Place nodes by springs along edges, and bring those of one world together. */
function layOut(nodes, edges, start, worlds, plane) {
  const { width, height, text } = plane;
  // On a ring around the start, those of one world beside each other: springs alone cannot bring them past others.
  const ring = nodes.filter((node) => node.id !== start).sort((a, b) => (a.parent < b.parent ? -1 : a.parent > b.parent ? 1 : 0));
  const at = new Map(
    nodes.map((node) => {
      const angle = 0.5 + (2 * Math.PI * ring.indexOf(node)) / Math.max(1, ring.length); // Texts lie level: an edge should not.
      const far = node.id === start ? 0 : 0.35;
      return [
        node.id,
        { x: width * (0.5 + far * Math.cos(angle)), y: height * (0.5 + far * Math.sin(angle)), world: node.parent },
      ];
    }),
  );
  const all = [...at.entries()];
  const spring = Math.max(110, 230 - 6 * nodes.length); // Few nodes get room for their texts.
  for (let round = 0; round < ROUNDS; round += 1) {
    const heat = 12 * (1 - round / ROUNDS);
    const push = new Map(all.map(([id]) => [id, { x: 0, y: 0 }]));
    for (let a = 0; a < all.length; a += 1) {
      for (let b = a + 1; b < all.length; b += 1) {
        const [one, first] = all[a];
        const [other, second] = all[b];
        const dx = first.x - second.x || 0.1;
        const dy = first.y - second.y || 0.1;
        const near = Math.max(dx * dx + dy * dy, 25);
        const force = 9000 / near;
        const far = Math.sqrt(near);
        push.get(one).x += (dx / far) * force;
        push.get(one).y += (dy / far) * force;
        push.get(other).x -= (dx / far) * force;
        push.get(other).y -= (dy / far) * force;
        // Texts are wide and low: two that lie over each other go apart up and down.
        if (Math.abs(dx) < text && Math.abs(dy) < LINE) {
          const apart = (LINE - Math.abs(dy)) * (dy < 0 ? -1 : 1);
          push.get(one).y += apart;
          push.get(other).y -= apart;
        }
      }
    }
    for (const edge of edges) {
      const first = at.get(edge.source);
      const second = at.get(edge.target);
      if (!first || !second) continue;
      const dx = second.x - first.x;
      const dy = second.y - first.y;
      const pull = (Math.hypot(dx, dy) - spring) * 0.04;
      const far = Math.hypot(dx, dy) || 1;
      push.get(edge.source).x += (dx / far) * pull * 10;
      push.get(edge.source).y += (dy / far) * pull * 10;
      push.get(edge.target).x -= (dx / far) * pull * 10;
      push.get(edge.target).y -= (dy / far) * pull * 10;
    }
    for (const [world, box] of boxes(at, worlds))
      for (const [id, point] of all) keepIn(push.get(id), point, world, box, worlds, plane);
    for (const [id, point] of all) {
      const { x, y } = push.get(id);
      const far = Math.hypot(x, y) || 1;
      if (id === start) continue;
      point.x = Math.min(width - 70, Math.max(70, point.x + (x / far) * Math.min(far, heat)));
      point.y = Math.min(height - 30, Math.max(30, point.y + (y / far) * Math.min(far, heat)));
    }
  }
  return at;
}

/** The part of the plane that the nodes and their texts take, not much smaller than all of it: few nodes are not blown up. */
function frame(at, plane) {
  const [xs, ys] = [[...at.values()].map((one) => one.x), [...at.values()].map((one) => one.y)];
  const [left, right] = [Math.min(...xs) - plane.left, Math.max(...xs) + plane.right];
  const [top, bottom] = [Math.min(...ys) - 72, Math.max(...ys) + 72];
  const [width, height] = [Math.max(right - left, plane.width * SHOWN_LEAST), Math.max(bottom - top, plane.height * SHOWN_LEAST)];
  return `${(left + right - width) / 2} ${(top + bottom - height) / 2} ${width} ${height}`;
}

/** The box of each world around its nodes and the worlds inside it; the outer ones come first. */
function boxes(at, worlds) {
  const found = new Map();
  for (const { x, y, world } of at.values()) {
    for (let [id, depth] = [world, 0]; id; [id, depth] = [(worlds.get(id) || {}).parent, depth + 1]) {
      const room = ROOM * depth;
      const box = found.get(id) || { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity, count: 0, depth: 0 };
      found.set(id, {
        left: Math.min(box.left, x - room),
        right: Math.max(box.right, x + room),
        top: Math.min(box.top, y - room),
        bottom: Math.max(box.bottom, y + room),
        count: box.count + 1,
        depth: Math.max(box.depth, depth),
      });
    }
  }
  return [...found].filter(([id, box]) => box.count > 1 && (worlds.has(id) || box.depth === 0)).sort((a, b) => b[1].depth - a[1].depth);
}

const NO_WORLDS = new Map();

/** The names of worlds, and which lie in which: scopes by their list, sessions and topics as nodes. */
function useWorlds(nodes, scope) {
  const ids = [...new Set(nodes.map((node) => node.parent))].filter(Boolean).sort();
  const page = useLoaded(
    async (signal) => {
      const [{ scopes }, inner] = await Promise.all([
        get("/v1/scopes", { limit: 1000 }, signal),
        post("/v1/query", { query: { seeds: ids, include_superseded: true }, ...scope }, signal).catch(() => ({ nodes: [] })),
      ]);
      const own = inner.nodes.map((node) => [node.id, { name: `${node.type}: ${textOf(node)}`, parent: node.parent }]);
      return new Map([...scopes.map((one) => [one.id, { name: one.name.replace(":", " ") }]), ...own]);
    },
    [ids.join()],
  );
  return page.data || NO_WORLDS;
}

const allTypes = async (scope) => (await get("/v1/ontology", scope)).types.map((one) => one.type);
const isTrueAt = ({ valid_from, valid_to }, time) => new Date(valid_from) <= time && !(valid_to && new Date(valid_to) <= time);

/** What is linked with some nodes. A name is not true at a time: the first clock decides on texts and links alone. */
async function around(seeds, types, limit, scope, { as_of, known_at }) {
  const steps = [...clockSteps({ known_at }), ...(as_of ? [{ op: "include_superseded" }] : []), { op: "traverse", types, direction: "both", hops: 1 }];
  const near = await post("/v1/query", { query: { seeds, steps, limit }, ...scope });
  if (!as_of) return near;
  const then = new Date(as_of);
  const nodes = near.nodes.filter((node) => node.type === "Entity" || isTrueAt(node, then));
  return { nodes, edges: near.edges.filter((edge) => isTrueAt(edge, then)) };
}

/** Return the nodes and edges of a shortest path between two nodes, or null: step by step from the start. */
export async function pathBetween(start, end, scope, params = {}) {
  const types = await allTypes(scope);
  const ends = await post("/v1/query", {
    query: { seeds: [start, end], steps: [{ op: "include_superseded" }] },
    ...scope,
  });
  const [first, last] = [start, end].map((id) => ends.nodes.find((node) => node.id.startsWith(id)));
  if (!first || !last) return null;
  const from = new Map([[first.id, null]]);
  const nodes = new Map(ends.nodes.map((node) => [node.id, node]));
  let front = [first.id];
  for (let step = 0; step < STEPS_MAX && front.length && !from.has(last.id); step += 1) {
    const near = await around(front.slice(0, FRONT_MAX), types, 1000, scope, params);
    near.nodes.forEach((node) => nodes.set(node.id, node));
    const inside = new Set(front);
    front = [];
    for (const edge of near.edges) {
      for (const [here, there] of [
        [edge.source, edge.target],
        [edge.target, edge.source],
      ]) {
        if (inside.has(here) && !from.has(there) && nodes.has(there)) {
          from.set(there, { edge, before: here });
          front.push(there);
        }
      }
    }
  }
  if (!from.has(last.id)) return null;
  const path = [];
  for (let id = last.id; id; id = from.get(id) && from.get(id).before)
    path.unshift({ node: nodes.get(id), edge: from.get(id) && from.get(id).edge });
  return path;
}

export function PathBetween({ start, end, scope, params }) {
  const page = useLoaded(() => pathBetween(start, end, scope, params), [start, end, params.as_of, params.known_at]);
  return html`<${Loaded} of=${page}>${(path) =>
    path === null
      ? html`<p class="soft">Not linked within ${STEPS_MAX} steps.</p>`
      : html`<ol class="path">${path.map(({ node, edge }) => html`<li key=${node.id}>${edge && html`<span class="soft">${edge.target === node.id ? "→" : "←"} ${labelOf(edge)} </span>`}<a href=${link("memory", node.id)}>${textOf(node)}</a> <span class="small soft">${node.type}</span></li>`)}</ol>`}</${Loaded}>`;
}

/** What an edge says, in one word: that of a text to a name has its relation, or says whether the text is about the name. */
export function labelOf({ type, metadata }) {
  if (type !== "refers_to") return WORDS[type] || type.replaceAll("_", " ");
  return metadata.relation || (metadata.role === "about" ? "about" : "mentions");
}

/** Edges from one node to another as one line, with all their names. */
function together(edges) {
  const found = new Map();
  for (const edge of edges) {
    const key = `${edge.source} ${edge.target}`;
    const name = labelOf(edge);
    const [first, names] = found.get(key) || [edge, []];
    found.set(key, [first, names.includes(name) ? names : [...names, name]]);
  }
  return [...found.values()];
}

function WorldBox({ box, plane, name }) {
  const [left, width] = [box.left - plane.left + 20, box.right - box.left + plane.left + plane.right - 40];
  return html`<rect class="world" x=${left} y=${box.top - 34} width=${width} height=${box.bottom - box.top + 70} rx="14" />
    ${name && html`<text class="world-name" x=${left + 12} y=${box.top - 18}>${cut(name, plane.letters)}<title>${name}</title></text>`}`;
}

const cut = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);

function Line({ from, to, named, title }) {
  return html`<g><line class="edge" marker-end="url(#arrow)" x1=${from.x} y1=${from.y} x2=${to.x} y2=${to.y} />
    <text class="edge-name" x=${(from.x + to.x) / 2} y=${(from.y + to.y) / 2}>${named.join(", ")}<title>${title}</title></text></g>`;
}

function Dot({ node, point, plane, isStart, isChosen, onChoose }) {
  const text = textOf(node);
  const shown = cut(text, plane.letters);
  const [x, y] = plane.below ? [point.x, point.y + 28] : [point.x + (isChosen ? 18 : 12), point.y + 4];
  const press = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onChoose();
  };
  return html`<g class=${isChosen ? "chosen" : ""} role="button" tabindex="0" aria-label=${`Expand ${text.slice(0, 60)}`} onClick=${onChoose} onKeyDown=${press}>
    <circle class=${`c${COLOURS[node.type] ?? 4}`} cx=${point.x} cy=${point.y} r=${isStart ? 11 : 8} />
    <text x=${x} y=${y} text-anchor=${plane.below ? "middle" : "start"}>${shown}<title>${node.type}: ${text}</title></text></g>`;
}

export function GraphOf({ start, scope, params = {} }) {
  const [nodes, setNodes] = useState([]);
  const [edges, setEdges] = useState([]);
  const [types, setTypes] = useState(null);
  const [chosen, setChosen] = useState(start);
  const [error, setError] = useState(null);
  const choose = (id) => {
    setChosen(id);
    expand(id);
  };
  const expand = async (id) => {
    try {
      const known = types || (await allTypes(scope));
      setTypes(known);
      const near = await around([id], known, 40, scope, params);
      const own = await post("/v1/query", { query: { seeds: [id], steps: [{ op: "include_superseded" }] }, ...scope });
      setNodes((old) =>
        [...new Map([...old, ...own.nodes, ...near.nodes].map((node) => [node.id, node])).values()].slice(0, NODES_MAX),
      );
      setEdges((old) => [...new Map([...old, ...near.edges].map((edge) => [edge.id, edge])).values()]);
      setError(own.nodes.length ? null : new Error("There is no such memory or name here. Choose another start, scope or time."));
    } catch (failed) {
      if (id === start) setError(failed);
      else notify(failed.message);
    }
  };
  useEffect(() => {
    setNodes([]);
    setEdges([]);
    setError(null);
    choose(start);
  }, [start, params.as_of, params.known_at]);
  const shown = new Set(nodes.map((node) => node.id));
  const lines = edges.filter((edge) => shown.has(edge.source) && shown.has(edge.target));
  const plane = planeOf();
  const worlds = useWorlds(nodes, scope);
  const at = useMemo(() => layOut(nodes, lines, start, worlds, plane), [nodes.length, lines.length, start, worlds, plane]);
  if (error) return html`<${Problem} error=${error} again=${() => choose(start)} />`;
  // As high as the picture will be: what is below it stays where it is.
  if (!nodes.length) return html`<div class="graph loading" role="status">Loading …</div><p class="small">${" "}</p><p class="small">${" "}</p>`;
  const one = nodes.find((node) => node.id === chosen) || nodes[0];
  const kinds = [...new Set(nodes.map((node) => node.type))];
  return html`<svg class="graph" viewBox=${frame(at, plane)} role="group" aria-label="Graph">
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="17" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" class="tip" /></marker></defs>
    ${boxes(at, worlds).map(([id, box]) => html`<${WorldBox} key=${id} box=${box} plane=${plane} name=${(worlds.get(id) || {}).name} />`)}
    ${together(lines).map(([edge, named]) => html`<${Line} key=${edge.id} from=${at.get(edge.source)} to=${at.get(edge.target)} named=${named} title=${MEANING[edge.type] || edge.type} />`)}
    ${nodes.map((node) => html`<${Dot} key=${node.id} node=${node} point=${at.get(node.id)} plane=${plane} isStart=${node.id === start} isChosen=${node.id === one.id} onChoose=${() => choose(node.id)} />`)}</svg>
    <p class="small"><span class="soft">${one.type}:</span> ${textOf(one).slice(0, 200)} <a href=${link(one.type === "Entity" ? "people" : "memory", one.id)}>Open</a></p>
    <p class="small soft legend">${kinds.map((kind) => html`<span key=${kind}><svg viewBox="0 0 8 8" aria-hidden="true"><circle class=${`c${COLOURS[kind] ?? 4}`} cx="4" cy="4" r="4" /></svg>${kind}</span>`)}
      <span>Choose one to see what is linked with it. ${nodes.length} shown, ${lines.length} links${nodes.length >= NODES_MAX ? "; a picture has no room for more" : ""}.</span></p>`;
}
