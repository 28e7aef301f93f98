// A graph around a node: laid out by springs, worlds drawn as boxes, expanding on demand.
import { html, useEffect, useMemo, useState } from "./vendor/preact-htm.js";
import { clockSteps, get, post } from "./api.js";
import { attempt, link, Loaded, textOf, useLoaded } from "./parts.js";

/** The plane that nodes are placed on: as wide as a window, or upright; and the room that a text takes beside its node. */
const WIDE = { width: 900, height: 540, left: 50, right: 210, below: false, letters: 32 };
const UPRIGHT = { width: 420, height: 620, left: 110, right: 110, below: true, letters: 20 };
const planeOf = () => (matchMedia("(max-width: 760px)").matches ? UPRIGHT : WIDE);
const NODES_MAX = 80; // More cannot be read, and are never needed at once.
const ROUNDS = 220; // The layout has settled by then.
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
const COLOURS = { Memory: 0, Turn: 0, Session: 4, Entity: 1, Fact: 2, Summary: 3, Scope: 5 };

/** Place nodes by springs along edges, and bring those of one world together. */
function layOut(nodes, edges, start, { width, height }) {
  const at = new Map(
    nodes.map((node, place) => {
      const angle = place * 2.399963; // The golden angle: no two begin at the same point.
      const far = node.id === start ? 0 : 40 + 14 * Math.sqrt(place) * 3;
      return [
        node.id,
        { x: width / 2 + far * Math.cos(angle), y: height / 2 + far * Math.sin(angle), world: node.parent },
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

/** The part of the plane that the nodes and their texts take, not smaller than half of it: few nodes are not blown up. */
function frame(at, plane) {
  const [xs, ys] = [[...at.values()].map((one) => one.x), [...at.values()].map((one) => one.y)];
  const [left, right] = [Math.min(...xs) - plane.left, Math.max(...xs) + plane.right];
  const [top, bottom] = [Math.min(...ys) - 44, Math.max(...ys) + 44];
  const [width, height] = [Math.max(right - left, plane.width / 2), Math.max(bottom - top, plane.height / 2)];
  return `${(left + right - width) / 2} ${(top + bottom - height) / 2} ${width} ${height}`;
}

function boxes(at) {
  const worlds = new Map();
  for (const { x, y, world } of at.values()) {
    const box = worlds.get(world) || { left: x, right: x, top: y, bottom: y, count: 0 };
    worlds.set(world, {
      left: Math.min(box.left, x),
      right: Math.max(box.right, x),
      top: Math.min(box.top, y),
      bottom: Math.max(box.bottom, y),
      count: box.count + 1,
    });
  }
  return [...worlds.entries()].filter(([, box]) => box.count > 1);
}

const allTypes = async (scope) => (await get("/v1/ontology", scope)).types.map((one) => one.type);
const around = (seeds, types, limit, scope, params) =>
  post("/v1/query", {
    query: { seeds, steps: [...clockSteps(params), { op: "traverse", types, direction: "both", hops: 1 }], limit },
    ...scope,
  });

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
      ? html`<p class="soft">No path of at most ${STEPS_MAX} edges was found between these nodes.</p>`
      : html`<ol class="path">${path.map(({ node, edge }) => html`<li key=${node.id}>${edge && html`<span class="soft">${edge.target === node.id ? "→" : "←"} ${labelOf(edge)} </span>`}<a href=${link("memory", node.id)}>${textOf(node)}</a> <span class="small soft">${node.type}</span></li>`)}</ol>`}</${Loaded}>`;
}

/** What an edge says, in one word: that of a text to a name has its relation, or says whether the text is about the name. */
export function labelOf({ type, metadata }) {
  if (type !== "refers_to") return type.replaceAll("_", " ");
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

function WorldBox({ box, plane }) {
  const [left, width] = [box.left - plane.left + 20, box.right - box.left + plane.left + plane.right - 40];
  return html`<rect class="world" x=${left} y=${box.top - 24} width=${width} height=${box.bottom - box.top + 60} rx="14" />`;
}

function Line({ from, to, named, title }) {
  return html`<g><line class="edge" marker-end="url(#arrow)" x1=${from.x} y1=${from.y} x2=${to.x} y2=${to.y} />
    <text class="edge-name" x=${(from.x + to.x) / 2} y=${(from.y + to.y) / 2}>${named.join(", ")}<title>${title}</title></text></g>`;
}

function Dot({ node, point, plane, isStart, isChosen, onChoose }) {
  const text = textOf(node);
  const shown = text.length > plane.letters ? `${text.slice(0, plane.letters - 1)}…` : text;
  const [x, y] = plane.below ? [point.x, point.y + 28] : [point.x + (isChosen ? 18 : 12), point.y + 4];
  const press = (event) => event.key === "Enter" && onChoose();
  return html`<g class=${isChosen ? "chosen" : ""} role="button" tabindex="0" aria-label=${`Expand ${text.slice(0, 60)}`} onClick=${onChoose} onKeyDown=${press}>
    <circle class=${`c${COLOURS[node.type] ?? 4}`} cx=${point.x} cy=${point.y} r=${isStart ? 11 : 8} />
    <text x=${x} y=${y} text-anchor=${plane.below ? "middle" : "start"}>${shown}<title>${node.type}: ${text}</title></text></g>`;
}

export function GraphOf({ start, scope, params = {} }) {
  const [nodes, setNodes] = useState([]);
  const [edges, setEdges] = useState([]);
  const [types, setTypes] = useState(null);
  const [chosen, setChosen] = useState(start);
  const choose = (id) => {
    setChosen(id);
    expand(id);
  };
  const expand = (id) =>
    attempt(async () => {
      const known = types || (await allTypes(scope));
      setTypes(known);
      const near = await around([id], known, 40, scope, params);
      const own = await post("/v1/query", { query: { seeds: [id], steps: [{ op: "include_superseded" }] }, ...scope });
      setNodes((old) =>
        [...new Map([...old, ...own.nodes, ...near.nodes].map((node) => [node.id, node])).values()].slice(0, NODES_MAX),
      );
      setEdges((old) => [...new Map([...old, ...near.edges].map((edge) => [edge.id, edge])).values()]);
    });
  useEffect(() => {
    setNodes([]);
    setEdges([]);
    choose(start);
  }, [start, params.as_of, params.known_at]);
  const shown = new Set(nodes.map((node) => node.id));
  const lines = edges.filter((edge) => shown.has(edge.source) && shown.has(edge.target));
  const plane = planeOf();
  const at = useMemo(() => layOut(nodes, lines, start, plane), [nodes.length, lines.length, start, plane]);
  if (!nodes.length) return html`<p class="loading">Loading …</p>`;
  const one = nodes.find((node) => node.id === chosen) || nodes[0];
  const kinds = [...new Set(nodes.map((node) => node.type))];
  return html`<svg class="graph" viewBox=${frame(at, plane)} role="group" aria-label="Graph">
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="17" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" class="tip" /></marker></defs>
    ${boxes(at).map(([world, box]) => html`<${WorldBox} key=${world} box=${box} plane=${plane} />`)}
    ${together(lines).map(([edge, named]) => html`<${Line} key=${edge.id} from=${at.get(edge.source)} to=${at.get(edge.target)} named=${named} title=${MEANING[edge.type] || edge.type} />`)}
    ${nodes.map((node) => html`<${Dot} key=${node.id} node=${node} point=${at.get(node.id)} plane=${plane} isStart=${node.id === start} isChosen=${node.id === one.id} onChoose=${() => choose(node.id)} />`)}</svg>
    <p class="small"><span class="soft">${one.type}:</span> ${textOf(one).slice(0, 200)} <a href=${link(one.type === "Entity" ? "people" : "memory", one.id)}>Open</a></p>
    <p class="small soft legend">${kinds.map((kind) => html`<span key=${kind}><svg viewBox="0 0 8 8" aria-hidden="true"><circle class=${`c${COLOURS[kind] ?? 4}`} cx="4" cy="4" r="4" /></svg>${kind}</span>`)}
      <span>Choose a node to see what is linked with it. ${nodes.length} nodes, ${lines.length} edges${nodes.length >= NODES_MAX ? "; no more are shown" : ""}.</span></p>`;
}
