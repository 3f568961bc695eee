for (const button of document.querySelectorAll("[data-to]")) {
  button.addEventListener("click", () => {
    document.documentElement.lang = button.dataset.to;
    document.documentElement.dataset.language = button.dataset.to;
  });
}
