// Verify a proof in the browser, with blake3 alone: nothing is sent anywhere.
import { html, useState } from "./vendor/preact-htm.js";
import { blake3 } from "./blake3.js";
import { link } from "./parts.js";

const BUCKET_MAX = 64;
const FORK_WIDTH = 16;
const BLIND_BYTES = 16;
const coder = new TextEncoder();

export function unhex(text) {
  if (typeof text !== "string" || !/^([0-9a-f]{2})*$/.test(text)) throw new Error("not hexadecimal");
  return Uint8Array.from(text.match(/../g) || [], (pair) => parseInt(pair, 16));
}

export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

function join(...parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function number(value, bytes) {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigInt64(0, BigInt(value));
  return new Uint8Array(view.buffer).slice(8 - bytes);
}

const field = (bytes) => join(number(bytes.length, 4), bytes);
const text = (value) => coder.encode(value);
const EMPTY = blake3(join(field(text("worlddb.bucket.1")), number(0, 4)));

function address(step, children, edges) {
  const blind = unhex(step.blind || "");
  if (blind.length !== 0 && blind.length !== BLIND_BYTES) throw new Error("a blind of a wrong length");
  const domain = field(text(blind.length ? "worlddb.node.2" : "worlddb.node.1"));
  const own = [domain, field(text(step.type)), field(text(step.name)), field(text(step.content))];
  return blake3(
    join(
      ...own,
      field(children),
      field(edges),
      field(number(step.created_at, 8)),
      blind.length ? field(blind) : new Uint8Array(),
    ),
  );
}

function climb(step, member) {
  const bucket = step.bucket;
  const sorted = [...new Set(bucket)].sort();
  if (!bucket.includes(member) || bucket.length > BUCKET_MAX || bucket.join() !== sorted.join())
    throw new Error("the member is not in the bucket");
  if (bucket.some((other) => other.length !== member.length)) throw new Error("the bucket is cut in the wrong places");
  let digest = hex(blake3(join(field(text("worlddb.bucket.1")), number(member.length / 2, 4), unhex(bucket.join("")))));
  step.forks.forEach((fork, place) => {
    const depth = step.forks.length - 1 - place;
    if (fork.length !== FORK_WIDTH || fork.some((part) => part.length !== 64))
      throw new Error("the fork is cut in the wrong places");
    if (fork[parseInt(member[depth], 16)] !== digest) throw new Error("the fork does not hold the part below it");
    digest = hex(blake3(join(field(text("worlddb.fork.1")), unhex(fork.join("")))));
  });
  return unhex(digest);
}

/** Return whether a proof shows its node under a root state. */
export function verifyProof(proof, rootState) {
  try {
    let { id, state } = proof;
    for (const step of proof.steps) {
      const children = climb(step, id + state);
      if (step.erased === true) {
        id = step.id;
        state = hex(
          blake3(join(field(text("worlddb.erased.1")), field(unhex(id)), field(children), field(unhex(step.edges)))),
        );
        continue;
      }
      id = hex(address(step, EMPTY, EMPTY));
      if (id !== step.id) return false;
      state = hex(address(step, children, unhex(step.edges)));
    }
    const root = hex(address({ type: "World", name: "root", content: "", created_at: 0 }, EMPTY, EMPTY));
    return id === root && state === rootState;
  } catch {
    return false;
  }
}

const logFork = (left, right) => hex(blake3(join(field(text("worlddb.log.fork.1")), unhex(left), unhex(right))));
const half = (value) => Math.floor(value / 2);
const ones = (value) => value.toString(2).replaceAll("0", "").length;

function isLast(point) {
  let digest = hex(blake3(join(field(text("worlddb.log.leaf.1")), unhex(point.hash), unhex(point.root_state))));
  for (const left of point.path) digest = logFork(left, digest);
  return point.path.length === ones(point.commit) && digest === point.log_head;
}

/** Return whether the later log of a proof begins with the earlier one: nothing was rewritten. */
export function verifyHistory(proof) {
  try {
    const { first, last } = proof;
    if (!isLast(first) || !isLast(last) || first.commit > last.commit) return false;
    let [inner, outer] = [first.commit, last.commit];
    if (inner === outer) return proof.path.length === 0 && first.log_head === last.log_head;
    const parts = Number.isInteger(Math.log2(inner + 1)) ? [first.log_head, ...proof.path] : [...proof.path];
    while (inner % 2) [inner, outer] = [half(inner), half(outer)];
    let earlier = parts[0];
    let later = parts[0];
    for (const part of parts.slice(1)) {
      if (outer === 0) return false;
      if (inner % 2 || inner === outer) {
        [earlier, later] = [logFork(part, earlier), logFork(part, later)];
        while (inner && inner % 2 === 0) [inner, outer] = [half(inner), half(outer)];
      } else later = logFork(later, part);
      [inner, outer] = [half(inner), half(outer)];
    }
    return outer === 0 && earlier === first.log_head && later === last.log_head;
  } catch {
    return false;
  }
}

const shownProof = (
  data,
) => html`<dl><dt>memory</dt><dd><span class="mono">${data.proof.id}</span> <a href=${link("memory", data.proof.id)}>its text, if it is in this store</a></dd><dt>root state</dt><dd class="mono">${data.root_state}</dd><dt>worlds on the way</dt><dd>${data.proof.steps.map((step) => step.name || step.type).join(" → ")}</dd></dl>
  <p class="soft">Compare the root state with one that you trust: that of a backup, a log or a colleague.</p>`;

const shownHistory = (
  data,
) => html`<dl>${[data.first, data.last].map((point) => html`<dt>commit ${point.commit}</dt><dd class="mono">log head ${point.log_head}</dd>`)}</dl>
  <p class="soft">Nothing was rewritten between them. Compare the log heads with those that you kept.</p>`;

export function ProofPage() {
  const [told, setTold] = useState(null);
  const read = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    try {
      const data = JSON.parse(await file.text());
      setTold({
        name: file.name,
        data,
        valid: data.first ? verifyHistory(data) : (data.id ?? data.proof.id) === data.proof.id && verifyProof(data.proof, data.root_state),
      });
    } catch {
      setTold({ name: file.name, data: null, valid: false });
    }
  };
  return html`<h1>Verify a proof</h1>
    <p>A proof shows that a memory stands in a store with a certain root state, or that the history of a store was not rewritten. It is checked here, in the browser, with the hash function BLAKE3 alone; nothing is sent.</p>
    <p class="soft">“Save a proof” on the page of a memory makes such a file; <code>worlddb prove</code> does, too.</p>
    <p><label>File of the proof <input type="file" name="proof" accept="application/json,.json" onChange=${read} /></label></p>
    ${
      told &&
      (told.valid
        ? html`<div class="card" role="status"><p><span class="chip good">valid</span> ${told.name}</p>
          ${told.data.first ? shownHistory(told.data) : shownProof(told.data)}</div>`
        : html`<p class="problem" role="alert">${told.name}: this is no valid proof. Something was changed, or the file is no proof.</p>`)
    }`;
}
