/* The page of a record: hover or focus on an entity marks the entity in image, text and list.
   Without this script, links connect the text and the list. */
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
  // A click on a box goes to its entity, because the Tab key does not stop at boxes.
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
