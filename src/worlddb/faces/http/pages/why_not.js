// Why a memory is not among the hits of a question: each possible cause is tried, the surest first.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { get, recall } from "./api.js";
import { Hit } from "./hit.js";
import { attempt, day, link, Picker, textOf } from "./parts.js";

const ALL_MAX = 1000; // As many hits as the server returns at most.

/** Return what the clocks say against a memory, or nothing. */
function beforeItsTime(memory, { as_of, known_at }) {
  if (known_at && new Date(memory.known_from) > new Date(known_at))
    return `It was not known yet: it was written on ${day(memory.known_from)}, and the question is about what was known on ${day(known_at)}.`;
  if (as_of && new Date(memory.valid_from) > new Date(as_of))
    return `It was not true yet: it is true since ${day(memory.valid_from)}, and the question is about ${day(as_of)}.`;
  return null;
}

/** Ask again, for as many hits as there can be, and say at which place the memory is. */
async function placeOf(memory, given) {
  const { hits } = await recall({ ...given, k: ALL_MAX });
  const place = hits.findIndex((hit) => hit.node.id === memory.id);
  return { of: hits.length, hit: hits[place], rank: place + 1 };
}

/** Say why a memory is not among the hits: another scope, another time, held back, ended, another type, or ranked lower. */
async function whyNot(id, given, scope) {
  const memory = await get(`/v1/memories/${id}`, scope).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });
  if (!memory)
    return { text: "It is no memory of this scope: it belongs to somebody else, was erased, or is a name. Choose another scope at the top." };
  const early = beforeItsTime(memory, given);
  if (early) return { text: early };
  if (memory.trust === "quarantine") return { text: "It is held back: nobody has released it in the inbox." };
  const found = await placeOf(memory, given);
  if (found.hit && found.rank <= given.k) return { text: `It is here, at place ${found.rank}.`, ...found };
  if (found.hit) return { text: `It is ranked ${found.rank} of ${found.of}; ${given.k} were asked for.`, ...found };
  if (given.types && !given.types.includes(memory.type))
    return { text: `It is of the type ${memory.type}, and only ${given.types.join(", ")} was asked for.` };
  if (memory.retired && !given.include_retired) {
    const past = await placeOf(memory, { ...given, include_retired: true });
    const then = past.hit ? `; with ended ones it would be at place ${past.rank}` : "";
    return { text: `It has ended (${day(memory.valid_to)}), so it is not found${then}.`, ...(past.hit ? past : {}) };
  }
  if (given.max_tokens || given.min_confidence) {
    const wide = await placeOf(memory, { ...given, max_tokens: undefined, min_confidence: undefined });
    if (wide.hit)
      return { text: `It is at place ${wide.rank}, and left out by the budget of tokens or the least confidence.`, ...wide };
  }
  return { text: "No lane found it: it shares no word and no name with the question, and other texts are nearer in meaning." };
}

export function WhyNot({ given, scope }) {
  const [told, setTold] = useState(null);
  const answer = useRef();
  useEffect(() => {
    if (told && answer.current) answer.current.scrollIntoView({ block: "nearest" });
  }, [told]);
  const ask = async (node) => setTold({ node, ...((await attempt(() => whyNot(node.id, given, scope))) || {}) });
  return html`<section aria-label="Why not"><h2>Why is this one not here?</h2>
    <p class="small soft">Choose a memory that you expected.</p>
    <div class="bar"><${Picker} name="whynot" label="Memory" scope=${scope} onPick=${ask} /></div>
    ${
      told &&
      told.text &&
      html`<div role="status" ref=${answer}><p><a href=${link("memory", told.node.id)}>${textOf(told.node)}</a></p>
        <p><strong>${told.text}</strong></p></div>
      ${told.hit && html`<${Hit} hit=${told.hit} rank=${told.rank} />`}`
    }</section>`;
}
