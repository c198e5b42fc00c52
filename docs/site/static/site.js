// A page from the disk may not fetch others, which the search shows its results from.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined")
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What the search shows of a page is whole words, and no code.
function tidySearch() {
  if (typeof Search === "undefined" || !Search.htmlToText) return;
  const { htmlToText, makeSearchSummary } = Search;
  Search.htmlToText = (page, anchor) => {
    const words = new DOMParser().parseFromString(page, "text/html");
    for (const code of words.querySelectorAll("div.cell, div.highlight")) code.remove();
    return htmlToText(words.documentElement.outerHTML, anchor);
  };
  Search.makeSearchSummary = (...found) => {
    const shown = makeSearchSummary(...found);
    if (shown) shown.textContent = shown.textContent.replace(/^\.\.\.\S*\s+/, "… ").replace(/\s+\S*\.\.\.$/, " …");
    return shown;
  };
}
addEventListener("DOMContentLoaded", tidySearch);

// What scrolls by itself can be reached and moved with the keyboard, and fades where it goes on.
const wide = "pre, .table-wrapper, div.output, div.math, article p";
function fade(element) {
  const left = element.scrollWidth - element.clientWidth - element.scrollLeft;
  element.classList.toggle("goes-on", left > 2);
  element.classList.toggle("came-from", element.scrollLeft > 2);
}
function reachable() {
  for (const element of document.querySelectorAll(wide)) {
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
    // The first column of a table stays in sight if it leaves room for the others (site.css).
    const name = element.querySelector(":scope > table tr > :first-child");
    element.classList.toggle("names-stay", !!name && name.offsetWidth < 0.48 * element.clientWidth);
    fade(element);
  }
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
addEventListener("scroll", ({ target }) => target.matches?.(wide) && fade(target), { capture: true, passive: true });
