// A page whose title has more of the searched words comes first. Sphinx takes the best word alone.
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => {
    const query = new URLSearchParams(location.search).get("q") || "";
    const words = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
    const has = title.toLowerCase();
    return score + 20 * words.filter((word) => has.includes(word)).length;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
