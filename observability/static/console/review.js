/* The review of a record: a refused form keeps its words, the claim is renewed while the reviewer
   works, a panel takes the focus, and the address forgets what was done.
   Without this script, each key's form works by itself. */
(() => {
  "use strict";
  const root = () => document.getElementById("review");
  let scrolled = 0;

  // A refusal is a page with the reason and with what was typed.
  document.addEventListener("htmx:beforeSwap", (event) => {
    scrolled = document.querySelector(".w-entities")?.scrollTop ?? 0;
    const { xhr } = event.detail;
    const isPage = (xhr.getResponseHeader("Content-Type") ?? "").startsWith("text/html");
    if (isPage && (xhr.status === 400 || xhr.status === 409)) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
    if (!event.detail.shouldSwap) return;
    // The browser closes a panel that is inserted while another panel of its name is open.
    document.querySelector(".w-more[open]")?.removeAttribute("open");
  });
  const showRow = () => {
    const list = document.querySelector(".w-entities");
    const row = list?.querySelector("[aria-current]");
    if (!row || list.scrollHeight <= list.clientHeight) return;
    list.scrollTop = scrolled;
    const outer = list.getBoundingClientRect();
    const inner = row.getBoundingClientRect();
    if (inner.top < outer.top || inner.bottom > outer.bottom) {
      list.scrollTop += inner.top - outer.top - list.clientHeight / 3;
    }
  };
  document.addEventListener("htmx:afterSettle", showRow);
  showRow();

  // The page says once what was done; the address that stays does not say it again.
  const forget = () => {
    const address = new URL(location.href);
    if (!address.searchParams.has("said")) return;
    address.searchParams.delete("said");
    history.replaceState(history.state, "", address);
  };
  document.addEventListener("htmx:replacedInHistory", forget);
  forget();

  // An opened panel takes the focus; Escape closes the panel. The browser sends "toggle" some time after the panel
  // has opened; a key sends "opened" at once, because the letter after the key belongs into the field.
  const takeFocus = (panel) => {
    if (!panel.matches?.(".w-more[open]") || panel.querySelector("form :focus")) return;
    const marked = String(getSelection()).trim();
    const words = panel.querySelector("[data-words]");
    if (words && marked && !words.value) words.value = marked;
    const wrong = panel.querySelector("[aria-invalid=true]");
    (wrong ?? panel.querySelector("input:not([type=hidden]), select, form button"))?.focus();
  };
  document.addEventListener("toggle", (event) => takeFocus(event.target), true);
  document.addEventListener("opened", (event) => takeFocus(event.target.parentElement));
  document.addEventListener("keydown", (event) => {
    const panel = document.querySelector(".w-more[open]");
    if (event.key !== "Escape" || !panel) return;
    panel.open = false;
    document.getElementById("here")?.focus({ preventScroll: true });
  });

  // A key of a decision without a claim says what to do first. A decision claims a free review itself.
  let before = "";
  document.addEventListener("keydown", (event) => {
    const isSecond = before === "g";
    before = event.key;
    const { unheld, claims } = root()?.dataset ?? {};
    if (!unheld || isSecond || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select") || document.querySelector("dialog[open]")) return;
    if (!(claims === undefined ? "arcmnAfs" : "fs").includes(event.key)) return;
    const line = document.getElementById("unheld") ?? document.createElement("b");
    line.id = "unheld";
    line.textContent = unheld;
    document.querySelector(".w-said")?.prepend(line, " ");
    document.getElementById("announce").textContent = unheld;
  });

  // The claim: renewed at most once in a third of its time, and only after a key or a click.
  let renewed = Date.now();
  const lost = (words) => {
    const line = document.getElementById("lost");
    if (!line) return;
    line.textContent = `${words} What you typed is still here; your next decision claims the review again.`;
    line.hidden = false;
    for (const field of root().querySelectorAll("input[name=claim]")) field.value = "1";
    delete root().dataset.renew;
  };
  const renew = async () => {
    const url = root()?.dataset.renew;
    if (!url || Date.now() - renewed < root().dataset.renewS * 1000) return;
    renewed = Date.now();
    const token = root().querySelector("input[name=csrfmiddlewaretoken]").value;
    const answer = await fetch(url, { method: "POST", headers: { "X-CSRFToken": token } });
    if (answer.status === 409) lost(await answer.text());
  };
  document.addEventListener("keydown", renew);
  document.addEventListener("pointerdown", renew);
  document.addEventListener("htmx:afterSettle", () => { renewed = Date.now(); });
  setInterval(() => {
    if (!root()?.dataset.renew || Date.now() - renewed < root().dataset.renewS * 3000) return;
    lost("You have not worked on this review for a while, so your claim has ended.");
  }, 1000);
})();
