// What changes the store: amend, retire, pin, erase, undo. Each says what it did and offers the way back.
import { get, isAtLeast, post, scopeOf } from "./api.js";
import { attempt, notify, place, save } from "./parts.js";

/** Tell every page that the store has changed. */
export function changed() {
  dispatchEvent(new Event("worlddb:changed"));
}

const here = () => scopeOf(place().params.scope);

/** Return what undoes the commits of these results; nothing if nothing was written, or if the token may not undo. */
export function undoOf(...results) {
  const commits = results.filter((one) => one && one.commit).map((one) => one.commit.seq ?? one.commit);
  if (!commits.length || !isAtLeast("curate")) return undefined;
  return () =>
    attempt(async () => {
      await post("/v1/undo", { commit: commits, ...here() });
      notify("Taken back.");
      changed();
    });
}

const LOOKED_AT = 200; // Commits among which that of an action is looked for; it was one of the last.

/** Return what undoes the newest commit for which `isMeant`: some answers do not name their commit. */
export const undoOfCommit = (isMeant, scope) => () =>
  attempt(async () => {
    const { commits } = await get("/v1/log", { limit: LOOKED_AT, ...scope });
    const commit = commits.find(isMeant);
    if (!commit) throw new Error("The commit is not among the newest; undo it in the journal.");
    await post("/v1/undo", { commit: commit.seq, ...scope });
    notify("Taken back.");
    changed();
  });

export function amend(memory, text) {
  return attempt(async () => {
    const written = await post(`/v1/memories/${memory.id}/amend`, { text, ...here() });
    notify("Amended: the old memory has ended, the new one is in its place.", undoOf(written));
    changed();
    return written;
  });
}

/** Do something with each memory, one after the other; what was done stays done if one fails. */
async function each(memories, work, told, undo) {
  const done = [];
  await attempt(async () => {
    for (const one of memories) done.push([one, await work(one)]);
  });
  if (!done.length) return null;
  notify(told(done.length), undo && undo(done));
  changed();
  return done.map(([, result]) => result);
}

export function retire(memories) {
  return each(
    memories,
    (one) => post(`/v1/memories/${one.id}/retire`, here()),
    (number) => (number === 1 ? "Retired: it is not found any more." : `${number} memories retired.`),
    (done) => undoOf(...done.map(([, result]) => result)),
  );
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

/** Pin memories, or unpin them: what is pinned is always among what an agent is given first. */
export function pin(memories, isOn = !isPinned(memories[0])) {
  const others = memories.filter((one) => isPinned(one) !== isOn);
  return each(
    others,
    (one) => post(`/v1/memories/${one.id}/${isOn ? "pin" : "unpin"}`, here()),
    (number) => `${isOn ? "Pinned" : "Not pinned any more"}${number > 1 ? `: ${number} memories` : ""}.`,
    (done) => () =>
      pin(
        done.map(([one]) => ({ ...one, metadata: { ...one.metadata, pinned: isOn } })),
        !isOn,
      ),
  );
}

/** Remove the texts of memories for good; the receipts are saved as a file. */
export function erase(memories) {
  return each(
    memories,
    (one) => post("/v1/erase", { id: one.id, ...here() }),
    (number) =>
      `Erased for good${number > 1 ? `: ${number} memories` : ""}. The receipt was saved; there is no way back.`,
  ).then((receipts) => {
    if (receipts)
      save(
        `erased-${memories[0].id.slice(0, 8)}.json`,
        JSON.stringify(receipts.length > 1 ? receipts : receipts[0], null, 1),
      );
    return receipts;
  });
}
