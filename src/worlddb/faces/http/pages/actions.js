// What changes the store: amend, retire, undo. Each says what it did and offers the way back.
import { post, scopeOf } from "./api.js";
import { attempt, notify, place, save } from "./parts.js";

/** Tell every page that the store has changed. */
export function changed() {
  dispatchEvent(new Event("worlddb:changed"));
}

const here = () => scopeOf(place().params.scope);

/** Return what undoes the commits of these results, or nothing if nothing was written. */
export function undoOf(...results) {
  const commits = results.filter((one) => one && one.commit).map((one) => one.commit.seq);
  if (!commits.length) return undefined;
  return () => attempt(async () => {
    await post("/v1/undo", { commit: commits, ...here() });
    notify("Taken back.");
    changed();
  });
}

export function amend(memory, text) {
  return attempt(async () => {
    const written = await post(`/v1/memories/${memory.id}/amend`, { text, ...here() });
    notify("Amended: the old memory has ended, the new one is in its place.", undoOf(written));
    changed();
    return written;
  });
}

export function retire(memories) {
  return attempt(async () => {
    const results = [];
    for (const one of memories) results.push(await post(`/v1/memories/${one.id}/retire`, here()));
    notify(memories.length === 1 ? "Retired: it is not found any more." : `${memories.length} memories retired.`, undoOf(...results));
    changed();
    return results;
  });
}

/** Take what somebody else wrote into this scope out of it; they may write no more here. */
export function refuse(memory) {
  return attempt(async () => {
    const done = await post(`/v1/memories/${memory.id}/refuse`, here());
    notify("Refused: it is no longer in this scope, and its writer may write no more here.");
    changed();
    return done;
  });
}

export const isPinned = (memory) => Boolean((memory.metadata || {}).pinned);

/** Pin a memory, or unpin it: what is pinned is always among what an agent is given first. */
export function pin(memory) {
  return attempt(async () => {
    const what = isPinned(memory) ? "unpin" : "pin";
    await post(`/v1/memories/${memory.id}/${what}`, here());
    notify(what === "pin" ? "Pinned." : "Not pinned any more.", () => pin({ ...memory, metadata: { pinned: what === "pin" } }));
    changed();
  });
}

/** Remove the text of a memory for good; the receipt is saved as a file. */
export function erase(memory) {
  return attempt(async () => {
    const receipt = await post("/v1/erase", { id: memory.id, ...here() });
    save(`erased-${memory.id.slice(0, 8)}.json`, JSON.stringify(receipt, null, 1));
    notify("Erased for good. The receipt was saved.");
    changed();
    return receipt;
  });
}
