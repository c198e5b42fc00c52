// A page from the disk may not fetch others, which the search shows its results from.
if (location.protocol === "file:" && window.DOCUMENTATION_OPTIONS)
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What scrolls by itself can be reached and moved with the keyboard.
function reachable() {
  for (const element of document.querySelectorAll("pre, .table-wrapper, div.output, div.math, article p"))
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
}
addEventListener("load", reachable);
addEventListener("resize", reachable);
