// The search shows what stands around a word that it found: sentences, and not the code between them. A browser that has
// opened the book from a disk lets no page read another, so there it shows titles alone.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // Sphinx has it on the page of the search alone
  const textOf = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    for (const code of page.querySelectorAll(".highlight")) code.remove();
    return textOf(page.documentElement.outerHTML, anchor);
  };
});
