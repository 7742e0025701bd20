// The batch to check next: how good the random sample is, and how good it would be with more checks.

import { batch, DROPPED, formatCount, plural, UNDECIDED } from "./data.js";
import { decisions } from "./decisions.js";

// Cells that were drawn at random come first, in the random order.
export const drawnCount = batch.drawn.filter((place) => place > 0).length;

// The sample ends before the first cell that is undecided: what a person skips may be wrong more often than other tags.
const countSample = () => {
  const first = decisions.states.subarray(0, drawnCount).indexOf(UNDECIDED);
  return first < 0 ? drawnCount : first;
};

// Says that a skipped tag keeps later ones from being counted.
export function describeSkipped() {
  const counted = countSample();
  const later = decisions.states.subarray(counted, drawnCount).some((state) => state !== UNDECIDED);
  if (!later) return "";
  return `You skipped a tag of the random sample. Only the ${formatCount(counted)} before it count, so please decide it too.`;
}

// The 90 % interval of Wilson for the share of wrong tags if that of `count` random ones, of a finite number, is `share`.
function findInterval(share, count) {
  const z2 = 1.6449 ** 2;
  const chance = (share * (1 - share)) / count + z2 / (4 * count ** 2);
  const open = Math.max(0, batch.tags - count) / Math.max(1, batch.tags - 1);
  const middle = (share + (open * z2) / (2 * count)) / (1 + (open * z2) / count);
  const half = Math.sqrt(z2 * chance * open) / (1 + z2 / count);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

const formatPoints = (value) => (100 * value).toFixed(value < 0.0995 ? 1 : 0);

// What the random sample says now, and with as many more checks.
export function describeOutlook() {
  const states = decisions.states.subarray(0, countSample());
  const count = batch.sample + states.length;
  const wrong = batch.wrong + states.reduce((sum, state) => sum + (state === DROPPED), 0);
  if (count === 0) return "";
  const found = `Of ${plural(count, "random tag")}, ${formatCount(wrong)} ${wrong === 1 ? "is" : "are"} wrong.`;
  const more = Math.min(count, batch.tags - count);
  if (more <= 0) return `${found} All tags are checked.`;
  const [[low, high], [least, most]] = [count, count + more].map((size) => findInterval(wrong / count, size));
  return (
    `${found} So ${formatPoints(low)} % to ${formatPoints(high)} % of all tags are wrong (true nine times in ten): a range ` +
    `of ${formatPoints(high - low)} points. With ${formatCount(more)} more, it would be ${formatPoints(most - least)} points.`
  );
}
