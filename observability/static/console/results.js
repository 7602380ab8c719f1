/* The results of a record: the source panel takes the focus, and closes on a small screen.
   Without this script, a result opens its source as a page. */
(() => {
  "use strict";
  let opener = null;
  const close = (panel) => {
    panel.classList.add("is-empty");
    opener?.focus();
  };
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.closest(".v-found")) opener = event.target;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "source" || event.detail.target?.id === "source") {
      document.getElementById("source").focus({ preventScroll: true });
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-close]");
    if (button) close(document.getElementById(button.dataset.close));
  });
  document.addEventListener("keydown", (event) => {
    const panel = document.getElementById("source");
    if (event.key === "Escape" && panel?.contains(document.activeElement)) close(panel);
  });
})();
