/* On a page of a record: what is pointed at or focused in one place is marked in the others.
   Without this file the links between text and entities do the same. */
(() => {
  "use strict";
  const root = document.getElementById("reading");
  if (!root) return;
  const parts = [...root.querySelectorAll("[data-e]")];
  const numbers = (part) => part.dataset.e.split(" ");

  const light = (wanted) => {
    for (const part of parts) {
      part.classList.toggle("is-lit", numbers(part).some((each) => wanted.includes(each)));
    }
  };
  const of = (event) => event.target.closest?.("[data-e]");
  root.addEventListener("mouseover", (event) => {
    const part = of(event);
    if (part) light(numbers(part));
  });
  root.addEventListener("mouseleave", () => {
    const part = document.activeElement.closest("[data-e]");
    light(part ? numbers(part) : []);
  });
  root.addEventListener("focusin", (event) => {
    const part = of(event);
    light(part ? numbers(part) : []);
  });
  // A click on the image goes to the entity; its boxes are no stops of the Tab key.
  root.addEventListener("click", (event) => {
    const box = event.target.closest?.(".r-box");
    const entry = box && document.getElementById(`e${box.dataset.e}`);
    if (!entry) return;
    entry.scrollIntoView({ block: "nearest" });
    entry.querySelector("a, [tabindex]").focus({ preventScroll: true });
  });

  root.querySelector("image")?.addEventListener("error", () => {
    document.getElementById("no-image").hidden = false;
  });
})();
