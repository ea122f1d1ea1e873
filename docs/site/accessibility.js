// Tables that scroll can be reached by the keyboard, and the buttons of blocks of code are no landmarks.
function mend() {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    box.tabIndex = 0;
  }
  for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])")) {
    buttons.setAttribute("role", "presentation");
  }
}
new MutationObserver(mend).observe(document.documentElement, { childList: true, subtree: true });
document.addEventListener("DOMContentLoaded", mend);
