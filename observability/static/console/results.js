/* The results of a record: the source panel takes the focus, and closes on a small screen. A section
   takes the focus when it shows another part. Without this script, links open pages. */
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
  // The link that was followed is gone with its part; htmx scrolls to the row of the address.
  document.addEventListener("htmx:afterSettle", (event) => {
    const { elt, requestConfig } = event.detail;
    if (!requestConfig?.path?.includes("?at=")) return;
    elt.querySelector("[id$=-title][tabindex]")?.focus({ preventScroll: true });
  });
  // A row of another part, named by the address alone: the server finds its part.
  const row = location.hash.slice(1);
  if (/^[a-z_]+-[0-9a-z-]+$/.test(row) && !document.getElementById(row) && !location.search) {
    location.replace(`?at=${row}#${row}`);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-close]");
    if (button) close(document.getElementById(button.dataset.close));
  });
  document.addEventListener("keydown", (event) => {
    const panel = document.getElementById("source");
    if (event.key === "Escape" && panel?.contains(document.activeElement)) close(panel);
  });
})();
